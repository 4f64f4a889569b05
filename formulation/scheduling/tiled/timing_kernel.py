"""The times of a legal plan's steps, and what it transfers, in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort
from tilewright.formulation.scheduling.tiled.plan_kernel import Graph, Moves, Network, Tasks
from tilewright.foundation.arrays import Bools, Int32s, Int64s
from tilewright.foundation.compiled import compiled

DRAM_READ, DRAM_WRITTEN, HOP_BYTES, BUFFERS_READ, BUFFERS_WRITTEN = range(5)
"""Places in the totals of a plan, bytes; those of routers count once per link."""

TOTALS = 5
"""How many these are."""

ALL, UNLINKED, COMPUTE = range(3)
"""Columns of times: with everything, without the network's links, and without any transfer."""


@compiled
def run(
    graph: Graph,
    tasks: Tasks,
    moves: Moves,
    ready: Int32s,
    served: Int32s,
    supplied: Int64s,
    late_hold: Bools,
    waiting: Bools,
    net: Network,
    steps: int,
) -> Any:  # pragma: no cover
    """The lengths of a legal plan's steps, and what it transfers.

    Parameters
    ----------
    graph : tasks and what they read
    tasks, moves : the plan
    ready, served, supplied : as `check` in `legality_kernel` returns them
    late_hold : per residency, whether somebody reads it in the step in which it arrives
    waiting : per task, whether it reads such a one
    net : routes and rates of the machine
    steps : of the plan

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
    totals = np.zeros(TOTALS, dtype=np.float64)
    busiest = np.full(steps, -2, dtype=np.int32)
    waits = np.zeros(steps, dtype=np.float64)
    longest = 1
    for j in range(len(moves.block)):
        longest = max(longest, moves.last[j] - moves.first[j] + 1)
    # loads of the steps that open transfers reach: a ring, since few transfers take many steps
    ring = np.zeros((longest, links), dtype=np.float64)
    ring_dram = np.zeros(longest, dtype=np.float64)
    stamp = np.full(links, -1, dtype=np.int64)
    # transfers whose data somebody reads in the very step in which the last of it arrives
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
            # a multicast reads its source, and passes DRAM, once for all targets
            new = j == 0 or moves.group[j] != moves.group[j - 1]
            if new:
                if moves.source[j] < net.engines:
                    totals[BUFFERS_READ] += moves.bytes[j]
                else:
                    totals[DRAM_READ] += moves.bytes[j]
                    for k in range(span):
                        ring_dram[(slot + k) % longest] += share
            if moves.target[j] >= net.engines:
                if new:
                    totals[DRAM_WRITTEN] += moves.bytes[j]
                    for k in range(span):
                        ring_dram[(slot + k) % longest] += share
            else:
                totals[BUFFERS_WRITTEN] += moves.bytes[j]
            route = moves.source[j] * net.places + moves.target[j]
            for q in range(net.starts[route], net.starts[route + 1]):
                link = net.links[q]
                # routes of one multicast form a tree: each link carries the bytes once
                if stamp[link] != moves.group[j]:
                    stamp[link] = moves.group[j]
                    loads[link] += moves.bytes[j]
                    if link >= net.routers:
                        totals[HOP_BYTES] += moves.bytes[j]
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
                arrival[i, ALL] = max(arrival[i, ALL], max(wait, memory) + hops)
                arrival[i, UNLINKED] = max(arrival[i, UNLINKED], memory)
        for q in range(first_starts[step], first_starts[step + 1]):
            t = starting[q]
            if not waiting[t]:
                continue
            for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
                i = served[k]
                if late_hold[i] and ready[i] == step:
                    late[t, ALL] = max(late[t, ALL], arrival[i, ALL])
                    late[t, UNLINKED] = max(late[t, UNLINKED], arrival[i, UNLINKED])
        # the step lasts as long as its busiest link or DRAM, and as the tasks that end in it
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
        begin[step + 1, ALL] = begin[step, ALL] + wait
        begin[step + 1, UNLINKED] = begin[step, UNLINKED] + memory
        begin[step + 1, COMPUTE] = begin[step, COMPUTE]
        for q in range(end_starts[step], end_starts[step + 1]):
            t = ending[q]
            first = tasks.first[t]
            end = begin[first, ALL] + late[t, ALL] + graph.cycles[t]
            begin[step + 1, ALL] = max(begin[step + 1, ALL], end)
            end = begin[first, UNLINKED] + late[t, UNLINKED] + graph.cycles[t]
            begin[step + 1, UNLINKED] = max(begin[step + 1, UNLINKED], end)
            begin[step + 1, COMPUTE] = max(begin[step + 1, COMPUTE], begin[first, COMPUTE] + graph.cycles[t])
    return begin, loads, totals, busiest, waits, late


@compiled
def reuse(
    graph: Graph, moves: Moves, served: Int32s, supplied: Int64s, holdings: int, engines: int
) -> Any:  # pragma: no cover
    """Of the bytes of results that are read, the part that is served by copies that never left the chip.

    Parameters
    ----------
    graph : tasks and what they read
    moves : the plan's transfers
    served, supplied : as `check` in `legality_kernel` returns them
    holdings : number of residencies
    engines : of the machine; sources from there on are DRAM ports
    """
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
