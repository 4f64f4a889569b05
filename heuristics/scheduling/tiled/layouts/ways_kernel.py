"""Machine code of grids: the engines of all groups, and the ways of multicasts and sums between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.foundation.compiled import compiled

ACROSS, DOWN, PARTS, INSIDE, WINDING, NEAR = 0, 3, 5, 7, 8, 9
"""Where these stand in a row of `grids.sides`."""


@compiled(inline=True)
def engine_of(
    of: Any, n: int, width: int, channel: int, row: int, column: int, part: int
) -> Any:  # pragma: no cover
    """The engine of a group, as of `Grid.engines`.

    Parameters
    ----------
    of, n : what grids are made of, and which of them
    width : engines of the machine in a row
    channel, row, column, part : the group
    """
    a0, a1, a2 = of[n, ACROSS], of[n, ACROSS + 1], of[n, ACROSS + 2]
    d0, d1 = of[n, DOWN], of[n, DOWN + 1]
    p0, p1 = of[n, PARTS], of[n, PARTS + 1]
    k, ky = channel % a0, channel // a0
    h, hy = row % a1, row // a1
    p, py = part % p0, part // p0
    if py % 2 == 1:
        p = p0 - 1 - p
    if hy % 2 == 1:
        h = a1 - 1 - h
    pixel = h * a2 + column
    if of[n, WINDING] == 1 and h % 2 == 1:
        pixel = h * a2 + a2 - 1 - column
    pixels = a1 * a2
    if of[n, INSIDE] == 1:
        x, y = pixel * a0 + k, hy * d0 + ky
    else:
        x, y = k * pixels + pixel, ky * d1 + hy
    if of[n, NEAR] == 1:
        x, y = x * p0 + p, y * p1 + py
    else:
        x, y = p * (pixels * a0) + x, py * (d0 * d1) + y
    if of[n, WINDING] == 1:
        y, x = x // width, x % width
        if y % 2 == 1:
            x = width - 1 - x
    return y * width + x


@compiled
def places(of: Any, width: int, engines: int, last: Any) -> Any:  # pragma: no cover
    """Groups of grids, and their engines in the order of groups, padded with -1.

    Parameters
    ----------
    of : what grids are made of, see `grids.sides`
    width, engines : of the machine
    last : along which axes the last group alone counts, of channels, rows, columns and parts

    Returns
    -------
    groups, engines : shapes (grids, 4) and (grids, engines)
    """
    groups = np.empty((len(of), 4), dtype=np.int64)
    placed = np.full((len(of), engines), -1, dtype=np.int64)
    first, ends = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64)
    for n in range(len(of)):
        ends[0] = of[n, ACROSS] * of[n, DOWN]
        ends[1] = of[n, ACROSS + 1] * of[n, DOWN + 1]
        ends[2] = of[n, ACROSS + 2]
        ends[3] = of[n, PARTS] * of[n, PARTS + 1]
        for axis in range(4):
            first[axis] = ends[axis] - 1 if last[axis] else 0
            groups[n, axis] = ends[axis] - first[axis]
        at = 0
        for channel in range(first[0], ends[0]):
            for row in range(first[1], ends[1]):
                for column in range(first[2], ends[2]):
                    for part in range(first[3], ends[3]):
                        placed[n, at] = engine_of(of, n, width, channel, row, column, part)
                        at += 1
    return groups, placed


@compiled
def ways(of: Any, width: int, height: int, ports: Any) -> Any:  # pragma: no cover
    """Links of the multicast of a group's weights from the nearest port, and from one engine of a sum to the
    next, on average over the groups.

    Parameters
    ----------
    of : what grids are made of, see `grids.sides`
    width, height : of the machine
    ports : positions of the ports of DRAM, shape (ports, 2)

    Returns
    -------
    trees, links : per grid
    """
    trees, links = np.zeros(len(of)), np.zeros(len(of))
    before_x, before_y = np.zeros(width * height, dtype=np.int64), np.zeros(width * height, dtype=np.int64)
    seen = np.full(width, -1, dtype=np.int64)
    for n in range(len(of)):
        channels, rows = of[n, ACROSS] * of[n, DOWN], of[n, ACROSS + 1] * of[n, DOWN + 1]
        columns, parts = of[n, ACROSS + 2], of[n, PARTS] * of[n, PARTS + 1]
        total, chain, across = 0, 0, 0
        for channel in range(channels):
            for part in range(parts):
                left, right, top, low = width, -1, height, -1
                for row in range(rows):
                    for column in range(columns):
                        engine = engine_of(of, n, width, channel, row, column, part)
                        x, y = engine % width, engine // width
                        left, right, top, low = min(left, x), max(right, x), min(top, y), max(low, y)
                        at = row * columns + column
                        if part > 0:
                            chain += abs(x - before_x[at]) + abs(y - before_y[at])
                        before_x[at], before_y[at] = x, y
                        if channel == 0 and part == 0 and seen[x] != n:
                            seen[x] = n
                            across += 1
                nearest = -1
                for port in range(len(ports)):
                    px, py = ports[port, 0], ports[port, 1]
                    way = max(right - px, 0) + max(px - left, 0)
                    way += across * (max(low - py, 0) + max(py - top, 0))
                    if nearest < 0 or way < nearest:
                        nearest = way
                total += max(nearest, 0)
        trees[n] = total / (channels * parts)
        links[n] = chain / max(1, (parts - 1) * channels * rows * columns)
    return trees, links
