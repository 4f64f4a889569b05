"""Staging: a plan's transfers timed anew all together, before smoothing moves them one by one.

A step that waits for all ports of DRAM is no shorter when one transfer leaves it, and a transfer that would
come earlier finds buffers full of what could come later.  So steps are gone through from the last one
backwards, each with what may come there or earlier.  A step takes what its links carry while its longest task
runs.  What it does not take is held by buffers in the step before, so that it may come there or earlier; what
finds no room for that comes in the step and makes it longer.

A step takes first, and holds last, what fills most bytes of buffers per byte from DRAM: to hold a block for
one target spares as much time of DRAM as to hold one for four, and takes a quarter of the room.  What comes
from engines spares none, and takes the links that are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.smoothing_loads import NEVER, put, tree
from tilewright.heuristics.scheduling.tiled.smoothing_moves import Setting, set_window, spent

WIDTHS = 3
"""Windows have 4, 2 or 1 steps, the widest that fits: a block in one step seldom fills links evenly."""


@compiled
def _bounds(of: Setting, g: int, passed: Int32s) -> Any:  # pragma: no cover
    """The first and the last step in which a multicast may come and delay no task.

    Parameters
    ----------
    of, g : the plan, and the multicast; what it is sent from is there when it was so far, at the latest
    passed : per residency the first step of a multicast that reads it
    """
    casts, copies = of.casts, of.copies
    low, top = 0, casts.due[g] - 1
    holder, block = casts.holder[g], casts.block[g]
    if holder >= 0:
        low, top = copies.ready[holder] + 1, min(top, copies.end[holder])
    elif of.parent[block] >= 0:
        low = of.stored[block] + 1
    for q in range(casts.starts[g], casts.starts[g + 1]):
        i = casts.held[q]
        if i > 0 and copies.block[i - 1] == copies.block[i] and copies.engine[i - 1] == copies.engine[i]:
            low = max(low, copies.end[i - 1] + 1)
        top = min(top, passed[i] - 1)
    return low, top


@compiled
def _fits(
    of: Setting, g: int, source: int, first: int, last: int, lengths: Floats
) -> Any:  # pragma: no cover
    """Whether links carry a multicast from a source within the lengths of some steps.

    Parameters
    ----------
    of, g, source : the plan, the multicast, and where it comes from
    first, last : its window
    lengths : cycles of every step
    """
    loads = of.loads
    share = of.casts.size[g] / (last - first + 1)
    if source >= of.net.engines:
        for step in range(first, last + 1):
            if loads.dram[step] + share > lengths[step] * of.net.dram_rate:
                return False
    for r in range(tree(of.net, of.casts, g, source, of.scratch)):
        link = of.scratch.tree[r]
        for step in range(first, last + 1):
            if (loads.link[step, link] + share) * loads.pace[link] > lengths[step]:
                return False
    return True


@compiled
def _sources(of: Setting, g: int) -> Any:  # pragma: no cover
    """The range of places from which a multicast may come: all ports, or the engine that sends it."""
    if of.casts.source[g] >= of.net.engines:
        return of.net.engines, of.net.places
    return of.casts.source[g], of.casts.source[g] + 1


@compiled
def _least(of: Setting, g: int) -> Any:  # pragma: no cover
    """What the energy of a multicast is worth in cycles, from the nearest of its sources."""
    begin, end = _sources(of, g)
    least = np.inf
    for source in range(begin, end):
        least = min(least, spent(of, g, source))
    return least


@compiled
def _has_room(of: Setting, g: int, first: int) -> Any:  # pragma: no cover
    """Whether buffers can hold a multicast's copies from a step on until they hold them as it is."""
    casts, full = of.casts, of.loads.full
    for q in range(casts.starts[g], casts.starts[g + 1]):
        for step in range(first, of.copies.start[casts.held[q]]):
            if full[casts.engine[q], step] + casts.size[g] > of.net.buffer:
                return False
    return True


@compiled
def _hidden(
    of: Setting, g: int, least: float, low: int, last: int, lengths: Floats
) -> Any:  # pragma: no cover
    """One of the nearest sources, and the first step of a window in which a multicast takes no time; (-1, -1)
    where it takes some.

    Parameters
    ----------
    of, g : the plan, and the multicast
    least : what the energy from the nearest source is worth
    low, last : the first step that its window may have, and the last one that it has
    lengths : cycles of every step
    """
    if of.casts.source[g] >= of.net.engines and of.loads.dram[last] >= lengths[last] * of.net.dram_rate:
        return -1, -1
    begin, end = _sources(of, g)
    for width in range(WIDTHS - 1, -1, -1):
        first = last - (1 << width) + 1
        if first >= low and _has_room(of, g, first):
            for source in range(begin, end):
                if spent(of, g, source) <= least and _fits(of, g, source, first, last, lengths):
                    return source, first
    return -1, -1


@compiled
def _soonest(of: Setting, g: int, step: int) -> Any:  # pragma: no cover
    """The source whose links are through first where a multicast comes in one step, and when they are."""
    loads, size = of.loads, of.casts.size[g]
    begin, end = _sources(of, g)
    best, soonest = -1, np.inf
    for source in range(begin, end):
        until = 0.0
        if source >= of.net.engines:
            until = (loads.dram[step] + size) / of.net.dram_rate
        for r in range(tree(of.net, of.casts, g, source, of.scratch)):
            link = of.scratch.tree[r]
            until = max(until, (loads.link[step, link] + size) * loads.pace[link])
        if until < soonest:
            best, soonest = source, until
    return best, soonest


@compiled
def _held_from(of: Setting, g: int, first: int) -> Any:  # pragma: no cover
    """Hold a multicast's copies from a step on, where buffers have the room; whether they have."""
    casts = of.casts
    if not _has_room(of, g, first):
        return False
    set_window(casts, g, casts.source[g], casts.holder[g], first, first, of.copies, of.loads)
    return True


@compiled
def _timed(
    of: Setting, g: int, supplier: Int64s, waiting: Int64s, ready: Int64s, count: int
) -> Any:  # pragma: no cover
    """Note that a multicast has its steps; the one that supplies its source is listed when no other waits.

    Parameters
    ----------
    of, g : the plan, and the multicast
    supplier : per residency the multicast that supplies it, -1 for none
    waiting : per multicast, how many that it supplies have no steps yet
    ready, count : multicasts for which none waits, and how many

    Returns
    -------
    how many are listed then
    """
    holder = of.casts.holder[g]
    if holder < 0:
        return count
    of.copies.passed[holder] = min(of.copies.passed[holder], of.casts.first[g])
    before = supplier[holder]
    if before >= 0:
        waiting[before] -= 1
        if waiting[before] == 0:
            ready[count] = before
            count += 1
    return count


@compiled
def staged(of: Setting, halt: Any) -> None:  # pragma: no cover
    """Give multicasts other steps, and those from DRAM other ports; one that must delay a task stays.

    Parameters
    ----------
    of : the plan, changed in place; the times of its steps are not noted anew
    halt : a flag; once it is set, what has no other steps yet comes in single ones that are legal
    """
    net, casts, copies, loads = of.net, of.casts, of.copies, of.loads
    count, steps = len(casts.block), len(loads.plain)
    supplier = np.full(len(copies.block), -1, dtype=np.int64)
    for g in range(count):
        for q in range(casts.starts[g], casts.starts[g + 1]):
            supplier[casts.held[q]] = g
    low, turn = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    waiting, least = np.zeros(count, dtype=np.int64), np.empty(count)
    free = np.zeros(count, dtype=np.bool_)
    copies.passed[:] = NEVER
    for g in range(count):
        low[g], top = _bounds(of, g, copies.passed)
        free[g], least[g] = top >= low[g], _least(of, g)
        # most copies first, what comes from engines last
        turn[g] = net.engines
        if casts.source[g] >= net.engines:
            turn[g] -= casts.starts[g + 1] - casts.starts[g]
        if casts.holder[g] >= 0 and supplier[casts.holder[g]] >= 0:
            waiting[supplier[casts.holder[g]]] += 1
        if free[g]:
            put(net, casts, g, -1.0, loads, of.scratch)
    lengths = np.empty(steps)
    for step in range(steps):
        lengths[step] = max(float(loads.plain[step]), loads.dram[step] / net.dram_rate)
        for link in range(len(loads.pace)):
            lengths[step] = max(lengths[step], loads.link[step, link] * loads.pace[link])
    ready, listed = np.empty(count, dtype=np.int64), 0
    for g in range(count):
        if waiting[g] == 0:
            ready[listed] = g
            listed += 1
    # per step a list of what may come there at the latest
    head, after = np.full(steps, -1, dtype=np.int64), np.empty(count, dtype=np.int64)
    pool, key, size = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), 0
    for step in range(steps - 1, -1, -1):
        if halt[0] != 0:
            break
        k = 0
        while k < listed:
            g = ready[k]
            k += 1
            if free[g]:
                top = _bounds(of, g, copies.passed)[1]
                if _held_from(of, g, top):
                    after[g] = head[top]
                    head[top] = g
                    continue
                put(net, casts, g, 1.0, loads, of.scratch)
                free[g] = False
            listed = _timed(of, g, supplier, waiting, ready, listed)
        listed = 0
        g = head[step]
        while g >= 0:
            pool[size] = g
            size += 1
            g = after[g]
        for k in range(size):
            key[k] = turn[pool[k]]
        ordered = counting_sort(key[:size], pool[:size], net.engines + 1)[1]
        # what takes no time; what finds no room before; what takes none in a step that became longer
        for part in range(3):
            left = 0
            for k in range(size):
                g = ordered[size - 1 - k if part == 1 else k]
                source, first = -1, step
                if part != 1:
                    source, first = _hidden(of, g, least[g], low[g], step, lengths)
                    stays = source < 0
                else:
                    stays = low[g] < step and _held_from(of, g, step - 1)
                if stays:
                    pool[left] = g
                    left += 1
                    continue
                if source < 0:
                    source, until = _soonest(of, g, step)
                    lengths[step], first = max(lengths[step], until), step
                set_window(casts, g, source, casts.holder[g], first, step, copies, loads)
                put(net, casts, g, 1.0, loads, of.scratch)
                free[g] = False
                listed = _timed(of, g, supplier, waiting, ready, listed)
            size = left
            for k in range(size):
                ordered[k] = pool[size - 1 - k if part == 1 else k]
        for k in range(size):
            pool[k] = ordered[k]
    for g in range(count):
        if free[g]:
            put(net, casts, g, 1.0, loads, of.scratch)
