"""Siblings: layers that read the same results, of which an engine is sent a part once.

What a layer left in an engine's buffer need not be sent there again for the next one.  So siblings whose
engines read the same pixels take less together than each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.stretches_read import Touched
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout
from tilewright.heuristics.scheduling.tiled.layouts.journeys import (
    as_long,
    borders_along,
    by_shares,
    placed,
    touches,
)

Operand = tuple[int, Read]
"""A layer, and which of its operands."""


def siblings(units: Sequence[Unit], order: Sequence[int]) -> list[tuple[Operand, Operand]]:
    """Operands that two layers read of the same producer, the second layer next after the first in an order.

    Parameters
    ----------
    units : the layers
    order : in which they run
    """
    last: dict[int, Operand] = {}
    pairs: list[tuple[Operand, Operand]] = []
    for unit in order:
        for read in units[unit].reads:
            if read.producer is None or read.producer == unit or read.late:
                continue
            before = last.get(read.producer)
            if before is not None and before[0] != unit:
                pairs.append((before, (unit, read)))
            last[read.producer] = unit, read
    return pairs


def kept(
    problem: TiledProblem, first: Operand, second: Operand, before: Sequence[Layout], after: Sequence[Layout]
) -> Floats | None:
    """Part of what engines read of an operand that they have read for a layer before.

    Parameters
    ----------
    first, second : operands with the same producer
    before, after : layouts of the two layers

    Returns
    -------
    Shape (layouts before, layouts after); ``None`` where coordinates mix on the way of an operand
    """
    before, which_before = by_shares(before)
    after, which_after = by_shares(after)
    had, wanted = _regions(problem, first, before), _regions(problem, second, after)
    if had is None or wanted is None:
        return None
    sizes = np.prod(wanted[..., 1] - wanted[..., 0], axis=2).sum(axis=1)
    shared = np.empty((len(before), len(after)))
    for i, region in enumerate(had):
        low = np.maximum(region[..., 0], wanted[..., 0])
        high = np.minimum(region[..., 1], wanted[..., 1])
        shared[i] = np.prod(np.maximum(0, high - low), axis=2).sum(axis=1)
    part: Floats = (shared / np.maximum(1, sizes))[np.ix_(which_before, which_after)]
    return part


def _regions(problem: TiledProblem, operand: Operand, layouts: Sequence[Layout]) -> Int64s | None:
    """Boxes of an operand that engines read, shape (layouts, engines, coordinates, 2); empty ones have both
    ends at 0.
    """
    index, read = operand
    coordinates = touches(problem, index, read)
    if coordinates is None:
        return None
    operator, machine = problem.units[index].layer.operator, problem.machine
    groups, engines = placed(layouts, machine, (False,) * 4)
    inner = np.cumprod(np.concatenate([np.ones_like(groups[:, :1]), groups[:, :0:-1]], axis=1), axis=1)
    # the share of every engine along each axis; one without results reads nothing
    share = np.arange(machine.engines)[:, None] // inner[:, None, ::-1] % groups[:, None]
    made = engines >= 0
    known: list[tuple[Int64s, tuple[Int64s, Int64s]]] = []
    for along in range(4):
        cuts, which = borders_along(layouts, operator, along, 1)
        borders, at = as_long(cuts), (np.array(which)[:, None], share[..., along])
        made &= borders[at] < borders[:, 1:][at]
        known.append((borders, at))
    regions = np.zeros((len(layouts), machine.engines, len(coordinates), 2), dtype=np.int64)
    rows = np.nonzero(made)[0]
    for coordinate, (axis, touched) in enumerate(coordinates):
        if axis is None:
            regions[rows, engines[made], coordinate] = _ends(
                touched, np.array([[0, shape_of(operator).parts]])
            )
        else:
            borders, at = known[axis]
            regions[rows, engines[made], coordinate] = _ends(touched, borders)[at][made]
    return regions


def _ends(touched: Touched, borders: Int64s) -> Int64s:
    """The first position that shares touch, and the one after the last, shape (rows, shares, 2).

    Parameters
    ----------
    borders : ascending, shape (rows, shares + 1)
    """
    low, high = borders[:, :-1].ravel(), borders[:, 1:].ravel()
    ends = touched.ends(low, high)
    ends[(low == high) | (ends[:, 0] == ends[:, 1])] = 0
    return ends.reshape(len(borders), -1, 2)
