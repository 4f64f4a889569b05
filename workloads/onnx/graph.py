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
from tilewright.foundation.errors import InputError
from tilewright.foundation.loading import check_limit
from tilewright.workloads.onnx.batch import check_batch, own_batch, set_batch
from tilewright.workloads.onnx.budgets import MOST_NODES, check_budgets, label
from tilewright.workloads.onnx.constants import (
    constant_tensors,
    drop_weight_values,
    integer_bits,
    small_numbers,
    state_defaults,
    stored_tensors,
)
from tilewright.workloads.onnx.inference import Shapes, infer_shapes, open_model, read_shapes
from tilewright.workloads.onnx.operations import unsupported_reason
from tilewright.workloads.onnx.options import OnnxOptions, is_certain
from tilewright.workloads.onnx.schemas import known_attributes, opset_versions, schema_fault
from tilewright.workloads.onnx.sizes import OpenAxis, fill_axes, open_axes, set_sizes
from tilewright.workloads.onnx.structure import check_structure
from tilewright.workloads.onnx.unfolding.choices import Choices
from tilewright.workloads.onnx.unfolding.evaluation import OWN_DOMAINS

MOST_LISTED = 50
"""Nodes with the same fault that an error names, besides the first."""


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
    domain : of its operation, empty for ONNX itself
    """

    label: str
    op: str
    name: str
    inputs: tuple[str, ...]
    data: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    position: int
    domain: str = ""


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
    unsupported : by label, why a node cannot be imported
    numbers : values of the small constants of integers
    opset : version of ONNX's operations
    bits : of the elements of tensors of integers, but for those of 32 and more
    """

    where: str
    nodes: tuple[Node, ...]
    shapes: dict[str, tuple[int, ...]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    batch: int
    stored: dict[str, str]
    unsupported: dict[str, str]
    numbers: dict[str, tuple[int, ...]]
    opset: int
    bits: dict[str, int]

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
    options: OnnxOptions,
    *,
    opened: bool = False,
    bounded: bool = True,
) -> OnnxGraph:
    """Infer all shapes of a model for a batch size.

    Parameters
    ----------
    model : left unchanged
    where : the file, for messages
    batch : samples; ``None`` keeps the model's own number, or takes 1 where it is symbolic
    options : sizes of open axes, and what else the user says
    opened : open branches, loops and functions, and compute constants; without, the onnx package infers the
        shapes of the whole graph at once, which is faster
    bounded : whether the model is from anywhere: what it may ask for is bound

    Raises
    ------
    InputError : for a tensor that nothing makes, open sizes, shapes that cannot be inferred, and for a model
        that cannot be run at this batch size; where it is not opened, for all that only opening may tell
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    drop_weight_values(copy)
    state_defaults(copy)
    if bounded:
        check_budgets(copy, where)
    if "" not in opset_versions(copy):
        raise InputError(where, None, "states no version of ONNX's operations, expected a whole ONNX model")
    if not opened and (copy.functions or any(_is_compound(node) for node in copy.graph.node)):
        raise InputError(where, None, "has functions, branches, loops or operations of ONNX Runtime")
    constants = frozenset(
        tensor.name
        for tensor in (*copy.graph.initializer, *(s.values for s in copy.graph.sparse_initializer))
    )
    constant_tensors(copy.graph, where)
    set_sizes(copy.graph, where, constants, options.dims)
    missing = open_axes(copy.graph, where, constants)
    if missing:
        raise _open_error(copy, where, constants, missing, options, opened=opened, bounded=bounded)
    original = own_batch(copy.graph, where, constants)
    whole, shapes = _inferred(copy, where, options, opened=opened, bounded=bounded)
    if batch is not None and batch != original.size:
        before = shapes
        inner = constant_tensors(copy.graph, where)
        set_batch(copy.graph, where, inner, original, batch)
        whole, shapes = _inferred(copy, where, options, opened=opened, bounded=bounded)
        check_batch(whole.graph, where, constant_tensors(whole.graph, where), original, batch, before, shapes)
    return _read(whole, where, original.size if batch is None else batch, shapes, options)


def _inferred(
    model: onnx.ModelProto, where: str, options: OnnxOptions, *, opened: bool, bounded: bool
) -> tuple[onnx.ModelProto, Shapes]:
    """The model as it is imported, and the shapes of its tensors."""
    if not opened:
        return model, infer_shapes(model, where, bounded=bounded)
    choices = Choices(dict(options.branches), dict(options.trips), MOST_NODES)
    whole = open_model(model, where, choices, bounded=bounded)
    return whole, read_shapes(whole, where)


def _read(model: onnx.ModelProto, where: str, batch: int, shapes: Shapes, options: OnnxOptions) -> OnnxGraph:
    """What the import needs of a model whose shapes are known."""
    constants = constant_tensors(model.graph, where)
    versions = opset_versions(model)
    nodes = _nodes(model.graph, constants, versions)
    causes = {entry.key: entry.value for entry in model.metadata_props} if model.metadata_props else {}
    unsupported: dict[str, str] = {}
    for node, proto in zip(nodes, _activation_protos(model.graph, constants), strict=True):
        reason = next((causes[name] for name in node.outputs if name in causes), None)
        reason = unsupported_reason(node.domain, node.op) or reason
        if reason is None and not node.domain:
            reason = schema_fault(proto, versions)
        if reason is not None:
            unsupported[node.label] = options.spelled(reason)
    return OnnxGraph(
        where,
        nodes,
        shapes,
        tuple(value.name for value in model.graph.input if value.name not in constants),
        tuple(value.name for value in model.graph.output),
        batch,
        stored_tensors(model.graph, constants),
        unsupported,
        small_numbers(model.graph),
        versions.get("", onnx.defs.onnx_opset_version()),
        integer_bits(model),
    )


def _is_compound(node: onnx.NodeProto) -> bool:
    """Whether only opening tells what a node is."""
    return node.op_type in ("If", "Loop", "Scan") or node.domain not in OWN_DOMAINS


def _open_error(
    model: onnx.ModelProto,
    where: str,
    constants: frozenset[str],
    missing: Sequence[OpenAxis],
    options: OnnxOptions,
    *,
    opened: bool,
    bounded: bool,
) -> InputError:
    """Sizes that are open, and what else the model lacks whatever they are."""
    listed = "; ".join(
        f"input {name}: " + ", ".join(f"axis {axis.position} is {axis.symbol or 'open'}" for axis in axes)
        for name, axes in _by_input(missing).items()
    )
    message = f"{listed}, expected a number{options.hint('dim', dict.fromkeys(axis.key for axis in missing))}"
    if opened:
        fill_axes(model.graph, constants)
        try:
            whole, shapes = _inferred(model, where, options, opened=True, bounded=bounded)
            graph = _read(whole, where, 1, shapes, options)
        except InputError:
            return InputError(where, None, message)
        certain = {k: v for k, v in graph.unsupported.items() if is_certain(v)}
        if certain:
            message += "; " + listed_causes(certain)
    return InputError(where, None, message)


def _by_input(missing: Sequence[OpenAxis]) -> dict[str, list[OpenAxis]]:
    axes: dict[str, list[OpenAxis]] = {}
    for axis in missing:
        axes.setdefault(axis.input, []).append(axis)
    return axes


def listed_causes(causes: MappingABC[str, str]) -> str:
    """Every reason once, with the nodes that it is of."""
    by_reason: dict[str, list[str]] = {}
    for node, reason in causes.items():
        by_reason.setdefault(reason, []).append(node)
    parts = []
    for reason, (first, *others) in by_reason.items():
        more = f" (also {', '.join(others[:MOST_LISTED])}" if others else ""
        more += f" and {len(others) - MOST_LISTED:,} more" if others[MOST_LISTED:] else ""
        parts.append(f"{first}: {reason}{more}{')' if others else ''}")
    return "; ".join(parts)


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
            domain="" if node.domain in OWN_DOMAINS else node.domain,
        )
        for i, node in enumerate(_activation_protos(graph, constants))
    )


def _value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
