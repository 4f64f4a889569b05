"""Lower bounds on the length of a round of tasks, from what it reads and passes on, in machine code."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled

NEVER = 1 << 60
"""Beyond any time."""


class Tables(NamedTuple):
    """Classes of tasks and groups of blocks as arrays; times in parts of a cycle.

    Parameters
    ----------
    number, cycles, chain, leaving_least, leaving_most, strides, reads : per class, the longest tasks first
    least : (class, class before, number) tasks of the class before that must have run, 0 where none
    blocks : (group, class, number) blocks of a group that so many tasks of a class read at least
    time, size, group_strides : per group DRAM's time for a block, number of blocks, stride in keys (0 for
        groups that are not counted)
    fluid, leaving : DRAM's time for all blocks of other groups, and for all results
    passing : per group the time that a block takes through one port
    results : (class, class before) the time that a task takes to get a result through its engine's port; all
        0 where nothing is said of it
    reading, leaving_passing : per class what a task fetches, and its result, in the time of one port
    hop : from an engine to the next one, and from a port to engines that are not adjacent to it
    beside : engines adjacent to a DRAM port
    ports : of DRAM
    steady : whether every round runs a task: with idle ones, data may come before any task waits for it
    linked : whether what the round before has run is distinguished, and hops and results count
    engines : tasks of a round at most
    ceiling : of what is of interest
    inside, charge : (family, class, number) tasks of a family at least; (family, number) what they cost in
        one round (`charges`)
    far, by_far : per class what one link to a port costs; the classes, those of most first
    ways : links from engines to ports, in rising order
    """

    number: Int64s
    cycles: Int64s
    chain: Int64s
    leaving_least: Int64s
    leaving_most: Int64s
    strides: Int64s
    reads: Int64s
    least: Int64s
    blocks: Int64s
    time: Int64s
    size: Int64s
    group_strides: Int64s
    fluid: int
    leaving: int
    passing: Int64s
    results: Int64s
    reading: Int64s
    leaving_passing: Int64s
    hop: int
    beside: int
    ports: int
    steady: int
    linked: int
    engines: int
    ceiling: int
    inside: Int64s
    charge: Int64s
    far: Int64s
    by_far: Int64s
    ways: Int64s


class Exchange(NamedTuple):
    """Arrays for one search for engines adjacent to results: per task of a round, and per class before it."""

    task: Int64s
    coming: Int64s
    away: Int64s
    choice: Int64s
    length: Int64s
    free: Int64s


@compiled
def charged(t: Tables, s: Int64s) -> Any:
    """What a round of tasks ``s`` per class costs: copies for families, and links to engines away from ports.

    The engines that are nearest to ports take those tasks to which a link matters most.
    """
    cost, taken = 0, 0
    for f in range(len(t.charge)):
        together = 0
        for c in range(len(s)):
            if s[c]:
                together += t.inside[f, c, s[c]]
        cost += t.charge[f, together]
    for i in range(len(s)):
        c = t.by_far[i]
        for _ in range(s[c]):
            cost += t.ways[taken] * t.far[c]
            taken += 1
    return cost


@compiled
def waiting(t: Tables, s: Int64s, m: Int64s, held: Int64s) -> int:
    """Cycles of the longest task that reads a counted block of its own round.

    Parameters
    ----------
    t : the instance
    s : per class, tasks of the round
    m : per class, tasks that have run at its end
    held : per group, blocks that were read before
    """
    for c in range(len(s)):
        if s[c]:
            for g in range(len(held)):
                if t.group_strides[g] and t.blocks[g, c, m[c]] > held[g]:
                    return int(t.cycles[c])
    return 0


@compiled
def passed(t: Tables, s: Int64s, m: Int64s, held: Int64s) -> Any:
    """Parts of a cycle of a task that waits for a counted block of its own round to pass a port.

    Parameters
    ----------
    t : the instance
    s : per class, tasks of the round
    m : per class, tasks that have run at its end
    held : per group, blocks that were read before
    """
    longest = 0
    for g in range(len(held)):
        if t.group_strides[g] and t.passing[g]:
            for c in range(len(s)):
                if s[c] and t.blocks[g, c, m[c]] > held[g]:
                    longest = max(longest, t.cycles[c] + t.passing[g])
                    break
    return longest


@compiled
def ported(t: Tables, extra: Int64s) -> Any:
    """Parts of a cycle that the counted blocks of a round take through the ports: the longest one, and of one
    more than there are ports the two shortest, which share one."""
    seen, longest, first = 0, 0, 0
    for g in range(len(extra)):
        if t.group_strides[g] and extra[g]:
            longest = max(longest, t.passing[g])
            if seen < t.ports <= seen + extra[g]:
                first = t.passing[g]
            if seen <= t.ports < seen + extra[g]:
                return max(longest, first + t.passing[g])
            seen += extra[g]
    return longest


@compiled
def begun(t: Tables, s: Int64s, wait: int) -> Any:
    """Parts of a cycle of a first round: everything passes a port first, for some over a hop."""
    longest, seen = 0, 0
    for c in range(len(s)):
        if s[c] and t.reads[c]:
            longest = max(longest, t.cycles[c] + t.reading[c])
            seen += s[c]
            if seen > t.beside >= seen - s[c]:
                longest = max(longest, t.cycles[c] + wait + t.hop)
    return longest


@compiled
def exchanged(t: Tables, s: Int64s, fresh: Int64s, scratch: Exchange, length: int) -> Any:
    """Parts of a cycle of a round whose tasks read what the round before has made (``fresh``, per class).

    An engine that has run a task of that round runs one of this round at most, for which the result is there:
    the best of all placements of tasks on engines with results that they read, depth first.

    Parameters
    ----------
    t : the instance
    s : per class, tasks of the round
    fresh : per class, tasks of the round before
    scratch : overwritten
    length : of the round, whatever its tasks read
    """
    classes, many = len(s), 0
    for c in range(classes):
        coming = 0
        for p in range(classes):
            coming += fresh[p] * t.results[c, p]
        away = t.cycles[c] + coming + t.hop
        if s[c] and coming and away > length:
            for _ in range(s[c]):
                scratch.task[many], scratch.coming[many], scratch.away[many] = c, coming, away
                many += 1
    if many == 0:
        return length
    # depth first: task ``at`` tries an engine adjacent to each class's results in turn, then one that is not
    scratch.free[:] = fresh
    at, best = 0, NEVER
    scratch.choice[0], scratch.length[0] = -1, length
    while at >= 0:
        if at == many:
            best = scratch.length[at]
            at -= 1
            continue
        c, p = scratch.task[at], scratch.choice[at]
        if 0 <= p < classes:
            scratch.free[p] += 1
        p += 1
        while p < classes and (scratch.free[p] == 0 or t.results[c, p] == 0):
            p += 1
        if p > classes:
            at -= 1
            continue
        scratch.choice[at] = p
        cost = scratch.away[at]
        if p < classes:
            scratch.free[p] -= 1
            cost -= t.results[c, p] + (t.hop if scratch.coming[at] == t.results[c, p] else 0)
        # only what stays below the best length is followed
        if max(scratch.length[at], cost) < best:
            scratch.length[at + 1] = max(scratch.length[at], cost)
            at += 1
            if at < many:
                scratch.choice[at] = -1
    return best
