"""Directives as data: ``tensor``, ``stack`` and ``update``, the innermost first.

``tensor`` declares the part of a tensor that one buffer of a level holds, ``stack`` puts copies of all that
was said so far side by side at shifted offsets, ``update`` moves it on in time.  A loop of a mapping is one
stack or update whose shift is the loop's tile, so a mapping and its directives say the same in opposite
sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, slots=True)
class TensorAxis:
    """One dimension of a tensor.

    Parameters
    ----------
    terms : (loop, stride) of every loop that moves along it
    extent : elements along it
    """

    terms: tuple[tuple[str, int], ...]
    extent: int

    def spanned(self, tile: MappingABC[str, int]) -> int:
        """Elements that a tile of the loops spans."""
        return 1 + sum(stride * (tile[dim] - 1) for dim, stride in self.terms)

    @property
    def label(self) -> str:
        """The index expression, such as ``2*P+R``."""
        return "+".join(dim if stride == 1 else f"{stride}*{dim}" for dim, stride in self.terms) or "1"


@dataclass(frozen=True, slots=True)
class TensorTile:
    """``tensor``: what one buffer of a level holds of a tensor.

    ``share`` is the number of buffers that hold it together, each an equal part (buffer sharing): the copies
    that the stacks just outside would make of it.
    """

    name: str
    level: str
    axes: tuple[TensorAxis, ...]
    share: int = 1

    @property
    def size(self) -> int:
        """Elements in one buffer."""
        return -(-math.prod(axis.extent for axis in self.axes) // self.share)

    @property
    def dims(self) -> frozenset[str]:
        """Loops that move the tensor."""
        return frozenset(dim for axis in self.axes for dim, _ in axis.terms)


@dataclass(frozen=True, slots=True)
class Stack:
    """``stack``: ``copies`` side by side on an array axis, each ``shift`` iterations of a loop further on."""

    dim: str
    shift: int
    copies: int
    axis: str


@dataclass(frozen=True, slots=True)
class Update:
    """``update``: everything moves on by ``step`` iterations of a loop, until the loop ends."""

    dim: str
    step: int


Directive = TensorTile | Stack | Update


@dataclass(frozen=True)
class Directives:
    """The directives of one layer.

    Parameters
    ----------
    kind : of the operator
    bounds : iterations of every loop
    output : name of the tensor that is written
    lines : the innermost first
    """

    kind: str
    bounds: MappingABC[str, int]
    output: str
    lines: tuple[Directive, ...]

    @classmethod
    def of(cls, operator: Operator, mapping: Mapping, engine: Engine | None = None) -> Directives:
        """The directives of any mapping, even or uneven.

        ``engine`` states where buffers share tensors (``None``: nowhere).
        """
        tile = dict(operator.bounds)
        # Mappings are outermost first, directives innermost first: collected and turned around at the end.
        lines: list[Directive] = []
        stacks: list[Stack] = []
        for node in mapping.nodes:
            match node:
                case Storage(name, level):
                    axes = tuple(
                        TensorAxis(tuple((t.dim, t.stride) for t in axis.terms), axis.extent(tile))
                        for axis in operator.tensor(name).axes
                    )
                    line = TensorTile(name, level, axes)
                    share = _sharers(line, stacks, operator.output.name, engine)
                    lines.append(replace(line, share=share))
                case Spatial(dim, inner, axis_name):
                    stacks.append(Stack(dim, inner, -(-tile[dim] // inner), axis_name))
                    lines.append(stacks[-1])
                    tile[dim] = inner
                case Temporal(dim, inner):
                    lines.append(Update(dim, inner))
                    tile[dim] = inner
                case _:
                    assert_never(node)
        return cls(operator.kind, dict(operator.bounds), operator.output.name, tuple(reversed(lines)))

    def mapping(self, where: str = "directives", engine: Engine | None = None) -> Mapping:
        """The mapping that the directives describe.

        Parameters
        ----------
        where : named in errors
        engine : states where buffers share tensors (``None``: nowhere)

        Raises
        ------
        InputError : where a declared size, a number of copies or a sharing factor is not what the stacks and
            updates around it, and the machine's arrays, make
        """
        tile = dict(self.bounds)
        nodes: list[Node] = []
        stacks: list[Stack] = []
        for line in reversed(self.lines):
            match line:
                case TensorTile(name, level):
                    self._check_tile(line, tile, where)
                    self._check_share(line, stacks, where, engine)
                    nodes.append(Storage(name, level))
                case Stack(dim, inner, copies, axis):
                    self._check_loop(dim, inner, tile, where)
                    # As many copies as the loop needs; the last one may have less to do.
                    wanted = -(-tile[dim] // inner)
                    if copies != wanted:
                        raise InputError(
                            where, f"stack({dim}+={inner})", f"{copies} copies, expected {wanted}"
                        )
                    nodes.append(Spatial(dim, inner, axis))
                    stacks.append(line)
                    tile[dim] = inner
                case Update(dim, inner):
                    self._check_loop(dim, inner, tile, where)
                    nodes.append(Temporal(dim, inner))
                    tile[dim] = inner
                case _:
                    assert_never(line)
        return Mapping(tuple(nodes))

    def _check_loop(self, dim: str, inner: int, tile: MappingABC[str, int], where: str) -> None:
        if dim not in tile:
            raise InputError(where, f"{dim}+={inner}", f"unknown loop, expected one of {[*tile]}")
        if not 1 <= inner <= tile[dim]:
            raise InputError(where, f"{dim}+={inner}", f"expected 1 to {tile[dim]} (the loop around it)")

    def _check_tile(self, line: TensorTile, tile: MappingABC[str, int], where: str) -> None:
        field = f"tensor {line.name} in {line.level}"
        for axis in line.axes:
            for dim, _ in axis.terms:
                if dim not in tile:
                    raise InputError(where, field, f"unknown loop {dim!r}, expected one of {[*tile]}")
            if axis.extent != axis.spanned(tile):
                raise InputError(
                    where,
                    field,
                    f"{axis.label}={axis.extent}, the updates and stacks outside leave {axis.spanned(tile)}",
                )

    def _check_share(
        self, line: TensorTile, stacks: Sequence[Stack], where: str, engine: Engine | None
    ) -> None:
        wanted = _sharers(line, stacks, self.output, engine)
        if line.share != wanted:
            machine = "unless a machine shares it" if engine is None else f"on {engine.name}"
            raise InputError(
                where, f"tensor {line.name} in {line.level}", f"shr={line.share}, expected {wanted} {machine}"
            )


def _sharers(line: TensorTile, stacks: Sequence[Stack], output: str, engine: Engine | None) -> int:
    """How many buffers hold a tensor together: stacks, outermost first, that stand around its declaration."""
    if engine is None or line.name == output:
        return 1
    pairs = zip(engine.levels, engine.levels[1:], strict=False)
    fan = next((outer.fanout for outer, level in pairs if level.name == line.level), None)
    if fan is None or not fan.sharing:
        return 1
    axes = {axis.name for axis in fan.axes}
    # Copies along dimensions that the tensor depends on hold different data and share nothing.
    return math.prod(s.copies for s in stacks if s.axis in axes and s.dim not in line.dims)
