"""Tensors that do not depend on a model's inputs: which they are, where they are stored, what they hold."""

from __future__ import annotations

import math
from collections.abc import Iterable

import onnx

from tilewright.foundation.errors import InputError
from tilewright.workloads.onnx.budgets import label
from tilewright.workloads.onnx.operations import MOVING, RENAMING
from tilewright.workloads.onnx.unfolding.bodies import captured
from tilewright.workloads.onnx.unfolding.evaluation import constant_value, stored_values

LARGE = 4096
"""Bytes above which a stored tensor is weights rather than a shape, and its values are dropped."""
_FEW = 64
"""Integers of a constant that may be axes, steps or lengths."""
_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def constant_tensors(graph: onnx.GraphProto, where: str) -> frozenset[str]:
    """Tensors that do not depend on the network's inputs: weights, shapes, and what is made from them.

    Raises
    ------
    InputError : for a node that reads a tensor which nothing before it makes
    """
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {tensor.values.name for tensor in graph.sparse_initializer}
    known = constants | {value.name for value in graph.input} | {""}
    for i, node in enumerate(graph.node):
        for tensor in node.input:
            if tensor not in known:
                raise InputError(
                    where, label(node, i), f"reads tensor {tensor!r}, which no earlier node produces"
                )
        known.update(node.output)
        read = (*node.input, *captured(node))
        if node.op_type in ("Shape", "Size") or all(tensor in constants for tensor in read if tensor):
            constants.update(node.output)
    for value in graph.output:
        if value.name not in known:
            raise InputError(where, None, f"the output {value.name!r} is made by no node")
    return frozenset(constants)


def stored_tensors(graph: onnx.GraphProto, constants: frozenset[str]) -> dict[str, str]:
    """The stored tensor behind every constant that is one, or that only renames, moves or scales one.

    Parameters
    ----------
    graph : nodes in topological order
    constants : tensors that do not depend on the network's inputs

    Returns
    -------
    Stored tensor by constant; constants that are computed in another way are missing
    """
    roots = {tensor.name: tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if not node.output or not constants.issuperset(node.output):
            continue
        if node.op_type in ("Constant", "ConstantOfShape"):
            roots[node.output[0]] = node.output[0]
        elif (
            node.op_type in RENAMING | MOVING | {"Cast", "DequantizeLinear"}
            and {*node.input[:1]} & roots.keys()
        ):
            roots.update(dict.fromkeys(node.output, roots[node.input[0]]))
    return roots


def small_numbers(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Values of the small stored tensors of integers."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            held = constant_value(node)
            if held is not None:
                tensors[node.output[0]] = held
    numbers = {}
    for name, tensor in tensors.items():
        if tensor.data_type in _INTEGERS and math.prod(tensor.dims) <= _FEW:
            values = stored_values(tensor)
            if values is not None:
                numbers[name] = tuple(int(value) for value in values.reshape(-1))
    return numbers


def drop_weight_values(model: onnx.ModelProto) -> None:
    """Inference needs the values of shape tensors only, and copies whatever it is given."""
    for function in model.functions:
        _drop_held_values(function.node)
    _drop_graph_values(model.graph)


def _drop_graph_values(graph: onnx.GraphProto) -> None:
    for tensor in graph.initializer:
        _drop_values(tensor)
    _drop_held_values(graph.node)


def _drop_held_values(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t") and node.op_type == "Constant":
                _drop_values(attribute.t)
            if attribute.HasField("g"):
                _drop_graph_values(attribute.g)


def _drop_values(tensor: onnx.TensorProto) -> None:
    if tensor.ByteSize() > LARGE:
        dims, name, kind = list(tensor.dims), tensor.name, tensor.data_type
        tensor.Clear()
        tensor.dims.extend(dims)
        tensor.name, tensor.data_type = name, kind


def state_defaults(model: onnx.ModelProto) -> None:
    """Write down the default of 1 that the onnx package's inference takes for 0: one side of a spectrum."""
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        _state_defaults(nodes)


def _state_defaults(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        if node.op_type == "STFT" and not any(held.name == "onesided" for held in node.attribute):
            node.attribute.append(onnx.helper.make_attribute("onesided", 1))
        for held in node.attribute:
            if held.HasField("g"):
                _state_defaults(held.g.node)


def integer_bits(model: onnx.ModelProto) -> dict[str, int]:
    """Bits of all tensors of integers whose kind is known: those of data, not of sizes and indices."""
    kinds = onnx.TensorProto
    known = {kinds.INT4: 4, kinds.UINT4: 4, kinds.INT8: 8, kinds.UINT8: 8, kinds.INT16: 16, kinds.UINT16: 16}
    bits = {}
    for value in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        if value.type.tensor_type.elem_type in known:
            bits[value.name] = known[value.type.tensor_type.elem_type]
    for tensor in model.graph.initializer:
        if tensor.data_type in known:
            bits[tensor.name] = known[tensor.data_type]
    return bits
