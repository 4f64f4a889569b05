"""Bounds on subtrees by place (`places.py`), in machine code."""

from __future__ import annotations

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled

SLACK = 1 + 1e-9
"""For sums in another order."""

ENERGY, SLOWEST, MOVED, TO_COME = range(4)
"""Columns of the sums over the children placed so far: pJ, cycles of the slowest, bytes of DRAM; and the
least pJ of all that follow.
"""


@compiled
def _within(
    bounds: Floats, begin: Int64s, apart: int, first: int, tiles: int, least: int, most: int
) -> float:
    """The least over the places inside of one that have some number of tiles."""
    smallest = np.inf
    for count in range(least, most + 1):
        for at in range(first, first + tiles - count + 1):
            smallest = min(smallest, bounds[begin[count] + at * apart])
    return smallest


@compiled
def side_by_side(
    energy: Floats,
    cycles: Floats,
    moved: Floats,
    begin: Int64s,
    apart: int,
    tables: Int64s,
    before: Int64s,
    slots: float,
    passed: Floats,
    kinds: Int64s,
    distances: Floats,
    spend: Floats,
    last: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Energy, cycles and bytes of an S cut by its place, each the least over all orders of its children that
    are not pruned.

    Parameters
    ----------
    energy, cycles, moved : of its children by place, shape (children, places)
    begin, apart : of the places
    tables : tiles of every child by number of tiles, all that are possible; 0 where the cut cannot be
        allocated, -1 where any number of tiles is possible
    before : per child, those that stand before it in any order, as sets of bits
    slots : times that the slowest child takes
    passed : pJ of a hop of all that one child passes on to another, by producer and reader
    kinds : per child, the table of ``distances`` for its results
    distances : shape (tables, places, places)
    spend, last : by place, the most energy and cycles that are not pruned
    """
    children, places = energy.shape
    total = len(begin) - 1
    spent, taken, through = np.full(places, np.inf), np.full(places, np.inf), np.full(places, np.inf)
    order, at = np.zeros(children, dtype=np.int64), np.zeros(children, dtype=np.int64)
    sums, low = np.zeros((children + 1, 4)), np.zeros(children)
    used, offset = np.zeros(children + 1, dtype=np.int64), np.zeros(children + 1, dtype=np.int64)
    for tiles in range(children, total + 1):
        for first in range(total - tiles + 1 if apart else 1):
            place = begin[tiles] + first * apart
            most, longest = spend[place] * SLACK, last[place] * SLACK
            if most <= 0 or longest <= 0:
                continue
            for option in range(tables.shape[1]):
                given = tables[tiles, option]
                if given[0] == 0:
                    break
                rest = np.sum(passed)
                for child in range(children):
                    least, more = (1, tiles - 1) if given[0] < 0 else (given[child], given[child])
                    low[child] = _within(energy[child], begin, apart, first, tiles, least, more)
                    rest += low[child]
                if rest > most:
                    continue
                if given[0] < 0:
                    slowest, bytes_moved = 0.0, 0.0
                    for child in range(children):
                        bytes_moved += _within(moved[child], begin, apart, first, tiles, 1, tiles - 1)
                        cycles_of = _within(cycles[child], begin, apart, first, tiles, 1, tiles - 1)
                        slowest = max(slowest, cycles_of)
                    spent[place] = min(spent[place], rest)
                    taken[place] = min(taken[place], slots * slowest)
                    through[place] = min(through[place], bytes_moved)
                    continue
                # every order from left to right; of each begun one energy, cycles, bytes and energy to come
                depth = 0
                sums[0, :], sums[0, TO_COME], order[0] = 0.0, rest, -1
                while depth >= 0:
                    order[depth] += 1
                    child = order[depth]
                    if child == children:
                        depth -= 1
                        continue
                    if used[depth] >> child & 1 or before[child] & ~used[depth]:
                        continue
                    here = begin[given[child]] + (first + offset[depth]) * apart
                    at[child] = here
                    every = sums[depth, ENERGY] + energy[child, here]
                    to_come = sums[depth, TO_COME] - low[child]
                    for other in range(children):
                        if used[depth] >> other & 1 and passed[other, child] > 0:
                            every += passed[other, child] * distances[kinds[other], at[other], here]
                            to_come -= passed[other, child]
                    slowest = max(sums[depth, SLOWEST], slots * cycles[child, here])
                    if not (every + to_come <= most and slowest <= longest):
                        continue
                    depth += 1
                    sums[depth, ENERGY], sums[depth, SLOWEST], sums[depth, TO_COME] = every, slowest, to_come
                    sums[depth, MOVED] = sums[depth - 1, MOVED] + moved[child, here]
                    if depth == children:
                        spent[place] = min(spent[place], every)
                        taken[place] = min(taken[place], slowest)
                        through[place] = min(through[place], sums[depth, MOVED])
                        depth -= 1
                        continue
                    used[depth] = used[depth - 1] | 1 << child
                    offset[depth] = offset[depth - 1] + given[child]
                    order[depth] = -1
    return spent, taken, through


@compiled
def fewer(bounds: Floats, begin: Int64s, apart: int) -> Floats:
    """The least over all smaller places inside of each."""
    least = np.full(len(bounds), np.inf)
    total = len(begin) - 1
    for tiles in range(2, total + 1):
        for first in range(total - tiles + 1 if apart else 1):
            for at in range(first, first + 2 if apart else first + 1):
                inside = begin[tiles - 1] + at * apart
                place = begin[tiles] + first * apart
                least[place] = min(least[place], min(least[inside], bounds[inside]))
    return least


@compiled
def wider(bounds: Floats, begin: Int64s, apart: int) -> Floats:
    """The most over all larger places around each."""
    most = np.full(len(bounds), -np.inf)
    total = len(begin) - 1
    for tiles in range(total - 1, 0, -1):
        for first in range(total - tiles + 1 if apart else 1):
            place = begin[tiles] + first * apart
            low, high = (max(0, first - 1), min(first, total - tiles - 1)) if apart else (0, 0)
            for at in range(low, high + 1):
                around = begin[tiles + 1] + at * apart
                most[place] = max(most[place], max(most[around], bounds[around]))
    return most
