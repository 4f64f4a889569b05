"""Sizes of atoms whose tiles meet few of those that they read, and of those that read them.

Menus hold sizes of equal estimate: an element-wise layer of 2,048 channels and 24,576 rows is as quick in
strips of channels as in strips of rows.  The layers beside it decide: a reader of all channels meets every
strip of the one, and few of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import Range, loop_ranges, shape_of
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.overlap import OperandAxes, positions_read
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.reading import Origin, axes_along, made_by
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.workloads.mapping.operator import Operator

SWEEPS = 2
"""Times that all layers are gone through: the second time their readers have been chosen, too."""


@dataclass(frozen=True)
class _Meeting:
    """How tiles of a reader lie over those of what it reads.

    Parameters
    ----------
    reader, maker : their units
    operator : that reads
    along : per coordinate of the maker, how the operand lies along it
    sizes : positions of the maker per coordinate
    """

    reader: int
    maker: int
    operator: Operator
    along: tuple[OperandAxes, ...]
    sizes: tuple[int, int, int]

    def met(self, reader: Int64s, maker: Int64s) -> Floats:
        """How many tiles of the maker one of the reader meets, in the mean.

        A window of w positions meets ``w / t`` tiles of t where one is a multiple of the other, and
        ``1 + (w - 1) / t`` otherwise.

        Parameters
        ----------
        reader, maker : sizes along the axes of a tiling, shape (sizes, 5); of one of them a single one
        """
        mean: Floats = np.ones(max(len(reader), len(maker)))
        for axes, size, tiles in zip(self.along, self.sizes, maker.T[:3], strict=True):
            theirs = np.minimum(tiles, size)
            window = np.array([self._window(axes, size, row) for row in reader[:, axes.depends].tolist()])
            nested = (window % theirs == 0) | ((theirs % window == 0) & (window < size))
            mean = mean * np.where(nested, np.maximum(window / theirs, 1), 1 + (window - 1) / theirs)
        return mean

    def _window(self, axes: OperandAxes, size: int, tile: list[int]) -> int:
        """Positions of the maker between the first and the last that a tile amid the reader reads."""
        key = axes, size, *tile
        return _WINDOWS.get(self.operator, key, partial(_window, self.operator, axes, size, tile))


def _window(operator: Operator, axes: OperandAxes, size: int, tile: list[int]) -> int:
    ranges: dict[str, Range] = {}
    for axis, side in zip(axes.depends, tile, strict=True):
        whole = shape_of(operator).extent(axis)
        low = whole // side // 2 * side
        ranges |= loop_ranges(operator, axis, low, min(whole, low + side))
    positions = positions_read(operator, axes, size, ranges)
    return int(positions[-1] - positions[0]) + 1 if len(positions) else 1


_WINDOWS: Memo[int] = Memo(lambda value: 1)


def aligned(
    problem: TiledProblem, sizes: Sequence[AtomSize], equal: Sequence[Sequence[AtomSize]]
) -> tuple[AtomSize, ...]:
    """Per unit one of some sizes that are equally good by themselves, so that atoms read few blocks.

    Parameters
    ----------
    sizes : per unit, where the choice begins
    equal : per unit, the sizes to choose from; fewer than two where there is no choice
    """
    chosen = [_sides(problem, unit, [size]) for unit, size in enumerate(sizes)]
    picked = list(sizes)
    beside: dict[int, list[_Meeting]] = {unit: [] for unit, those in enumerate(equal) if len(those) > 1}
    for reader in range(len(sizes)) if beside else ():
        meetings = list(_meetings(problem, reader))
        if None in meetings:  # it may need more than a buffer has
            beside.pop(reader, None)
        for meeting in filter(None, meetings):
            for unit in {reader, meeting.maker} & beside.keys():
                beside[unit].append(meeting)
    known: dict[tuple[int, bytes, bytes], Floats] = {}  # layers repeat, and so do their neighbours' sizes

    def read_blocks(meeting: _Meeting, reading: Int64s, making: Int64s) -> Floats:
        key = id(meeting.along), reading.tobytes(), making.tobytes()
        if key not in known:
            known[key] = _atoms(problem, meeting.reader, reading) * meeting.met(reading, making)
        return known[key]

    sides = {unit: _sides(problem, unit, equal[unit]) for unit in beside}
    for _ in range(SWEEPS):
        for unit, candidates in sides.items():
            reads: Floats = np.zeros(len(candidates))
            for meeting in beside[unit]:
                reading, making = (
                    candidates if at == unit else chosen[at] for at in (meeting.reader, meeting.maker)
                )
                reads = reads + read_blocks(meeting, reading, making)
            best = int(reads.argmin())
            picked[unit], chosen[unit] = equal[unit][best], candidates[best : best + 1]
    return tuple(picked)


def _atoms(problem: TiledProblem, unit: int, sides: Int64s) -> Int64s:
    """Atoms of a sample."""
    shape = shape_of(problem.units[unit].layer.operator)
    wholes = np.array([shape.extent(axis) for axis in range(sides.shape[1])])
    atoms: Int64s = np.prod(-(-wholes // sides), axis=1)
    return atoms


def _sides(problem: TiledProblem, unit: int, sizes: Sequence[AtomSize]) -> Int64s:
    """Along the axes of a tiling; these sizes leave the columns of a pool's window whole."""
    strips = shape_of(problem.units[unit].layer.operator).strips
    sides = [(size.outputs, size.rows, size.columns, size.inputs, strips) for size in sizes]
    return np.array(sides, dtype=np.int64)


def _meetings(problem: TiledProblem, index: int) -> Iterator[_Meeting | None]:
    """Of all reads of a unit that another one makes; ``None`` where coordinates mix."""
    for read in problem.units[index].reads:
        if read.producer is None:
            continue
        operator = read.layer.operator
        origin = made_by(problem.units[read.producer], read.link, ((), (), (), ()))
        key = read.operand, origin
        along = _AXES.get(operator, key, partial(_axes, operator, *key))
        yield None if along is None else _Meeting(index, read.producer, operator, along, origin.sizes)


def _axes(operator: Operator, operand: str, origin: Origin) -> tuple[OperandAxes, ...] | None:
    """How coordinates appear in an operand; ``None`` where they mix, or lie in one behind a flattening."""
    along = axes_along(operator, operand, origin)
    return None if along is None or along[1] else along[0]


_AXES: Memo[tuple[OperandAxes, ...] | None] = Memo(lambda value: 1)
