"""Layers that must be done, all of them, before any part of another layer can begin, whatever the atoms.

The least that an atom of a layer can be is one result, or one part of its sum.  What it reads of a producer
is a product along channels, rows and columns; along each, that is

- ``ALL`` of the producer's positions, where the reader has all of the loops that move along it, or none does;
- ``SOME``, at least one position, whichever results the atom makes;
- perhaps nothing (padding, or another tensor of a concatenation), so that nothing is known.

A result is a finished sum, so what it reads in turn has all parts of the sum.  Followed through the network,
a producer of which all channels, rows and columns are needed on one way is needed as a whole.  Behind
movement that mixes coordinates an atom depends on all of the producer.

A producer of which all channels are needed, be it at one pixel, has read all its weights: each of them
belongs to a channel and a part of its sums, and pixels share it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from tilewright.formulation.scheduling.tiled.coordinates import PART, Range, loop_ranges, shape_of, touched
from tilewright.formulation.scheduling.tiled.overlap import OperandAxes, positions_read
from tilewright.formulation.scheduling.tiled.reading import axes_along, made_by
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.workloads.mapping.operator import Operator

Extent = tuple[bool, bool, bool]
"""Per channels, rows and columns whether all positions are needed, or some."""

WHOLE: Extent = (True, True, True)

_ASKED: list[_Needs] = []

MOST_POSITIONS = 4096
"""Places of an atom that are tried along a coordinate; beyond, nothing is known."""


def barriers(units: Sequence[Unit], *, finished: bool = False) -> list[frozenset[int]]:
    """Per unit, those that must be done for the same sample before any of its atoms begins.

    Parameters
    ----------
    finished : ask for atoms that finish results, rather than for any part of a sum
    """
    return _needs_of(units).before(finished, 0)


def channels_before(units: Sequence[Unit], *, finished: bool = False) -> list[frozenset[int]]:
    """Per unit, those of which every channel must be done somewhere before any of its atoms begins.

    Parameters
    ----------
    finished : ask for atoms that finish results, rather than for any part of a sum
    """
    return _needs_of(units).before(finished, len(units))


def makers_before(units: Sequence[Unit]) -> list[int | None]:
    """Per unit, the last of the units of which each of its atoms reads a result, and so begins later.

    ``None`` where an atom may read no result, so that it may be the first of a plan.
    """
    return _needs_of(units).makers()


def _needs_of(units: Sequence[Unit]) -> _Needs:
    """What units need of others; remembered for the last ones, which several bounds ask about."""
    known = next(iter(_ASKED), None)
    if known is None or known.units is not units:
        known = _Needs(units)
        _ASKED[:] = [known]
    return known


class _Needs:
    """What units need of others.

    Sets are bits of integers: of N units, bit i stands for unit i as a whole, bit N + i for all its channels.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self._extents: dict[tuple[object, ...], Extent | None] = {}
        self._fewests: dict[tuple[object, ...], int] = {}
        kinds: dict[Operator, int] = {}
        readers = (read.layer.operator for unit in units for read in unit.reads)
        members = (layer.operator for unit in units for layer in (unit.layer, *unit.fused))
        operators = [*readers, *members]
        # equal layers have equal numbers; hashing an operator takes long
        self._kinds = {id(operator): kinds.setdefault(operator, len(kinds)) for operator in operators}
        # per unit, in their order: what its producers must have done for some extents of its results
        self._reached: list[dict[Extent, int]] = [{} for _ in units]

    def before(self, finished: bool, first: int) -> list[frozenset[int]]:
        """Per unit, those needed before any of its atoms begins, or any that finishes results.

        Parameters
        ----------
        first : the bit of unit 0 in the sets that are asked for
        """
        needed = []
        for target, unit in enumerate(self.units):
            least, parts = _least_atom(unit)
            bits = self._of_producers(target, least, finished or parts) >> first
            needed.append(frozenset(other for other in range(target) if bits >> other & 1))
        return needed

    def makers(self) -> list[int | None]:
        """Per unit, the last one of which each of its atoms reads some result."""
        lasts = []
        for unit, (least, parts) in zip(self.units, map(_least_atom, self.units), strict=True):
            reads = self._read_by_all(unit, parts)
            needed = [read.producer for read in reads if self._extent(read, least, parts) is not None]
            lasts.append(max((maker for maker in needed if maker is not None), default=None))
        return lasts

    def _of_producers(self, reader: int, extent: Extent, parts: bool) -> int:
        """What is needed for this much of a unit's results, with all parts of their sums or one."""
        bits = 0
        for read in self._read_by_all(self.units[reader], parts):
            needed = self._extent(read, extent, parts)
            if read.producer is not None and needed is not None:
                bits |= self._through(read.producer, needed)
        return bits

    @staticmethod
    def _read_by_all(unit: Unit, parts: bool) -> Iterator[Read]:
        """Operands of all atoms that have all parts of their sums, or one part."""
        return (read for read in unit.reads if parts or not read.late)

    def _through(self, unit: int, extent: Extent) -> int:
        """So much of a unit, and what it needs in turn for finished sums."""
        waiting = [(unit, extent)]
        while waiting:
            at, wanted = waiting[-1]
            if wanted in self._reached[at]:
                waiting.pop()
                continue
            steps = [
                (read.producer, needed)
                for read in self.units[at].reads
                if read.producer is not None and (needed := self._extent(read, wanted, True)) is not None
            ]
            open_steps = [step for step in steps if step[1] not in self._reached[step[0]]]
            if open_steps:
                waiting += open_steps
                continue
            bits = (wanted == WHOLE) << at | wanted[0] << len(self.units) + at
            for producer, needed in steps:
                bits |= self._reached[producer][needed]
            self._reached[at][wanted] = bits
            waiting.pop()
        return self._reached[unit][extent]

    def _extent(self, read: Read, extent: Extent, parts: bool) -> Extent | None:
        """What a read needs of its producer for some extents of its results; remembered for equal layers.

        ``None`` without a producer, or where it may need nothing.

        Parameters
        ----------
        extent, parts : whether the reader has all channels, rows and columns, and all parts of its sum
        """
        if read.producer is None:
            return None
        unit = self.units[read.producer]
        made = unit.layer.operator, unit.maker(read.link)
        kinds = tuple(self._kinds[id(operator)] for operator in (read.layer.operator, *made))
        key = (kinds, read.operand, read.way, extent, parts)
        if key not in self._extents:
            self._extents[key] = self._traced(read, unit, extent, parts)
        return self._extents[key]

    def _traced(self, read: Read, maker: Unit, extent: Extent, parts: bool) -> Extent | None:
        operator = read.layer.operator
        shape = shape_of(operator)
        summed = parts or shape.parts == 1, parts or shape.strips == 1
        has = (*(all_of or size == 1 for all_of, size in zip(extent, shape.sizes, strict=True)), *summed)
        origin = made_by(maker, read.link, ((), (), (), ()))
        along = axes_along(operator, read.operand, origin, mixed=True)
        if along is None:
            return WHOLE
        mapped, flat = along
        mapped_whole: list[bool] = []
        for coordinate, (axis, size) in enumerate(zip(mapped, origin.sizes, strict=True)):
            if flat and coordinate == 0:
                mapped_whole.append(has[PART] or size == 1)  # every part of the sum reads its channel
                continue
            key = (self._kinds[id(operator)], axis, size, tuple(has[at] for at in axis.depends))
            if key not in self._fewests:
                self._fewests[key] = _fewest(operator, axis, size, has)
            if self._fewests[key] == 0:
                return None
            mapped_whole.append(self._fewests[key] == size)
        return mapped_whole[0], mapped_whole[1], mapped_whole[2]


def _least_atom(unit: Unit) -> tuple[Extent, bool]:
    """What the least atom has all of: channels, rows and columns, and parts of its sum."""
    shape = shape_of(unit.layer.operator)
    return (shape.sizes[0] == 1, shape.sizes[1] == 1, shape.sizes[2] == 1), shape.parts * shape.strips == 1


def _fewest(operator: Operator, operand: OperandAxes, size: int, has: Sequence[bool]) -> int:
    """Positions along a coordinate that a reader needs at least, wherever its atom lies."""
    shape = shape_of(operator)
    cut = [axis for axis in operand.depends if not has[axis]]
    ranges: dict[str, Range] = {}
    for axis in operand.depends:
        if has[axis]:
            ranges |= loop_ranges(operator, axis, 0, shape.extent(axis))
    fewest = size
    # where each loop is a digit of the positions, one iteration of it reads as many wherever it lies
    alike = (
        not any(shape.scattered)
        and operand.covers(size)
        and all(len(axis.terms) == 1 for axis in operand.axes)
    )
    at_ends = _fewest_at_ends(operator, operand, size, cut, ranges)
    sizes = [shape.extent(axis) for axis in cut]
    ends = [sorted({0, size - 1}) if at_ends else range(size) for size in sizes]
    for count, place in enumerate(itertools.product(*ends)):
        if count == MOST_POSITIONS:
            return 0
        here = dict(ranges)
        for axis, at in zip(cut, place, strict=True):
            here |= loop_ranges(operator, axis, at, at + 1)
        fewest = min(fewest, len(positions_read(operator, operand, size, here)))
        if fewest == 0 or alike:
            break
    return fewest


def _fewest_at_ends(
    operator: Operator, operand: OperandAxes, size: int, cut: list[int], ranges: dict[str, Range]
) -> bool:
    """Whether the first place or the last one along a coordinate reads as few positions as any.

    A window that is no wider than the producer moves along it: all of it has entered before any of it leaves.

    Parameters
    ----------
    operator, operand, size : as of `_fewest`
    cut : axes of the tiling along which the window moves
    ranges : of the loops of all other axes
    """
    shape = shape_of(operator)
    if len(operand.axes) != 1 or len(cut) != 1 or any(shape.scattered):
        return False
    if cut[0] < PART and len(shape.loops[cut[0]]) != 1:
        return False
    window = touched(operand.axes[0], ranges | loop_ranges(operator, cut[0], 0, 1), operator.bounds)
    first = operand.before + operand.first
    low, high = max(operand.before, first), min(operand.before + operand.inner, first + size)
    return bool(window[-1] - window[0] < high - low)
