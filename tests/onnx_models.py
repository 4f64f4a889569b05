"""Small models as exporters and quantisers write them: sizes computed inside, branches, loops, functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str]
FLOAT, INT64, UINT8, INT8, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.BOOL,
)


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """A node named after its first result; ``_`` leaves an operand out."""
    names = ["" if word == "_" else word for word in inputs.split()]
    made = helper.make_node(op, names, outputs.split(), domain=domain, **attributes)
    made.name = f"at_{outputs.split()[0]}"
    return made


def numbers(name: str, values: Any, kind: Any = np.int64) -> onnx.TensorProto:
    """A stored tensor of given values."""
    return numpy_helper.from_array(np.array(values, kind), name)


def weights(name: str, *shape: int, kind: Any = np.float32) -> onnx.TensorProto:
    """A stored tensor of a shape."""
    return numpy_helper.from_array(np.ones(shape, kind), name)


def value(name: str, kind: int, shape: Shape | None) -> onnx.ValueInfoProto:
    """A tensor's name and type."""
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    stored: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of ONNX's operations, of local functions and of ONNX Runtime's operations."""
    graph = helper.make_graph(list(nodes), "made", list(inputs), list(outputs), list(stored))
    versions = [helper.make_opsetid(*pair) for pair in (("", opset), ("local", 1), ("com.microsoft", 1))]
    return helper.make_model(graph, opset_imports=versions, functions=list(functions), ir_version=10)


def computed_reshape() -> onnx.ModelProto:
    """A reshape as exporters write it: sizes taken apart, converted, multiplied and joined again."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Shape", "c", "s"),
        node("Cast", "s", "f", to=FLOAT),
        node("Slice", "f zero one", "n"),
        node("Slice", "f two four", "hw"),
        node("ReduceProd", "hw", "area", keepdims=1),
        node("Concat", "area n", "joined", axis=0),
        node("Cast", "joined", "front", to=INT64),
        node("Concat", "front minus", "target", axis=0),
        node("Transpose", "c", "t", perm=[2, 3, 0, 1]),
        node("Reshape", "t target", "r"),
        node("MatMul", "r m", "y"),
    ]
    stored = [
        weights("w", 8, 3, 3, 3),
        weights("m", 8, 5),
        *(
            numbers(name, [i])
            for name, i in (("zero", 0), ("one", 1), ("two", 2), ("four", 4), ("minus", -1))
        ),
    ]
    given = [value("x", FLOAT, ["batch", 3, "height", "width"])]
    return model(nodes, given, [value("y", FLOAT, None)], stored)


def branches(*, known: bool) -> onnx.ModelProto:
    """A condition with a wide and a narrow product behind it, computed from a size or an input."""
    wide = helper.make_graph(
        [node("MatMul", "x wide", "t")], "wide", [], [value("t", FLOAT, None)], [weights("wide", 4, 16)]
    )
    narrow = helper.make_graph(
        [
            helper.make_node("Constant", [], ["narrow"], value=weights("", 4, 2)),
            node("MatMul", "x narrow", "t"),
        ],
        "narrow",
        [],
        [value("t", FLOAT, None)],
    )
    sizes = [node("Shape", "x", "s"), node("Gather", "s one", "rows"), node("Greater", "rows limit", "b")]
    nodes = [*(sizes if known else []), node("If", "b", "y", then_branch=wide, else_branch=narrow)]
    given = [value("x", FLOAT, ["batch", "rows", 4]), *([] if known else [value("b", BOOL, [])])]
    return model(nodes, given, [value("y", FLOAT, None)], [numbers("one", 1), numbers("limit", 5)])


def loop(*, known: bool) -> onnx.ModelProto:
    """A state multiplied in every round, the states of all rounds a result; known rounds are three."""
    body = helper.make_graph(
        [
            node("MatMul", "state square", "next"),
            node("Add", "next x", "mixed"),
            node("ReduceSum", "mixed", "total", keepdims=0),
            node("Less", "total huge", "on") if not known else node("Identity", "going", "on"),
            node("Identity", "mixed", "row"),
        ],
        "body",
        [value("round", INT64, []), value("going", BOOL, []), value("state", FLOAT, None)],
        [value("on", BOOL, None), value("mixed", FLOAT, None), value("row", FLOAT, None)],
    )
    nodes = [node("Loop", "three yes begin", "last rows", body=body), node("MatMul", "rows out", "y")]
    if not known:
        nodes[0].input[0] = ""
    stored = [
        numbers("three", 3),
        numbers("yes", True, np.bool_),
        weights("begin", 2, 4),
        weights("square", 4, 4),
        weights("out", 4, 6),
        numbers("huge", 40.0 if not known else 1e30, np.float32),
    ]
    return model(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, None)], stored)


def scan() -> onnx.ModelProto:
    """A sum that runs over the rows of a sequence, a product in every step."""
    body = helper.make_graph(
        [
            helper.make_node("Constant", [], ["square"], value=weights("", 4, 4)),
            node("MatMul", "row square", "product"),
            node("Add", "state product", "next"),
            node("Identity", "next", "out"),
        ],
        "body",
        [value("state", FLOAT, [1, 4]), value("row", FLOAT, [1, 4])],
        [value("next", FLOAT, [1, 4]), value("out", FLOAT, [1, 4])],
    )
    nodes = [node("Scan", "begin x", "last y", body=body, num_scan_inputs=1)]
    given = [value("x", FLOAT, ["steps", 1, 4])]
    return model(nodes, given, [value("y", FLOAT, None)], [weights("begin", 1, 4)])


def functions() -> onnx.ModelProto:
    """A function that calls another one twice, with an attribute that it hands on."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    inner = helper.make_function(
        "local",
        "Dense",
        ["a", "m"],
        ["b"],
        [helper.make_node("MatMul", ["a", "m"], ["p"]), helper.make_node("Relu", ["p"], ["b"])],
        opsets,
    )
    outer = helper.make_function(
        "local",
        "Twice",
        ["a", "m"],
        ["b"],
        [
            helper.make_node("Dense", ["a", "m"], ["t"], domain="local"),
            helper.make_node("Dense", ["t", "m"], ["b"], domain="local"),
        ],
        opsets,
    )
    nodes = [node("Twice", "x m", "t", domain="local"), node("Dense", "t m", "y", domain="local")]
    given = [value("x", FLOAT, ["rows", 4])]
    return model(nodes, given, [value("y", FLOAT, None)], [weights("m", 4, 4)], functions=[inner, outer])


def recurrent(op: str, **attributes: Any) -> onnx.ModelProto:
    """A recurrent node over an open number of steps, and a product with all of its states."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    nodes = [
        node(op, "x w r b", "h", hidden_size=6, **attributes),
        node("Transpose", "h", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t flat", "f"),
        node("MatMul", "f m", "y"),
    ]
    stored = [
        weights("w", directions, gates * 6, 5),
        weights("r", directions, gates * 6, 6),
        weights("b", directions, gates * 12),
        numbers("flat", [0, 0, -1]),
        weights("m", 6 * directions, 3),
    ]
    return model(nodes, [value("x", FLOAT, ["steps", 2, 5])], [value("y", FLOAT, None)], stored)


def quantised() -> onnx.ModelProto:
    """Convolution and products in the integers that quantisers write, scales computed from the data."""
    nodes = [
        node("DynamicQuantizeLinear", "x", "xq xs xz"),
        node("ConvInteger", "xq w xz wz", "ci", pads=[1, 1, 1, 1]),
        node("Cast", "ci", "cf", to=FLOAT),
        node("Mul", "xs s", "scale"),
        node("Mul", "cf scale", "c"),
        node("QuantizeLinear", "c s z", "q"),
        node("QLinearConv", "q s z k s kz s z", "d"),
        node("DequantizeLinear", "d s z", "f"),
        node("GlobalAveragePool", "f", "p"),
        node("Flatten", "p", "r"),
        node("QuantizeLinear", "r s z", "rq"),
        node("QLinearMatMul", "rq s z m s z s z", "u"),
        node("MatMulInteger", "u n z z", "y"),
    ]
    stored = [
        weights("w", 8, 3, 3, 3, kind=np.int8),
        weights("k", 4, 8, 1, 1, kind=np.int8),
        weights("m", 4, 7, kind=np.uint8),
        weights("n", 7, 9, kind=np.uint8),
        numbers("s", 0.5, np.float32),
        numbers("z", 0, np.uint8),
        numbers("wz", 0, np.int8),
        numbers("kz", 0, np.int8),
    ]
    given = [value("x", FLOAT, ["batch", 3, 6, 6])]
    return model(nodes, given, [value("y", TensorProto.INT32, None)], stored, opset=19)
