"""Bits of elements as quantised ONNX models store them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.onnx.importer import load_onnx
from tilewright.workloads.onnx.options import OnnxOptions

STORED = OnnxOptions(stored_widths=True)


def model(nodes: Sequence[onnx.NodeProto], result: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Nodes from a float ``x`` (1 x 4 x 6 x 6) to ``y``, with weights of 8 bits, a scale and a zero point."""
    held = {
        "w": np.ones((8, 4, 3, 3), np.int8),
        "scale": np.float32(0.1),
        "zero": np.int8(0),
        "wide": np.ones((8, 4, 3, 3), np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
        [helper.make_tensor_value_info("y", result, (1, 8, 4, 4))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])


def node(op: str, inputs: str, output: str) -> onnx.NodeProto:
    """A node of some inputs."""
    return helper.make_node(op, inputs.split(), [output], name=f"{op}_{output}")


BEFORE = [node("QuantizeLinear", "x scale zero", "q"), node("DequantizeLinear", "q scale zero", "d")]
WEIGHTS = [node("DequantizeLinear", "w scale zero", "wd")]
AFTER = [node("Relu", "c", "r"), node("QuantizeLinear", "r scale zero", "qr")]
LAST = [node("DequantizeLinear", "qr scale zero", "y")]


def convolution(proto: onnx.ModelProto, options: OnnxOptions = STORED) -> Operator:
    """The operator of the only layer that multiplies."""
    (layer,) = load_onnx(proto, options=options).mac_layers
    return layer.operator


@pytest.mark.parametrize(
    ("nodes", "result", "bits"),
    [
        ([*BEFORE, *WEIGHTS, node("Conv", "d wd", "c"), *AFTER, *LAST], TensorProto.FLOAT, (8, 8, 8)),
        ([*BEFORE, *WEIGHTS, node("Conv", "d wd", "y")], TensorProto.FLOAT, (8, 8, None)),
        ([*WEIGHTS, node("Conv", "x wd", "y")], TensorProto.FLOAT, (None, 8, None)),
        (
            [*BEFORE[:1], node("QLinearConv", "q scale zero w scale zero scale zero", "y")],
            TensorProto.INT8,
            (8, 8, 8),
        ),
        ([*BEFORE[:1], node("ConvInteger", "q w", "y")], TensorProto.INT32, (8, 8, None)),
    ],
)
def test_operands_and_results_have_the_bits_they_are_stored_with(
    nodes: list[onnx.NodeProto], result: int, bits: tuple[int | None, ...]
) -> None:
    """Q and DQ pairs, weights alone, and operations on integers; a result that others read has no width."""
    operator = convolution(model(nodes, result))
    assert tuple(tensor.bits for tensor in operator.tensors) == bits
    assert operator.output.sum_bits == 32


def test_floats_and_models_that_are_not_asked_state_nothing() -> None:
    """A float layer states no width, nor does a quantised one by default."""
    plain = convolution(model([node("Conv", "x wide", "y")]))
    asked = [*BEFORE, *WEIGHTS, node("Conv", "d wd", "c"), *AFTER, *LAST]
    default = convolution(model(asked), OnnxOptions())
    assert not plain.states_widths
    assert not default.states_widths


def test_costs_follow_the_stored_bits(tmp_path: Path) -> None:
    """On a machine of 16 bits, operands of 8 cost half at DRAM; the mapping is proven as any other."""
    path = tmp_path / "quantised.onnx"
    onnx.save(model([*BEFORE, *WEIGHTS, node("Conv", "d wd", "c"), *AFTER, *LAST]), path)
    machine = tw.machine("eyeriss-168")
    energies = []
    for stored in (False, True):
        network = tw.network(path, stored_widths=stored)
        answer = tw.solve(network.on(machine, objective="energy"))
        assert answer.optimal
        energies.append(answer.layers[0].value)
    assert energies[1] < energies[0]
