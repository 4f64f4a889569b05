"""A mapping as a loop nest in plain NumPy that computes the layer with exactly these tiles.

Every loop of the mapping is one ``for`` over the tiles of what is left of its dimension; where a tensor is
stored, its tile is copied, so that loops inside see nothing else of it, and a result's tile is added to the
one outside when its loops end.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

_INDENT = "    "
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
    if operator.kind not in _KINDS:
        raise InputError("--to", "python", f"a layer of kind {operator.kind} is no sum of products")
    return "\n".join(_Nest(operator, mapping).lines(_identifier(name), title)) + "\n"


def allocated(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor, unused elements included."""
    return tuple(axis.size for axis in tensor.axes)


class _Nest:
    """Writes the nodes of one mapping, outermost first."""

    def __init__(self, operator: Operator, mapping: Mapping) -> None:
        self._operator = operator
        self._mapping = mapping
        self._depth = 1
        self._edges = {dim: ("0", str(bound)) for dim, bound in operator.bounds.items()}
        self._sizes = dict(operator.bounds)
        self._held: dict[str, tuple[str, list[str]]] = {}
        self._open: list[tuple[int, str]] = []
        self._levels: dict[str, int] = {}

    def lines(self, name: str, title: str) -> Iterator[str]:
        """The whole function."""
        inputs = [tensor for tensor in self._operator.tensors if not tensor.is_output]
        (output,) = (tensor for tensor in self._operator.tensors if tensor.is_output)
        yield "import numpy as np\n\n"
        yield f"def {name}({', '.join(_identifier(t.name) for t in inputs)}):"
        shapes = ", ".join(f"{t.name} {allocated(t)}" for t in inputs)
        result = f"{output.name} {allocated(output)}"
        yield f'{_INDENT}"""{title or self._operator.kind}: {shapes} give {result}."""'
        for tensor in inputs:
            own = _identifier(tensor.name)
            yield f"{_INDENT}assert {own}.shape == {allocated(tensor)}, {own}.shape"
        kind = f"np.result_type({', '.join(_identifier(t.name) for t in inputs)}, np.int64)"
        yield f"{_INDENT}{_identifier(output.name)} = np.zeros({allocated(output)}, {kind})"
        for tensor in self._operator.tensors:
            self._held[tensor.name] = (_identifier(tensor.name), ["0"] * len(tensor.axes))
        for node in self._mapping.nodes:
            yield from self._store(node) if isinstance(node, Storage) else self._loop(node)
        yield from self._remaining()
        yield self._line(self._statement())
        while self._open:
            yield from self._write_back()
        yield f"{_INDENT}return {_identifier(output.name)}"

    def _line(self, text: str) -> str:
        return _INDENT * self._depth + text

    def _loop(self, node: Temporal | Spatial) -> Iterator[str]:
        dim = _identifier(node.dim)
        level = self._levels[node.dim] = self._levels.get(node.dim, 0) + 1
        low, high = self._edges[node.dim]
        begin, end = f"{dim}{level}", f"{dim}{level}_end"
        side = f"  # side by side on {node.axis}" if isinstance(node, Spatial) else ""
        yield self._line(f"for {begin} in range({low}, {high}, {node.tile}):{side}")
        self._depth += 1
        self._sizes[node.dim] = node.tile
        if node.tile == 1:
            self._edges[node.dim] = (begin, f"{begin} + 1")
        else:
            yield self._line(f"{end} = min({begin} + {node.tile}, {high})")
            self._edges[node.dim] = (begin, end)

    def _store(self, node: Storage) -> Iterator[str]:
        tensor = self._operator.tensor(node.tensor)
        outer, offsets = self._held[tensor.name]
        if outer == _identifier(tensor.name) and not self._levels:
            yield self._line(f"# {tensor.name} lives in {node.level}")
            return
        number = sum(held.startswith(_identifier(tensor.name) + "_") for _, held in self._open)
        inner = f"{_identifier(tensor.name)}_{_identifier(node.level)}{number or ''}"
        ranges = [self._range(axis) for axis in tensor.axes]
        cut = ", ".join(
            f"{_minus(low, offset)}:{_minus(high, offset)}"
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
                _minus(self._range(axis)[0], offset)
                for axis, offset in zip(tensor.axes, offsets, strict=True)
            )
            parts.append(f"{held}[{index}]" if index else f"{held}[()]")
        return f"{parts[-1]} += {' * '.join(parts[:-1])}"

    def _write_back(self) -> Iterator[str]:
        depth, text = self._open.pop()
        self._depth = depth
        yield self._line(text)

    def _range(self, axis: Axis) -> tuple[str, str]:
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


def _minus(left: str, right: str) -> str:
    if right == "0":
        return left
    if left == right:
        return "0"
    return f"{left} - ({right})" if " " in right else f"{left} - {right}"


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    name = f"_{name}" if name[:1].isdigit() or not name else name
    return f"{name}_" if keyword.iskeyword(name) or name in {"np", "range", "min"} else name
