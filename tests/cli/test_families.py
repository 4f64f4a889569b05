"""Networks with parameters on the command line: shown, mapped, checked, and refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import Call

TINY = "gpt2[tokens=2,batch=1]"
NAME = "gpt2[size=small,phase=prefill,tokens=2,cached=0,batch=1,logits=last,widths=machine]"


def test_show_lists_the_parameters(call: Call) -> None:
    """Every parameter has a line with its value, its meaning, and its default where that differs."""
    outcome = call("show", "qwen3[phase=decode]")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert "size=8B         one of 8B, 30B-A3B" in lines
    assert "phase=decode    prefill or decode; default prefill" in lines
    assert max(map(len, lines)) <= 80
    data = call("show", TINY, "--format", "json").document
    assert (data["model"], data["options"]["tokens"]) == (NAME, "2")
    assert "options" not in call("show", "mlp", "--format", "json").document


def test_every_layer_is_mapped_without_a_flag(call: Call, tmp_path: Path) -> None:
    """The document has softmax, norms and the cache's layers, states all parameters, and passes the check."""
    asked = ("--arch", "nvdla-256", "--factors", "perfect", "--layers", "block1.*", "--out", "told.json")
    outcome = call("map", "gpt2[tokens=2,widths=w4]", *asked, "--time-limit", "60", "-q")
    assert outcome.code == 0, outcome.err
    document = json.loads((tmp_path / "told.json").read_text())
    assert document["model"] == NAME.replace("machine", "w4")
    names = {name for layer in document["layers"] for name in layer["names"]}
    assert {"block1.attention.softmax", "block1.attention_norm", "block1.attention.append_key"} <= names
    assert all(layer["status"] == "optimal" for layer in document["layers"])
    checked = call("check", "told.json")
    assert checked.code == 0, checked.out + checked.err
    document["model"] = NAME.replace("tokens=2", "tokens=3").replace("machine", "w4")
    (tmp_path / "other.json").write_text(json.dumps(document))
    assert call("check", "other.json").code == 5


def test_a_changed_width_is_noticed(call: Call, tmp_path: Path) -> None:
    """A document that claims other widths than its model has, or another energy, fails the check."""
    asked = ("--arch", "nvdla-256", "--factors", "perfect", "--layers", "block1.attention.query")
    assert call("map", "gpt2[tokens=2,widths=w4]", *asked, "--out", "told.json", "-q").code == 0
    document = json.loads((tmp_path / "told.json").read_text())
    weights = next(t for t in document["layers"][0]["operator"]["tensors"] if t["role"] == "weights")
    assert weights["bits"] == 4
    weights["bits"] = 8
    (tmp_path / "other.json").write_text(json.dumps(document))
    assert call("check", "other.json").code == 5


def test_a_family_is_a_suite(call: Call) -> None:
    """``bench`` takes a family as it takes a file of layers, those that multiply nothing included."""
    asked = (
        "--arch",
        "nvdla-256",
        "--layers",
        "text.block1.attention*",
        "--factors",
        "perfect",
        "-f",
        "json",
    )
    outcome = call("bench", "clip", *asked, "--method", "random[victory=5]", "--seeds", "1", "-q")
    assert outcome.code == 0, outcome.err
    layers = ("norm", "query", "scores", "softmax", "mix", "sum")
    assert outcome.document["methods"][0]["runs"] == len(layers)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("map", "llama3[phase=decod]", "--arch", "tpu-v4i"), "did you mean 'decode'?"),
        (("map", "lama3", "--arch", "tpu-v4i"), "did you mean 'llama3'?"),
        (("show", "llama3[siz=8B]"), "did you mean 'size'?"),
        (("map", "llama3[batch=2]", "--batch", "3", "--arch", "tpu-v4i"), "2 contradicts the batch 3"),
        (("map", "vit[widths=w4]:training", "--arch", "nvdla-256"), "expected widths=machine"),
        (("map", "vit[widths=w4]", "--arch", "dmazerunner-256"), "width"),
        (("convert", "vit[widths=w4]", "--to", "timeloop", "--out", "x"), "expected widths=machine"),
        (("show", "vit", "--onnx", "vit.onnx"), "only built-in networks"),
    ],
)
def test_faults_are_one_line(call: Call, arguments: tuple[str, ...], message: str) -> None:
    """Bad parameters end with exit code 2 and one line."""
    outcome = call(*arguments)
    assert outcome.code == 2, outcome.err
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("tilewright: error:")]
    assert message in line
