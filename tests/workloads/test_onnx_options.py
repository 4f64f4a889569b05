"""ONNX models with symbolic sizes, and with operations that are not supported."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.foundation.errors import InputError
from tilewright.workloads.onnx.importer import load_onnx, operator_support
from tilewright.workloads.onnx.operations import FOREIGN, OPENED, SUPPORTED
from tilewright.workloads.onnx.options import OnnxOptions

SIZED = {"h": 8, "w": 6}


def odd_model() -> onnx.ModelProto:
    """Two convolutions that can be imported, two operations that cannot, and a reader of one of these."""
    weights = [
        helper.make_tensor("w1", TensorProto.FLOAT, [8, 3, 3, 3], [0.0] * 216),
        helper.make_tensor("w2", TensorProto.FLOAT, [4, 8, 1, 1], [0.0] * 32),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first", pads=[1] * 4),
        helper.make_node("Odd", ["a"], ["o"], name="odd", domain="my.operations"),
        helper.make_node("NonZero", ["a"], ["z"], name="zeros"),
        helper.make_node("Conv", ["a", "w2"], ["y"], name="second"),
        helper.make_node("Conv", ["o", "w2"], ["q"], name="third"),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "q")]
    graph = helper.make_graph(nodes, "odd", given, results, weights)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("my.operations", 1)]
    return helper.make_model(graph, opset_imports=versions)


def test_all_that_is_not_supported_is_named_at_once() -> None:
    """One line names every node, and how to go on without them."""
    with pytest.raises(InputError) as caught:
        load_onnx(odd_model(), options=OnnxOptions(SIZED, asker="flags"))
    told = str(caught.value)
    assert "node odd (Odd): the operation Odd of my.operations is not supported" in told
    assert "node zeros (NonZero)" in told
    assert "--skip-unsupported" in told


def test_the_rest_is_imported_where_that_is_asked_for() -> None:
    """What cannot be imported is listed with its reason, what reads a tensor of unknown shape included."""
    network = load_onnx(odd_model(), options=OnnxOptions(SIZED, skip=True))
    assert [layer.name for layer in network.layers] == ["first", "second"]
    assert [told.partition(":")[0] for told in network.left_out] == [
        "node odd (Odd)",
        "node zeros (NonZero)",
        "node third (Conv)",
    ]
    assert network.layers[0].operator.bounds["P"] == 8
    assert network.layers[0].operator.bounds["Q"] == 6


def test_symbolic_sizes() -> None:
    """A size that is missing is told with its flag, one that no axis has with the nearest name."""
    with pytest.raises(InputError, match=r"axis 3 is w, expected a number.*--dim w=224"):
        load_onnx(odd_model(), options=OnnxOptions({"h": 8}, skip=True, asker="flags"))
    with pytest.raises(InputError, match="unknown name 'hh', did you mean 'h'"):
        load_onnx(odd_model(), options=OnnxOptions({"hh": 8}, skip=True))
    assert load_onnx(odd_model(), 3, options=OnnxOptions(SIZED, skip=True)).batch == 3


def test_every_operation_is_listed() -> None:
    """The list has every supported operation once, with what becomes of it."""
    listed = dict(operator_support())
    own = {name for name in listed if "." not in name}
    assert own == SUPPORTED | OPENED
    foreign = {f"{domain}.{op}" for domain, operations in FOREIGN.items() for op in operations}
    assert listed.keys() - own == foreign
    assert listed["Conv"] == "a layer"
    assert listed["Reshape"].startswith("part of a link")
