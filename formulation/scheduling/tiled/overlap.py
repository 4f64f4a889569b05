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

from tilewright.formulation.scheduling.tiled.coordinates import (
    ACROSS,
    CHANNEL,
    PART,
    ROW,
    Digit,
    Range,
    coordinate_of,
    loop_ranges,
    run_touched,
    shape_of,
    touched,
)
from tilewright.formulation.scheduling.tiled.tiling import Borders
from tilewright.foundation.arrays import Int64s
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

Part = tuple[int, bytes]
"""A part of a tile: the tile's number, and positions along the coordinate."""

WHOLE: Part = (-1, b"")
"""All of a tile, whichever it is."""


@dataclass
class Regions:
    """Parts of tiles along one coordinate of one producer, numbered per tile; 0 is the whole tile."""

    cuts: Borders
    numbers: dict[Part, int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """Numbers in use for one tile, the whole one included."""
        return 1 + max(self.used.values(), default=0)

    def number(self, part: Part) -> int:
        """The number of a part of a tile: equal parts get equal numbers."""
        if part == WHOLE:
            return 0
        tile = part[0]
        if part not in self.numbers:
            self.used[tile] = self.used.get(tile, 0) + 1
            self.numbers[part] = self.used[tile]
        return self.numbers[part]


@dataclass(frozen=True)
class Entries:
    """Along one coordinate: which consuming tiles meet which producing tiles.

    Parameters
    ----------
    consumer : offset of the consuming tile among its unit's atoms
    producer : number of the producing tile
    count : positions read
    part : which of ``parts`` of the producing tile is read
    parts : the parts that occur, as they first do
    """

    consumer: Int64s
    producer: Int64s
    count: Int64s
    part: Int64s
    parts: tuple[Part, ...]

    def numbered(self, regions: Regions) -> Int64s:
        """The number of every entry's part among the parts of its tile that have been found so far."""
        numbers = np.array([regions.number(part) for part in self.parts], dtype=np.int64)
        return numbers[self.part]


Runs = tuple[Int64s, Int64s, Int64s, Int64s]
"""Per run of positions of one set in one producing tile: the set, the tile, how many they are, and where the
first of them stands."""


def _runs_of_ranges(edges: Int64s, ranges: Sequence[Range]) -> Runs:
    """The runs of sets that are ranges of positions."""
    low, high = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    first = edges.searchsorted(low, side="right") - 1
    met = np.where(high > low, edges.searchsorted(high - 1, side="right") - first, 0)
    of = np.repeat(np.arange(len(low)), met)
    tile = first[of] + np.arange(len(of)) - (np.cumsum(met) - met)[of]
    begin = np.maximum(low[of], edges[tile])
    return of, tile, np.minimum(high[of], edges[tile + 1]) - begin, begin


def _runs_of_positions(edges: Int64s, positions: Sequence[Int64s]) -> Runs:
    """The runs of sets of positions, each ascending; where they stand in all sets put together."""
    read = np.concatenate(positions)
    of = np.repeat(np.arange(len(positions)), [len(these) for these in positions])
    tile = edges.searchsorted(read, side="right") - 1
    begins = np.flatnonzero(np.diff(of * len(edges) + tile, prepend=-1))
    return of[begins], tile[begins], np.diff(begins, append=len(read)), begins


def _entries(
    cuts: Borders, offsets: Sequence[int], reads: Sequence[int], positions: Sequence[Range | Int64s]
) -> Entries:
    """Entries of consuming tiles.

    Parameters
    ----------
    cuts : the producer's borders along the coordinate
    offsets : of the consuming tiles
    reads : per consuming tile, which of ``positions`` it reads
    positions : distinct sets of them, each a range or ascending
    """
    edges = np.array(cuts, dtype=np.int64)
    ranges = [these for these in positions if isinstance(these, tuple)]
    if len(ranges) == len(positions):
        of, tiles_met, counts, begins = _runs_of_ranges(edges, ranges)
        read = None
    else:
        sets = [np.arange(*these) if isinstance(these, tuple) else these for these in positions]
        of, tiles_met, counts, begins = _runs_of_positions(edges, sets)
        read = np.concatenate(sets)
    whole = counts == edges[tiles_met + 1] - edges[tiles_met]
    numbers: dict[Part, int] = {}
    part = np.zeros(len(of), dtype=np.int64)
    if len(of) and whole.all():
        numbers[WHOLE] = 0
    else:
        runs_met = zip(tiles_met.tolist(), begins.tolist(), counts.tolist(), whole.tolist(), strict=True)
        for at, (tile, begin, count, all_of_it) in enumerate(runs_met):
            run = np.arange(begin, begin + count) if read is None else read[begin : begin + count]
            key = WHOLE if all_of_it else (tile, run.tobytes())
            part[at] = numbers.setdefault(key, len(numbers))
    runs = np.bincount(of, minlength=len(positions))
    first, taken = np.cumsum(runs) - runs, np.array(reads, dtype=np.int64)
    met = runs[taken]
    run = np.arange(met.sum()) + np.repeat(first[taken] - (np.cumsum(met) - met), met)
    consumer = np.repeat(np.array(offsets, dtype=np.int64), met)
    return Entries(consumer, tiles_met[run], counts[run], part[run], tuple(numbers))


@dataclass(frozen=True)
class OperandAxes:
    """How one coordinate of a producer appears in an operand.

    Parameters
    ----------
    axes : the operand's axes along the coordinate, outermost first; none where the operand does not move
        along it
    inner : positions of the producer along the innermost of them; without any, positions that are all read
    before : positions of the innermost axis that precede the producer's first (padding), negative where a
        crop leaves producer's positions out
    first : position on the operand's axis where the producer begins; negative where the operand begins later
    depends : axes of the consumer's tiling that the loops of these axes lie along
    """

    axes: tuple[Axis | Digit, ...]
    inner: int
    before: int
    first: int
    depends: tuple[int, ...]

    def covers(self, size: int) -> bool:
        """Whether the axes are the producer's positions, all of them, without padding or gaps."""
        if not self.axes or self.before or self.first:
            return False
        return self.inner == self.axes[-1].size and math.prod(axis.size for axis in self.axes) == size


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
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    along: list[list[Axis]] = [[], [], []]
    for axis in tensor.axes:
        if axis.terms:
            along[coordinate_of(like[axis.terms[0].dim])].append(axis)
    per_axis: list[OperandAxes] = []
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
        depends = depends_on(operator, axes)
        if depends & seen:
            return None
        seen |= depends
        if coordinate == CHANNEL and axes:
            inner = axes[-1].size
        first = channel if coordinate == CHANNEL else 0
        per_axis.append(OperandAxes(axes, inner, before, first, tuple(sorted(depends))))
    return tuple(per_axis)


def depends_on(operator: Operator, axes: Sequence[Axis | Digit]) -> set[int]:
    """Axes of a consumer's tiling that the loops of an operand's axes lie along."""
    shape = shape_of(operator)
    names = [term.dim for axis in axes for term in axis.terms]
    return {
        axis
        for axis, name in ((PART, shape.part), (ACROSS, shape.across))
        if name is not None and name in names
    } | {
        at
        for name in names
        for at in range(3)
        if name in shape.loops[at] or _scatters(shape.scattered[at], name)
    }


def _scatters(axis: Axis | None, dim: str) -> bool:
    return axis is not None and any(term.dim == dim for term in axis.terms)


def entries(
    operator: Operator,
    operand: OperandAxes,
    size: int,
    tiles: Sequence[Borders],
    strides: Sequence[int],
    cuts: Borders,
) -> Entries:
    """All entries along one coordinate.

    Parameters
    ----------
    size : positions of the producer along the coordinate
    tiles, strides : the consumer's borders per axis of its tiling, and what one tile adds to an atom's number
    cuts : the producer's borders along the coordinate
    """
    known: dict[tuple[tuple[str, Range], ...], int] = {}
    offsets: list[int] = []
    reads: list[int] = []
    positions: list[Range | Int64s] = []
    names = {term.dim for axis in operand.axes for term in axis.terms}
    for combination in product(*(range(len(tiles[axis]) - 1) for axis in operand.depends)):
        ranges: dict[str, Range] = {}
        offset = 0
        for axis, tile in zip(operand.depends, combination, strict=True):
            ranges |= loop_ranges(operator, axis, tiles[axis][tile], tiles[axis][tile + 1])
            offset += tile * strides[axis]
        key = tuple(sorted((name, span) for name, span in ranges.items() if name in names))
        if key not in known:
            known[key] = len(positions)
            run = range_read(operator, operand, size, dict(key))
            positions.append(positions_read(operator, operand, size, dict(key)) if run is None else run)
        offsets.append(offset)
        reads.append(known[key])
    return _entries(cuts, offsets, reads, positions)


def positions_of_tile(operator: Operator, operand: OperandAxes, size: int, low: int, high: int) -> Int64s:
    """Positions of the producer that a tile from one border to another reads along the coordinate, ascending.

    Parameters
    ----------
    operator : the consumer
    operand : how its operand lies along the coordinate, on at most one axis of the consumer's tiling
    size : positions of the producer along the coordinate
    low, high : the tile's borders along that axis
    """
    ranges = loop_ranges(operator, operand.depends[0], low, high) if operand.depends else {}
    return positions_read(operator, operand, size, ranges)


def positions_read(operator: Operator, operand: OperandAxes, size: int, ranges: dict[str, Range]) -> Int64s:
    """Positions of the producer that loops in these ranges read along the coordinate.

    Parameters
    ----------
    operator : the consumer
    operand : how its operand lies along the coordinate
    size : positions of the producer along the coordinate
    ranges : of the consumer's loops, from the first iteration to the one past the last
    """
    run = range_read(operator, operand, size, ranges)
    if run is not None:
        return np.arange(*run, dtype=np.int64)
    positions = np.zeros(1, dtype=np.int64)
    for axis in operand.axes[:-1]:
        positions = np.add.outer(positions * axis.size, touched(axis, ranges, operator.bounds)).ravel()
    last = touched(operand.axes[-1], ranges, operator.bounds) - operand.before
    if operand.before or operand.axes[-1].size != operand.inner:
        last = last[(last >= 0) & (last < operand.inner)]
    positions = np.add.outer(positions * operand.inner, last).ravel() - operand.first
    return positions[(positions >= 0) & (positions < size)]


def range_read(operator: Operator, operand: OperandAxes, size: int, ranges: dict[str, Range]) -> Range | None:
    """As `positions_read`, from the first up to the one past the last; ``None`` where that may leave gaps.

    Parameters
    ----------
    size : positions of the producer along the coordinate
    ranges : of the consumer's loops, from the first iteration to the one past the last
    """
    if not operand.axes:
        begin = -min(operand.first, 0)
        return begin, begin + operand.inner
    if len(operand.axes) > 1:
        return None
    run = run_touched(operand.axes[0], ranges, operator.bounds)
    if run is None:
        return None
    low, high = run[0] - operand.before, run[1] - operand.before
    if operand.before or operand.axes[0].size != operand.inner:
        low, high = max(low, 0), min(high, operand.inner)
    low, high = max(low - operand.first, 0), min(high - operand.first, size)
    return low, max(low, high)


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
    axis = next(candidate for candidate in tensor.axes if candidate.terms[0].dim == shape.part)
    return (
        OperandAxes((axis,), run, 0, -1, (PART,)),
        OperandAxes((), sizes[1], 0, 0, ()),
        OperandAxes((), sizes[2], 0, 0, ()),
    )


def flat_entries(operand: OperandAxes, parts: Borders, stride: int, cuts: Borders) -> Entries:
    """Entries of channels behind a flattening: a part of the sum reads each channel that it meets.

    Parameters
    ----------
    operand : the operand's coordinate of channels
    parts : the consumer's borders in the sum over inputs
    stride : what one part adds to an atom's number
    cuts : the producer's borders in channels
    """
    positions = [flat_range(operand, low, high) for low, high in pairwise(parts)]
    return _entries(cuts, [tile * stride for tile in range(len(positions))], range(len(positions)), positions)


def flat_range(operand: OperandAxes, low: int, high: int) -> Range:
    """Channels behind a flattening that a part of the sum from ``low`` to ``high`` reads."""
    return low // operand.inner, -(-high // operand.inner)


def flat_positions(operand: OperandAxes, low: int, high: int) -> Int64s:
    """The channels of `flat_range`, ascending."""
    return np.arange(*flat_range(operand, low, high), dtype=np.int64)


def sample_entries(samples: Borders, stride: int, cuts: Borders) -> Entries:
    """Which ranges of samples of a consumer meet which of a producer."""
    positions = list(pairwise(samples))
    return _entries(cuts, [tile * stride for tile in range(len(positions))], range(len(positions)), positions)
