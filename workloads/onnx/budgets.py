"""What an ONNX model may ask for: a file of few bytes may stand for any number of elements, nodes and axes.

Budgets are far above what networks have, and far below what a machine has; ``docs/reference/onnx.md`` lists
them.  What is beyond them is refused before anything is unfolded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC

import onnx

from tilewright.foundation.errors import BudgetError
from tilewright.foundation.loading import check_limit
from tilewright.workloads.mapping.layer_fields import LARGEST
from tilewright.workloads.onnx.operations import NORMALISING, POINTWISE, RENAMING

MOST_NODES = 2**17
"""Nodes of a model, those of branches and loops and of every call of a function included."""
MOST_CALLS = 32
"""Functions that call each other, one inside the other."""
MOST_AXES = 64
"""Of a tensor: as many as an array of numpy has."""
MOST_ELEMENTS = 2**48
"""Of a tensor; an axis has at most `LARGEST`, as in layers that are written down."""
MOST_FOLDED = 2**20
"""Elements of all constants that are computed when shapes are inferred."""
MOST_PIECES = 2**16
"""Pieces of layers' results that concatenated, split and moved tensors consist of, over the whole network."""
MOST_STEPS = 2**20
"""Moves (``Reshape``, ``Concat``, …) that the data of all links together passes through."""

_AXES = 8
"""Of a tensor whose axes are not known before the inference."""
_KEEPING = POINTWISE | RENAMING | NORMALISING | {"Transpose", "Unsqueeze"}
"""The result has at least the axes of the first operand."""
_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
_Functions = MappingABC[tuple[str, str, str], onnx.FunctionProto]


def check_budgets(model: onnx.ModelProto, where: str) -> None:
    """Raise ``BudgetError`` for a model that stands for more nodes, axes or folded elements than it may."""
    _check_nodes(model, where)
    _Unfolding(where).graph(model.graph)


def label(node: onnx.NodeProto, position: int) -> str:
    """How messages name a node: its operation, and its name or place."""
    return f"node {node.name or position} ({node.op_type})"


def check_axes(where: str, field: str, axes: int) -> None:
    """Raise ``BudgetError`` for a tensor of too many axes."""
    if axes > MOST_AXES:
        raise BudgetError(where, field, f"has {axes:,} axes, expected at most {MOST_AXES}")


def check_sizes(where: str, shapes: MappingABC[str, tuple[int, ...]]) -> None:
    """Raise ``BudgetError`` for a tensor of an axis, or of elements, beyond all that can be mapped."""
    for name, axes in shapes.items():
        if max(axes, default=1) > LARGEST or math.prod(axes) > MOST_ELEMENTS:
            expected = f"expected axes of at most {LARGEST:,} and at most {MOST_ELEMENTS:,} elements"
            raise BudgetError(where, f"tensor {name!r}", f"has shape {list(axes)}, {expected}")


def _check_nodes(model: onnx.ModelProto, where: str) -> None:
    """Nodes are counted as they are opened by the inference: a function again at each of its calls."""
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    counts: dict[tuple[str, str, str], int] = {}
    total = 0
    for i, node in enumerate(model.graph.node):
        total += _opened(node, functions, counts, where, ())
        if total > MOST_NODES:
            raise BudgetError(
                where,
                label(node, i),
                f"expected at most {MOST_NODES:,} nodes in a model, branches and calls of functions opened",
            )


def _opened(
    node: onnx.NodeProto,
    functions: _Functions,
    counts: dict[tuple[str, str, str], int],
    where: str,
    callers: tuple[tuple[str, str, str], ...],
) -> int:
    """How many nodes a node stands for."""
    total = 1
    for graph in _bodies(node):
        total += sum(_opened(inner, functions, counts, where, callers) for inner in graph.node)
    key = (node.domain, node.op_type, getattr(node, "overload", ""))
    if key not in functions:
        return total
    field = f"function {':'.join(filter(None, key))}"
    if key in callers:
        raise BudgetError(where, field, "calls itself, expected functions without recursion")
    if len(callers) >= MOST_CALLS:
        raise BudgetError(where, field, f"is called {MOST_CALLS} deep, expected fewer calls inside calls")
    if key not in counts:
        check_limit(where, field)
        inside = (*callers, key)
        counts[key] = sum(_opened(n, functions, counts, where, inside) for n in functions[key].node)
    return total + counts[key]


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


class _Unfolding:
    """Follows, through the nodes of a graph, what the inference makes of declared sizes and stored integers.

    Axes are followed where nodes keep or add them, elements where all operands are folded.  What is not
    counted meets the limits of the inference.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.axes: dict[str, int] = {"": 0}
        self.elements: dict[str, int] = {}
        self.folded = 0

    def graph(self, graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.value_info, *graph.output):
            self._declared(value.name, len(value.type.tensor_type.shape.dim))
        for tensor in graph.initializer:
            self._stored(tensor.name, tensor)
        for i, node in enumerate(graph.node):
            if node.op_type == "Constant" and node.output:
                for attribute in node.attribute:
                    if attribute.name == "value":
                        self._stored(node.output[0], attribute.t)
                    elif attribute.name in ("value_int", "value_ints"):
                        self.elements[node.output[0]] = len(attribute.ints) or 1
            elif node.input and node.output:
                self._node(node, i)

    def _declared(self, name: str, axes: int) -> None:
        check_axes(self.where, f"tensor {name!r}", axes)
        self.axes[name] = axes

    def _stored(self, name: str, tensor: onnx.TensorProto) -> None:
        self._declared(name, len(tensor.dims))
        if tensor.data_type in _INTEGERS and len(tensor.dims) < 2:
            width = 4 if tensor.data_type == onnx.TensorProto.INT32 else 8
            stored = len(tensor.raw_data) // width + len(tensor.int32_data) + len(tensor.int64_data)
            if stored:
                self.elements[name] = stored

    def _node(self, node: onnx.NodeProto, position: int) -> None:
        operands = [self.elements.get(tensor) for tensor in node.input if tensor]
        made = None
        if node.op_type == "Shape":
            made = self.axes.get(node.input[0], _AXES)
        elif None not in operands:
            sizes = [size for size in operands if size is not None]
            if node.op_type == "Concat":
                made = sum(sizes)
            else:
                made = sizes[1] if node.op_type == "Gather" and len(sizes) > 1 else max(sizes, default=0)
        if made is not None:
            self.folded += made
            if self.folded > MOST_FOLDED:
                raise BudgetError(
                    self.where,
                    label(node, position),
                    f"computes constants of {made:,} elements, expected at most {MOST_FOLDED:,} in a model",
                )
            self.elements.update(dict.fromkeys(filter(None, node.output), made))
        if node.op_type in _KEEPING:
            axes = self.axes.get(node.input[0], 0)
            if node.op_type == "Unsqueeze":
                given = next(
                    (len(given_by.ints) for given_by in node.attribute if given_by.name == "axes"), 0
                )
                axes += given or (self.elements.get(node.input[1], 0) if len(node.input) > 1 else 0)
            check_axes(self.where, label(node, position), axes)
            self.axes[node.output[0]] = axes
