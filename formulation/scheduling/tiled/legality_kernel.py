"""Whether a plan is legal, in machine code.

A fault is (kind, a, b, c); what it says in words is the evaluator's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.plan_kernel import Graph, Holds, Moves, Network, Tasks, holding
from tilewright.foundation.compiled import compiled

OK, ENGINE, STEPS, BUSY, HELD, UNSUPPLIED, SOURCE, TARGET, STORED, MISSING, EARLY, OUTPUT, BUFFER, ROUTE = (
    range(14)
)


@compiled
def check(
    graph: Graph, tasks: Tasks, moves: Moves, holds: Holds, net: Network, steps: int
) -> Any:  # pragma: no cover
    """Whether a plan is legal, and what the evaluation of a legal one needs.

    Parameters
    ----------
    graph : tasks and what they read
    tasks, moves, holds : the plan
    net : routes and buffers of the machine
    steps : of the plan

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
    # residencies are sorted by block, engine and start, so that overlaps are between neighbours;
    # their bytes enter as differences, and sums over the steps give what each buffer holds
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
        if holding(holds, t, tasks.engine[t], tasks.first[t], tasks.last[t]) < 0:
            return (UNSUPPLIED, t, 0, 0), known
    # a copy is there once all its bytes have come, a result in DRAM once all are written
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
        i = holding(holds, b, target, moves.first[j], moves.last[j])
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
    # sources, once every arrival is known: a part of a result may be sent from a copy of the whole
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
        i = holding(holds, b, source, moves.first[j], moves.last[j])
        if (i < 0 or ready[i] >= moves.first[j]) and parent >= 0 and parent != b:
            i = holding(holds, parent, source, moves.first[j], moves.last[j])
        if i < 0 or ready[i] >= moves.first[j]:
            return (SOURCE, j, i, 0), known
    for t in range(count):
        e, first, last = tasks.engine[t], tasks.first[t], tasks.last[t]
        for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
            b = graph.reads[k]
            parent = graph.block_parent[b]
            if parent >= 0 and tasks.last[parent] >= first:
                return (EARLY, t, parent, b), known
            i = holding(holds, b, e, first, last)
            # the whole serves as well as its part, where the part is missing or later
            if (i < 0 or ready[i] > first) and parent >= 0 and parent != b:
                whole = holding(holds, parent, e, first, last)
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
