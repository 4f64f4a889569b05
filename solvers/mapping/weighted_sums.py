"""The least objective key that lower bounds of weighted sums of energy and cycles leave."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tilewright.foundation.arrays import Floats


def least_keys(
    sums: Floats, weights: Sequence[float], cycles: float, powers: tuple[int, int], leak: float = 0.0
) -> Floats:
    """The least of ``(energy + leak * cycles)**a * cycles**b`` among all points that keep to some bounds.

    Bounds of ``energy + weight * cycles`` cut a convex polygon out of the plane, open towards more energy and
    more cycles.  Points with less than some key are no convex set, but those with that key or more are: a
    line within the polygon has its least key at an end.  So a corner of the polygon has the least key of all.
    Leakage changes nothing: it shears the plane, and lines stay lines.

    Parameters
    ----------
    sums : lower bounds of these sums, the energy alone first, shape (weights, ...)
    weights : of a cycle, ascending from 0
    cycles : lower bound of the cycles
    powers : of energy and cycles
    leak : energy that every cycle takes besides, which the sums leave out
    """
    a, b = powers
    if not b:
        return np.asarray((sums[0] + leak * cycles) ** a)
    known = np.isfinite(sums).all(axis=0)
    lines = np.where(known, sums, 0.0)
    slopes = np.asarray(weights).reshape(-1, *[1] * (sums.ndim - 1))
    least = np.full(sums.shape[1:], np.inf)
    crossings = [
        (lines[j] - lines[i]) / (weights[j] - weights[i]) for i, j in combinations(range(len(weights)), 2)
    ]
    for crossing in (np.full(sums.shape[1:], cycles), *crossings):
        # Corners are among the crossings; all others lie within the polygon or are moved to its edge.
        at = np.maximum(crossing, cycles)
        least = np.minimum(least, ((lines - slopes * at).max(axis=0) + leak * at) ** a * at**b)
    return np.where(known, least, np.inf)
