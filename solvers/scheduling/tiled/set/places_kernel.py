"""Bounds on subtrees by place (`places.py`), in machine code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_ORDERED = 12
"""Children of an S cut beyond which each is looked at in every place for itself."""


@njit(cache=True, nogil=True)
def _within(
    bounds: Floats, begin: Longs, apart: int, first: int, tiles: int, least: int, most: int
) -> float:
    """The least over the places inside of one that have some number of tiles."""
    found = np.inf
    for count in range(least, most + 1):
        for at in range(first, first + tiles - count + 1):
            found = min(found, bounds[begin[count] + at * apart])
    return found


@njit(cache=True, nogil=True)
def side_by_side(
    energy: Floats,
    cycles: Floats,
    moved: Floats,
    begin: Longs,
    apart: int,
    tables: Longs,
    before: Longs,
    slots: float,
) -> tuple[Floats, Floats, Floats]:
    """Energy, cycles and bytes of an S cut by its place, each the least over all orders of its children.

    Parameters
    ----------
    energy, cycles, moved : of its children by place, shape (children, places)
    begin, apart : of the places
    tables : tiles of every child by number of tiles, all that are possible; 0 where the cut cannot be
        allocated, -1 where any number of tiles is possible
    before : per child, those that stand before it in any order, as sets of bits
    slots : times that the slowest child takes
    """
    children, places = energy.shape
    total = len(begin) - 1
    spent, taken, through = np.full(places, np.inf), np.full(places, np.inf), np.full(places, np.inf)
    ordered = children <= MOST_ORDERED
    sets = 1 << children if ordered else 1
    sums = np.zeros((3, sets))
    offset = np.zeros(sets, dtype=np.int64)
    for tiles in range(children, total + 1):
        for first in range(total - tiles + 1 if apart else 1):
            place = begin[tiles] + first * apart
            for option in range(tables.shape[1]):
                given = tables[tiles, option]
                if given[0] == 0:
                    break
                if given[0] < 0 or not ordered:
                    every, slowest, bytes_moved = 0.0, 0.0, 0.0
                    for child in range(children):
                        low, high = (1, tiles - 1) if given[0] < 0 else (given[child], given[child])
                        every += _within(energy[child], begin, apart, first, tiles, low, high)
                        bytes_moved += _within(moved[child], begin, apart, first, tiles, low, high)
                        one = _within(cycles[child], begin, apart, first, tiles, low, high)
                        slowest = max(slowest, one)
                else:
                    sums[:, 1:] = np.inf
                    for done in range(sets - 1):
                        if sums[0, done] == np.inf:
                            continue
                        for child in range(children):
                            if done >> child & 1 or before[child] & ~done:
                                continue
                            at = begin[given[child]] + (first + offset[done]) * apart
                            more = done | 1 << child
                            offset[more] = offset[done] + given[child]
                            sums[0, more] = min(sums[0, more], sums[0, done] + energy[child, at])
                            sums[1, more] = min(sums[1, more], max(sums[1, done], cycles[child, at]))
                            sums[2, more] = min(sums[2, more], sums[2, done] + moved[child, at])
                    every, slowest, bytes_moved = sums[0, -1], sums[1, -1], sums[2, -1]
                spent[place], taken[place] = min(spent[place], every), min(taken[place], slots * slowest)
                through[place] = min(through[place], bytes_moved)
    return spent, taken, through


@njit(cache=True, nogil=True)
def fewer(bounds: Floats, begin: Longs, apart: int) -> Floats:
    """The least over all smaller places inside of each."""
    found = np.full(len(bounds), np.inf)
    total = len(begin) - 1
    for tiles in range(2, total + 1):
        for first in range(total - tiles + 1 if apart else 1):
            for at in range(first, first + 2 if apart else first + 1):
                inside = begin[tiles - 1] + at * apart
                place = begin[tiles] + first * apart
                found[place] = min(found[place], min(found[inside], bounds[inside]))
    return found


@njit(cache=True, nogil=True)
def wider(bounds: Floats, begin: Longs, apart: int) -> Floats:
    """The most over all larger places around each."""
    found = np.full(len(bounds), -np.inf)
    total = len(begin) - 1
    for tiles in range(total - 1, 0, -1):
        for first in range(total - tiles + 1 if apart else 1):
            place = begin[tiles] + first * apart
            for at in range(max(0, first - 1), min(first, total - tiles - 1) + 1) if apart else range(1):
                around = begin[tiles + 1] + at * apart
                found[place] = max(found[place], max(found[around], bounds[around]))
    return found
