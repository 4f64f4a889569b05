"""Journeys: what it takes to bring one layer's results to another's engines, for all pairs of layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, Shape, shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.reading import axes_along, made_by
from tilewright.formulation.scheduling.tiled.stretches_read import Touched
from tilewright.formulation.scheduling.tiled.units import Read
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout
from tilewright.heuristics.scheduling.tiled.layouts.grids import sides
from tilewright.heuristics.scheduling.tiled.layouts.ways_kernel import places
from tilewright.heuristics.scheduling.tiled.lists import zigzag
from tilewright.workloads.mapping.operator import Operator

Cuts = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Journeys:
    """Per pair of layouts of a producer and of a reader, shape (producer's, reader's).

    Parameters
    ----------
    energy : pJ of reading, links and writing
    arrival : cycles that the busiest link or engine's port needs
    """

    energy: Floats
    arrival: Floats


def journeys(
    problem: TiledProblem, index: int, read: Read, made: Sequence[Layout], wanted: Sequence[Layout]
) -> Journeys | None:
    """What an operand's way takes from every layout of its producer to every layout of its reader.

    Multicasts go along the rows first, as on a mesh; every engine is sent a part once.

    Parameters
    ----------
    index, read : the reading unit, and which of its operands
    made, wanted : layouts of the producer and of the reader

    Returns
    -------
    ``None`` where coordinates mix on the way, so that layouts make little difference
    """
    machine = problem.machine
    assert read.producer is not None
    made, which_theirs = by_shares(made)
    wanted, which_mine = by_shares(wanted)
    unit, producer = problem.units[index], problem.units[read.producer]
    coordinates = touches(problem, index, read)
    if coordinates is None:
        return None
    theirs_laid, mine_laid = shape_of(producer.layer.operator), shape_of(unit.layer.operator)
    met, which_made, which_wanted = [], [], []
    for coordinate, (axis, touched) in enumerate(coordinates):
        theirs, which = borders_along(made, producer.layer.operator, place_of(theirs_laid, coordinate), 1)
        which_made.append(which)
        mine, which = borders_along(wanted, unit.layer.operator, axis, mine_laid.parts)
        which_wanted.append(which)
        met.append(overlaps(touched, theirs, mine))
    depends = [-1 if axis is None else axis for axis, _ in coordinates]
    bits = problem.result_bits[read.producer]
    # of a sum that engines pass on in a ring each finishes some boxes, otherwise the last one finishes all
    ring = problem.partial_sums == "chain" and producer.layer.operator.is_mac
    made_groups, made_engines = placed(made, machine, (False,) * 4 if ring else theirs_laid.summed)
    # what a finished sum meets, only the last engine of its chain reads
    last = mine_laid.summed if read.late else (False,) * 4
    wanted_groups, wanted_engines = placed(wanted, machine, last)
    sent = _priced(
        met[0],
        met[1],
        met[2],
        np.array(which_made, dtype=np.int64).T.copy(),
        np.array(which_wanted, dtype=np.int64).T.copy(),
        made_groups,
        made_engines,
        wanted_groups,
        wanted_engines,
        np.array(depends, dtype=np.int64),
        machine.width,
        machine.engines,
        np.array([machine.engine.buffer_read_energy, machine.hop_energy, machine.engine.buffer_write_energy]),
        np.array([machine.port_rate, machine.link_rate], dtype=np.float64),
    )
    energy, arrival = (figures[np.ix_(which_theirs, which_mine)] * (bits / 8) for figures in sent)
    return Journeys(energy, arrival)


def touches(problem: TiledProblem, index: int, read: Read) -> list[tuple[int | None, Touched]] | None:
    """Along every coordinate of what is read, which of the axes that the reader is laid out along moves along
    it, ``None`` where none does, and the producer's positions that a stretch of this axis touches.

    Parameters
    ----------
    index, read : the reading unit, and which of its operands

    Returns
    -------
    ``None`` where coordinates mix on the way
    """
    assert read.producer is not None
    operator = read.layer.operator
    origin = made_by(problem.units[read.producer], read.link, ((0, 1),) * 4)
    mapped = axes_along(operator, read.operand, origin)
    if mapped is None:
        return None
    axes, flat = mapped
    used = [axis for along in axes for axis in along.depends]
    if any(len(along.depends) > 1 for along in axes) or len(set(used)) < len(used):
        return None
    shape = shape_of(problem.units[index].layer.operator)
    return [
        (
            place_of(shape, along.depends[0]) if along.depends else None,
            Touched(operator, along, origin.sizes[coordinate], flat and coordinate == CHANNEL),
        )
        for coordinate, along in enumerate(axes)
    ]


def place_of(shape: Shape, axis: int) -> int | None:
    """Which of the axes that a layer is laid out along is this one of its tiling; ``None`` for none."""
    return shape.laid.index(axis) if axis in shape.laid else None


def by_shares(layouts: Sequence[Layout]) -> tuple[list[Layout], list[int]]:
    """One layout for all that differ in cuts alone, which change no way, and which stands for each."""
    first: dict[object, int] = {}
    which = [first.setdefault(layout.shares, len(first)) for layout in layouts]
    return [layouts[which.index(at)] for at in range(len(first))], which


def borders_along(
    layouts: Sequence[Layout], operator: Operator, axis: int | None, size: int
) -> tuple[list[Cuts], list[int]]:
    """All borders of shares along an axis that differ, and which each layout has.

    Parameters
    ----------
    layouts, operator : of a layer
    axis : one that it is laid out along; ``None`` for a single share
    size : of that
    """
    if axis is None:
        return [(0, size)], [0] * len(layouts)
    number: dict[object, int] = {}
    which = [
        number.setdefault((layout.grid.groups[axis], layout.units[axis]), len(number)) for layout in layouts
    ]
    return [layouts[which.index(i)].borders(operator)[axis] for i in range(len(number))], which


def overlaps(touched: Touched, theirs: Sequence[Cuts], mine: Sequence[Cuts]) -> Floats:
    """Positions along a coordinate that shares of a reader touch of shares that were made, shape (producer's
    borders, reader's borders, producer's shares, reader's shares); those beyond the last share are 0.

    Parameters
    ----------
    touched : the positions of the producer that stretches of the reader touch
    theirs, mine : borders of the producer's and of the reader's shares
    """
    points, at = np.unique(as_long(theirs), return_inverse=True)
    borders = as_long(mine)
    stretches, number = np.unique(
        np.stack([borders[:, :-1], borders[:, 1:]], axis=2).reshape(-1, 2), axis=0, return_inverse=True
    )
    low, high = stretches.T
    met = np.diff(touched.below(low, high, points)[:, at.reshape(len(theirs), -1)], axis=2)
    table: Floats = np.ascontiguousarray(met[number.reshape(len(mine), -1)].transpose(2, 0, 3, 1))
    return table


def as_long(cuts: Sequence[Cuts]) -> Int64s:
    """Borders of shares, as many of each as there are of the most; the last ones repeat."""
    most = max(map(len, cuts))
    return np.array([along + along[-1:] * (most - len(along)) for along in cuts], dtype=np.int64)


def placed(layouts: Sequence[Layout], machine: TiledMachine, last: Sequence[bool]) -> tuple[Int64s, Int64s]:
    """Groups of each layout, shape (layouts, 4), and its engines in their order, padded with -1.

    Parameters
    ----------
    last : along which axes the engines of the last group alone count
    """
    made: tuple[Int64s, Int64s] = places(
        sides([layout.grid for layout in layouts]), machine.width, machine.engines, np.array(last)
    )
    for engines, layout in zip(made[1], layouts, strict=True):
        if layout.along:
            used = engines >= 0
            turn = zigzag(machine).argsort()[engines[used]]
            engines[used] = np.array(layout.along, dtype=np.int64)[turn]
    return made


@compiled
def _priced(
    channels: Any,
    rows: Any,
    columns: Any,
    which_made: Any,
    which_wanted: Any,
    made_groups: Any,
    made_engines: Any,
    wanted_groups: Any,
    wanted_engines: Any,
    depends: Any,
    width: int,
    engines: int,
    prices: Any,
    rates: Any,
) -> Any:  # pragma: no cover
    """Energy, and cycles of the busiest port or link, of results of one byte, for all pairs of layouts.

    Parameters
    ----------
    channels, rows, columns : positions that every share of a reader touches of every share that was made,
        shape (producer's borders, reader's borders, producer's shares, reader's shares)
    which_made, which_wanted : per layout and coordinate, which of the borders it has
    made_groups, wanted_groups : per layout, its groups of channels, rows, columns and the sum
    made_engines, wanted_engines : per layout, the engines of the groups in their order
    depends : per coordinate of what is read, along which groups of the reader it moves; -1 for none
    width, engines : of the machine
    prices : pJ of reading a byte from a buffer, of a link, and of writing it into a buffer
    rates : bytes a cycle of an engine's port and of a link
    """
    count, many = len(which_made), len(which_wanted)
    height = engines // width
    energy = np.zeros((count, many))
    arrival = np.zeros((count, many))
    sent = np.zeros(engines)
    kept = np.zeros(engines)  # of what its kind is sent, the part that an engine made itself
    # loads to the right, to the left, up and down, as changes from one router to the next
    change = np.zeros((4, height + 1, width + 1))
    classes = np.ones(3, dtype=np.int64)
    kind_of = np.empty(engines, dtype=np.int64)
    received = np.zeros(engines)
    copies = np.empty(engines, dtype=np.int64)
    left = np.empty(engines, dtype=np.int64)
    right = np.empty(engines, dtype=np.int64)
    top = np.empty((engines, width), dtype=np.int64)
    low = np.empty((engines, width), dtype=np.int64)
    at = np.zeros(4, dtype=np.int64)
    # links up and down from a row to engines of a kind, and what is sent from there to them
    upright = np.empty(engines * height, dtype=np.int64)
    leaving = np.zeros(engines * height)
    stack = np.empty(engines * height, dtype=np.int64)
    for j in range(many):
        groups = wanted_groups[j]
        for c in range(3):
            classes[c] = groups[depends[c]] if depends[c] >= 0 else 1
        kinds = classes[0] * classes[1] * classes[2]
        # engines by what they read, and where those of each kind lie
        kind_of[:] = -1
        copies[:kinds] = 0
        left[:kinds] = width
        right[:kinds] = -1
        top[:kinds] = height
        low[:kinds] = -1
        for share in range(groups[0] * groups[1] * groups[2] * groups[3]):
            at[0] = share // (groups[1] * groups[2] * groups[3])
            at[1] = share // (groups[2] * groups[3]) % groups[1]
            at[2] = share // groups[3] % groups[2]
            at[3] = share % groups[3]
            kind = 0
            for c in range(3):
                kind = kind * classes[c] + (at[depends[c]] if depends[c] >= 0 else 0)
            e = wanted_engines[j, share]
            x, y = e % width, e // width
            kind_of[e] = kind
            copies[kind] += 1
            left[kind], right[kind] = min(left[kind], x), max(right[kind], x)
            top[kind, x], low[kind, x] = min(top[kind, x], y), max(low[kind, x], y)
        for kind in range(kinds):
            for sy in range(height):
                links = 0
                for x in range(left[kind], right[kind] + 1):
                    links += max(0, sy - top[kind, x]) + max(0, low[kind, x] - sy)
                upright[kind * height + sy] = links
        for i in range(count):
            theirs = made_groups[i]
            table0 = channels[which_made[i, 0], which_wanted[j, 0]]
            table1 = rows[which_made[i, 1], which_wanted[j, 1]]
            table2 = columns[which_made[i, 2], which_wanted[j, 2]]
            received[:kinds] = 0.0
            sent[:] = 0.0
            kept[:] = 0.0
            change[:] = 0.0
            spent, ways = 0.0, 0
            for p0 in range(theirs[0]):
                for k0 in range(classes[0]):
                    if table0[p0, k0] == 0.0:
                        continue
                    for p1 in range(theirs[1]):
                        for k1 in range(classes[1]):
                            if table1[p1, k1] == 0.0:
                                continue
                            # engines that share sums finish as much each
                            for p2 in range(theirs[2] * theirs[3]):
                                at_engine = (p0 * theirs[1] + p1) * theirs[2] * theirs[3] + p2
                                source = made_engines[i, at_engine]
                                sx, sy = source % width, source // width
                                for k2 in range(classes[2]):
                                    size = table0[p0, k0] * table1[p1, k1] * table2[p2 // theirs[3], k2]
                                    size /= theirs[3]
                                    if size == 0.0:
                                        continue
                                    kind = (k0 * classes[1] + k1) * classes[2] + k2
                                    others = copies[kind]
                                    if kind_of[source] == kind:
                                        others -= 1
                                        kept[source] += size
                                    received[kind] += size
                                    if others == 0:
                                        continue
                                    sent[source] += size
                                    first, last = min(sx, left[kind]), max(sx, right[kind])
                                    change[0, sy, sx] += size
                                    change[0, sy, last] -= size
                                    change[1, sy, first + 1] += size
                                    change[1, sy, sx + 1] -= size
                                    way = kind * height + sy
                                    links = last - first + upright[way]
                                    spent += size * (prices[0] + prices[1] * links + prices[2] * others)
                                    if leaving[way] == 0.0:
                                        stack[ways] = way
                                        ways += 1
                                    leaving[way] += size
            energy[i, j] = spent
            for n in range(ways):
                kind, sy = stack[n] // height, stack[n] % height
                size = leaving[stack[n]]
                leaving[stack[n]] = 0.0
                for x in range(left[kind], right[kind] + 1):
                    up, down = top[kind, x], low[kind, x]
                    if up < sy:
                        change[2, up + 1, x] += size
                        change[2, sy + 1, x] -= size
                    if down > sy:
                        change[3, sy, x] += size
                        change[3, down, x] -= size
            longest = sent.max()
            for e in range(engines):
                if kind_of[e] >= 0:
                    longest = max(longest, received[kind_of[e]] - kept[e])
            passed = 0.0
            for way in range(4):
                for along in range(height if way < 2 else width):
                    load = 0.0
                    for step in range(width if way < 2 else height):
                        load += change[way, along, step] if way < 2 else change[way, step, along]
                        passed = max(passed, load)
            arrival[i, j] = max(longest / rates[0], passed / rates[1])
    return energy, arrival
