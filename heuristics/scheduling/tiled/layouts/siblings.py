"""Siblings: layers that read the same results, of which an engine is sent a part once.

What a layer left in an engine's buffer need not be sent there again for the next one.  So siblings whose
engines read the same pixels take less together than each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout
from tilewright.heuristics.scheduling.tiled.layouts.journeys import Cuts, Touched, by_shares, touches

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
    whole = (0, shape_of(operator).parts)
    regions = np.zeros((len(layouts), machine.engines, len(coordinates), 2), dtype=np.int64)
    known: dict[tuple[int, Cuts], Int64s] = {}
    for region, layout in zip(regions, layouts, strict=True):
        borders, engines = layout.borders(operator), layout.engines(machine.width)
        # an engine without results reads nothing
        filled: tuple[Int64s, ...] = np.ix_(*(np.flatnonzero(np.diff(along)) for along in borders))
        used = engines[filled].ravel()
        for at, (axis, touched) in enumerate(coordinates):
            along = whole if axis is None else borders[axis]
            if (at, along) not in known:
                known[at, along] = _ends(touched, along)
            ends = known[at, along]
            share = np.broadcast_to(filled[axis], engines[filled].shape).ravel() if axis is not None else 0
            region[used, at] = ends[share]
    return regions


def _ends(touched: Touched, along: Cuts) -> Int64s:
    """The first position that each share touches, and the one after the last, shape (shares, 2)."""
    ends = np.zeros((len(along) - 1, 2), dtype=np.int64)
    for share, (low, high) in enumerate(pairwise(along)):
        if low == high:
            continue
        positions = touched(low, high)
        if len(positions):
            ends[share] = positions[0], positions[-1] + 1
    return ends
