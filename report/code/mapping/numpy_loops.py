"""A mapping as a loop nest in plain NumPy that computes the layer with exactly these tiles.

Every loop of the mapping is one ``for`` over the tiles of what is left of its dimension; where a tensor is
stored, its tile is copied, so that loops inside see nothing else of it, and a result's tile is added to the
one outside when its loops end.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

INDENT = "    "
_MOST_LOOPS = 15
"""Within one function; CPython refuses more than 20 nested blocks."""
_KINDS = (
    "conv2d",
    "depthwise",
    "transposed_conv2d",
    "gemm",
    "matmul",
    "weight_update",
    "nest",
    "elementwise",
)


def numpy_loops(operator: Operator, mapping: Mapping, name: str = "layer", title: str = "") -> str:
    """Python code of one function of the layer's inputs, which returns its output.

    Parameters
    ----------
    operator : the layer; sums of products of its inputs
    mapping : a legal mapping of it
    name : of the function
    title : what the function's text begins with

    Raises
    ------
    InputError : for a layer that is no sum of products
    """
    check_sums(operator)
    return "\n".join(_function(operator, mapping, identifier(name), title)) + "\n"


def check_sums(operator: Operator) -> None:
    """Raise ``InputError`` for a layer that is no sum of products."""
    if operator.kind not in _KINDS:
        raise InputError("--to", "python", f"a layer of kind {operator.kind} is no sum of products")


def allocated(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor, unused elements included."""
    return tuple(axis.size for axis in tensor.axes)


def _function(operator: Operator, mapping: Mapping, name: str, title: str) -> Iterator[str]:
    inputs = {tensor.name: identifier(tensor.name) for tensor in operator.inputs}
    output = operator.output
    yield "import numpy as np\n\n"
    yield f"def {name}({', '.join(inputs.values())}):"
    shapes = ", ".join(f"{tensor.name} {allocated(tensor)}" for tensor in operator.inputs)
    result = f"{output.name} {allocated(output)}"
    yield f'{INDENT}"""{title or operator.kind}: {shapes} give {result}."""'
    for tensor in operator.inputs:
        own = inputs[tensor.name]
        yield f"{INDENT}assert {own}.shape == {allocated(tensor)}, {own}.shape"
    kind = f"np.result_type({', '.join(inputs.values())}, np.int64)"
    yield f"{INDENT}{identifier(output.name)} = np.zeros({allocated(output)}, {kind})"
    yield from LoopNest(operator, mapping).lines()
    yield f"{INDENT}return {identifier(output.name)}"


class LoopNest:
    """Writes the nodes of one mapping, outermost first.

    Parameters
    ----------
    operator, mapping : what is written
    names : of the tensors' tiles, by tensor; the tensors' own by default
    depth : of the first line
    edges : per dimension, the first iteration and the end, as expressions; the whole layer by default
    held : per tensor, the array that has it where the nest begins, and its first index along every axis;
        the tensors themselves by default, which live in the outermost level
    """

    def __init__(
        self,
        operator: Operator,
        mapping: Mapping,
        names: MappingABC[str, str] | None = None,
        depth: int = 1,
        edges: MappingABC[str, tuple[str, str]] | None = None,
        held: MappingABC[str, tuple[str, list[str]]] | None = None,
    ) -> None:
        self._operator = operator
        self._mapping = mapping
        self._names = names or {tensor.name: identifier(tensor.name) for tensor in operator.tensors}
        self._depth = depth
        self._edges = dict(edges or {dim: ("0", str(bound)) for dim, bound in operator.bounds.items()})
        self._sizes = dict(operator.bounds)
        whole = {t.name: (self._names[t.name], ["0"] * len(t.axes)) for t in operator.tensors}
        self._held = {**whole, **(held or {})}
        self._outermost = set(whole) - set(held or {})
        self._open: list[tuple[int, str]] = []
        self._levels: dict[str, int] = {}
        self._taken = set(self._names.values())
        self._nested = 0

    def lines(self) -> Iterator[str]:
        """The loops, and what stands in them."""
        for node in self._mapping.nodes:
            yield from self._store(node) if isinstance(node, Storage) else self._loop(node)
        yield from self._remaining()
        yield self._line(self._statement())
        while self._open:
            yield from self._write_back()

    def _line(self, text: str) -> str:
        return INDENT * self._depth + text

    def _loop(self, node: Temporal | Spatial) -> Iterator[str]:
        if self._nested == _MOST_LOOPS:
            yield from self._inner_function()
        self._nested += 1
        level = self._levels[node.dim] = self._levels.get(node.dim, 0) + 1
        low, high = self._edges[node.dim]
        begin = self._unused(f"{identifier(node.dim)}{level}")
        end = self._unused(f"{begin}_end")
        side = f"  # side by side on {node.axis}" if isinstance(node, Spatial) else ""
        yield self._line(f"for {begin} in range({low}, {high}, {node.tile}):{side}")
        self._depth += 1
        self._sizes[node.dim] = node.tile
        if node.tile == 1:
            self._edges[node.dim] = (begin, f"{begin} + 1")
        else:
            yield self._line(f"{end} = min({begin} + {node.tile}, {high})")
            self._edges[node.dim] = (begin, end)

    def _inner_function(self) -> Iterator[str]:
        """Python nests few loops in one function; what stands inside goes on in another."""
        name = self._unused("inside")
        yield self._line(f"def {name}():")
        self._open.append((self._depth, f"{name}()"))
        self._depth += 1
        self._nested = 0

    def _unused(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _store(self, node: Storage) -> Iterator[str]:
        tensor = self._operator.tensor(node.tensor)
        outer, offsets = self._held[tensor.name]
        if tensor.name in self._outermost and not self._levels:
            yield self._line(f"# {tensor.name} lives in {node.level}")
            return
        self._outermost.discard(tensor.name)
        inner = self._unused(f"{self._names[tensor.name]}_{identifier(node.level)}")
        ranges = [self.range_of(axis) for axis in tensor.axes]
        cut = ", ".join(
            f"{difference(low, offset)}:{difference(high, offset)}"
            for (low, high), offset in zip(ranges, offsets, strict=True)
        )
        if tensor.is_output:
            yield self._line(f"{inner} = np.zeros_like({outer}[{cut}])")
            self._open.append((self._depth, f"{outer}[{cut}] += {inner}"))
        else:
            yield self._line(f"{inner} = {outer}[{cut}].copy()")
        self._held[tensor.name] = (inner, [low for low, _ in ranges])

    def _remaining(self) -> Iterator[str]:
        """What no loop has cut to one iteration runs in the innermost place."""
        for dim, size in self._sizes.items():
            if size > 1:
                yield from self._loop(Temporal(dim, 1))

    def _statement(self) -> str:
        parts = []
        for tensor in self._operator.tensors:
            held, offsets = self._held[tensor.name]
            index = ", ".join(
                difference(self.range_of(axis)[0], offset)
                for axis, offset in zip(tensor.axes, offsets, strict=True)
            )
            parts.append(f"{held}[{index}]" if index else f"{held}[()]")
        return f"{parts[-1]} += {' * '.join(parts[:-1])}"

    def _write_back(self) -> Iterator[str]:
        depth, text = self._open.pop()
        self._depth = depth
        yield self._line(text)

    def range_of(self, axis: Axis) -> tuple[str, str]:
        """First index along an axis that the current piece touches, and the one behind the last."""
        low, high, constant = [], [], 1
        for term in axis.terms:
            begin, end = self._edges[term.dim]
            factor = "" if term.stride == 1 else f"{term.stride} * "
            low.append(f"{factor}{begin}")
            high.append(f"{factor}{end}" if not factor or " " not in end else f"{factor}({end})")
            constant -= term.stride
        if not axis.terms:
            return "0", "1"
        return " + ".join(low), " + ".join(high) + (f" - {-constant}" if constant < 0 else "")


def difference(left: str, right: str) -> str:
    """The expression of one minus another."""
    if right == "0":
        return left
    if left == right:
        return "0"
    return f"{left} - ({right})" if " " in right else f"{left} - {right}"


def identifier(text: str) -> str:
    """A name of Python that looks like a text."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    name = f"_{name}" if name[:1].isdigit() or not name else name
    return f"{name}_" if keyword.iskeyword(name) or name in {"np", "range", "min"} else name
