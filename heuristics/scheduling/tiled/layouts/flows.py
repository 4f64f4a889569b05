"""Flows: how long the first atoms of a layer wait for results that arrive while they are still made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.stretches_read import Touched
from tilewright.formulation.scheduling.tiled.units import Read
from tilewright.foundation.arrays import Floats
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.layouts.candidates import WHOLE, Candidates, Layout, Tiles
from tilewright.heuristics.scheduling.tiled.layouts.journeys import place_of, touches
from tilewright.heuristics.scheduling.tiled.layouts.rings import finishing_turns
from tilewright.workloads.mapping.operator import Operator


def last_waits(
    problem: TiledProblem, index: int, read: Read, made: Candidates, wanted: Candidates, first: Floats
) -> Floats:
    """Cycles that a layer's first atoms wait for an operand after its producer has ended.

    An engine makes boxes of results one after the other, and each can leave while the next ones are made.  So
    the wait is at least what arrives of any box and of all later ones, less what it takes to make the later
    ones; it is taken to be the most of these, with what engines make in a turn on average.

    Parameters
    ----------
    index, read : the reading unit, and which of its operands, on the way of which no coordinates mix
    made, wanted : layouts of the producer and of the reader
    first : cycles that what the first atoms read takes on its way, shape (producer's layouts, reader's)

    Returns
    -------
    Shape as of ``first``
    """
    assert read.producer is not None
    coordinates = touches(problem, index, read)
    assert coordinates is not None
    maker, reader = problem.units[read.producer].layer.operator, problem.units[index].layer.operator
    shape = shape_of(maker)
    whole: Tiles = (0, shape_of(reader).parts), (0,), (0,)
    parts, turns, which_made, which_wanted = [], [], [], []
    for coordinate, (axis, touched) in enumerate(coordinates):
        makers, which = _tiles(made.layouts, maker, place_of(shape, coordinate), WHOLE)
        which_made.append(which)
        turns.append([1 + max(makers[i][2]) for i in which])
        readers, which = _tiles(wanted.layouts, reader, axis, whole)
        which_wanted.append(which)
        parts.append(_in_turns(makers, readers, touched))
    cuts, groups = (
        np.array(along)[:, shape.summed].prod(axis=1)
        for along in zip(*((layout.cuts, layout.grid.groups) for layout in made.layouts), strict=True)
    )
    boxes = np.prod(turns, axis=0)
    if problem.partial_sums == "chain" and maker.is_mac:
        # engines that share sums finish all boxes in the last turns
        turns_of = np.maximum(boxes, groups)
        lasting = made.cycles / turns_of * finishing_turns(boxes, groups) / boxes
    else:  # parts of a sum are added up when all of them are made
        lasting = np.where(groups * cuts > 1, 0.0, made.cycles / boxes)
    waits: Floats = _longest(
        parts[0],
        parts[1],
        parts[2],
        np.array(turns),
        np.array(which_made),
        np.array(which_wanted),
        lasting,
        first,
    )
    return waits


def _in_turns(makers: Sequence[Tiles], readers: Sequence[Tiles], touched: Touched) -> Floats:
    """Part of what first tiles touch along a coordinate that is made in each turn, shape (makers, readers,
    turns).
    """
    firsts = [
        (reader, borders[at], borders[at + 1])
        for reader, (borders, shares, _) in enumerate(readers)
        for at, share in enumerate(shares)
        if at == 0 or share != shares[at - 1]
    ]
    which, low, high = np.array(firsts, dtype=np.int64).T
    read = touched.often(low, high, which, (len(readers), makers[0][0][-1]))
    read /= np.maximum(1.0, read.sum(axis=1, keepdims=True))
    turns = np.arange(1 + max(max(numbers) for _, _, numbers in makers))
    made = [np.repeat(numbers, np.diff(borders))[:, None] == turns for borders, _, numbers in makers]
    return np.stack([read @ in_turn for in_turn in made])


def _tiles(
    layouts: Sequence[Layout], operator: Operator, axis: int | None, whole: Tiles
) -> tuple[list[Tiles], list[int]]:
    """All tiles along an axis that differ, ``whole`` without one, and which each layout has."""
    if axis is None:
        return [whole], [0] * len(layouts)
    known: dict[object, int] = {}
    number: dict[Tiles, int] = {}
    which = []
    for layout in layouts:
        key = layout.grid.groups[axis], layout.cuts[axis], layout.units[axis]
        if key not in known:
            known[key] = number.setdefault(layout.tiles(operator)[axis], len(number))
        which.append(known[key])
    return list(number), which


@compiled
def _longest(
    channels: Any,
    rows: Any,
    columns: Any,
    turns: Any,
    which_made: Any,
    which_wanted: Any,
    lasting: Any,
    arrival: Any,
) -> Any:  # pragma: no cover
    """The longest wait for any box, shape of ``arrival``.

    Parameters
    ----------
    channels, rows, columns : part of what first atoms read that is made in each turn along a coordinate,
        shape (producer's tiles, reader's tiles, turns)
    turns : per coordinate and layout of the producer, shape (3, layouts)
    which_made, which_wanted : per coordinate and layout, which of the tiles it has
    lasting : cycles of a box, per layout of the producer
    arrival : cycles that what the first atoms read takes on its way
    """
    waits = np.zeros(arrival.shape)
    for i in range(arrival.shape[0]):
        for j in range(arrival.shape[1]):
            along0 = channels[which_made[0, i], which_wanted[0, j]]
            along1 = rows[which_made[1, i], which_wanted[1, j]]
            along2 = columns[which_made[2, i], which_wanted[2, j]]
            longest, part, later = 0.0, 0.0, 0
            for h in range(turns[1, i] - 1, -1, -1):
                for w in range(turns[2, i] - 1, -1, -1):
                    for k in range(turns[0, i] - 1, -1, -1):
                        part += along1[h] * along2[w] * along0[k]
                        longest = max(longest, part * arrival[i, j] - later * lasting[i])
                        later += 1
            waits[i, j] = longest
    return waits
