"""The least objective key that lower bounds of weighted sums of energy and cycles leave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tilewright.foundation.arrays import Floats

_EDGE = 1 - 1e-9  # of the energy of a corner, far above the rounding of sums


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


def corners(
    sums: Sequence[float], weights: Sequence[float], apart: tuple[float, float] = (0.0, 0.0)
) -> list[tuple[float, int]]:
    """Energies and cycles of which any that keep to the same bounds cost no less than some one.

    That holds whatever energy and cycles are added to both, with every key as above: they are the corners of
    the polygon, with ascending cycles.  Of corners close to each other the least energy and cycles count.

    Parameters
    ----------
    sums : lower bounds of ``energy + weight * cycles``, the energy alone first
    weights : of a cycle, ascending from 0
    apart : energy and cycles up to which corners are close
    """
    lines = [*zip(sums, weights, strict=True)]
    candidates = [(0.0, max(sums))]
    for (own, weight), (other, dearer) in combinations(lines, 2):
        at = (other - own) / (dearer - weight)
        energy = max(line - slope * at for line, slope in lines)
        # Other crossings are below some line.
        if at > 0 and own - weight * at >= energy * _EDGE:
            candidates.append((at, energy))
    points: list[tuple[float, int]] = []
    dearest = math.inf  # of those that count as the last point
    for at, energy in sorted(candidates):
        if points and dearest - energy <= apart[0] and at < points[-1][1] + 1 + apart[1]:
            points[-1] = min(energy, points[-1][0]), points[-1][1]
        else:
            points.append((energy, int(at)))
            dearest = energy
    return points
