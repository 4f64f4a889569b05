"""Networks: order, totals, distinct layers, links, and the errors of a malformed graph."""

from __future__ import annotations

import networkx as nx
import pytest

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operators import elementwise, gemm, matmul
from tilewright.workloads.network import Layer, Link, Network

SQUARE = gemm(m=2, n=8, k=8)
SUM = elementwise(shape=(2, 8))


def diamond() -> Network:
    """stem feeds left and right, which are summed; listed in another order than it flows."""
    layers = [
        Layer("sum", SUM, "Add"),
        Layer("right", gemm(m=2, n=8, k=8), "Gemm"),
        Layer("left", SQUARE, "Gemm"),
        Layer("stem", gemm(m=2, n=8, k=4), "Gemm"),
    ]
    links = [
        Link(None, "stem", "A", "x", 8),
        Link("stem", "left", "A", "s", 16),
        Link("stem", "right", "A", "s", 16),
        Link("left", "sum", "I0", "l", 16),
        Link("right", "sum", "I1", "r", 16),
    ]
    return Network("diamond", layers, links, batch=2)


def test_layers_are_in_a_topological_order_that_keeps_the_given_one() -> None:
    """Producers come first; where the links leave a choice, the given order stays."""
    assert [layer.name for layer in diamond().layers] == ["stem", "right", "left", "sum"]


def test_totals_add_up() -> None:
    """Multiply-accumulates and weights are those of all layers, and a sum has neither."""
    network = diamond()
    assert network.macs == 2 * 2 * 8 * 8 + 2 * 8 * 4
    assert network.parameters == 2 * 64 + 32
    assert len(network) == 4
    assert [layer.name for layer in network.mac_layers] == ["stem", "right", "left"]
    assert network.outputs == {"sum"}
    assert repr(network) == "Network('diamond', 4 layers, batch 2, 320 MACs)"


def test_weights_that_another_layer_makes_are_no_parameters() -> None:
    """A product of two activations stores no weights."""
    assert Layer("scores", matmul(batch=2, m=3, n=3, k=3), "MatMul", stored_weights=False).parameters == 0


def test_distinct_layers_are_grouped_by_operator() -> None:
    """Layers that differ in name alone are one distinct layer, in the order of first appearance."""
    groups = diamond().distinct_layers()
    assert [(group.layer.name, group.count, group.names) for group in groups] == [
        ("stem", 1, ("stem",)),
        ("right", 2, ("right", "left")),
        ("sum", 1, ("sum",)),
    ]
    assert [group.layer.name for group in diamond().distinct_layers(mac_only=True)] == ["stem", "right"]


def test_edges_carry_their_links() -> None:
    """The graph's edges hold the links and the elements that flow, and the graph cannot be changed."""
    network = diamond()
    assert network.graph.edges["stem", "left"]["elements"] == 16
    assert network.reads("sum") == network.links[3:]
    assert network.reads("stem") == network.links[:1]
    assert network.layer("left").operator == SQUARE
    with pytest.raises(nx.NetworkXError):
        network.graph.add_node("more")


def test_two_links_between_the_same_layers_share_an_edge() -> None:
    """A layer that reads another twice has one edge with both links."""
    layers = [Layer("a", SUM, "Add"), Layer("b", SUM, "Add")]
    network = Network("n", layers, [Link("a", "b", "I0", "t", 16), Link("a", "b", "I1", "t", 16)])
    assert len(network.graph.edges["a", "b"]["links"]) == 2
    assert network.graph.edges["a", "b"]["elements"] == 32


@pytest.mark.parametrize(
    ("layers", "links", "message"),
    [
        ([], [], "n: expected at least one layer"),
        (["a", "a"], [], "n: a: two layers have this name"),
        (["a"], [Link("x", "a", "I0", "t", 1)], "n: t: links the unknown layer x"),
        (["a", "b"], [Link("a", "b", "W", "t", 1)], "n: b: has no operand W"),
        (["a", "b"], [Link("a", "b", "I0", "t", 1), Link("b", "a", "I0", "u", 1)], "form a cycle"),
    ],
)
def test_malformed_networks_are_refused(layers: list[str], links: list[Link], message: str) -> None:
    """Repeated names, dangling links and cycles are input errors."""
    with pytest.raises(InputError, match=message):
        Network("n", [Layer(name, SUM, "Add") for name in layers], links)


def test_outputs_must_be_layers() -> None:
    """An output that names no layer is an input error."""
    with pytest.raises(InputError, match="ghost: an output that is no layer"):
        Network("n", [Layer("a", SUM, "Add")], outputs=["ghost"])
