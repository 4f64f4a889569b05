"""What decided movements are as a plan, and what that costs, in machine code.

A search that changes one movement after the other asks for nothing but the cost, so that the plan's columns,
its legality and its times are computed in one call; rules and times are those of the evaluator's kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.legality_kernel import OK, check
from tilewright.formulation.scheduling.tiled.ordering_kernel import transfer_order
from tilewright.formulation.scheduling.tiled.plan_kernel import (
    Graph,
    Holds,
    Moves,
    Network,
    Tasks,
    multicasts,
)
from tilewright.formulation.scheduling.tiled.timing_kernel import ALL, TOTALS, run
from tilewright.foundation.arrays import Bools, Int32s, Int64s
from tilewright.foundation.compiled import compiled

LEGAL, ILLEGAL, UNSORTED = range(3)
"""Verdicts; of what is not sorted here, as its numbers are too large, nothing is known."""


class Needs(NamedTuple):
    """What an order needs where and when, in order of block, engine and step.

    Parameters
    ----------
    block, engine, step, last : of each use: what must be there, and in which steps
    made : per use, whether it is the task that makes the block
    """

    block: Int64s
    engine: Int64s
    step: Int64s
    last: Int64s
    made: Bools


class Decisions(NamedTuple):
    """How uses get their blocks, and results leave.

    Parameters
    ----------
    loaded : per use, whether a copy is loaded for it
    source, first, last : per use, where that comes from and in which steps
    port, stored_from : per task, where its result goes if it is stored, and from where
    stored, stored_last : per task, in which steps
    """

    loaded: Bools
    source: Int64s
    first: Int64s
    last: Int64s
    port: Int64s
    stored_from: Int64s
    stored: Int64s
    stored_last: Int64s


@compiled
def stored_results(graph: Graph, needs: Needs, decided: Decisions, engines: int) -> Any:  # pragma: no cover
    """Per task, whether its result is stored: outputs, and those of which something is loaded from DRAM.

    Parameters
    ----------
    graph : tasks and what they read
    needs, decided : of an order
    engines : of the machine; sources from there on are DRAM ports
    """
    kept = graph.is_output.copy()
    for use in range(len(needs.block)):
        if decided.loaded[use] and decided.source[use] >= engines:
            parent = graph.block_parent[needs.block[use]]
            if parent >= 0:
                kept[parent] = True
    return kept


@compiled(inline=True)
def _transfers(count: int) -> Any:  # pragma: no cover
    """Room for so many transfers: block, source, target, bytes, first and last step."""
    block = np.empty(count, dtype=np.int32)
    source = np.empty(count, dtype=np.int32)
    target = np.empty(count, dtype=np.int32)
    size = np.empty(count, dtype=np.int64)
    first = np.empty(count, dtype=np.int32)
    last = np.empty(count, dtype=np.int32)
    return block, source, target, size, first, last


@compiled(inline=True)
def _holder(
    of_block: Int64s, engine: Int32s, ready: Int64s, block: int, at: int, first: int
) -> Any:  # pragma: no cover
    """The copy of a block on an engine that was there last before a step, or -1.

    Parameters
    ----------
    of_block, engine, ready : where each block's copies begin; of each copy, engine and last step of arrival
    block, at, first : what is held, by which engine, before which step
    """
    last = -1
    for i in range(of_block[block], of_block[block + 1]):
        if engine[i] == at and ready[i] < first:
            last = i
    return last


@compiled
def columns_of(graph: Graph, needs: Needs, decided: Decisions, engines: int) -> Any:  # pragma: no cover
    """The transfers and residencies of decided movements, legal or not.

    A copy stays until its last use, the last transfer that reads it, and its write-back.

    Parameters
    ----------
    graph : tasks and what they read
    needs, decided : of an order
    engines : of the machine; places from there on are DRAM ports

    Returns
    -------
    sent : whether every source had at some time before what it sends; otherwise the rest says nothing
    moves : block, source, target, bytes, first and last step of each transfer, loads before write-backs
    holds : residencies, in order of block, engine and use
    """
    uses, blocks, tasks = len(needs.block), len(graph.block_bytes), len(graph.is_output)
    opened, loads = 0, 0
    for use in range(uses):
        opened += decided.loaded[use] or needs.made[use]
        loads += decided.loaded[use]
    held = np.empty(opened, dtype=np.int32)
    engine = np.empty(opened, dtype=np.int32)
    start = np.empty(opened, dtype=np.int32)
    end = np.empty(opened, dtype=np.int32)
    ready = np.empty(opened, dtype=np.int64)
    of_block = np.zeros(blocks + 1, dtype=np.int64)
    i = -1
    for use in range(uses):
        if decided.loaded[use] or needs.made[use]:
            i += 1
            held[i], engine[i] = needs.block[use], needs.engine[use]
            start[i] = needs.step[use] if needs.made[use] else decided.first[use]
            ready[i] = needs.last[use] if needs.made[use] else decided.last[use]
            of_block[held[i] + 1] += 1
        end[i] = needs.last[use]
    for b in range(blocks):
        of_block[b + 1] += of_block[b]
    kept = stored_results(graph, needs, decided, engines)
    count = loads
    for t in range(tasks):
        count += kept[t]
    block, source, target, size, first, last = _transfers(count)
    j = 0
    for use in range(uses):
        if decided.loaded[use]:
            block[j], source[j], target[j] = needs.block[use], decided.source[use], needs.engine[use]
            first[j], last[j] = decided.first[use], decided.last[use]
            j += 1
    for t in range(tasks):
        if kept[t]:
            block[j], source[j], target[j] = t, decided.stored_from[t], decided.port[t]
            first[j], last[j] = decided.stored[t], decided.stored_last[t]
            j += 1
    sent = True
    used = end.copy()
    for j in range(count):
        size[j] = graph.block_bytes[block[j]]
        if source[j] < engines:
            own = _holder(of_block, engine, ready, block[j], source[j], first[j])
            parent, whole = graph.block_parent[block[j]], -1
            if parent >= 0:
                whole = _holder(of_block, engine, ready, parent, source[j], first[j])
            holder = own if own >= 0 and (used[own] >= last[j] or whole < 0) else whole
            if holder < 0:
                sent = False
            else:
                end[holder] = max(end[holder], last[j])
    return sent, (block, source, target, size, first, last), Holds(held, engine, start, end, of_block)


@compiled
def judged(
    graph: Graph, tasks: Tasks, needs: Needs, decided: Decisions, net: Network, steps: int
) -> Any:  # pragma: no cover
    """Whether the plan of decided movements is legal, its end in cycles, and what it transfers.

    Parameters
    ----------
    graph : tasks and what they read
    tasks : of the order
    needs, decided : of the order
    net : routes, rates and buffers of the machine
    steps : of the plan

    Returns
    -------
    verdict : `LEGAL`, `ILLEGAL` or `UNSORTED`; only of a legal plan the rest says something
    end, totals : as of `timing_kernel.run`
    """
    nothing = np.zeros(TOTALS, dtype=np.float64)
    sent, rows, holds = columns_of(graph, needs, decided, net.engines)
    if not sent:
        return ILLEGAL, 0.0, nothing
    order = transfer_order(rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], net.engines)
    count = len(rows[0])
    if len(order) < count:
        return UNSORTED, 0.0, nothing
    block, source, target, size, first, last = _transfers(count)
    for k in range(count):
        j = order[k]
        block[k], source[k], target[k] = rows[0][j], rows[1][j], rows[2][j]
        size[k], first[k], last[k] = rows[3][j], rows[4][j], rows[5][j]
        if size[k] < 1:
            return ILLEGAL, 0.0, nothing
    group = multicasts(block, source, target, size, first, last, net.engines)
    moves = Moves(block, source, target, size, first, last, group)
    fault, known = check(graph, tasks, moves, holds, net, steps)
    if fault[0] != OK:
        return ILLEGAL, 0.0, nothing
    ready, _local, served, supplied, awaited, waiting, _peak = known
    begin, _loads, totals, _busiest, _waits, _late = run(
        graph, tasks, moves, ready, served, supplied, awaited, waiting, net, steps
    )
    return LEGAL, begin[steps, ALL], totals
