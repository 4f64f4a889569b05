"""Energy against time over many choices at once: the least value of an objective on the convex frontier.

Every layer has options, each with a time and an energy; times add up along a path, energies over all layers.
The lower convex hull of the sums takes the steps of all layers' hulls in the order of energy saved per cycle,
so no combination of options lies below it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

Point = tuple[float, float]
"""A time and an energy."""


def lower_hull(options: Iterable[Point]) -> list[Point]:
    """The falling part of the lower convex hull, fastest option first."""
    hull: list[Point] = []
    least = math.inf
    for time, energy in sorted(options):
        if energy >= least:
            continue
        least = energy
        while len(hull) > 1 and _above(hull[-2], hull[-1], (time, energy)):
            hull.pop()
        hull.append((time, energy))
    return hull


def _above(a: Point, b: Point, c: Point) -> bool:
    """Whether the second of three points lies on or above the line through the others."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def summed(hulls: Iterable[Sequence[Point]]) -> list[Point]:
    """The hull of all sums of one point of each."""
    time = energy = 0.0
    steps: list[Point] = []
    for hull in hulls:
        time, energy = time + hull[0][0], energy + hull[0][1]
        steps.extend((b[0] - a[0], a[1] - b[1]) for a, b in itertools.pairwise(hull))
    points = [(time, energy)]
    for longer, saved in sorted(steps, key=lambda step: -step[1] / step[0]):
        time, energy = time + longer, energy - saved
        points.append((time, energy))
    return points


def least_value(hull: Sequence[Point], least_time: float, value: Callable[[float, float], float]) -> float:
    """The least of an objective of energy and time over a hull and everything above and behind it.

    Between two points of a falling line an objective ``E^n D^m`` is least at one of them.

    Parameters
    ----------
    least_time : lower bound on the time
    """
    best = math.inf
    for index, (time, energy) in enumerate(hull):
        if time >= least_time:
            best = min(best, value(energy, time))
            if index and hull[index - 1][0] < least_time:
                before = hull[index - 1]
                part = (least_time - before[0]) / (time - before[0])
                best = min(best, value(before[1] + part * (energy - before[1]), least_time))
        elif index == len(hull) - 1:
            best = min(best, value(energy, least_time))
    return best
