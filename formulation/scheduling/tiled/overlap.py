"""Which parts of which producing atoms an atom reads, coordinate by coordinate.

Along one coordinate an atom touches a set of positions (a window's positions with their halo, less
the padding;
with the gaps that a stride leaves).  Each producing tile holds some of them: that is one entry.  The reads of
whole atoms are products of entries, exact in elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.coordinates import (
    CHANNEL,
    PART,
    ROW,
    Range,
    coordinate_of,
    loop_ranges,
    shape_of,
    touched,
)
from tilewright.formulation.scheduling.tiled.tiling import Borders
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

Longs = npt.NDArray[np.int64]


@dataclass
class Regions:
    """Parts of tiles along one coordinate of one producer, numbered per tile; 0 is the whole tile."""

    cuts: Borders
    found: dict[tuple[int, bytes], int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """Numbers in use for one tile, the whole one included."""
        return 1 + max(self.used.values(), default=0)

    def number(self, tile: int, positions: Longs) -> int:
        """The number of a part of a tile: equal parts get equal numbers."""
        if len(positions) == self.cuts[tile + 1] - self.cuts[tile]:
            return 0
        key = (tile, positions.tobytes())
        if key not in self.found:
            self.used[tile] = self.used.get(tile, 0) + 1
            self.found[key] = self.used[tile]
        return self.found[key]


@dataclass(frozen=True)
class Entries:
    """Along one coordinate: which consuming tiles meet which producing tiles.

    Parameters
    ----------
    consumer : offset of the consuming tile among its unit's atoms
    producer : number of the producing tile
    count : positions read
    region : number of that part of the producing tile
    """

    consumer: Longs
    producer: Longs
    count: Longs
    region: Longs


@dataclass(frozen=True)
class OperandAxes:
    """How one coordinate of a producer appears in an operand.

    Parameters
    ----------
    axes : the operand's axes along the coordinate, outermost first; none where the operand does not move
        along it and so reads all of it
    inner : positions of the producer along the innermost of them
    before : positions of the innermost axis that precede the producer's first (padding), negative where a
        crop leaves producer's positions out
    first : position on the operand's channel axis where the producer's channels begin
    depends : axes of the consumer's tiling that the loops of these axes lie along
    """

    axes: tuple[Axis, ...]
    inner: int
    before: int
    first: int
    depends: tuple[int, ...]


def operand_axes(
    operator: Operator, tensor: Tensor, sizes: Sequence[int], channel: int, *, centred: Sequence[bool]
) -> tuple[OperandAxes, ...] | None:
    """Per coordinate, how a producer of these sizes appears in an operand.

    The padding before the first position is half of all padding, rounded down, as symmetric and ONNX's
    ``SAME_UPPER`` padding have it.

    Parameters
    ----------
    sizes : (channels, rows, columns) of the producer
    channel : where its channels begin on the operand's channel axis
    centred : per coordinate, whether surplus positions are cropped evenly (behind a transposed convolution)

    Returns
    -------
    ``None`` where the operand's coordinates do not depend on separate axes of the tiling
    """
    like = {one.name: one.like for one in operator.dimensions}
    shape = shape_of(operator)
    along: list[list[Axis]] = [[], [], []]
    for axis in tensor.axes:
        if axis.terms:
            along[coordinate_of(like[axis.terms[0].dim])].append(axis)
    found: list[OperandAxes] = []
    seen: set[int] = set()
    for coordinate in range(3):
        axes = tuple(along[coordinate])
        outer = math.prod(axis.size for axis in axes[:-1])
        if axes and sizes[coordinate] % outer:
            return None
        inner = sizes[coordinate] // outer
        before = 0
        if axes and coordinate != CHANNEL:
            spare = axes[-1].size - inner
            before = spare // 2 if spare > 0 or centred[coordinate] else 0
        depends: set[int] = set()
        for axis in axes:
            for term in axis.terms:
                if term.dim == shape.part:
                    depends.add(PART)
                depends |= {
                    at
                    for at in range(3)
                    if term.dim in shape.loops[at] or _scatters(shape.scattered[at], term.dim)
                }
        if depends & seen:
            return None
        seen |= depends
        if coordinate == CHANNEL and axes:
            inner = axes[-1].size
        first = channel if coordinate == CHANNEL else 0
        found.append(OperandAxes(axes, inner, before, first, tuple(sorted(depends))))
    return tuple(found)


def _scatters(axis: Axis | None, dim: str) -> bool:
    return axis is not None and any(term.dim == dim for term in axis.terms)


def entries(
    operator: Operator,
    one: OperandAxes,
    size: int,
    tiles: Sequence[Borders],
    strides: Sequence[int],
    regions: Regions,
) -> Entries:
    """All entries along one coordinate.

    Parameters
    ----------
    size : positions of the producer along the coordinate
    tiles, strides : the consumer's borders per axis of its tiling, and what one tile adds to an atom's number
    regions : the producer's borders along the coordinate; takes up the parts that are found
    """
    columns: tuple[list[Longs], list[Longs], list[Longs], list[Longs]] = ([], [], [], [])
    known: dict[tuple[tuple[str, Range], ...], tuple[Longs, Longs, Longs]] = {}
    names = {term.dim for axis in one.axes for term in axis.terms}
    for combination in product(*(range(len(tiles[axis]) - 1) for axis in one.depends)):
        ranges: dict[str, Range] = {}
        offset = 0
        for axis, tile in zip(one.depends, combination, strict=True):
            ranges |= loop_ranges(operator, axis, tiles[axis][tile], tiles[axis][tile + 1])
            offset += tile * strides[axis]
        key = tuple(sorted((name, span) for name, span in ranges.items() if name in names))
        if key not in known:
            known[key] = _parts(_positions(operator, one, size, dict(key)), regions)
        met, count, region = known[key]
        columns[0].append(np.full(len(met), offset, dtype=np.int64))
        for column, part in zip(columns[1:], (met, count, region), strict=True):
            column.append(part)
    return Entries(*(np.concatenate(column) for column in columns))


def _positions(operator: Operator, one: OperandAxes, size: int, ranges: dict[str, Range]) -> Longs:
    """Positions of the producer that loops in these ranges read along the coordinate."""
    if not one.axes:
        return np.arange(size, dtype=np.int64)
    found = np.zeros(1, dtype=np.int64)
    for axis in one.axes[:-1]:
        found = np.add.outer(found * axis.size, touched(axis, ranges, operator.bounds)).ravel()
    last = touched(one.axes[-1], ranges, operator.bounds) - one.before
    if one.before or one.axes[-1].size != one.inner:
        last = last[(last >= 0) & (last < one.inner)]
    found = np.add.outer(found * one.inner, last).ravel() - one.first
    return found[(found >= 0) & (found < size)]


def _parts(positions: Longs, regions: Regions) -> tuple[Longs, Longs, Longs]:
    """Tiles that hold these positions, how many each, and the numbers of those parts."""
    if not len(positions):
        return positions, positions, positions
    tile = np.searchsorted(regions.cuts, positions, side="right") - 1
    begins = np.concatenate([[0], np.flatnonzero(np.diff(tile)) + 1])
    met = tile[begins]
    ends = np.append(begins[1:], len(positions))
    numbers = [regions.number(int(j), positions[a:b]) for j, a, b in zip(met, begins, ends, strict=True)]
    return met.astype(np.int64), (ends - begins).astype(np.int64), np.array(numbers, dtype=np.int64)


def flatten_axes(operator: Operator, tensor: Tensor, sizes: Sequence[int]) -> tuple[OperandAxes, ...] | None:
    """As `operand_axes` behind a flattening of (channels, rows, columns): a range of the sum over
    inputs reads
    whole channels.  ``None`` where the operand is no matrix of samples x inputs.
    """
    shape = shape_of(operator)
    if shape.part is None or shape.parts != math.prod(sizes) or shape.sizes[ROW] != 1:
        return None
    if [axis.terms[0].dim for axis in tensor.axes if axis.size > 1] not in ([shape.part], []):
        return None
    run = sizes[1] * sizes[2]
    axis = next(one for one in tensor.axes if one.terms[0].dim == shape.part)
    return (
        OperandAxes((axis,), run, 0, -1, (PART,)),
        OperandAxes((), sizes[1], 0, 0, ()),
        OperandAxes((), sizes[2], 0, 0, ()),
    )


def flat_entries(one: OperandAxes, size: int, parts: Borders, stride: int, regions: Regions) -> Entries:
    """Entries of channels behind a flattening: a part of the sum reads every channel that it
    begins or ends in."""
    columns: tuple[list[Longs], list[Longs], list[Longs], list[Longs]] = ([], [], [], [])
    for tile, (low, high) in enumerate(pairwise(parts)):
        positions = np.arange(low // one.inner, -(-high // one.inner), dtype=np.int64)
        met, count, region = _parts(positions, regions)
        columns[0].append(np.full(len(met), tile * stride, dtype=np.int64))
        for column, part in zip(columns[1:], (met, count, region), strict=True):
            column.append(part)
    return Entries(*(np.concatenate(column) for column in columns))
