"""``show`` and ``list`` on networks and workloads."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from calls import Call

from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.onnx.importer import load_onnx


def test_a_network_is_a_table_with_totals(call: Call) -> None:
    """Every distinct layer has a line with its shape and figures, and the last line adds up."""
    outcome = call("show", "resnet50")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "resnet50 · batch 1 · 73 layers · 54 of them multiply and accumulate"
    (line,) = (line for line in lines if line.startswith("conv2_1.conv2"))
    assert " ".join(line.split()) == "conv2_1.conv2 3 conv K64 C64 P56 Q56 R3 S3 116M 37.0k 201k 255"
    assert " ".join(lines[-1].split()) == "total 73 4.09G 25.6M 16.8M 86.2"


@pytest.mark.parametrize("thing", ["unet:training", "nasnet-a-large", "gpt2-small", "gnmt", "ar-vr-b"])
def test_tables_fit_80_columns(call: Call, thing: str) -> None:
    """Long names and shapes are cut, figures are not."""
    outcome = call("show", thing)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_a_network_as_data(call: Call) -> None:
    """JSON has every layer with its figures, and totals that add up."""
    data = call("show", "mlp", "--batch", "4", "--format", "json").document
    assert (data["model"], data["batch"]) == ("mlp", 4)
    assert data["layers"][0] == {
        "name": "fc1",
        "source": "Gemm",
        "kind": "gemm",
        "bounds": {"M": 4, "N": 1500, "K": 784},
        "macs": 4 * 1500 * 784,
        "parameters": 1500 * 785,
        "activations": 4 * 1500,
        "intensity": 4 * 1500 * 784 / (4 * 784 + 784 * 1500 + 4 * 1500),
        "fused": ["Sigmoid"],
    }
    for figure in ("macs", "parameters", "activations"):
        assert data["totals"][figure] == sum(layer[figure] for layer in data["layers"])


def test_a_workload_as_table_and_data(call: Call, tmp_path: Path) -> None:
    """A workload lists its networks and all runs together, by name or from a file."""
    lines = call("show", "ar-vr-a").out.splitlines()
    assert " ".join(lines[-1].split()) == "all runs 10 412 611.1 G 60.09 M"
    (tmp_path / "mine.yaml").write_text("networks:\n  - {model: mlp, batches: 3}\n")
    assert call("show", "mine.yaml").out.splitlines()[0] == "mine"
    data = call("show", "mine.yaml", "--format", "json").document
    assert data["networks"][0]["batches"] == 3
    assert data["totals"]["macs"] == 3 * 3_181_000


def test_an_onnx_file_comes_back(call: Call, tmp_path: Path) -> None:
    """The file that is written is a model like any other."""
    outcome = call("show", "googlenet", "--batch", "2", "--onnx", "g.onnx")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("g.onnx: ")
    assert load_onnx(tmp_path / "g.onnx").layers == resolve_model("googlenet", batch=2).layers
    assert [path.name for path in tmp_path.glob("*.onnx")] == ["g.onnx"]


@pytest.mark.parametrize("suffix", ["svg", pytest.param("png", marks=pytest.mark.slow)])
def test_a_picture_of_a_network(call: Call, tmp_path: Path, suffix: str) -> None:
    """The picture is written whole, in the format of its ending."""
    pytest.importorskip("matplotlib")
    outcome = call("show", "resnet18", "--plot", f"net.{suffix}")
    assert outcome.code == 0, outcome.err
    content = (tmp_path / f"net.{suffix}").read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert len(content) > 10_000
    assert [path.name for path in tmp_path.glob(f"*.{suffix}")] == [f"net.{suffix}"]


def test_a_missing_matplotlib_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra there is one line that says what to install."""
    genuine = builtins.__import__

    def without(name: str, *args: Any, **rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return genuine(name, *args, **rest)

    monkeypatch.setattr(builtins, "__import__", without)
    outcome = call("show", "mlp", "--plot", "x.png")
    assert outcome.code == 2
    assert "tilewright[plots]" in outcome.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("resnet5", "--onnx", "x.onnx"),
            "only built-in networks can be written as ONNX, did you mean 'resnet50'",
        ),
        (("resnet50", "--onnx", "x.pb"), "x.pb: expected a file that ends in one of: .onnx"),
        (("resnet50", "--onnx", "nowhere/x.onnx"), "nowhere/x.onnx: cannot be written"),
        (("resnet50", "--plot", "x.jpg"), "x.jpg: expected a file that ends in one of: .png, .pdf, .svg"),
        (("mlp", "--plot", "nowhere/x.png"), "nowhere/x.png: cannot be written"),
        (("ar-vr-a", "--plot", "x.png"), "--plot: expected one network"),
        (("mlp", "--format", "jsn"), "did you mean 'json'?"),
        (("ar-vr-c",), "neither a machine nor a model, did you mean"),
        (("resnet500", "--format", "json"), "did you mean 'resnet50'?"),
    ],
)
def test_faults_are_told_in_one_line(call: Call, tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    """Bad requests name what was expected and leave no file behind."""
    outcome = call("show", *args)
    assert outcome.code == 2
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".onnx", ".png", ".pb")]


def test_workloads_are_listed(call: Call) -> None:
    """The list has the built-in workloads with their runs and layers."""
    rows = json.loads(call("list", "workloads", "-f", "json").out)
    assert [(row["workload"], row["runs"], row["MAC layers"]) for row in rows] == [
        ("ar-vr-a", 10, 412),
        ("ar-vr-b", 12, 486),
        ("mlperf-1", 5, 202),
        ("mlperf-8", 40, 1616),
    ]


def test_training_graphs_are_mapped_like_any_model(call: Call) -> None:
    """``:training`` behind a model makes its backward layers models to map."""
    options = ("--layers", "fc4*", "-t", "20", "--factors", "perfect", "-f", "json", "-q")
    outcome = call("map", "mlp:training", "-a", "nvdla-256", *options)
    assert outcome.code == 0, outcome.err
    layers = outcome.document["layers"]
    assert [layer["name"] for layer in layers] == ["fc4", "fc4.error", "fc4.update"]
    assert all(layer["mapping"] is not None for layer in layers)
