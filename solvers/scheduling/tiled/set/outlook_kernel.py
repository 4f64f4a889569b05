"""Bounds on subtrees by number of tiles, in machine code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SLACK = 1 - 1e-9
"""For sums in another order."""


@njit(cache=True, nogil=True)
def least_values(
    energy: Floats,
    cycles: Floats,
    area: Floats,
    others: float,
    path: float,
    work: float,
    runs: float,
    slowest: float,
    energy_power: float,
    delay_power: float,
) -> Floats:
    """The least value of a tree with a subtree, by the number of tiles that this gets.

    Parameters
    ----------
    energy, cycles, area : of the subtree: pJ of the whole batch, cycles of one run, and tiles times cycles
        of one run that nothing else can have
    others, path : pJ of all other layers, and cycles that a path of them through the subtree adds
    work : tiles times cycles of all other layers for the whole batch
    runs : of the subtree
    slowest : cycles that the tree takes anyway
    """
    found, tiles = np.full(len(energy), np.inf), len(energy) - 1
    for i in range(len(energy)):
        spent = max(0.0, (energy[i] + others) * SLACK)
        through = cycles[i] + (runs - 1) * area[i] / tiles + path
        taken = max(max(cycles[i] * runs, through), slowest)
        taken = max(taken, (area[i] * runs + work) / tiles) * SLACK
        if spent < np.inf and taken < np.inf:
            found[i] = spent**energy_power * taken**delay_power
    return found


@njit(cache=True, nogil=True)
def side_by_side(
    energy: Floats, cycles: Floats, tables: Longs, slots: float, floor: float
) -> tuple[Floats, Floats]:
    """Energy and cycles of an S cut by the number of its tiles.

    Parameters
    ----------
    energy, cycles : of its children by number of tiles, shape (children, tiles + 1)
    tables : tiles of every child by number of tiles, all that are possible; 0 where the cut cannot be
        allocated, -1 where any number of tiles is possible
    slots : times that the slowest child takes
    floor : cycles that the cut takes anyway
    """
    children, most = energy.shape
    spent, taken = np.full(most, np.inf), np.full(most, np.inf)
    for tiles in range(children, most):
        for option in range(tables.shape[1]):
            if tables[tiles, option, 0] == 0:
                break
            every, slowest = 0.0, floor
            for child in range(children):
                count = tables[tiles, option, child]
                if count > 0:
                    every += energy[child, count]
                    slowest = max(slowest, slots * cycles[child, count])
                else:
                    every += np.min(energy[child, :tiles])
                    slowest = max(slowest, slots * np.min(cycles[child, :tiles]))
            spent[tiles], taken[tiles] = min(spent[tiles], every), min(taken[tiles], slowest)
    return spent, taken


@njit(cache=True, nogil=True)
def fewer(bounds: Floats) -> Floats:
    """The least over all smaller numbers of tiles."""
    found = np.full(len(bounds), np.inf)
    for tiles in range(1, len(bounds)):
        found[tiles] = min(found[tiles - 1], bounds[tiles - 1])
    return found
