"""Models by name: every kind of text, and what is said about unknown ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tilewright.foundation.errors import InputError, did_you_mean, one_line
from tilewright.workloads import catalog, networks, totals
from tilewright.workloads.catalog import list_models, resolve_model
from tilewright.workloads.mapping.operators import fully_connected, gemm
from tilewright.workloads.networks import ADDED

SHIPPED = {
    "alexnet": (0.655, 8),
    "densenet121": (2.834, 121),
    "inception_v1": (1.432, 58),
    "inception_v2": (2.019, 70),
    "resnet50": (4.089, 54),
    "shufflenet": (0.125, 50),
    "squeezenet": (0.349, 26),
    "vgg19": (19.632, 19),
    "zfnet512": (1.482, 8),
}

BUILTIN = '''"""A test network."""
from tilewright.workloads.network import Layer, Network
from tilewright.workloads.mapping.operators import gemm

def build(batch):
    return Network("tiny-net", [Layer("only", gemm(m=batch, n=2, k=3), "gemm")], batch=batch)

MODELS = {"tiny-net": build}
'''


def test_all_shipped_models_are_listed() -> None:
    """The onnx package's networks are listed by their short names."""
    assert [name for name in list_models() if name.startswith("onnx:")] == [
        f"onnx:{name}" for name in SHIPPED
    ]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models_have_their_known_size(name: str) -> None:
    """Every shipped network imports with the known multiply-accumulates and MAC layers."""
    network = resolve_model(f"onnx:{name}")
    giga, layers = SHIPPED[name]
    assert network.name == name
    assert network.batch == 1
    assert round(network.macs / 1e9, 3) == giga
    assert len(network.mac_layers) == layers


def test_shipped_models_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the onnx package ships is trusted as its code is, so its inference needs no process of its own."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert len(resolve_model("onnx:squeezenet").layers) > 10


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models_scale_with_the_batch(name: str) -> None:
    """At another batch every layer has that much more work, although the models have batch 1 written in."""
    single, many = resolve_model(f"onnx:{name}"), resolve_model(f"onnx:{name}", batch=6)
    assert many.batch == 6
    assert many.parameters == single.parameters
    assert [layer.name for layer in many.layers] == [layer.name for layer in single.layers]
    for small, large in zip(single.layers, many.layers, strict=True):
        assert large.operator.iterations == 6 * small.operator.iterations
    assert [link.elements for link in many.links] == [6 * link.elements for link in single.links]


def test_a_layer_text_is_a_network_of_one_layer() -> None:
    """A layer text resolves to one layer of that operator, with the batch filled in."""
    network = resolve_model("gemm:M=512,N=768,K=768")
    assert [layer.operator for layer in network.layers] == [gemm(m=512, n=768, k=768)]
    assert resolve_model("fc:K=2,C=3", batch=5).layers[0].operator == fully_connected(n=5, k=2, c=3)
    assert resolve_model("fc:K=2,C=3", batch=5).batch == 5
    assert resolve_model("conv:N=4,K=1,C=1,P=1,Q=1,R=1,S=1").batch == 4
    assert resolve_model("matmul:B=2,M=2,N=2,K=2").parameters == 0


def test_a_yaml_file_is_a_network_of_its_layers(tmp_path: Path) -> None:
    """A YAML file resolves to its layers, unlinked and named after the file."""
    path = tmp_path / "three.yml"
    path.write_text("- gemm:M=1,N=2,K=3\n- pool:C=3,H=2,W=2\n- gemm:M=1,N=2,K=3\n")
    network = resolve_model(str(path))
    assert network.name == "three"
    assert [layer.name for layer in network.layers] == ["gemm", "pool", "gemm#2"]
    assert len(network.distinct_layers()) == 2
    assert not network.links


def test_a_file_in_the_networks_folder_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module beside the built-in networks is found, and its models are listed and built by name."""
    (tmp_path / "tiny_net.py").write_text(BUILTIN)
    monkeypatch.setattr(networks, "__path__", [*networks.__path__, str(tmp_path)])
    assert "tiny-net" in list_models()
    assert resolve_model("tiny-net", batch=7).macs == 42
    assert resolve_model("tiny-net").batch == 1
    with pytest.raises(InputError, match="did you mean 'tiny-net'"):
        resolve_model("tinynet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "model: the name is empty"),
        ("onnx:resnet5", "onnx:resnet5: no such model, did you mean 'resnet50'?"),
        ("squeezenet", "squeezenet: no such model, did you mean 'onnx:squeezenet'?"),
        ("resnet5", "resnet5: no such model, did you mean 'resnet50'?"),
        ("sqeezenet", "sqeezenet: no such model, did you mean 'onnx:squeezenet'?"),
        ("conb:K=1", "conb:K=1: unknown layer kind 'conb', did you mean 'conv'?"),
        ("missing.onnx", "missing.onnx: cannot be read: No such file or directory"),
        ("missing.yaml", "missing.yaml: cannot be read: No such file or directory"),
        ("q" * 5000, "no such model"),
        ("a\0b.onnx", "a\0b.onnx: "),
        ("a\0b.yaml", "a\0b.yaml: "),
        ("a\0b", "a\0b: no such model"),
    ],
)
def test_unknown_names_are_told_with_the_nearest(text: str, message: str) -> None:
    """Names that mean nothing are told in one line, with the nearest known one."""
    with pytest.raises(InputError) as caught:
        resolve_model(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file of another kind is told which endings are read."""
    path = tmp_path / "model.pb"
    path.write_text("x")
    with pytest.raises(InputError, match=r"expected a file that ends in \.onnx"):
        resolve_model(str(path))


def test_a_batch_below_one_is_refused() -> None:
    """The batch is at least 1 for every kind of model."""
    with pytest.raises(InputError, match="batch: expected at least 1, got 0"):
        resolve_model("onnx:resnet50", batch=0)


def test_messages_stay_on_one_line() -> None:
    """Texts with line breaks and other libraries' messages become one line."""
    assert str(InputError("a\nb", "c", "d\n e")) == "a b: c: d e"
    assert one_line(ValueError("x\ny" * 500)).endswith("…")
    assert one_line(ValueError()) == "ValueError"
    assert did_you_mean("zzz", ["abc"]) == ""


def test_totals_are_kept_between_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the networks; what is kept is not built again, what was damaged or added is."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(catalog, "list_models", lambda: (*sorted(["mlp", "lstm", *ADDED]),))
    first = totals.totals_of_models(pytest.fail)
    assert [row.name for row in first] == ["lstm", "mlp"]
    for row in first:
        network = resolve_model(row.name)
        assert (row.layers, row.macs, row.parameters) == (
            len(network.mac_layers),
            network.macs,
            network.parameters,
        )
        assert row.distinct == len({layer.operator for layer in network.mac_layers})
    built: list[str] = []
    build = totals._built

    def noted(name: str) -> totals.ModelTotals:
        built.append(name)
        return build(name)

    monkeypatch.setattr(totals, "_built", noted)
    assert totals.totals_of_models(pytest.fail) == first
    assert built == []
    with monkeypatch.context() as more:
        more.setitem(ADDED, "mine", networks.builders()["mlp"])
        assert [row.name for row in totals.totals_of_models(pytest.fail)] == ["lstm", "mine", "mlp"]
        assert built == ["mine"]
    (kept,) = tmp_path.glob("models-*.json")
    kept.write_text("[{}]")
    assert totals.totals_of_models(pytest.fail) == first
    assert built == ["mine", "lstm", "mlp"]
