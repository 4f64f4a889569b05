"""Layers that must be done, all of them, before any part of another layer can begin, whatever the atoms.

The least that an atom of a layer can be is one result, or one part of its sum.  What it reads of a producer
is a product along channels, rows and columns; along each, that is

- ``ALL`` of the producer's positions, where the reader has all of the loops that move along it, or none does;
- ``SOME``, at least one position, whichever results the atom makes;
- perhaps nothing (padding, or another tensor of a concatenation), so that nothing is known.

A result is a finished sum, so what it reads in turn has all parts of the sum.  Followed through the network,
a producer of which all channels, rows and columns are needed on one way is needed as a whole.  Behind
reshaping and transposing an atom depends on all of the producer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tilewright.formulation.scheduling.tiled.coordinates import PART, Range, loop_ranges, shape_of
from tilewright.formulation.scheduling.tiled.overlap import OperandAxes, positions_read
from tilewright.formulation.scheduling.tiled.reading import axes_along, made_by
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.workloads.mapping.operator import Operator

Extent = tuple[bool, bool, bool]
"""Per channels, rows and columns whether all positions are needed, or some."""

WHOLE: Extent = (True, True, True)

MOST_POSITIONS = 4096
"""Places of an atom that are tried along a coordinate; beyond, nothing is known."""


def barriers(units: Sequence[Unit]) -> list[frozenset[int]]:
    """Per unit, those that must be done for the same sample before any of its atoms begins."""
    known: dict[tuple[int, Extent, bool], list[tuple[int, Extent]]] = {}

    def needs(reader: int, extent: Extent, parts: bool) -> list[tuple[int, Extent]]:
        """What a unit needs for this much of its results, with all parts of their sums or one of them."""
        key = reader, extent, parts
        if key not in known:
            reads = [read for read in units[reader].reads if parts or not read.late]
            extents = [(read.producer, _extent(units, read, (*extent, parts))) for read in reads]
            known[key] = [
                (producer, extent_read)
                for producer, extent_read in extents
                if producer is not None and extent_read is not None
            ]
        return known[key]

    return [_before(units, target, needs) for target in range(len(units))]


def _before(
    units: Sequence[Unit], target: int, needs: Callable[[int, Extent, bool], list[tuple[int, Extent]]]
) -> frozenset[int]:
    shape = shape_of(units[target].layer.operator)
    least = (shape.sizes[0] == 1, shape.sizes[1] == 1, shape.sizes[2] == 1)
    needed: dict[int, set[Extent]] = {}
    for producer, extent in needs(target, least, shape.parts == 1):
        needed.setdefault(producer, set()).add(extent)
    for unit in range(target - 1, -1, -1):
        extents = needed.get(unit, set())
        for extent in {WHOLE} if WHOLE in extents else extents:
            for producer, extent_read in needs(unit, extent, True):
                needed.setdefault(producer, set()).add(extent_read)
    return frozenset(unit for unit, extents in needed.items() if WHOLE in extents)


def _extent(units: Sequence[Unit], read: Read, has: tuple[bool, bool, bool, bool]) -> Extent | None:
    """What a read needs of its producer; ``None`` without one, or where that may be nothing.

    Parameters
    ----------
    has : per axis of the reader's tiling, whether it has all of it
    """
    if read.producer is None:
        return None
    operator = read.layer.operator
    own = shape_of(operator).sizes
    has = (has[0] or own[0] == 1, has[1] or own[1] == 1, has[2] or own[2] == 1, has[3])
    origin = made_by(units[read.producer].layer.operator, read.link, ((), (), (), ()))
    along = axes_along(operator, read.operand, origin)
    if along is None:
        return WHOLE
    mapped, flat = along
    mapped_whole: list[bool] = []
    for coordinate, (axis, size) in enumerate(zip(mapped, origin.sizes, strict=True)):
        if flat and coordinate == 0:
            mapped_whole.append(has[PART] or size == 1)  # every part of the sum reads its channel
            continue
        fewest = _fewest(operator, axis, size, has)
        if fewest == 0:
            return None
        mapped_whole.append(fewest == size)
    return mapped_whole[0], mapped_whole[1], mapped_whole[2]


def _fewest(operator: Operator, one: OperandAxes, size: int, has: tuple[bool, bool, bool, bool]) -> int:
    """Positions along a coordinate that a reader needs at least, wherever its atom lies."""
    shape = shape_of(operator)
    bounds = (*shape.sizes, shape.parts)
    cut = [axis for axis in one.depends if not has[axis]]
    ranges: dict[str, Range] = {}
    for axis in one.depends:
        if has[axis]:
            ranges |= loop_ranges(operator, axis, 0, bounds[axis])
    fewest = size
    places = itertools.product(*(range(bounds[axis]) for axis in cut))
    for count, place in enumerate(places):
        if count == MOST_POSITIONS:
            return 0
        here = dict(ranges)
        for axis, at in zip(cut, place, strict=True):
            here |= loop_ranges(operator, axis, at, at + 1)
        fewest = min(fewest, len(positions_read(operator, one, size, here)))
        if fewest == 0:
            break
    return fewest
