"""The machine code of the search over sequences of rounds (`sequences`): best first over what has run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Longs = npt.NDArray[np.int64]

RUNNING, ENDED, FULL = 0, 1, 2
LABELS, OPEN, STATUS, BEST, BOUND = range(5)

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
    hop : from an engine to the next one, and from a port to the engines beyond those beside it
    beside : engines beside a DRAM port
    ports : of DRAM
    steady : whether every round runs a task: with idle ones, data may come before any task waits for it
    linked : whether what the round before has run is told apart, and hops and results count
    engines : tasks of a round at most
    ceiling : of what is of interest
    """

    number: Longs
    cycles: Longs
    chain: Longs
    leaving_least: Longs
    leaving_most: Longs
    strides: Longs
    reads: Longs
    least: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int64]
    time: Longs
    size: Longs
    group_strides: Longs
    fluid: int
    leaving: int
    passing: Longs
    results: Longs
    reading: Longs
    leaving_passing: Longs
    hop: int
    beside: int
    ports: int
    steady: int
    linked: int
    engines: int
    ceiling: int


class Memory(NamedTuple):
    """Labels and where to find them: each a way to have run certain tasks in a certain time."""

    key: Longs
    ran: Longs
    time: Longs
    moved: Longs
    cap: Longs
    bound: Longs
    parent: Longs
    following: Longs
    alive: npt.NDArray[np.bool_]
    table: Longs
    heap: Longs
    priority: Longs
    state: Longs


class Exchange(NamedTuple):
    """Room for one search for places beside results: per task of a round, and per class before it."""

    task: Longs
    coming: Longs
    away: Longs
    choice: Longs
    length: Longs
    free: Longs


@njit(cache=True)
def _push(memory: Memory, label: int, priority: int) -> None:
    heap, keys, at = memory.heap, memory.priority, memory.state[OPEN]
    memory.state[OPEN] += 1
    while at > 0:
        up = (at - 1) // 2
        if keys[up] <= priority:
            break
        heap[at], keys[at] = heap[up], keys[up]
        at = up
    heap[at], keys[at] = label, priority


@njit(cache=True)
def _pop(memory: Memory) -> Any:
    heap, keys = memory.heap, memory.priority
    top = heap[0]
    memory.state[OPEN] -= 1
    size = memory.state[OPEN]
    label, priority = heap[size], keys[size]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and keys[down + 1] < keys[down]:
            down += 1
        if keys[down] >= priority:
            break
        heap[at], keys[at] = heap[down], keys[down]
        at = down
    heap[at], keys[at] = label, priority
    return top


@njit(cache=True)
def _insert(
    memory: Memory, key: int, ran: int, time: int, moved: int, cap: int, bound: int, parent: int, done: int
) -> bool:
    """A label, unless another one is as good; false where memory is full."""
    mask = len(memory.table) - 1
    at = (((key + 31 * ran) * 0x9E3779B97F4A7C1) >> 17) & mask
    head = memory.table[at]
    while head >= 0 and (memory.key[head] != key or memory.ran[head] != ran):
        at = (at + 1) & mask
        head = memory.table[at]
    one = head
    while one >= 0:
        if memory.alive[one] and _as_good(memory, one, time, moved):
            return True
        one = memory.following[one]
    one = head
    while one >= 0:
        if memory.alive[one] and memory.time[one] >= time:
            reached = min(moved + memory.time[one] - time, max(cap, moved))
            if reached >= memory.moved[one]:
                memory.alive[one] = False
        one = memory.following[one]
    label = memory.state[LABELS]
    if label >= len(memory.key):
        return False
    memory.state[LABELS] += 1
    memory.key[label], memory.time[label], memory.moved[label] = key, time, moved
    memory.ran[label] = ran
    memory.cap[label], memory.bound[label], memory.parent[label] = cap, bound, parent
    memory.following[label] = head
    memory.alive[label] = True
    memory.table[at] = label
    _push(memory, label, bound * 64 - done)
    return True


@njit(cache=True)
def _as_good(memory: Memory, one: int, time: int, moved: int) -> bool:
    """Whether a label, waiting if need be, has moved as much by the same time."""
    spare = time - memory.time[one]
    return bool(
        spare >= 0 and min(memory.moved[one] + spare, max(memory.cap[one], memory.moved[one])) >= moved
    )


@njit(cache=True)
def _rest(t: Tables, n: Longs, counted: int, time: int, moved: int) -> Any:
    """Parts of a cycle at which no plan ends before, from what has run on."""
    pos, rounds, chain, least = 0, 0, 0, NEVER
    shortest = NEVER
    for c in range(len(n)):
        left = t.number[c] - n[c]
        if left == 0:
            continue
        rounds += t.cycles[c] * (
            (pos + left + t.engines - 1) // t.engines - (pos + t.engines - 1) // t.engines
        )
        pos += left
        chain = max(chain, t.chain[c])
        if t.leaving_least[c] >= 0:
            least = min(least, t.leaving_least[c])
        if t.reads[c]:
            shortest = min(shortest, t.cycles[c])
    if pos == 0:
        return time
    if least == NEVER:
        least = 0
    found = max(time + rounds + least, time + chain)
    found = max(found, time + t.fluid + t.leaving + counted - moved)
    fetch = t.fluid - min(moved, t.fluid) + counted
    if fetch > 0 and shortest < NEVER:
        found = max(found, time + fetch + shortest + least)
    return found


@njit(cache=True)
def advance(t: Tables, memory: Memory, pops: int) -> int:
    """Take so many labels from the heap and follow every next round; ends at a label where all have run."""
    classes, groups = len(t.number), len(t.time)
    n = np.zeros(classes, dtype=np.int64)
    s = np.zeros(classes, dtype=np.int64)
    m = np.zeros(classes, dtype=np.int64)
    available = np.zeros(classes, dtype=np.int64)
    held = np.zeros(groups, dtype=np.int64)
    read = np.zeros(groups, dtype=np.int64)
    extra = np.zeros(groups, dtype=np.int64)
    fresh = np.zeros(classes, dtype=np.int64)
    room = Exchange(
        np.zeros(t.engines, dtype=np.int64),
        np.zeros(t.engines, dtype=np.int64),
        np.zeros(t.engines, dtype=np.int64),
        np.zeros(t.engines, dtype=np.int64),
        np.zeros(t.engines + 1, dtype=np.int64),
        np.zeros(classes, dtype=np.int64),
    )
    total = t.number.sum()
    for _ in range(pops):
        if memory.state[OPEN] == 0:
            memory.state[STATUS] = ENDED
            memory.state[BOUND] = t.ceiling
            return ENDED
        label = _pop(memory)
        if not memory.alive[label]:
            continue
        memory.state[BOUND] = max(memory.state[BOUND], memory.bound[label])
        key, time, moved = memory.key[label], memory.time[label], memory.moved[label]
        done, counted = 0, 0
        for c in range(classes):
            n[c] = key // t.strides[c] % (t.number[c] + 1)
            done += n[c]
            fresh[c] = memory.ran[label] // t.strides[c] % (t.number[c] + 1)
        if done == total:
            memory.state[STATUS], memory.state[BEST] = ENDED, label
            return ENDED
        out_before = 0
        for c in range(classes):
            out_before += n[c] * t.leaving_most[c]
            s[c] = 0
            available[c] = 0
            while available[c] < t.engines and n[c] + available[c] < t.number[c]:
                possible = True
                for p in range(classes):
                    if t.least[c, p, n[c] + available[c] + 1] > n[p]:
                        possible = False
                        break
                if not possible:
                    break
                available[c] += 1
        for g in range(groups):
            held[g] = key // t.group_strides[g] % (t.size[g] + 1) if t.group_strides[g] else 0
            if t.group_strides[g]:
                counted += (t.size[g] - held[g]) * t.time[g]
        fetched = min(moved, t.fluid)
        size = 0
        while True:
            at = classes - 1
            while at >= 0:
                if s[at] < available[at] and size < t.engines:
                    s[at] += 1
                    size += 1
                    break
                size -= s[at]
                s[at] = 0
                at -= 1
            if at < 0:
                break
            longest, shortest, out_now, reading, out_passing = 0, NEVER, 0, False, 0
            for c in range(classes):
                m[c] = n[c] + s[c]
                if s[c]:
                    longest = max(longest, t.cycles[c])
                    out_now += s[c] * max(0, t.leaving_least[c])
                    out_passing = max(out_passing, t.leaving_passing[c])
                    if t.reads[c]:
                        shortest = min(shortest, t.cycles[c])
                        reading = True
            needed, late_counted = 0, 0
            for g in range(groups):
                most = 0
                for c in range(classes):
                    most = max(most, t.blocks[g, c, m[c]])
                read[g] = most
                if t.group_strides[g]:
                    extra[g] = max(0, most - held[g])
                    late_counted += extra[g] * t.time[g]
                else:
                    needed += most * t.time[g]
            if not t.linked and size < t.engines and _fillable(t, n, s, m, available, read, longest):
                continue
            late = max(0, needed - fetched)
            wait = late + late_counted
            if t.steady and done == 0:
                shortest = longest
            elif t.steady and late_counted > 0:
                shortest = max(shortest, _waiting(t, s, m, held))
            least_length = max(longest, _passed(t, s, m, held))
            if t.steady and done == 0:
                least_length = max(least_length, _begun(t, s, wait))
            elif t.linked:
                least_length = _exchanged(t, s, fresh, room, least_length)
            new_key, ran = key, 0
            for c in range(classes):
                new_key += s[c] * t.strides[c]
                if t.linked and t.leaving_least[c] < 0:
                    ran += s[c] * t.strides[c]
            for g in range(groups):
                if t.group_strides[g]:
                    new_key += extra[g] * t.group_strides[g]
                    read[g] = extra[g]
            while True:
                whole, after = 0, new_key
                for g in range(groups):
                    if t.group_strides[g]:
                        whole += extra[g] * t.time[g]
                        after += (extra[g] - read[g]) * t.group_strides[g]
                length = max(least_length, late + whole, _ported(t, extra))
                if wait > 0 and reading:
                    length = max(length, wait + shortest)
                new_time = time + length
                new_moved = min(moved + length - whole, t.fluid + out_before)
                if done + size == total:
                    new_time += max(out_now, out_passing, t.fluid + t.leaving - new_moved)
                    bound = new_time
                else:
                    bound = max(memory.bound[label], _rest(t, m, counted - whole, new_time, new_moved))
                if bound < t.ceiling and not _insert(
                    memory, after, ran, new_time, new_moved, t.fluid + out_before, bound, label, done + size
                ):
                    memory.state[STATUS] = FULL
                    return FULL
                at = groups - 1
                while at >= 0:
                    if t.group_strides[at]:
                        if held[at] + extra[at] < t.size[at]:
                            extra[at] += 1
                            break
                        extra[at] = read[at]
                    at -= 1
                if at < 0:
                    break
    return RUNNING


@njit(cache=True)
def _fillable(t: Tables, n: Longs, s: Longs, m: Longs, available: Longs, read: Longs, longest: int) -> bool:
    """Whether another task could run in the round at no cost: no longer than the rest, nothing new read."""
    for c in range(len(n)):
        if s[c] == available[c] or t.cycles[c] > longest:
            continue
        free = True
        for g in range(len(read)):
            if t.blocks[g, c, m[c] + 1] > read[g]:
                free = False
                break
        if free:
            return True
    return False


@njit(cache=True)
def _waiting(t: Tables, s: Longs, m: Longs, held: Longs) -> int:
    """Cycles of the longest task that reads a counted block of its own round."""
    for c in range(len(s)):
        if s[c]:
            for g in range(len(held)):
                if t.group_strides[g] and t.blocks[g, c, m[c]] > held[g]:
                    return int(t.cycles[c])
    return 0


@njit(cache=True)
def _passed(t: Tables, s: Longs, m: Longs, held: Longs) -> Any:
    """Parts of a cycle of a task that waits for a counted block of its own round to pass a port."""
    found = 0
    for g in range(len(held)):
        if t.group_strides[g] and t.passing[g]:
            for c in range(len(s)):
                if s[c] and t.blocks[g, c, m[c]] > held[g]:
                    found = max(found, t.cycles[c] + t.passing[g])
                    break
    return found


@njit(cache=True)
def _ported(t: Tables, extra: Longs) -> Any:
    """Parts of a cycle that the counted blocks of a round take through the ports: the longest one, and of one
    more than there are ports the two shortest, which share one."""
    seen, longest, one = 0, 0, 0
    for g in range(len(extra)):
        if t.group_strides[g] and extra[g]:
            longest = max(longest, t.passing[g])
            if seen < t.ports <= seen + extra[g]:
                one = t.passing[g]
            if seen <= t.ports < seen + extra[g]:
                return max(longest, one + t.passing[g])
            seen += extra[g]
    return longest


@njit(cache=True)
def _begun(t: Tables, s: Longs, wait: int) -> Any:
    """Parts of a cycle of a first round: everything passes a port first, for some over a hop."""
    found, seen = 0, 0
    for c in range(len(s)):
        if s[c] and t.reads[c]:
            found = max(found, t.cycles[c] + t.reading[c])
            seen += s[c]
            if seen > t.beside >= seen - s[c]:
                found = max(found, t.cycles[c] + wait + t.hop)
    return found


@njit(cache=True)
def _exchanged(t: Tables, s: Longs, fresh: Longs, room: Exchange, length: int) -> Any:
    """Parts of a cycle of a round whose tasks read what the round before has made (``fresh``, per class).

    An engine that has run a task of that round runs one of this round at most, for which the result is there:
    the best of all ways to place the tasks beside results, depth first.
    """
    classes, many = len(s), 0
    for c in range(classes):
        coming = 0
        for p in range(classes):
            coming += fresh[p] * t.results[c, p]
        away = t.cycles[c] + coming + t.hop
        if s[c] and coming and away > length:
            for _ in range(s[c]):
                room.task[many], room.coming[many], room.away[many] = c, coming, away
                many += 1
    if many == 0:
        return length
    room.free[:] = fresh
    at, best = 0, NEVER
    room.choice[0], room.length[0] = -1, length
    while at >= 0:
        if at == many:
            best = room.length[at]
            at -= 1
            continue
        c, p = room.task[at], room.choice[at]
        if 0 <= p < classes:
            room.free[p] += 1
        p += 1
        while p < classes and (room.free[p] == 0 or t.results[c, p] == 0):
            p += 1
        if p > classes:
            at -= 1
            continue
        room.choice[at] = p
        cost = room.away[at]
        if p < classes:
            room.free[p] -= 1
            cost -= t.results[c, p] + (t.hop if room.coming[at] == t.results[c, p] else 0)
        if max(room.length[at], cost) < best:
            room.length[at + 1] = max(room.length[at], cost)
            at += 1
            if at < many:
                room.choice[at] = -1
    return best


def memory_of(labels: int) -> Memory:
    """Room for so many labels."""
    size = 1 << (2 * labels - 1).bit_length()
    key, ran, time, moved, cap, bound, parent, following = np.zeros((8, labels), dtype=np.int64)
    return Memory(
        key,
        ran,
        time,
        moved,
        cap,
        bound,
        parent,
        following,
        np.zeros(labels, dtype=np.bool_),
        np.full(size, -1, dtype=np.int64),
        np.zeros(labels, dtype=np.int64),
        np.zeros(labels, dtype=np.int64),
        np.zeros(5, dtype=np.int64),
    )
