"""The machine code that keeps the labels of the search over sequences of rounds: a heap and a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.foundation.arrays import Bools, Int64s
from tilewright.foundation.compiled import compiled

LABELS, OPEN, STATUS, BEST, BOUND = range(5)
"""Places in a memory's state: labels that there are and that are open, the status, the best and its bound."""


class Memory(NamedTuple):
    """Labels and where to find them: each a way to have run certain tasks in a certain time."""

    key: Int64s
    ran: Int64s
    time: Int64s
    moved: Int64s
    cap: Int64s
    bound: Int64s
    parent: Int64s
    following: Int64s
    alive: Bools
    table: Int64s
    heap: Int64s
    priority: Int64s
    state: Int64s


@compiled
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


@compiled
def pop(memory: Memory) -> Any:
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


@compiled
def insert(
    memory: Memory, key: int, ran: int, time: int, moved: int, cap: int, bound: int, parent: int, done: int
) -> bool:
    """A label, unless another one is as good; false where memory is full.

    Parameters
    ----------
    memory : changed in place
    key, ran : which tasks have run, and which in the round before
    time : since the beginning
    moved, cap : DRAM's time that is used, and to which it may rise by waiting
    bound : on the whole time by way of this label
    parent : the label before
    done : tasks that have run; of equal bounds, more of them come first
    """
    mask = len(memory.table) - 1
    at = (((key + 31 * ran) * 0x9E3779B97F4A7C1) >> 17) & mask
    head = memory.table[at]
    while head >= 0 and (memory.key[head] != key or memory.ran[head] != ran):
        at = (at + 1) & mask
        head = memory.table[at]
    # labels of equal tasks: another one that is as good refuses this one
    other = head
    while other >= 0:
        if memory.alive[other] and _as_good(memory, other, time, moved):
            return True
        other = memory.following[other]
    # and this one ends those that it is as good as, waiting until their time if need be
    other = head
    while other >= 0:
        if memory.alive[other] and memory.time[other] >= time:
            reached = min(moved + memory.time[other] - time, max(cap, moved))
            if reached >= memory.moved[other]:
                memory.alive[other] = False
        other = memory.following[other]
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
    # best bound first; of equal bounds the one that has run most, to reach an end soon
    _push(memory, label, bound * 64 - done)
    return True


@compiled
def _as_good(memory: Memory, label: int, time: int, moved: int) -> bool:
    """Whether a label, waiting if need be, has moved as much by the same time."""
    spare = time - memory.time[label]
    return bool(
        spare >= 0 and min(memory.moved[label] + spare, max(memory.cap[label], memory.moved[label])) >= moved
    )


def memory_of(labels: int) -> Memory:
    """Arrays for so many labels."""
    size = 1 << (2 * labels - 1).bit_length()
    key, ran, time, moved, cap, bound, parent, following = np.zeros((8, labels), dtype=np.int64)
    return Memory(
        key=key,
        ran=ran,
        time=time,
        moved=moved,
        cap=cap,
        bound=bound,
        parent=parent,
        following=following,
        alive=np.zeros(labels, dtype=np.bool_),
        table=np.full(size, -1, dtype=np.int64),
        heap=np.zeros(labels, dtype=np.int64),
        priority=np.zeros(labels, dtype=np.int64),
        state=np.zeros(5, dtype=np.int64),
    )
