"""Machine code that chooses how engines cut their shares of a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.foundation.compiled import compiled

FIRST = 0.5
"""Part of the first arrival of a layer that nothing hides."""

HANDOVER = 16
"""Cycles between one atom and the next."""

SUM_BYTES = 4
"""Bytes of an unfinished sum."""

KINDS = 5
"""Kinds of cuts: of neither pixels nor sums, of rows, of columns, of sums, and of sums and pixels."""


@compiled
def best_cuts(
    groups: Any,
    cuts: Any,
    share_of: Any,
    cut_of: Any,
    tables: Any,
    filled: Any,
    counts: Any,
    menu: Any,
    room: float,
    summed: Any,
    chained: bool,
    spread: bool,
    figures: Any,
) -> Any:  # pragma: no cover
    """The best cuts of each kind for all shares of a layer.

    Parameters
    ----------
    groups : along the axes of `Shape.laid`, shape (shares, 4)
    cuts : parts of a share along these axes, those that cut nothing first, shape (cuts, 4)
    share_of, cut_of : per axis, the row and the column of `tables`, shapes of `groups` and of `cuts`
    tables : per axis the number of an atom's size, shape (4, shares, cuts)
    filled : what atoms of a share make, as a part of as many of the largest size, shape of `tables`
    counts : sizes of atoms along each axis
    menu : sizes, cycles, and bytes fetched, of weights and needed of atoms of all sizes, as of `SizeMenu`
    room : bytes that an atom may need
    summed : which axes divide the sum, and not the results
    chained : whether each part of a sum adds to the one before; otherwise one atom adds all of them
    spread : whether the engines that share a sum add up some boxes each
    figures : bytes a cycle of an engine's port, and of DRAM for operands from outside of the network; pJ that
        a cycle is worth; pJ of reading and writing a byte of a buffer

    Returns
    -------
    whole : the size of the uncut share, shape (shares,)
    best : numbers of the best cuts, shape (shares, `KINDS`)
    busy, inside : cycles of these, infinite where none fits, and pJ of unfinished sums and of weights that
        every atom reads, shapes as of `best`
    """
    sizes, cycles, fetch, weights, need = menu
    port, dram, price, read, write = figures[0], figures[1], figures[2], figures[3], figures[4]
    whole = np.zeros(len(groups), dtype=np.int64)
    best = np.zeros((len(groups), KINDS), dtype=np.int64)
    busy = np.full((len(groups), KINDS), np.inf)
    inside = np.zeros((len(groups), KINDS))
    least = np.full(KINDS, np.inf)
    # parts of a window lie where the map was made, so that nothing arrives between them
    handover = 0 if spread else HANDOVER
    for n in range(len(groups)):
        least[:] = np.inf
        spot = 0
        for axis in range(4):
            spot = spot * counts[axis] + tables[axis, share_of[n, axis], cut_of[0, axis]]
        whole[n] = spot
        inputs = fetch[spot]
        results = sizes[spot, 0] * sizes[spot, 1] * sizes[spot, 3]
        chain = 1
        for axis in range(4):
            chain *= groups[n, axis] if summed[axis] else 1
        pixels = groups[n, 1] * groups[n, 2] * groups[n, 3]
        many = groups[n, 0] * pixels
        for c in range(len(cuts)):
            spot, idle, part, boxes, terms = 0, False, 1.0, 1, 1
            for axis in range(4):
                if summed[axis]:
                    terms *= cuts[c, axis]
                else:
                    boxes *= cuts[c, axis]
                part *= filled[axis, share_of[n, axis], cut_of[c, axis]]
                size = tables[axis, share_of[n, axis], cut_of[c, axis]]
                # a cut that changes nothing is none
                idle |= cuts[c, axis] > 1 and size == tables[axis, share_of[n, axis], cut_of[0, axis]]
                spot = spot * counts[axis] + size
            if idle or need[spot] > room:
                continue
            # engines that share sums begin with other boxes each, so that none waits for the one before
            begun = max(boxes, chain) if chained else boxes
            taken = begun * terms * (part * cycles[spot] + handover)
            if chained and chain > 1 and boxes < 2 * chain:  # with more boxes sums have a turn to travel in
                taken += begun * (results * SUM_BYTES / boxes / port)
            elif not chained and chain * terms > 1:
                last = -(-boxes // chain) if spread else boxes
                taken += last * (HANDOVER + chain * terms * results * SUM_BYTES / boxes / port)
            time = taken + FIRST * fetch[spot] / port + max(0.0, inputs / port - taken)
            time += (fetch[spot] - weights[spot]) * pixels / dram
            sums = (terms * chain - 1) * results * (many // chain) * SUM_BYTES
            spent = sums * (read + write) + many * boxes * terms * weights[spot] * read
            if terms > 1:
                kind = 4 if boxes > cuts[c, 0] else 3
            elif boxes > cuts[c, 0]:
                kind = 2 if cuts[c, 2] > 1 else 1
            else:
                kind = 0
            if price * time + spent < least[kind]:
                least[kind] = price * time + spent
                best[n, kind], busy[n, kind], inside[n, kind] = c, taken, spent
    return whole, best, busy, inside
