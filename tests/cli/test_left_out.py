"""What a network lacks stands beside every claim: nodes that were left out, layers without a mapping."""

from __future__ import annotations

from pathlib import Path

import onnx
from calls import Call
from onnx import TensorProto, helper

from tilewright.report.html.mapping.result import write_result_report
from tilewright.report.records.mapping.document import ResultDocument


def saved(folder: Path, *nodes: onnx.NodeProto) -> Path:
    """A network that begins with an operation which nobody knows, in a file."""
    unknown = helper.make_node("Odd", ["x"], ["o"], name="odd", domain="my.operations")
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4])]
    results = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)]
    weights = [
        helper.make_tensor("w", TensorProto.FLOAT, [2, 2, 1, 1], [0.5] * 4),
        helper.make_tensor("v", TensorProto.FLOAT, [4, 2, 1, 1], [0.5] * 8),
        helper.make_tensor("t", TensorProto.FLOAT, [1], [0.5]),
    ]
    graph = helper.make_graph([unknown, *nodes], "odd", given, results, weights)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("my.operations", 1)]
    path = folder / "odd.onnx"
    onnx.save(helper.make_model(graph, opset_imports=versions), path)
    return path


def convolutions() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Conv", ["a", "v"], ["y"], name="second"),
    ]


def test_no_layer_that_multiplies_is_an_error(call: Call, tmp_path: Path) -> None:
    """Of a network of which one sum is left nothing is called optimal."""
    path = saved(tmp_path, helper.make_node("Add", ["x", "t"], ["y"], name="sum"))
    outcome = call("map", path, "--arch", "tpu-edge", "--skip-unsupported")
    assert outcome.code == 2
    (line,) = outcome.err.strip().splitlines()
    assert "no layer that multiplies is left" in line
    assert "node odd (Odd)" in line


def test_what_was_left_out_stands_beside_the_status(call: Call, tmp_path: Path) -> None:
    """Text, JSON, JSON lines and the report list the nodes and count them."""
    path = saved(tmp_path, *convolutions())
    asked = ("map", path, "--arch", "tpu-edge", "--skip-unsupported", "-q", "--time-limit", "60")
    text = call(*asked).out
    assert "left out: node odd (Odd)" in text
    assert "2 of 2 layers optimal, 1 computing node left out" in text
    outcome = call(*asked, "--format", "json")
    document = outcome.document
    (reported,) = document["left_out"]
    assert reported.startswith("node odd (Odd): the operation Odd")
    assert "left_out" in call(*asked, "--format", "jsonl").out.splitlines()[0]
    page = tmp_path / "page.html"
    write_result_report(page, ResultDocument.model_validate(document))
    assert "1 computing node left out" in page.read_text()


def test_a_total_says_which_layers_have_no_mapping(call: Call, tmp_path: Path) -> None:
    """Sums over layers without a mapping are null, and the layers are named."""
    path = saved(tmp_path, *convolutions())
    demand = ("--constraint", "cycles<=1")
    asked = ("map", path, "-a", "tpu-edge", "--skip-unsupported", "-q", "--time-limit", "60", *demand)
    assert "no totals: " in call(*asked).out
    totals = call(*asked, "--format", "json").document["totals"]
    assert totals["energy_pj"] is None
    assert totals["without_mapping"] == ["first", "second"]
    whole = call(*asked[:-2], "--format", "json").document["totals"]
    assert "without_mapping" not in whole
