"""What a leaf moves: multicasts over the mesh, counted in machine code.

A multicast runs along its source's row, then up and down the columns of its targets, and loads each link of
that tree once.  Data of DRAM is spread over all ports: of ``size`` bytes, port ``i`` of ``n`` carries
``size (i + 1) // n - size i // n``.  Links are numbered ``(x * height + y) * 4 + direction`` with directions
east, down (``y - 1``), west, up.

A *layout* describes where a layer's results lie: an integer array of samples, shares along K, B, H and W, the
borders of these, and x and y of every share (K outermost).

Functions that run once per source or target of a multicast are inlined: a call would cost more than the body.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled

HOPS, DRAM, LINKS = 0, 1, 2
"""Places in an array of counts: bytes times links, bytes of DRAM, then the bytes of every link."""

X, Y = 0, 1
"""Columns of the positions of ports."""

CHANNELS_FROM, CHANNELS_TO, SAMPLES_FROM, SAMPLES_TO, ROWS_FROM, ROWS_TO, COLUMNS_FROM, COLUMNS_TO = range(8)
"""Places in a box of an operand: begin and end of its channels, samples, rows and columns."""

LAYOUT_BATCH, LAYOUT_SHARES, LAYOUT_BORDERS = 0, 1, 5
"""Places in a layout: its samples, its shares along K, B, H and W, and where the borders of these begin."""


class Targets(NamedTuple):
    """The tiles that a multicast goes to, and what its tree takes from every row.

    Parameters
    ----------
    span : their first and last column
    low, high : per column of the mesh, the first and last row among them; ``low > high`` where there is none
    climb : per row of the mesh, links along the columns of a tree whose source lies in that row
    """

    span: Int64s
    low: Int64s
    high: Int64s
    climb: Int64s


class Ports(NamedTuple):
    """DRAM's ports, and the links of multicasts from all of them together.

    Of ``size = q n + r`` bytes port ``i`` of ``n`` carries ``q + (r (i + 1) // n - r i // n)``.  So what the
    multicasts of all ports cost is a sum of ``q`` times the links with a byte at every port, place ``n`` of a
    table, and of the links with ``r`` bytes, place ``r``.

    Parameters
    ----------
    at : x and y, shape (ports, 2)
    across : links along rows, by first and last column of the targets and bytes, shape (width, width, n + 1)
    along : links along a column, by first and last row of its targets and bytes, shape (height, height,
        n + 1)
    """

    at: Int64s
    across: Int64s
    along: Int64s


def ports_of(at: Int64s, width: int, height: int) -> Ports:
    """The tables of ports at ``at``, shape (ports, 2), of a mesh."""
    n = len(at)
    # port i carries the difference of two neighbouring borders, so that all bytes are carried once
    borders = np.arange(n + 1)[:, None] * np.arange(n + 1)[None, :] // n
    parts = np.diff(borders, axis=1)  # by bytes, then port

    def links(size: int, where: Int64s) -> Int64s:
        low, high = np.arange(size)[:, None, None], np.arange(size)[None, :, None]
        return np.ascontiguousarray((np.maximum(high, where) - np.minimum(low, where)) @ parts.T)

    return Ports(at, links(width, at[:, X]), links(height, at[:, Y]))


@compiled
def no_targets(width: int, height: int) -> Targets:
    """Buffers for the targets of one multicast after the other."""
    targets = Targets(
        np.empty(2, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(height, dtype=np.int64),
    )
    forget(targets)
    return targets


@compiled
def forget(targets: Targets) -> None:
    """Clear the targets."""
    width, height = len(targets.low), len(targets.climb)
    targets.span[0], targets.span[1] = width, -1
    for column in range(width):
        targets.low[column], targets.high[column] = height, -1


@compiled(inline=True)
def aim(targets: Targets, x: int, y: int) -> None:
    """Add one target."""
    span, low, high = targets.span, targets.low, targets.high
    span[0], span[1] = min(span[0], x), max(span[1], x)
    low[x], high[x] = min(low[x], y), max(high[x], y)


@compiled
def measure(targets: Targets) -> None:
    """Fill in the links along columns of every row's tree, once all targets are known."""
    climb = targets.climb
    climb[:] = 0
    for column in range(targets.span[0], targets.span[1] + 1):
        low, high = targets.low[column], targets.high[column]
        if low <= high:
            for y in range(len(climb)):
                climb[y] += max(high, y) - min(low, y)


@compiled(inline=True)
def send(counts: Int64s, x: int, y: int, targets: Targets, size: int, loads: bool) -> None:
    """Count one multicast.

    Parameters
    ----------
    counts : bytes times links, bytes of DRAM and, where asked for, of every link; added to
    x, y : tile or port of its source
    targets : where it goes, already measured
    size : bytes
    loads : whether bytes of every link are counted
    """
    west, east = min(x, targets.span[0]), max(x, targets.span[1])
    # the row from the source to all columns, and what these climb from it
    counts[HOPS] += (east - west + targets.climb[y]) * size
    if not loads:
        return
    height = len(targets.climb)
    for at in range(west + 1, x + 1):
        counts[LINKS + (at * height + y) * 4 + 2] += size
    for at in range(x, east):
        counts[LINKS + (at * height + y) * 4] += size
    for column in range(targets.span[0], targets.span[1] + 1):
        low, high = targets.low[column], targets.high[column]
        if low <= high:
            for at in range(low + 1, y + 1):
                counts[LINKS + (column * height + at) * 4 + 1] += size
            for at in range(y, high):
                counts[LINKS + (column * height + at) * 4 + 3] += size


@compiled
def _port_part(ports: Ports, size: int, port: int) -> int:
    n = len(ports.at)
    part: int = size * (port + 1) // n - size * port // n
    return part


@compiled(inline=True)
def fetch(counts: Int64s, ports: Ports, targets: Targets, size: int, loads: bool) -> None:
    """Count a multicast from DRAM.

    Parameters
    ----------
    counts : bytes times links, bytes of DRAM and, where asked for, of every link; added to
    ports : of DRAM; each sends its part of the bytes
    targets : where it goes; they have to be measured only with ``loads``
    size : bytes
    loads : whether bytes of every link are counted
    """
    counts[DRAM] += size
    n = len(ports.at)
    if loads:
        for i in range(n):
            send(counts, ports.at[i, X], ports.at[i, Y], targets, _port_part(ports, size, i), True)
        return
    # of all ports together the links stand in tables, by whole rounds of bytes and by what is over
    west, east = targets.span[0], targets.span[1]
    every, rest = size // n, size % n
    hops = every * ports.across[west, east, n] + ports.across[west, east, rest]
    for column in range(west, east + 1):
        low, high = targets.low[column], targets.high[column]
        if low <= high:
            hops += every * ports.along[low, high, n] + ports.along[low, high, rest]
    counts[HOPS] += hops


@compiled(inline=True)
def store(counts: Int64s, ports: Ports, x: int, y: int, targets: Targets, size: int, loads: bool) -> None:
    """Count results of a tile on their way to DRAM.

    Parameters
    ----------
    counts : bytes times links, bytes of DRAM and, where asked for, of every link; added to
    ports : of DRAM; each receives its part of the bytes
    x, y : the tile
    targets : scratch space, overwritten with ``loads``
    size : bytes
    loads : whether bytes of every link are counted
    """
    counts[DRAM] += size
    n = len(ports.at)
    if loads:
        for i in range(n):
            forget(targets)
            aim(targets, ports.at[i, X], ports.at[i, Y])
            measure(targets)
            send(counts, x, y, targets, _port_part(ports, size, i), True)
        return
    # a path has as many links in either direction, so the tables of fetches do for results too
    every, rest = size // n, size % n
    links, some = (
        ports.across[x, x, n] + ports.along[y, y, n],
        ports.across[x, x, rest] + ports.along[y, y, rest],
    )
    counts[HOPS] += every * links + some


@compiled(inline=True)
def _common(low: int, high: int, low2: int, high2: int) -> int:
    return max(0, min(high, high2) - max(low, low2))


@compiled(inline=True)
def _repeated(before: int, low: int, high: int, period: int) -> int:
    """Samples before a given one that lie in a share which is repeated."""
    return before // period * (high - low) + max(0, min(before % period, high) - low)


@compiled
def _samples(low: int, high: int, batch: int, low2: int, high2: int, batch2: int) -> int:
    """Samples that two shares have in common when the smaller batch is repeated through the larger."""
    if batch == batch2:
        return _common(low, high, low2, high2)
    # of the smaller batch's share, what lies before either end of the larger one's
    if batch < batch2:
        return _repeated(high2, low, high, batch) - _repeated(low2, low, high, batch)
    return _repeated(high, low2, high2, batch2) - _repeated(low, low2, high2, batch2)


@compiled(inline=True)
def _overlapping(layout: Int64s, at: int, parts: int, low: int, high: int) -> tuple[int, int]:
    """The first of the shares whose borders stand from ``at`` on that has anything in common with a range,
    and the one behind the last.
    """
    first = 0
    while first < parts and layout[at + first + 1] <= low:
        first += 1
    last = first
    while last < parts and layout[at + last] < high:
        last += 1
    return first, last


@compiled
def receive(
    counts: Int64s,
    layout: Int64s,
    need: Int64s,
    batch: int,
    offset: int,
    scattered: bool,
    targets: Targets,
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
    if need[CHANNELS_TO] <= offset or (free_concatenation and need[CHANNELS_FROM] < offset):
        return
    made = layout[LAYOUT_BATCH]
    pk, pb = layout[LAYOUT_SHARES], layout[LAYOUT_SHARES + 1]
    ph, pw = layout[LAYOUT_SHARES + 2], layout[LAYOUT_SHARES + 3]
    at_b = LAYOUT_BORDERS + pk + 1
    at_h = at_b + pb + 1
    at_w = at_h + ph + 1
    at_x = at_w + pw + 1
    tiles = pk * pb * ph * pw
    low, high = need[CHANNELS_FROM] - offset, need[CHANNELS_TO] - offset
    # every share gives its part of what is wanted, wherever that lies in the producer's results
    if scattered:
        wanted = (
            (high - low)
            * (need[SAMPLES_TO] - need[SAMPLES_FROM])
            * (need[ROWS_TO] - need[ROWS_FROM])
            * (need[COLUMNS_TO] - need[COLUMNS_FROM])
        )
        whole = layout[at_b - 1] * layout[at_h - 1] * layout[at_w - 1] * layout[at_x - 1]
        tile = 0
        for k in range(pk):
            for b in range(pb):
                for h in range(ph):
                    for w in range(pw):
                        part = (
                            (layout[LAYOUT_BORDERS + k + 1] - layout[LAYOUT_BORDERS + k])
                            * (layout[at_b + b + 1] - layout[at_b + b])
                            * (layout[at_h + h + 1] - layout[at_h + h])
                            * (layout[at_w + w + 1] - layout[at_w + w])
                        )
                        size = wanted * part // whole
                        if size > 0:
                            x, y = layout[at_x + tile], layout[at_x + tiles + tile]
                            send(counts, x, y, targets, size, loads)
                        tile += 1
        return
    # batches that differ are repeated, so that any share of samples may have some of those needed
    first_b, last_b = (
        (0, pb) if batch != made else _overlapping(layout, at_b, pb, need[SAMPLES_FROM], need[SAMPLES_TO])
    )
    first_h, last_h = _overlapping(layout, at_h, ph, need[ROWS_FROM], need[ROWS_TO])
    first_w, last_w = _overlapping(layout, at_w, pw, need[COLUMNS_FROM], need[COLUMNS_TO])
    for k in range(pk):
        c = _common(layout[LAYOUT_BORDERS + k], layout[LAYOUT_BORDERS + k + 1], low, high)
        if c == 0:
            continue
        for b in range(first_b, last_b):
            n = c * _samples(
                layout[at_b + b], layout[at_b + b + 1], made, need[SAMPLES_FROM], need[SAMPLES_TO], batch
            )
            if n == 0:
                continue
            for h in range(first_h, last_h):
                rows = n * _common(layout[at_h + h], layout[at_h + h + 1], need[ROWS_FROM], need[ROWS_TO])
                tile = ((k * pb + b) * ph + h) * pw
                for w in range(first_w, last_w):
                    size = rows * _common(
                        layout[at_w + w], layout[at_w + w + 1], need[COLUMNS_FROM], need[COLUMNS_TO]
                    )
                    x, y = layout[at_x + tile + w], layout[at_x + tiles + tile + w]
                    send(counts, x, y, targets, size, loads)
