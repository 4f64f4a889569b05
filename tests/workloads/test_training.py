"""Training graphs: what is added, how it is linked, and what it costs."""

from __future__ import annotations

import networkx as nx
import pytest

from tilewright.foundation.errors import InputError
from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.operators import elementwise, gemm
from tilewright.workloads.network import Layer, Network
from tilewright.workloads.training import training_network

NAMES = (
    "alexnet",
    "mobilenet-v2",
    "googlenet",
    "resnet18",
    "unet",
    "efficientnet-b0",
    "lstm",
    "bert-base",
    "mlp",
)


@pytest.mark.parametrize("name", NAMES)
def test_training_is_three_times_inference(name: str) -> None:
    """Every layer is there again for its error and for its weights, but nothing is sent back to the input."""
    forward, training = resolve_model(name), resolve_model(f"{name}:training")
    assert training.name == f"{name}:training"
    assert training.layers[: len(forward)] == forward.layers
    spared = 0
    for layer in forward.mac_layers:
        reads = forward.reads(layer.name)
        if all(link.producer is None and "Gather" not in link.moves for link in reads):
            spared += layer.operator.macs
    assert training.macs == 3 * forward.macs - spared
    assert training.parameters == forward.parameters
    assert training.batch == forward.batch
    assert nx.is_directed_acyclic_graph(training.graph)


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_weight_gets_an_update(name: str) -> None:
    """Updates are outputs of the network; each reads what its layer read, and the gradient of its result."""
    forward, training = resolve_model(name), resolve_model(f"{name}:training")
    expected = {f"{layer.name}.update" for layer in forward.mac_layers if layer.stored_weights}
    assert expected <= training.outputs
    assert forward.outputs <= training.outputs
    for update in expected:
        layer = forward.layer(update.removesuffix(".update"))
        own = {(link.producer, link.tensor) for link in forward.reads(layer.name)}
        read_tensors = {(link.producer, link.tensor) for link in training.reads(update)}
        assert own <= read_tensors
        (weights,) = (t for t in layer.operator.inputs if t.name in ("W", "B"))
        assert training.layer(update).operator.output.axes == weights.axes


def residual() -> Network:
    """Two convolutions around which the input of the second is added, a pooling and a classifier."""
    net = Blueprint("residual", 2)
    x = net.conv(net.image(3, 8), 4, 3, pad=1, name="first")
    y = net.conv(x, 4, 3, pad=1, name="second")
    x = net.max_pool(net.add(x, y, name="sum"), 2, stride=2, name="pool")
    net.dense(net.flatten(x), 5, name="fc")
    return net.network()


def test_gradients_of_several_readers_are_added() -> None:
    """Where a result is read twice, both gradients meet in a sum; a sum itself passes them on unchanged."""
    training = training_network(residual())
    backward = [layer.name for layer in training.layers[5:]]
    assert backward == [
        "fc.error",
        "fc.update",
        "pool.error",
        "second.error",
        "second.update",
        "first.error_sum",
        "first.update",
    ]
    summed = training.reads("first.error_sum")
    assert {(link.producer, link.operand) for link in summed} == {
        ("pool.error", "I0"),
        ("second.error", "I1"),
    }
    assert {link.producer for link in training.reads("second.error")} == {"pool.error"}
    assert {link.producer for link in training.reads("second.update")} == {"first", "pool.error"}
    assert [link.producer for link in training.reads("fc.error")] == [None]
    assert training.layer("second.error").operator.kind == "conv2d"
    assert training.layer("second.error").parameters == training.layer("second").parameters


def test_joined_and_cut_tensors_find_their_way_back() -> None:
    """A concatenation's gradient is cut into its parts; gradients of slices are joined, not added."""
    net = Blueprint("joined", 1)
    x = net.input("x", (4,))
    left, right = net.dense(x, 3, name="left"), net.dense(x, 5, name="right")
    both = net.dense(net.concat(left, right), 6, name="both")
    halves = [net.act(net.slice(both, 3 * i, 3 * i + 3, name=f"half{i}"), "Tanh") for i in (0, 1)]
    net.dense(net.add(*halves, name="sum"), 2, name="last")
    training = training_network(net.network())
    assert "both.error_sum" not in training.graph
    into = training.reads("both.error")
    assert sorted(link.elements for link in into) == [3, 3]
    (cut,) = (link for link in training.reads("left.update") if link.operand == "dC")
    assert (cut.producer, cut.elements, cut.moves[0]) == ("both.error", 3, "Slice")


def test_products_of_activations_send_errors_both_ways() -> None:
    """Attention scores have no weights to update, and an error for each operand."""
    training = resolve_model("bert-base:training")
    scores = "layer1.self_attention.scores"
    assert f"{scores}.update" not in training.graph
    for operand, other in (("A", "B"), ("B", "A")):
        operator = training.layer(f"{scores}.error_{operand}").operator
        assert operator.output.name == f"d{operand}"
        assert {t.name for t in operator.inputs} == {"dC", other}
        assert not training.layer(f"{scores}.error_{operand}").stored_weights


def test_scaled_channels_sum_their_error() -> None:
    """The factor that scales a channel gets the sum over the channel's pixels."""
    training = resolve_model("efficientnet-b0:training")
    operator = training.layer("block2_1.scale.error_I1").operator
    assert operator.reduction_dims == {"P", "Q"}
    assert not operator.is_mac


def test_a_network_without_weights_cannot_be_trained() -> None:
    """Where nothing is learned, there is no training graph."""
    network = Network("sums", [Layer("sum", elementwise(shape=(2, 8)), "Add")])
    with pytest.raises(InputError, match="sums: it has no learned parameters"):
        training_network(network)


def test_single_layers_train_their_weights() -> None:
    """A layer text has no layer before it that wants its error."""
    training = resolve_model("gemm:M=4,N=2,K=3:training")
    assert [layer.name for layer in training.layers] == ["gemm", "gemm.update"]
    assert training.parameters == 6
    assert training.layers[0].operator == gemm(m=4, n=2, k=3)
