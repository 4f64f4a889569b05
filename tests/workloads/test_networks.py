"""Built-in networks: published figures, shapes, round trips through ONNX files, and Herald's ratios."""

from __future__ import annotations

import statistics
from pathlib import Path

import onnx
import pytest
from studies.zoo_table import HERALD_RATIOS, atomic_counts, published

from tilewright.foundation.errors import InputError
from tilewright.workloads.catalog import builtin_onnx, resolve_model
from tilewright.workloads.mapping.operators import conv2d, gemm, matmul, transposed_conv2d
from tilewright.workloads.network import Network
from tilewright.workloads.networks import builders
from tilewright.workloads.onnx.importer import load_onnx
from tilewright.workloads.shape_ratio import channel_activation_ratio

NAMES = [*builders()]
LARGE = ("resnet1001", "nasnet-a-large", "pnasnet-5-large")
SMALL_ENOUGH = [name for name in NAMES if name not in LARGE]


@pytest.fixture(scope="module")
def zoo() -> dict[str, Network]:
    """Every network, built once."""
    return {name: resolve_model(name) for name in NAMES}


def test_every_network_has_published_figures_beside_it() -> None:
    """The file of published figures speaks of every network and of no other."""
    assert set(published()) == set(NAMES)
    assert set(atomic_counts()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_those_published(zoo: dict[str, Network], name: str) -> None:
    """Parameters and multiply-accumulates are within 1 % of what is published, or it is said why not."""
    network = zoo[name]
    for kind, ours in (("parameters", network.parameters), ("macs", network.macs)):
        figure = published()[name][kind]
        deviation = figure.deviation(ours)
        if deviation is not None:
            assert (abs(deviation) <= figure.tolerance) is (figure.differs is None), (kind, deviation)


def test_inception_resnet_has_the_modules_that_were_published(zoo: dict[str, Network]) -> None:
    """With the sixth last module and another head, the count is that of the public implementation."""
    network = zoo["inception-resnet-v1"]
    head = 1792 * 1000 + 1000
    last = sum(layer.parameters for layer in network.layers if layer.name.startswith("c5."))
    embedding = 1792 * 512 + 2 * 512
    assert network.parameters - head + last + embedding == 23_482_624


def test_normalisation_is_what_the_resnet_paper_left_out(zoo: dict[str, Network]) -> None:
    """Convolutions and the classifier alone have the 10.2 M parameters of the paper on identity mappings."""
    weights = sum(
        parameter.elements
        for layer in zoo["resnet1001"].mac_layers
        for parameter in layer.learned or ()
        if parameter.name.endswith(("weight", "bias"))
    )
    assert weights == pytest.approx(10.2e6, rel=0.003)


@pytest.mark.parametrize("name", NAMES)
def test_models_are_accepted_and_come_back_the_same(
    zoo: dict[str, Network], name: str, tmp_path: Path
) -> None:
    """The ONNX file passes the full check, and its import has the same layers, links and parameters."""
    model = builtin_onnx(name)
    onnx.checker.check_model(model, full_check=True)
    file = tmp_path / f"{name}.onnx"
    file.write_bytes(model.SerializeToString())
    imported, network = load_onnx(file), zoo[name]
    assert imported.name == network.name == name
    assert imported.layers == network.layers
    assert imported.links == network.links
    assert imported.outputs == network.outputs
    assert imported.parameters == network.parameters
    assert file.stat().st_size < 2_000_000


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if place % 3 == 0 else pytest.mark.slow)
        for place, name in enumerate(SMALL_ENOUGH)
    ],
)
def test_the_work_grows_with_the_batch(zoo: dict[str, Network], name: str) -> None:
    """At batch 3 every network has three times the work, and so has its file written at batch 1."""
    single, three = zoo[name], resolve_model(name, batch=3)
    assert three.batch == 3
    assert [layer.name for layer in three.layers] == [layer.name for layer in single.layers]
    assert three.parameters == single.parameters
    assert three.macs == 3 * single.macs
    assert load_onnx(builtin_onnx(name), batch=3).layers == three.layers


def test_shapes_of_a_few_layers(zoo: dict[str, Network]) -> None:
    """Layers of every kind are what their papers draw."""
    expected = {
        ("resnet50", "conv3_1.conv2"): conv2d(k=128, c=128, h=56, w=56, r=3, s=3, stride=2, pad=1),
        ("resnext50", "conv2_1.conv2"): conv2d(k=128, c=128, h=56, w=56, r=3, s=3, pad=1, groups=32),
        ("unet", "up4.upconv"): transposed_conv2d(k=512, c=1024, p=28, q=28, r=2, s=2, stride=2),
        ("unet", "up4.conv1"): conv2d(k=512, c=1024, h=56, w=56, r=3, s=3),
        ("lstm", "encoder1.gates"): gemm(m=1, n=4000, k=2000, transpose_b=True),
        ("bert-base", "layer1.attention.scores"): matmul(m=128, n=128, k=64, batch=12),
        ("nasnet-a-large", "cell18.1left.depthwise5_1"): conv2d(
            k=672, c=672, h=11, w=11, r=5, s=5, pad=2, groups=672
        ),
        ("mobilenet-v1", "conv2.depthwise"): conv2d(
            k=64, c=64, h=112, w=112, r=3, s=3, stride=2, pad=(0, 0, 1, 1), groups=64
        ),
    }
    for (name, layer), operator in expected.items():
        attention = "attention" in layer
        name_of = layer.replace("layer1.attention", "layer1.self_attention") if attention else layer
        assert zoo[name].layer(name_of).operator == operator, (name, layer)


def test_shared_tensors_count_once(zoo: dict[str, Network]) -> None:
    """GPT-2's output layer uses the table of word vectors, which is counted once."""
    network = zoo["gpt2-small"]
    output = network.layer("words_out")
    assert output.parameters == 50_257 * 768
    assert sum(table.elements for table in network.tables) >= output.parameters
    assert sum(layer.parameters for layer in network.layers) + 1024 * 768 > network.parameters - 1
    assert network.parameters == 124_439_808


@pytest.mark.parametrize("name", HERALD_RATIOS)
def test_ratios_are_those_of_heralds_table(zoo: dict[str, Network], name: str) -> None:
    """Minima agree with table I, medians too but for MobileNetV2, whose description there is another."""
    ratios = [channel_activation_ratio(zoo[name], layer) for layer in zoo[name].mac_layers]
    least, median, most = (float(text) for text in HERALD_RATIOS[name])
    assert min(ratios) == pytest.approx(least, abs=6e-4)
    if name != "mobilenet-v2":
        assert statistics.median(ratios) == pytest.approx(median, abs=6e-4)
    assert max(ratios) >= most


def test_ratios_are_of_layers_that_multiply(zoo: dict[str, Network]) -> None:
    """Pooling has no ratio; a sequence counts one row per token; unlinked layers use their tensor's size."""
    with pytest.raises(ValueError, match="does not multiply"):
        channel_activation_ratio(zoo["resnet50"], zoo["resnet50"].layer("pool1"))
    bert = zoo["bert-base"]
    assert channel_activation_ratio(bert, bert.layer("layer1.inner")) == 768 / 128
    alone = resolve_model("conv:K=8,C=6,H=3,W=3,R=1,S=1")
    assert [channel_activation_ratio(alone, layer) for layer in alone.mac_layers] == [2.0]


def test_only_built_in_networks_become_files() -> None:
    """Other models are refused, with the nearest name."""
    with pytest.raises(InputError, match=r"only built-in networks .* did you mean 'resnet50'"):
        builtin_onnx("resnet5")
    with pytest.raises(InputError, match="only built-in networks"):
        builtin_onnx("resnet50:training")
