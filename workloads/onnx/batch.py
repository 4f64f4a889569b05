"""Setting the batch size of an ONNX model, where it is symbolic and where it is written in as a number."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.foundation.errors import InputError

SHAPE_OPERANDS = {"Reshape": 1, "Expand": 1, "Resize": 3}
"""Which input of an operation is the shape of its result."""

Shapes = MappingABC[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Batch:
    """A model's own batch.

    Parameters
    ----------
    size : samples, 1 where symbolic
    axes : every (input, axis position) that is the batch
    """

    size: int
    axes: frozenset[tuple[str, int]]


def own_batch(graph: onnx.GraphProto, where: str, constants: frozenset[str]) -> Batch:
    """Find the batch of a model, and write 1 where it is symbolic.

    The batch is the first axis of the first input, the first axis of every other input that has the same
    number there, and every axis of the same symbol.

    Parameters
    ----------
    graph : changed in place where the batch is symbolic
    constants : tensors that do not depend on the inputs

    Raises
    ------
    InputError : for inputs without a shape or a batch axis, and for an axis other than the batch that is
        not a positive number
    """
    inputs = [value for value in graph.input if value.name not in constants]
    sizes: dict[tuple[str, int], int | str] = {}
    for value in inputs:
        if not value.type.tensor_type.HasField("shape"):
            raise InputError(where, f"input {value.name}", "has no shape")
        for i, axis in enumerate(value.type.tensor_type.shape.dim):
            sizes[value.name, i] = axis.dim_value if axis.HasField("dim_value") else axis.dim_param
    first = next((size for (_, i), size in sizes.items() if i == 0), None)
    if first is None:
        raise InputError(where, None, "expected an input with a batch axis")
    axes = frozenset(
        key
        for key, size in sizes.items()
        if size == first and (key[1] == 0 or (isinstance(first, str) and first != ""))
    )
    for (name, i), size in sizes.items():
        is_symbolic_batch = (name, i) in axes and isinstance(first, str)
        if not is_symbolic_batch and (isinstance(size, str) or size < 1):
            hint = f" (--dim {size}=224 sets one)" if isinstance(size, str) and size else ""
            raise InputError(where, f"input {name}", f"axis {i} is {size or 'open'}, expected a number{hint}")
    batch = Batch(first if isinstance(first, int) else 1, axes)
    _write(graph, batch, batch.size)
    return batch


def set_batch(graph: onnx.GraphProto, where: str, constants: frozenset[str], own: Batch, batch: int) -> None:
    """Write another batch into the inputs and into the constants that reshape activations.

    A constant that reshapes activations gets its first number scaled, unless that is 0 or -1, which follow
    the batch by themselves.  Whether that was right is for `check_batch` to say.

    Parameters
    ----------
    graph : changed in place
    constants : tensors that do not depend on the inputs
    own : the model's own batch
    batch : samples

    Raises
    ------
    InputError : for a batch below 1
    """
    if batch < 1:
        raise InputError(where, "batch", f"expected at least 1, got {batch}")
    _write(graph, own, batch)
    _scale_reshapes(graph, where, constants, _dependent(graph, constants, own), own.size, batch)


def _write(graph: onnx.GraphProto, own: Batch, size: int) -> None:
    for value in graph.input:
        for i, axis in enumerate(value.type.tensor_type.shape.dim):
            if (value.name, i) in own.axes:
                axis.dim_value = size


def check_batch(
    graph: onnx.GraphProto,
    where: str,
    constants: frozenset[str],
    original: Batch,
    batch: int,
    before: Shapes,
    after: Shapes,
) -> None:
    """Make sure that every activation grew with the batch along exactly one axis.

    Parameters
    ----------
    graph : the model's graph, set to the new batch
    where : the file's name, for errors
    constants : names of tensors that are no activations
    original : the model's own batch
    batch : samples of the new one
    before, after : shapes of tensors by name at the model's own batch and at the new one

    Raises
    ------
    InputError : naming the first node whose result did not, because a batch is written into the model
    """
    dependent = _dependent(graph, constants, original)
    for node in graph.node:
        for tensor in node.output:
            if tensor not in dependent or tensor not in before:
                continue
            old, new = before[tensor], after.get(tensor, ())
            grown = [(b, a) for b, a in zip(old, new, strict=False) if b != a]
            if len(old) != len(new) or len(grown) != 1 or grown[0][0] * batch != grown[0][1] * original.size:
                raise InputError(
                    where,
                    f"node {node.name or tensor} ({node.op_type})",
                    f"its result has shape {list(old)} at batch {original.size} and {list(new)} at batch "
                    f"{batch}: the batch is written into the model; run it at batch {original.size}",
                )


def _dependent(graph: onnx.GraphProto, constants: frozenset[str], own: Batch) -> set[str]:
    dependent = {name for name, _ in own.axes}
    for node in graph.node:
        if any(tensor in dependent for tensor in node.input):
            dependent.update(tensor for tensor in node.output if tensor and tensor not in constants)
    return dependent


def _stored_sizes(tensor: onnx.TensorProto) -> np.ndarray | None:
    """A copy of a row of numbers that the model itself holds; nothing for any other tensor."""
    numeric = tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.FLOAT)
    if not numeric or len(tensor.dims) != 1 or onnx.external_data_helper.uses_external_data(tensor):
        return None
    try:
        sizes = numpy_helper.to_array(tensor).copy()
    except (ValueError, TypeError):  # of another length than was declared
        return None
    return sizes if sizes.size and np.all(np.isfinite(sizes)) else None


def _scale_reshapes(
    graph: onnx.GraphProto, where: str, constants: frozenset[str], dependent: set[str], old: int, batch: int
) -> None:
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                if attribute.name == "value":
                    stored[node.output[0]] = attribute.t
                elif attribute.name == "value_ints":
                    stored[node.output[0]] = numpy_helper.from_array(np.array(attribute.ints, np.int64))
    for i, node in enumerate(graph.node):
        at = SHAPE_OPERANDS.get(node.op_type)
        if at is None or len(node.input) <= at or node.input[0] not in dependent:
            continue
        target = stored.get(node.input[at])
        sizes = None if target is None else _stored_sizes(target)
        if sizes is not None and sizes[0] > 0 and sizes[0] % old == 0:
            if sizes[0] // old * batch > np.iinfo(np.int32).max:
                raise InputError(where, "batch", f"a result of {sizes[0]} rows grows too large with {batch}")
            sizes[0] = sizes[0] // old * batch
            name = f"{node.input[at]}/batch{batch}/{i}"
            graph.initializer.append(numpy_helper.from_array(sizes, name))
            node.input[at] = name
