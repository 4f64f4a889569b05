"""An ONNX model made ready for import: constants separated, batch set, every shape inferred."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from tilewright.foundation.disk import DOCUMENT_BYTES, read_bytes
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.loading import check_limit
from tilewright.workloads.onnx.batch import check_batch, own_batch, set_batch
from tilewright.workloads.onnx.budgets import check_budgets, label
from tilewright.workloads.onnx.inference import infer_shapes
from tilewright.workloads.onnx.operations import MOVING, RENAMING
from tilewright.workloads.onnx.schemas import known_attributes, opset_versions, schema_fault
from tilewright.workloads.onnx.structure import check_structure

LARGE = 4096
"""Bytes above which a stored tensor is weights rather than a shape, and its values are dropped."""

MOST_LISTED = 50
"""Unsupported nodes that an error names, besides the first."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node that works on activations.

    Parameters
    ----------
    label : how messages name it
    op, name : operation and name, the name possibly empty
    inputs : tensors by position, an empty text where an optional one is left out
    data : the inputs that are activations, each once, in order
    outputs : tensors by position
    attributes : values by name, texts decoded
    position : its place among the model's nodes that work on activations
    """

    label: str
    op: str
    name: str
    inputs: tuple[str, ...]
    data: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    position: int


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """What the import reads of a model.

    Parameters
    ----------
    where : the file, for messages
    nodes : nodes that work on activations, in topological order
    shapes : axes of every tensor
    inputs : the activations that come from outside
    outputs : the results
    batch : samples per run
    stored : the stored tensor behind every constant that only renames, moves or scales one
    unsupported : by label, why a node cannot be imported; empty unless such nodes are left out
    """

    where: str
    nodes: tuple[Node, ...]
    shapes: dict[str, tuple[int, ...]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    batch: int
    stored: dict[str, str]
    unsupported: dict[str, str]

    def shape(self, node: Node, tensor: str) -> tuple[int, ...]:
        """Axes of a tensor; raises ``InputError`` where inference did not find them."""
        if tensor not in self.shapes:
            raise InputError(self.where, node.label, f"the shape of tensor {tensor!r} cannot be inferred")
        return self.shapes[tensor]

    def elements(self, node: Node, tensor: str) -> int:
        """Elements of a tensor."""
        return math.prod(self.shape(node, tensor))


def read_model(path: Path) -> onnx.ModelProto:
    """Load a model file without its external weights.

    Raises
    ------
    InputError : for a file that cannot be read, or that is not a complete ONNX model
    """
    content = read_bytes(path, DOCUMENT_BYTES, "an ONNX model")
    check_structure(content, str(path))
    try:
        model = onnx.load_from_string(content)
    except (DecodeError, ValueError, RecursionError):
        raise InputError(str(path), None, "not an ONNX model, or a truncated one") from None
    check_limit(str(path))
    if not model.graph.node:
        raise InputError(str(path), None, "not an ONNX model: expected a graph with nodes")
    return model


def prepare(
    model: onnx.ModelProto,
    where: str,
    batch: int | None,
    supported: frozenset[str],
    dims: MappingABC[str, int] | None = None,
    *,
    skip: bool = False,
    bounded: bool = True,
) -> OnnxGraph:
    """Infer all shapes of a model for a batch size.

    Parameters
    ----------
    model : left unchanged
    where : the file, for messages
    batch : samples; ``None`` keeps the model's own number, or takes 1 where it is symbolic
    supported : operations that the import knows
    dims : sizes of symbolic axes of the inputs
    skip : leave out what is not supported, instead of raising
    bounded : whether the model is from anywhere: what it may ask for is bound

    Raises
    ------
    InputError : naming the nodes, for operations that are not supported, a tensor that nothing makes,
        shapes that cannot be inferred, and for a model that cannot be run at this batch size
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _drop_weight_values(copy.graph)
    if bounded:
        check_budgets(copy, where)
    constants = constant_tensors(copy.graph, where)
    _set_dims(copy.graph, where, constants, dims or {})
    versions = opset_versions(copy)
    nodes = _nodes(copy.graph, constants, versions)
    unsupported: dict[str, str] = {}
    for node, proto in zip(nodes, _activation_protos(copy.graph, constants), strict=True):
        if node.op not in supported or proto.domain not in ("", "ai.onnx"):
            domain = f" of {proto.domain}" if proto.domain else ""
            unsupported[node.label] = f"the operation {node.op}{domain} is not supported"
        elif (reason := schema_fault(proto, versions)) is not None:
            unsupported[node.label] = reason
    if unsupported and not skip:
        first, *others = unsupported
        listed = [
            *others[:MOST_LISTED],
            *([f"{len(others) - MOST_LISTED:,} more"] if others[MOST_LISTED:] else []),
        ]
        more = f"; nor {'is' if len(others) == 1 else 'are'} {', '.join(listed)}" if others else ""
        raise InputError(where, first, f"{unsupported[first]}{more} (--skip-unsupported leaves them out)")
    original = own_batch(copy.graph, where, constants)
    shapes = infer_shapes(copy, where, strict=not skip, bounded=bounded)
    if batch is not None and batch != original.size:
        before = shapes
        set_batch(copy.graph, where, constants, original, batch)
        shapes = infer_shapes(copy, where, strict=not skip, bounded=bounded)
        check_batch(copy.graph, where, constants, original, batch, before, shapes)
    inputs = tuple(value.name for value in copy.graph.input if value.name not in constants)
    outputs = tuple(value.name for value in copy.graph.output)
    size = original.size if batch is None else batch
    stored = stored_tensors(copy.graph, constants)
    return OnnxGraph(where, nodes, shapes, inputs, outputs, size, stored, unsupported)


def _set_dims(
    graph: onnx.GraphProto, where: str, constants: frozenset[str], dims: MappingABC[str, int]
) -> None:
    """Write sizes into symbolic axes of the inputs; raises ``InputError`` for a name that no axis has."""
    axes = [
        axis
        for value in graph.input
        if value.name not in constants
        for axis in value.type.tensor_type.shape.dim
    ]
    known = sorted({axis.dim_param for axis in axes if axis.dim_param})
    for name, size in dims.items():
        if name not in known:
            reported = unknown_name(name, known) if known else "the inputs have no symbolic axes"
            raise InputError("--dim", name, f"{where}: {reported}")
        for axis in axes:
            if axis.dim_param == name:
                axis.dim_value = size


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
        if node.op_type in ("Shape", "Size") or all(tensor in constants for tensor in node.input if tensor):
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


def _activation_protos(graph: onnx.GraphProto, constants: frozenset[str]) -> Iterator[onnx.NodeProto]:
    return (node for node in graph.node if any(tensor not in constants for tensor in node.output))


def _nodes(
    graph: onnx.GraphProto, constants: frozenset[str], versions: MappingABC[str, int]
) -> tuple[Node, ...]:
    return tuple(
        Node(
            label=label(node, i),
            op=node.op_type,
            name=node.name,
            inputs=tuple(node.input),
            data=tuple(dict.fromkeys(t for t in node.input if t and t not in constants)),
            outputs=tuple(node.output),
            attributes={name: _value(raw) for name, raw in known_attributes(node, versions).items()},
            position=i,
        )
        for i, node in enumerate(_activation_protos(graph, constants))
    )


def _value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _drop_weight_values(graph: onnx.GraphProto) -> None:
    """Inference needs the values of shape tensors only, and copies whatever it is given."""
    for tensor in graph.initializer:
        if tensor.ByteSize() > LARGE:
            dims, name, kind = list(tensor.dims), tensor.name, tensor.data_type
            tensor.Clear()
            tensor.dims.extend(dims)
            tensor.name, tensor.data_type = name, kind
