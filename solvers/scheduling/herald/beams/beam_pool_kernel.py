"""What a beam search holds, in machine code: partial schedules in pools, heaps with the worst one first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled

NODE, PLACED, FREE = 0, 1, 2
"""Fields of a state: how it came about, how many tasks are placed, and the first one of the engines."""
SPARES, NODES, POOL, SOURCE = 0, 1, 2, 3
"""Entries of counts: states not in use, nodes, the pool in hand, and that or the one of the last two whose
states are expanded next."""
_SPREAD = 7919  # by which the keys of pools differ


class Chains(NamedTuple):
    """Tasks in chains, each with an end of -1 behind its last task.

    Parameters
    ----------
    first : per chain, where it begins; and the length of all
    twin : per chain, an equal one that begins before it does, -1 for none
    task, left, mark : per place: the task, least cycles from its start to the end of the chain, and a random
        number, the same where all that follows is equal
    options : per task, how many it has
    """

    first: Int64s
    twin: Int64s
    task: Int64s
    left: Int64s
    mark: Int64s
    options: Int64s


class Begin(NamedTuple):
    """What is behind the first state: it is placed already.

    Parameters
    ----------
    free, last : per engine, when its last task ends, and when that began
    ready : per chain, when its last task ends
    spent : what all of it costs besides cycles
    """

    free: Int64s
    last: Int64s
    ready: Int64s
    spent: float


class Worth(NamedTuple):
    """What is compared, in cycles.

    Parameters
    ----------
    price : shape (prices, engines): what a cycle of an engine is worth; together 1
    least : shape (prices, tasks): the least that a task costs
    spent : shape (tasks, options): what an option costs besides its cycles
    """

    price: Floats
    least: Floats
    spent: Floats


class Beam(NamedTuple):
    """All states of a search.

    Parameters
    ----------
    state : shape (states, fields): node, tasks placed; per engine, when it is free and when its last task
        began; per chain, when it is ready and where it is
    value : shape (states, prices + 3): the least cost by each price, what is spent, the squared lengths of
        what is left, and the value by which states are compared
    key, pool, place : per state, the sum of the marks of its chains, its pool, and its place in that heap
    spare : states that are not in use
    heap, held : the states of every pool, the worst one first, and how many; the last two pools are those of
        states whose clocks do not leave the pool in hand
    table : by hash of pool and key, a state and 1
    node : the task and option that a state came about by, and the node before it
    work : states in hand
    counts : see ``SPARES`` and those beside it
    best : cost and node of the best complete schedule
    """

    state: Int64s
    value: Floats
    key: Int64s
    pool: Int64s
    place: Int64s
    spare: Int64s
    heap: Int64s
    held: Int64s
    table: Int64s
    node: Int64s
    work: Int64s
    counts: Int64s
    best: Floats


class Aim(NamedTuple):
    """What a search looks for.

    Parameters
    ----------
    cost : schedules that cost less
    horizon : and end before this cycle
    guide : cycles per squared length, lengths being parts of the horizon
    path : what a cycle counts by which the chain that ends last ends at the earliest
    """

    cost: float
    horizon: int
    guide: float
    path: float


@compiled
def room(states: int, width: int, pools: int, fields: int, prices: int, nodes: int) -> Beam:
    """Room for a search.

    Parameters
    ----------
    states : at most, at the same time
    width : states of a pool at most
    pools : how many the horizon is divided into
    fields : of a state, two more than twice the engines and chains
    prices : how many there are
    nodes : that can be noted; a search that needs more ends early
    """
    size = 1
    while size < 4 * states:
        size *= 2
    return Beam(
        np.zeros((states, fields), np.int64),
        np.zeros((states, prices + 3)),
        np.zeros(states, np.int64),
        np.zeros(states, np.int64),
        np.zeros(states, np.int64),
        np.zeros(states, np.int64),
        np.zeros((pools + 2, width), np.int64),
        np.zeros(pools + 2, np.int64),
        np.zeros(size, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(width, np.int64),
        np.zeros(4, np.int64),
        np.zeros(2),
    )


@compiled
def _rise(beam: Beam, pool: int, at: int, slot: int) -> None:
    """Put a state into a heap, at a place or above it."""
    rank = beam.value.shape[1] - 1
    while at > 0:
        above = (at - 1) // 2
        other = beam.heap[pool, above]
        if beam.value[other, rank] >= beam.value[slot, rank]:
            break
        beam.heap[pool, at] = other
        beam.place[other] = at
        at = above
    beam.heap[pool, at] = slot
    beam.place[slot] = at


@compiled
def _sink(beam: Beam, pool: int, at: int, slot: int) -> None:
    """Put a state into a heap, at a place or below it."""
    rank, count = beam.value.shape[1] - 1, beam.held[pool]
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count:
            first, second = beam.heap[pool, below], beam.heap[pool, below + 1]
            below += beam.value[second, rank] > beam.value[first, rank]
        other = beam.heap[pool, below]
        if beam.value[other, rank] <= beam.value[slot, rank]:
            break
        beam.heap[pool, at] = other
        beam.place[other] = at
        at = below
    beam.heap[pool, at] = slot
    beam.place[slot] = at


@compiled
def slot_for(beam: Beam, pool: int, key: int, value: float) -> int:
    """Where a state of a pool may be written, -1 where it is not good enough.

    Parameters
    ----------
    beam : in which it is written
    pool : the state's
    key : of what is placed; of the states with the same, a pool keeps the best
    value : the state's
    """
    rank, width = beam.value.shape[1] - 1, beam.heap.shape[1]
    at = (key ^ (pool * _SPREAD)) & (beam.table.shape[0] - 1)
    slot: int = beam.table[at] - 1
    if slot >= 0 and beam.pool[slot] == pool and beam.key[slot] == key:
        if beam.value[slot, rank] <= value:
            slot = -1
        return slot
    slot = -1
    if beam.held[pool] < width:
        if beam.counts[SPARES] > 0:
            slot = beam.spare[beam.counts[SPARES] - 1]
    elif beam.value[beam.heap[pool, 0], rank] > value:
        slot = beam.heap[pool, 0]
    if slot >= 0:
        beam.table[at] = slot + 1
    return slot


@compiled
def enter(beam: Beam, pool: int, slot: int) -> None:
    """Put a state that has been written where :func:`slot_for` said into its pool's heap."""
    if beam.pool[slot] == pool:
        _sink(beam, pool, beam.place[slot], slot)
    else:
        beam.counts[SPARES] -= 1
        beam.pool[slot] = pool
        beam.held[pool] += 1
        _rise(beam, pool, beam.held[pool] - 1, slot)


@compiled
def note(beam: Beam, before: int, entry: int, entries: int) -> int:
    """The node of an entry behind another node.

    Parameters
    ----------
    beam : in which it is noted
    before : the other node
    entry : task and option
    entries : how many there are
    """
    node: int = beam.counts[NODES]
    beam.node[node] = before * entries + entry
    beam.counts[NODES] = node + 1
    return node
