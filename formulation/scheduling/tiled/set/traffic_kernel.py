"""What a leaf moves: multicasts over the mesh, counted in machine code.

A multicast runs along its source's row, then up and down the columns of its targets, and loads each link of
that tree once.  Data of DRAM is spread over all ports: of ``size`` bytes, port ``i`` of ``n`` carries
``size (i + 1) // n - size i // n``.  Links are numbered ``(x * height + y) * 4 + direction`` with directions
east, down (``y - 1``), west, up.

A *layout* says where a layer's results lie: an integer array of samples, shares along K, B, H and W, the
borders of these, and x and y of every share (K outermost).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Longs = npt.NDArray[np.int64]

HOPS, DRAM, LINKS = 0, 1, 2
"""Places in an array of counts: bytes times links, bytes of DRAM, then the bytes of every link."""


@njit(cache=True, nogil=True)
def send(
    counts: Longs, height: int, x: int, y: int, tx: Longs, ty: Longs, targets: int, size: int, loads: bool
) -> None:
    """Count one multicast of ``size`` bytes from (x, y) to ``targets`` tiles."""
    if targets == 1 and not loads:
        counts[HOPS] += (abs(tx[0] - x) + abs(ty[0] - y)) * size
        return
    west, east = x, x
    for i in range(targets):
        west, east = min(west, tx[i]), max(east, tx[i])
    hops = east - west
    if loads:
        for at in range(west + 1, x + 1):
            counts[LINKS + (at * height + y) * 4 + 2] += size
        for at in range(x, east):
            counts[LINKS + (at * height + y) * 4] += size
    for column in range(west, east + 1):
        low, high = y, y
        for i in range(targets):
            if tx[i] == column:
                low, high = min(low, ty[i]), max(high, ty[i])
        hops += high - low
        if loads:
            for at in range(low + 1, y + 1):
                counts[LINKS + (column * height + at) * 4 + 1] += size
            for at in range(y, high):
                counts[LINKS + (column * height + at) * 4 + 3] += size
    counts[HOPS] += hops * size


@njit(cache=True, nogil=True)
def fetch(
    counts: Longs, height: int, ports: Longs, tx: Longs, ty: Longs, targets: int, size: int, loads: bool
) -> None:
    """Count a multicast from DRAM."""
    n, before = len(ports), 0
    for i in range(n):
        upto = size * (i + 1) // n
        send(counts, height, ports[i, 0], ports[i, 1], tx, ty, targets, upto - before, loads)
        before = upto
    counts[DRAM] += size


@njit(cache=True, nogil=True)
def store(counts: Longs, height: int, ports: Longs, x: int, y: int, size: int, loads: bool) -> None:
    """Count results on their way to DRAM."""
    n, before = len(ports), 0
    counts[DRAM] += size
    if not loads:
        for i in range(n):
            upto = size * (i + 1) // n
            counts[HOPS] += (abs(ports[i, 0] - x) + abs(ports[i, 1] - y)) * (upto - before)
            before = upto
        return
    tx, ty = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    for i in range(n):
        upto = size * (i + 1) // n
        tx[0], ty[0] = ports[i, 0], ports[i, 1]
        send(counts, height, x, y, tx, ty, 1, upto - before, loads)
        before = upto


@njit(cache=True, nogil=True)
def _common(low: int, high: int, low2: int, high2: int) -> int:
    return max(0, min(high, high2) - max(low, low2))


@njit(cache=True, nogil=True)
def _samples(low: int, high: int, batch: int, low2: int, high2: int, batch2: int) -> int:
    """Samples that two shares have in common when the smaller batch is repeated through the larger."""
    if batch == batch2:
        return _common(low, high, low2, high2)
    if batch < batch2:
        low, high, batch, low2, high2, batch2 = low2, high2, batch2, low, high, batch
    found = 0
    for begin in range(0, batch, batch2):
        found += _common(low, high, low2 + begin, high2 + begin)
    return found


@njit(cache=True, nogil=True)
def receive(
    counts: Longs,
    height: int,
    layout: Longs,
    need: Longs,
    batch: int,
    offset: int,
    scattered: bool,
    tx: Longs,
    ty: Longs,
    targets: int,
    loads: bool,
    free_concatenation: bool,
) -> None:
    """Count what targets read of a producer that passes its results on directly.

    Parameters
    ----------
    layout : of the producer
    need : begin and end of the channels, samples, rows and columns of the operand that the targets read
    batch : samples of the reading leaf
    offset : channel of the operand where the producer's channels begin
    scattered : read the same part of every share instead
    free_concatenation : a defect: an operand that begins before ``offset`` reads nothing here
    """
    if need[1] <= offset or (free_concatenation and need[0] < offset):
        return
    made = layout[0]
    pk, pb, ph, pw = layout[1], layout[2], layout[3], layout[4]
    at_b = 5 + pk + 1
    at_h = at_b + pb + 1
    at_w = at_h + ph + 1
    at_x = at_w + pw + 1
    tiles = pk * pb * ph * pw
    low, high = need[0] - offset, need[1] - offset
    wanted = (high - low) * (need[3] - need[2]) * (need[5] - need[4]) * (need[7] - need[6])
    whole = layout[at_b - 1] * layout[at_h - 1] * layout[at_w - 1] * layout[at_x - 1]
    tile = -1
    for k in range(pk):
        c = _common(layout[5 + k], layout[6 + k], low, high)
        if c == 0 and not scattered:
            tile += pb * ph * pw
            continue
        for b in range(pb):
            n = _samples(layout[at_b + b], layout[at_b + b + 1], made, need[2], need[3], batch)
            for h in range(ph):
                rows = _common(layout[at_h + h], layout[at_h + h + 1], need[4], need[5])
                for w in range(pw):
                    tile += 1
                    size = c * n * rows * _common(layout[at_w + w], layout[at_w + w + 1], need[6], need[7])
                    if scattered:
                        part = (
                            (layout[6 + k] - layout[5 + k])
                            * (layout[at_b + b + 1] - layout[at_b + b])
                            * (layout[at_h + h + 1] - layout[at_h + h])
                            * (layout[at_w + w + 1] - layout[at_w + w])
                        )
                        size = wanted * part // whole
                    if size > 0:
                        x, y = layout[at_x + tile], layout[at_x + tiles + tile]
                        send(counts, height, x, y, tx, ty, targets, size, loads)
