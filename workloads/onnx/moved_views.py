"""How elements of a result lie behind an ONNX node that moves them."""

from __future__ import annotations

from tilewright.workloads.alignment import rows_of
from tilewright.workloads.onnx.graph import Node, OnnxGraph
from tilewright.workloads.views import View

RESHAPING = frozenset(("Flatten", "Reshape", "Squeeze", "Unsqueeze"))


def moved_view(graph: OnnxGraph, node: Node, view: View, place: int, result: str) -> View | None:
    """The view of a node's result, given that of one of its operands; ``None`` where it is not known.

    Parameters
    ----------
    graph, node : the model and the node
    view : of the operand
    place : the operand's, among the node's inputs
    result : which of the node's results
    """
    shape = graph.shape(node, result)
    before = view.shape
    if node.op in RESHAPING:
        return view.reshaped(shape)
    if node.op == "Transpose":
        return view.transposed(node.attributes.get("perm") or range(len(before))[::-1])
    if node.op == "Split" and place == 0:
        axis = node.attributes.get("axis", 0)
        start = 0
        for output in node.outputs:
            if output == result:
                return view.sliced(axis % len(before), start, shape[axis])
            if not output:
                return None
            start += graph.shape(node, output)[axis]
    if node.op == "Concat":
        axis = node.attributes.get("axis", 0)
        start = sum(graph.shape(node, tensor)[axis] for tensor in node.inputs[:place])
        return view.placed(axis % len(before), start, shape[axis])
    if node.op == "Slice" and place == 0:
        return _sliced(graph, node, view, shape)
    if node.op == "Expand" and before == shape:
        return view
    return None


def _sliced(graph: OnnxGraph, node: Node, view: View, shape: tuple[int, ...]) -> View | None:
    """Slices of steps of one, whose places do not depend on data."""

    def numbers(name: str, at: int) -> tuple[int, ...] | None:
        if name in node.attributes:
            return tuple(node.attributes[name])
        if len(node.inputs) > at and node.inputs[at]:
            return graph.numbers.get(node.inputs[at])
        return ()

    starts, axes, steps = numbers("starts", 1), numbers("axes", 3), numbers("steps", 4)
    if not starts or axes is None or steps is None or any(step != 1 for step in steps):
        return None
    cut: View | None = view
    for start, axis in zip(starts, axes or range(len(starts)), strict=True):
        size = view.shape[axis]
        first = min(max(start + size if start < 0 else start, 0), size)
        if cut is not None:
            cut = cut.sliced(axis % len(view.shape), first, shape[axis])
    return cut if cut is not None and cut.shape == shape else None


def node_rows(graph: OnnxGraph, node: Node) -> tuple[int, ...]:
    """Axes of a node's result along which every element needs all others."""
    axes = len(graph.shape(node, node.outputs[0]))
    given = node.attributes.get("axis")
    before_13 = node.op in ("Softmax", "LogSoftmax", "Hardmax") and graph.opset < 13
    axis = given if given is not None else 1 if before_13 else -1
    if node.op == "RotaryEmbedding" or not -axes <= axis < axes:
        axis = -1
    behind = before_13 or ("Normalization" in node.op and node.op != "LpNormalization")
    return rows_of(node.op, axes, axis, behind=behind)
