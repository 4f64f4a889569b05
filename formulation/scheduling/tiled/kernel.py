"""The machine code of the evaluator: legality of a plan, then its steps.

Kernels return a fault as (kind, a, b, c); what it says in words is the evaluator's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

OK, ENGINE, STEPS, BUSY, HELD, UNSUPPLIED, SOURCE, TARGET, STORED, MISSING, EARLY, OUTPUT, BUFFER, ROUTE = (
    range(14)
)


class Graph(NamedTuple):
    """The part of an atomic DAG that the kernels read."""

    cycles: Longs
    is_output: Flags
    block_bytes: Longs
    block_parent: Ints
    read_starts: Longs
    reads: Ints


class Moves(NamedTuple):
    """A plan's transfers and the number of each one's multicast."""

    block: Ints
    source: Ints
    target: Ints
    bytes: Longs
    first: Ints
    last: Ints
    group: Longs


class Holds(NamedTuple):
    """A plan's residencies and, per block, where they begin."""

    block: Ints
    engine: Ints
    start: Ints
    end: Ints
    of_block: Longs


class Tasks(NamedTuple):
    """A plan's tasks."""

    engine: Ints
    first: Ints
    last: Ints


class Network(NamedTuple):
    """Routes and rates of a machine."""

    engines: int
    places: int
    starts: Longs
    links: Ints
    routers: int
    rates: Floats
    dram_rate: float
    hop_cycles: int
    buffer: int


@njit(cache=True, nogil=True, inline="always")
def _holding(holds: Holds, block: int, engine: int, first: int, last: int) -> Any:  # pragma: no cover
    """The residency of a block on an engine that covers these steps, or -1."""
    low, high = holds.of_block[block], holds.of_block[block + 1]
    while low < high:
        middle = (low + high) // 2
        other = holds.engine[middle]
        if other < engine or (other == engine and holds.start[middle] <= first):
            low = middle + 1
        else:
            high = middle
    below = low - 1
    if below < holds.of_block[block] or holds.engine[below] != engine or holds.end[below] < last:
        return -1
    return below


@njit(cache=True, nogil=True)
def holdings(holds: Holds, block: Ints, engine: Ints, first: Ints, last: Ints) -> Any:  # pragma: no cover
    """Per entry, the residency of a block on an engine that covers the steps, or -1."""
    found = np.empty(len(block), dtype=np.int64)
    for k in range(len(block)):
        found[k] = _holding(holds, block[k], engine[k], first[k], last[k])
    return found


@njit(cache=True, nogil=True)
def ascend(first: Ints, second: Ints, third: Ints, fourth: Ints) -> Any:  # pragma: no cover
    """Whether rows ascend, the first column foremost."""
    for i in range(1, len(first)):
        if first[i] != first[i - 1]:
            wrong = first[i] < first[i - 1]
        elif second[i] != second[i - 1]:
            wrong = second[i] < second[i - 1]
        elif third[i] != third[i - 1]:
            wrong = third[i] < third[i - 1]
        else:
            wrong = fourth[i] < fourth[i - 1]
        if wrong:
            return False
    return True


@njit(cache=True, nogil=True)
def multicasts(
    block: Ints, source: Ints, target: Ints, size: Longs, first: Ints, last: Ints, engines: int
) -> Any:  # pragma: no cover
    """Per transfer, the number of its multicast.

    A write-back shares none, and none reaches an engine twice: what brings other bytes is another one.
    """
    group = np.zeros(len(block), dtype=np.int64)
    reached = np.full(engines, -1, dtype=np.int64)
    for j in range(len(block)):
        if j > 0:
            same = block[j] == block[j - 1] and source[j] == source[j - 1] and size[j] == size[j - 1]
            same = same and first[j] == first[j - 1] and last[j] == last[j - 1]
            same = same and 0 <= target[j] < engines and target[j - 1] < engines
            same = same and reached[target[j]] != group[j - 1]
            group[j] = group[j - 1] if same else group[j - 1] + 1
        if 0 <= target[j] < engines:
            reached[target[j]] = group[j]
    return group


@njit(cache=True, nogil=True)
def reuse(
    graph: Graph, moves: Moves, served: Ints, supplied: Longs, holdings: int, engines: int
) -> Any:  # pragma: no cover
    """Of the bytes of results that are read, the part that is served by copies that never left the chip."""
    fetched = np.zeros(holdings, dtype=np.bool_)
    for j in range(len(moves.block)):
        if moves.source[j] >= engines and supplied[j] >= 0:
            fetched[supplied[j]] = True
    total, outside = np.int64(0), np.int64(0)
    for k in range(len(graph.reads)):
        b = graph.reads[k]
        if graph.block_parent[b] >= 0:
            total += graph.block_bytes[b]
            if fetched[served[k]]:
                outside += graph.block_bytes[b]
    return 1.0 - outside / max(np.int64(1), total)


@njit(cache=True, nogil=True)
def check(
    graph: Graph, tasks: Tasks, moves: Moves, holds: Holds, net: Network, steps: int
) -> Any:  # pragma: no cover
    """Whether a plan is legal, and what the evaluation of a legal one needs.

    Returns
    -------
    fault : kind and three numbers
    ready : per residency, the last step of what supplies it; the step after every other where nothing does
    local : per residency, whether its task made it there
    served : per read, its residency
    supplied : per transfer, the residency that it brings or is part of, -1 for write-backs
    late : per residency, whether somebody reads it in the step in which it arrives
    waits : per task, whether it reads such a one
    peak : per engine, the most bytes that it holds
    """
    count, blocks = len(tasks.engine), len(graph.block_bytes)
    never = np.int32(steps + 1)
    ready = np.full(len(holds.block), never, dtype=np.int32)
    local = np.zeros(len(holds.block), dtype=np.bool_)
    served = np.full(len(graph.reads), -1, dtype=np.int32)
    stored = np.full(blocks, -1, dtype=np.int32)
    supplied = np.full(len(moves.block), -1, dtype=np.int64)
    late = np.zeros(len(holds.block), dtype=np.bool_)
    waits = np.zeros(count, dtype=np.bool_)
    peak = np.zeros(net.engines, dtype=np.int64)
    known = ready, local, served, supplied, late, waits, peak
    busy = np.full((net.engines, steps), -1, dtype=np.int32)
    for t in range(count):
        if tasks.engine[t] < 0 or tasks.engine[t] >= net.engines:
            return (ENGINE, t, tasks.engine[t], 0), known
        if tasks.first[t] < 0 or tasks.last[t] < tasks.first[t] or tasks.last[t] >= steps:
            return (STEPS, t, tasks.first[t], tasks.last[t]), known
        for step in range(tasks.first[t], tasks.last[t] + 1):
            if busy[tasks.engine[t], step] >= 0:
                return (BUSY, t, busy[tasks.engine[t], step], step), known
            busy[tasks.engine[t], step] = t
    level = np.zeros((net.engines, steps + 1), dtype=np.int64)
    for i in range(len(holds.block)):
        b, e = holds.block[i], holds.engine[i]
        if (
            e < 0
            or e >= net.engines
            or holds.start[i] < 0
            or holds.end[i] < holds.start[i]
            or holds.end[i] >= steps
        ):
            return (HELD, i, 0, 0), known
        if (
            i > 0
            and holds.block[i - 1] == b
            and holds.engine[i - 1] == e
            and holds.end[i - 1] >= holds.start[i]
        ):
            return (HELD, i, 1, 0), known
        if (
            b < count
            and tasks.engine[b] == e
            and holds.start[i] == tasks.first[b]
            and holds.end[i] >= tasks.last[b]
        ):
            ready[i], local[i] = tasks.last[b], True
        level[e, holds.start[i]] += graph.block_bytes[b]
        level[e, holds.end[i] + 1] -= graph.block_bytes[b]
    for e in range(net.engines):
        total = np.int64(0)
        for step in range(steps):
            total += level[e, step]
            peak[e] = max(peak[e], total)
            if total > net.buffer:
                return (BUFFER, e, step, total), known
    for t in range(count):
        if _holding(holds, t, tasks.engine[t], tasks.first[t], tasks.last[t]) < 0:
            return (UNSUPPLIED, t, 0, 0), known
    got = np.zeros(len(holds.block), dtype=np.int64)
    written = np.zeros(blocks, dtype=np.int64)
    for j in range(len(moves.block)):
        b, target = moves.block[j], moves.target[j]
        if moves.first[j] < 0 or moves.last[j] < moves.first[j] or moves.last[j] >= steps:
            return (ROUTE, j, 0, 0), known
        if target < 0 or target >= net.places or moves.source[j] < 0 or moves.source[j] >= net.places:
            return (ROUTE, j, 1, 0), known
        if moves.source[j] == target or (moves.source[j] >= net.engines and target >= net.engines):
            return (ROUTE, j, 2, 0), known
        if target >= net.engines:
            written[b] += moves.bytes[j]
            stored[b] = max(stored[b], moves.last[j])
            continue
        i = _holding(holds, b, target, moves.first[j], moves.last[j])
        if i < 0:
            return (TARGET, j, 0, 0), known
        if local[i]:
            return (ROUTE, j, 3, 0), known
        got[i] += moves.bytes[j]
        supplied[j] = i
        ready[i] = moves.last[j] if ready[i] == never else max(ready[i], moves.last[j])
    for i in range(len(holds.block)):
        if not local[i] and got[i] < graph.block_bytes[holds.block[i]]:
            ready[i] = never
    for j in range(len(moves.block)):
        b, source = moves.block[j], moves.source[j]
        parent = graph.block_parent[b]
        if source >= net.engines:
            if parent >= 0:
                own = written[b] >= graph.block_bytes[b] and stored[b] < moves.first[j]
                whole = written[parent] >= graph.block_bytes[parent] and stored[parent] < moves.first[j]
                if not own and not whole:
                    return (STORED, j, 0, 0), known
            continue
        i = _holding(holds, b, source, moves.first[j], moves.last[j])
        if (i < 0 or ready[i] >= moves.first[j]) and parent >= 0 and parent != b:
            i = _holding(holds, parent, source, moves.first[j], moves.last[j])
        if i < 0 or ready[i] >= moves.first[j]:
            return (SOURCE, j, i, 0), known
    for t in range(count):
        e, first, last = tasks.engine[t], tasks.first[t], tasks.last[t]
        for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
            b = graph.reads[k]
            parent = graph.block_parent[b]
            if parent >= 0 and tasks.last[parent] >= first:
                return (EARLY, t, parent, b), known
            i = _holding(holds, b, e, first, last)
            if (i < 0 or ready[i] > first) and parent >= 0 and parent != b:
                whole = _holding(holds, parent, e, first, last)
                if i < 0 or (whole >= 0 and ready[whole] <= first):
                    i = whole
            if i < 0 or ready[i] > first:
                return (MISSING, t, b, i), known
            served[k] = i
            if not local[i] and ready[i] == first:
                late[i] = waits[t] = True
        if graph.is_output[t] and written[t] < graph.block_bytes[t]:
            return (OUTPUT, t, 0, 0), known
    return (OK, 0, 0, 0), known


@njit(cache=True, nogil=True)
def run(
    graph: Graph,
    tasks: Tasks,
    moves: Moves,
    ready: Ints,
    served: Ints,
    supplied: Longs,
    late_hold: Flags,
    waiting: Flags,
    net: Network,
    steps: int,
) -> Any:  # pragma: no cover
    """The lengths of a legal plan's steps, and what it transfers.

    Returns
    -------
    begin : start of every step and the end, cycles; columns: all, without the network's links,
    computation alone
    loads : bytes over every link
    totals : bytes read from DRAM, written to DRAM, bytes times router links, read from buffers,
    written to them
    busiest : per step, the link that takes longest (-1: DRAM), and its cycles
    """
    links = len(net.rates)
    begin = np.zeros((steps + 1, 3), dtype=np.float64)
    loads = np.zeros(links, dtype=np.float64)
    totals = np.zeros(5, dtype=np.float64)
    busiest = np.full(steps, -2, dtype=np.int32)
    waits = np.zeros(steps, dtype=np.float64)
    longest = 1
    for j in range(len(moves.block)):
        longest = max(longest, moves.last[j] - moves.first[j] + 1)
    ring = np.zeros((longest, links), dtype=np.float64)
    ring_dram = np.zeros(longest, dtype=np.float64)
    stamp = np.full(links, -1, dtype=np.int64)
    late_move = np.full(len(moves.block), -1, dtype=np.int64)
    count_late = 0
    for j in range(len(moves.block)):
        i = supplied[j]
        if i >= 0 and late_hold[i] and ready[i] == moves.last[j]:
            late_move[j] = i
            count_late += 1
    late_keys = np.empty(count_late, dtype=np.int32)
    late_list = np.empty(count_late, dtype=np.int64)
    at = 0
    for j in range(len(moves.block)):
        if late_move[j] >= 0:
            late_keys[at], late_list[at] = moves.last[j], j
            at += 1
    late_starts, late_order = counting_sort(late_keys, late_list, steps)
    arrival = np.zeros((len(ready), 2), dtype=np.float64)
    late_load = np.zeros(links, dtype=np.float64)
    late_stamp = np.full(links, -1, dtype=np.int64)
    late_groups = np.int64(-1)
    every = np.arange(len(tasks.engine))
    end_starts, ending = counting_sort(tasks.last, every, steps)
    first_starts, starting = counting_sort(tasks.first, every, steps)
    late = np.zeros((len(tasks.engine), 2), dtype=np.float64)
    j = 0
    for step in range(steps):
        slot = step % longest
        while j < len(moves.block) and moves.first[j] == step:
            span = moves.last[j] - moves.first[j] + 1
            share = moves.bytes[j] / span
            new = j == 0 or moves.group[j] != moves.group[j - 1]
            if new:
                if moves.source[j] < net.engines:
                    totals[3] += moves.bytes[j]
                else:
                    totals[0] += moves.bytes[j]
                    for k in range(span):
                        ring_dram[(slot + k) % longest] += share
            if moves.target[j] >= net.engines:
                if new:
                    totals[1] += moves.bytes[j]
                    for k in range(span):
                        ring_dram[(slot + k) % longest] += share
            else:
                totals[4] += moves.bytes[j]
            route = moves.source[j] * net.places + moves.target[j]
            for q in range(net.starts[route], net.starts[route + 1]):
                link = net.links[q]
                if stamp[link] != moves.group[j]:
                    stamp[link] = moves.group[j]
                    loads[link] += moves.bytes[j]
                    if link >= net.routers:
                        totals[2] += moves.bytes[j]
                    at = slot
                    for _ in range(span):
                        ring[at, link] += share
                        at = at + 1 if at + 1 < longest else 0
            j += 1
        # what arrives for tasks of this very step
        late_dram = 0.0
        if late_starts[step + 1] > late_starts[step]:
            late_load[:] = 0.0
            for q in range(late_starts[step], late_starts[step + 1]):
                m = late_order[q]
                share = moves.bytes[m] / (moves.last[m] - moves.first[m] + 1)
                if moves.group[m] != late_groups:
                    late_groups = moves.group[m]
                    if moves.source[m] >= net.engines:
                        late_dram += share
                route = moves.source[m] * net.places + moves.target[m]
                for r in range(net.starts[route], net.starts[route + 1]):
                    link = net.links[r]
                    if late_stamp[link] != moves.group[m]:
                        late_stamp[link] = moves.group[m]
                        late_load[link] += share
            for q in range(late_starts[step], late_starts[step + 1]):
                m = late_order[q]
                route = moves.source[m] * net.places + moves.target[m]
                wait = 0.0
                for r in range(net.starts[route], net.starts[route + 1]):
                    link = net.links[r]
                    wait = max(wait, late_load[link] / net.rates[link])
                hops = max(0, net.starts[route + 1] - net.starts[route] - 2) * net.hop_cycles
                memory = late_dram / net.dram_rate if moves.source[m] >= net.engines else 0.0
                i = late_move[m]
                arrival[i, 0] = max(arrival[i, 0], max(wait, memory) + hops)
                arrival[i, 1] = max(arrival[i, 1], memory)
        for q in range(first_starts[step], first_starts[step + 1]):
            t = starting[q]
            if not waiting[t]:
                continue
            for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
                i = served[k]
                if late_hold[i] and ready[i] == step:
                    late[t, 0] = max(late[t, 0], arrival[i, 0])
                    late[t, 1] = max(late[t, 1], arrival[i, 1])
        memory = ring_dram[slot] / net.dram_rate
        wait = memory
        busiest[step] = -1
        for link in range(links):
            if ring[slot, link] > 0.0:
                need = ring[slot, link] / net.rates[link]
                ring[slot, link] = 0.0
                if need > wait:
                    wait = need
                    busiest[step] = link
        ring_dram[slot] = 0.0
        waits[step] = wait
        begin[step + 1, 0] = begin[step, 0] + wait
        begin[step + 1, 1] = begin[step, 1] + memory
        begin[step + 1, 2] = begin[step, 2]
        for q in range(end_starts[step], end_starts[step + 1]):
            t = ending[q]
            first = tasks.first[t]
            begin[step + 1, 0] = max(begin[step + 1, 0], begin[first, 0] + late[t, 0] + graph.cycles[t])
            begin[step + 1, 1] = max(begin[step + 1, 1], begin[first, 1] + late[t, 1] + graph.cycles[t])
            begin[step + 1, 2] = max(begin[step + 1, 2], begin[first, 2] + graph.cycles[t])
    return begin, loads, totals, busiest, waits, late
