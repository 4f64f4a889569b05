"""Tasks of a plan that run through several steps, so that short tasks of these steps do not wait for them.

Transfer routing and residency give every task one step, which ends for all engines together.  Where children
of an S cut differ in length, a long task may continue while others begin: its last step moves back as long as
its engine is free, no task needs its result, and what it reads may stay resident.  Its result is written back
later, if no task fetches it before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan, make_residency, make_transfers
from tilewright.foundation.arrays import Int32s, Int64s


def spanned(dag: AtomicDag, plan: Plan, engines: int, wanted: Int64s) -> Plan:
    """The plan with tasks that last longer; its buffers may overflow.

    Parameters
    ----------
    wanted : per task, the last step in which it should run
    """
    first, moving, held = plan.first.astype(np.int64), plan.transfers, plan.residency
    last = np.maximum(first, wanted)
    order = np.lexsort((first, plan.engine))
    same = plan.engine[order][1:] == plan.engine[order][:-1]
    last[order[:-1]] = np.where(same, np.minimum(last[order[:-1]], first[order[1:]] - 1), last[order[:-1]])

    reader = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    parent = dag.block_parent[dag.reads]
    made = parent >= 0
    np.minimum.at(last, parent[made], first[reader[made]] - 1)
    source = _parents(dag, moving.block)
    carried = source >= 0
    back = carried & (moving.target >= engines)
    onward = carried & ~back
    latest = _latest(dag, plan, engines, reader)
    np.minimum.at(last, source[onward], latest[onward] - 1)
    fetched = np.full(dag.tasks, plan.steps, dtype=np.int64)
    again = onward & (moving.source >= engines)
    np.minimum.at(fetched, source[again], moving.first[again].astype(np.int64))
    np.minimum.at(last, source[back], fetched[source[back]] - 2)

    spot = held.block.astype(np.int64) * engines + held.engine
    until = np.full(len(held), plan.steps - 1, dtype=np.int64)
    until[:-1] = np.where(spot[1:] == spot[:-1], held.start[1:].astype(np.int64) - 1, until[:-1])
    place = spot * (plan.steps + 1) + held.start
    task = np.concatenate([reader, np.arange(dag.tasks)])
    block = np.concatenate([dag.reads, np.arange(dag.tasks)]).astype(np.int64)
    where = (block * engines + plan.engine[task]) * (plan.steps + 1) + first[task]
    node = np.searchsorted(place, where, side="right") - 1
    whole = dag.block_parent[block]
    apart = (spot[node] != where // (plan.steps + 1)) & (whole >= 0)
    where[apart] = (whole[apart] * engines + plan.engine[task][apart]) * (plan.steps + 1) + first[task][apart]
    node = np.searchsorted(place, where, side="right") - 1
    until[node[len(reader) + source[back]]] -= 1  # a result stays a step longer, to be written back
    np.minimum.at(last, task, until[node])
    last = np.maximum(last, first)

    end = held.end.astype(np.int64)
    np.maximum.at(end, node, last[task])
    begin = moving.first.astype(np.int64)
    begin[carried] = np.maximum(begin[carried], last[source[carried]] + 1)
    arrival = np.maximum(moving.last.astype(np.int64), begin)
    np.maximum.at(end, node[len(reader) + source[back]], arrival[back])
    block, sender, target = (
        column.astype(np.int64) for column in (moving.block, moving.source, moving.target)
    )
    transfers = make_transfers(engines, block, sender, target, moving.bytes, begin, arrival)
    kept, on, since = (column.astype(np.int64) for column in (held.block, held.engine, held.start))
    residency = make_residency(kept, on, since, end)
    return replace(plan, last=last.astype(np.int32), transfers=transfers, residency=residency)


def _latest(dag: AtomicDag, plan: Plan, engines: int, reader: Int64s) -> Int64s:
    """Per transfer, the last step in which its data may still be under way.

    That is the step of the next task that reads it where it goes to, or the one before it is sent on.
    """
    moving, wide = plan.transfers, plan.steps + 1
    reads = (dag.reads.astype(np.int64) * engines + plan.engine[reader]) * wide + plan.first[reader]
    inside = (moving.source < engines) & (moving.first > 0)
    sent = moving.block[inside].astype(np.int64) * engines + moving.source[inside]
    uses = np.sort(np.concatenate([reads, sent * wide + moving.first[inside] - 1]))
    spot = moving.block.astype(np.int64) * engines + np.minimum(moving.target, engines - 1)
    at = np.searchsorted(uses, spot * wide + moving.last, side="left")
    next_use = uses[np.minimum(at, len(uses) - 1)]
    known = (at < len(uses)) & (next_use // wide == spot) & (moving.target < engines)
    latest: Int64s = np.where(known, next_use % wide, moving.last.astype(np.int64))
    return latest


def _parents(dag: AtomicDag, block: Int32s) -> Int64s:
    """Per block, the task whose result it is (part of), or -1."""
    parents: Int64s = dag.block_parent[block].astype(np.int64)
    return parents
