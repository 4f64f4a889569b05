"""The machine code of the search over sequences of rounds (`sequences`): best first over what has run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.tiled.exact.label_kernel import (
    BEST,
    BOUND,
    OPEN,
    STATUS,
    Memory,
    insert,
    pop,
)
from tilewright.solvers.scheduling.tiled.exact.remainder_kernel import (
    Remainders,
    ended,
    next_round,
    ready,
    remaining,
)
from tilewright.solvers.scheduling.tiled.exact.round_length_kernel import (
    NEVER,
    Exchange,
    Tables,
    begun,
    charged,
    exchanged,
    passed,
    ported,
    waiting,
)

RUNNING, ENDED, FULL = 0, 1, 2


@compiled
def advance(t: Tables, rest: Remainders, memory: Memory, pops: int) -> int:
    """Take so many labels from the heap and follow every next round; ends at a label where all have run.

    Parameters
    ----------
    t, rest : the instance, and what the rounds to come take at least
    memory : of labels
    pops : labels to follow
    """
    classes, groups = len(t.number), len(t.time)
    n = np.zeros(classes, dtype=np.int64)
    s = np.zeros(classes, dtype=np.int64)
    m = np.zeros(classes, dtype=np.int64)
    available = np.zeros(classes, dtype=np.int64)
    held = np.zeros(groups, dtype=np.int64)
    read = np.zeros(groups, dtype=np.int64)
    extra = np.zeros(groups, dtype=np.int64)
    fresh = np.zeros(classes, dtype=np.int64)
    scratch = Exchange(
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
        label = pop(memory)
        if not memory.alive[label]:
            continue
        memory.state[BOUND] = max(memory.state[BOUND], memory.bound[label])
        key, time, moved = memory.key[label], memory.time[label], memory.moved[label]
        # a key is a number in mixed radix: tasks that have run per class, counted blocks that are read
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
        ready(t, n, available)
        for g in range(groups):
            held[g] = key // t.group_strides[g] % (t.size[g] + 1) if t.group_strides[g] else 0
            if t.group_strides[g]:
                counted += (t.size[g] - held[g]) * t.time[g]
        fetched = min(moved, t.fluid)
        # every round of available tasks, as numbers per class that count up
        size = 0
        while True:
            size = next_round(s, available, size, t.engines)
            if size == 0:
                break
            longest, shortest, reading, new_key, ran = 0, NEVER, False, key, 0
            for c in range(classes):
                m[c] = n[c] + s[c]
                if s[c]:
                    longest = max(longest, t.cycles[c])
                    new_key += s[c] * t.strides[c]
                    if t.linked and t.leaving_least[c] < 0:
                        ran += s[c] * t.strides[c]
                    if t.reads[c]:
                        shortest = min(shortest, t.cycles[c])
                        reading = True
            to_come = remaining(rest, new_key)
            if time + longest + to_come >= t.ceiling:
                continue
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
            cost = charged(t, s)
            if time + longest + cost + to_come >= t.ceiling:
                continue
            # what earlier rounds left no time for passes DRAM now, and the tasks that read it wait
            late = max(0, needed - fetched)
            wait = late + late_counted
            if t.steady and done == 0:
                shortest = longest
            elif t.steady and late_counted > 0:
                shortest = max(shortest, waiting(t, s, m, held))
            least_length = max(longest, passed(t, s, m, held))
            if t.steady and done == 0:
                least_length = max(least_length, begun(t, s, wait))
            elif t.linked:
                least_length = exchanged(t, s, fresh, scratch, least_length)
            for g in range(groups):
                if t.group_strides[g]:
                    new_key += extra[g] * t.group_strides[g]
                    read[g] = extra[g]
            # counted blocks may be read before they are needed: all numbers from the least on
            while True:
                whole, after = 0, new_key
                for g in range(groups):
                    if t.group_strides[g]:
                        whole += extra[g] * t.time[g]
                        after += (extra[g] - read[g]) * t.group_strides[g]
                length = max(least_length, late + whole, ported(t, extra))
                if wait > 0 and reading:
                    length = max(length, wait + shortest)
                new_time = time + length + cost
                new_moved = min(moved + length - whole, t.fluid + out_before)
                if done + size == total:
                    new_time += max(ended(t, s), t.fluid + t.leaving - new_moved)
                    bound = new_time
                else:
                    bound = max(memory.bound[label], new_time + to_come)
                    bound = max(bound, _rest(t, m, counted - whole, new_time, new_moved))
                if bound < t.ceiling and not insert(
                    memory=memory,
                    key=after,
                    ran=ran,
                    time=new_time,
                    moved=new_moved,
                    cap=t.fluid + out_before,
                    bound=bound,
                    parent=label,
                    done=done + size,
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


@compiled
def _rest(t: Tables, n: Int64s, counted: int, time: int, moved: int) -> Any:
    """Parts of a cycle at which no plan ends before, from what has run on."""
    pos, rounds, chain, least, behind = 0, 0, 0, NEVER, NEVER
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
            behind = min(behind, t.chain[c])
    if pos == 0:
        return time
    if least == NEVER:
        least = 0
    least_end = max(time + rounds + least, time + chain)
    least_end = max(least_end, time + t.fluid + t.leaving + counted - moved)
    # whoever reads what is fetched last begins then, and its chain follows
    fetch = t.fluid - min(moved, t.fluid) + counted
    if fetch > 0 and behind < NEVER:
        least_end = max(least_end, time + fetch + behind)
    return least_end


@compiled
def _fillable(
    t: Tables, n: Int64s, s: Int64s, m: Int64s, available: Int64s, read: Int64s, longest: int
) -> bool:
    """Whether another task could run in the round at no cost: no longer than the rest, nothing new read, no
    charge."""
    for c in range(len(n)):
        if s[c] == available[c] or t.cycles[c] > longest:
            continue
        free = True
        for g in range(len(read)):
            if t.blocks[g, c, m[c] + 1] > read[g]:
                free = False
                break
        if free:
            alone = charged(t, s)
            s[c] += 1
            free = charged(t, s) == alone
            s[c] -= 1
        if free:
            return True
    return False
