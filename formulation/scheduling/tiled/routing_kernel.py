"""Routing and residency in machine code: one pass over the steps, buffers as linked lists of copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.copies_kernel import (
    NEAR,
    TABLE,
    Copies,
    Lists,
    Stays,
    link,
    slot_of,
    unlink,
)
from tilewright.formulation.scheduling.tiled.eviction_kernel import FAR, Rules, make_way
from tilewright.formulation.scheduling.tiled.plan_kernel import Graph, Network
from tilewright.formulation.scheduling.tiled.ports_kernel import (
    BLOCK,
    FIRST,
    LAST,
    SOURCE,
    TARGET,
    Ports,
    nearest_port,
    send_results,
)
from tilewright.formulation.scheduling.tiled.uses_kernel import NONE, Order
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled

HALTED = -2


@compiled
def complete(
    graph: Graph, order: Order, net: Network, hops: Int32s, steps: int, rules: Rules, halt: Any
) -> Any:  # pragma: no cover
    """Transfers, residencies and the plan's step of every logical step.

    Parameters
    ----------
    halt : a flag, see `halting`

    Returns
    -------
    fault : -1, the task that fits no buffer, or -2 where the flag was set
    at : the plan's step of every task
    total : steps of the plan
    moves : rows of (block, source, target, first, last)
    block, engine, start, end : of every residency
    """
    count, blocks, engines = len(order.engine), len(graph.block_bytes), net.engines
    most = len(graph.reads) + count + 1
    at = np.zeros(count, dtype=np.int32)
    moves = np.empty((2 * most, 5), dtype=np.int32)
    n_moves = 0
    block = np.empty(most, dtype=np.int32)
    where = np.empty(most, dtype=np.int32)
    start = np.empty(most, dtype=np.int32)
    is_open = np.empty(most, dtype=np.bool_)
    ready = np.empty(most, dtype=np.int32)
    coming = np.empty(most, dtype=np.int32)
    home = np.empty(most, dtype=np.bool_)
    pinned = np.empty(most, dtype=np.int64)
    after = np.empty(most, dtype=np.int32)
    before = np.empty(most, dtype=np.int32)
    down = np.empty(most, dtype=np.int32)
    up = np.empty(most, dtype=np.int32)
    first_on = np.full(engines, NONE, dtype=np.int32)
    first_of = np.full(blocks, NONE, dtype=np.int32)
    copies = Copies(block, where, start, is_open, ready, coming, home, pinned)
    lists = Lists(after, before, down, up, first_on, first_of)
    left_block = np.empty(most, dtype=np.int32)
    left_where = np.empty(most, dtype=np.int32)
    left_start = np.empty(most, dtype=np.int32)
    left_end = np.empty(most, dtype=np.int32)
    spare = np.empty(most, dtype=np.int32)
    numbers = np.zeros(3, dtype=np.int64)
    none = left_block[:0]
    latest = np.full(blocks, -1, dtype=np.int32)
    stays = Stays(left_block, left_where, left_start, left_end, latest, spare, numbers)
    held = np.zeros(engines, dtype=np.int64)
    depth = rules.ahead + 1
    past = np.zeros((engines, depth), dtype=np.int64)
    stored = np.full(count, FAR, dtype=np.int32)
    pointer = order.use_starts[:-1].copy()
    miss_block, miss_engine = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int32)
    miss_again, miss_source = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    ranked, leads = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    need = np.zeros(engines, dtype=np.int64)
    entries = NEAR
    while entries < min(TABLE, blocks * engines):
        entries *= 2
    gone = np.full(entries, -1, dtype=np.int32)
    port_load = np.zeros(max(1, net.places - engines), dtype=np.float64)
    ports = Ports(net, hops, port_load)
    leaving = np.empty(count + 1, dtype=np.int32)
    n_leaving = 0
    p = 0
    mark = np.int64(0)
    for s in range(steps):
        if halt[0] != 0:
            return HALTED, at, p, moves[:0], none, none, none, none
        # attempts at this step: each one that fails for want of capacity puts an idle step before it
        tries = 0
        while True:
            tries += 1
            mark += 1
            port_load[:] = 0.0
            # results that leave the network go in the step after they were made
            for q in range(n_leaving):
                pinned[leaving[q]] = mark
            # what is missing, and from where it could come
            n_miss = 0
            short = False
            need[:] = 0
            for i in range(order.starts[s], order.starts[s + 1]):
                t = order.tasks[i]
                e = order.engine[t]
                need[e] += graph.block_bytes[t]
                own = n_miss
                for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
                    b = graph.reads[k]
                    parent = graph.block_parent[b]
                    through = parent >= 0 and order.outside[parent]
                    spot = NONE
                    node = first_of[b]
                    while node != NONE:
                        if where[node] == e and not (through and home[node]):
                            spot = node
                            break
                        node = down[node]
                    # a copy of the whole result serves a part of it too
                    if spot == NONE and parent >= 0 and parent != b:
                        node = first_of[parent]
                        while node != NONE:
                            if where[node] == e and not (through and home[node]):
                                spot = node
                                break
                            node = down[node]
                    if spot != NONE:
                        pinned[spot] = mark
                        if not home[spot]:
                            coming[spot] = order.again[k]
                        continue
                    # a task that reads a block twice fetches it once
                    twice = False
                    for m in range(own, n_miss):
                        if miss_block[m] == b:
                            twice = True
                    if twice:
                        continue
                    if n_miss == len(miss_block):
                        miss_block, miss_engine = _doubled(miss_block), _doubled(miss_engine)
                        miss_again, miss_source = _doubled(miss_again), _doubled(miss_source)
                    miss_block[n_miss], miss_engine[n_miss], miss_again[n_miss] = b, e, order.again[k]
                    # the nearest copy that is there before this step, of the block or of its whole
                    best, distance = NONE, FAR
                    for turn in range(2):
                        if through or (turn == 1 and (parent < 0 or parent == b)):
                            break
                        node = first_of[b] if turn == 0 else first_of[parent]
                        while node != NONE:
                            if ready[node] < p and hops[where[node] * net.places + e] < distance:
                                best, distance = node, hops[where[node] * net.places + e]
                            node = down[node]
                    miss_source[n_miss] = best
                    if best != NONE:
                        pinned[best] = mark
                    if through and stored[parent] >= p:
                        short = True
                    need[e] += graph.block_bytes[b]
                    n_miss += 1
            # what lies in the way leaves, as far as it may
            for i in range(order.starts[s], order.starts[s + 1]):
                e = order.engine[order.tasks[i]]
                if need[e] > net.buffer:
                    return order.tasks[i], at, p, moves[:0], none, none, none, none
                # results of the step before may be on their way yet; write-backs use the four steps behind
                n_moves += make_way(
                    e=e,
                    s=s,
                    need=need[e],
                    buffer=net.buffer,
                    latest=p - 2,
                    earliest=p - 4,
                    last=p - 1,
                    mark=mark,
                    moves=moves[n_moves:],
                    copies=copies,
                    lists=lists,
                    stays=stays,
                    stored=stored,
                    held=held,
                    gone=gone,
                    graph=graph,
                    rules=rules,
                    ports=ports,
                )
                short = short or held[e] + need[e] > net.buffer
            if not short:
                break
            # an idle step: write back what stands in the way
            if tries > 4 * engines + 8:
                return order.tasks[order.starts[s]], at, p, moves[:0], none, none, none, none
            n_leaving = send_results(
                p, leaving[:n_leaving], moves[n_moves:], block, where, stored, ports, graph.block_bytes
            )
            n_moves += n_leaving
            mark += 1
            for i in range(order.starts[s], order.starts[s + 1]):
                t = order.tasks[i]
                e = order.engine[t]
                for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
                    node = first_on[e]
                    while node != NONE:
                        # a whole result of which only a part is read may go, and the part come back
                        if block[node] == graph.reads[k]:
                            pinned[node] = mark
                        node = after[node]
            for e in range(engines):
                past[e, p % depth] = held[e]
            for i in range(order.starts[s], order.starts[s + 1]):
                e = order.engine[order.tasks[i]]
                n_moves += make_way(
                    e=e,
                    s=s,
                    need=need[e],
                    buffer=net.buffer,
                    latest=FAR,
                    earliest=p,
                    last=p,
                    mark=mark,
                    moves=moves[n_moves:],
                    copies=copies,
                    lists=lists,
                    stays=stays,
                    stored=stored,
                    held=held,
                    gone=gone,
                    graph=graph,
                    rules=rules,
                    ports=ports,
                )
            for q in range(n_leaving):
                n_free = leaving[q]
                if coming[n_free] == NONE and is_open[n_free]:
                    held[where[n_free]] -= graph.block_bytes[block[n_free]]
                    unlink(n_free, p, count, copies, gone, lists, stays)
            n_leaving = 0
            p += 1
        # results made in the step before leave now
        sent = send_results(
            p, leaving[:n_leaving], moves[n_moves:], block, where, stored, ports, graph.block_bytes
        )
        n_moves += sent
        for q in range(n_leaving):
            node = leaving[q]
            if coming[node] == NONE:
                coming[node] = s - 1
        n_leaving = 0
        # fetch what is missing, block by block, so that engines that need it together get it together
        if len(ranked) < n_miss:
            ranked = np.empty(len(miss_block), dtype=np.int64)
            leads = np.empty(len(miss_block), dtype=np.int64)
        _rank(miss_block[:n_miss], ranked)
        i = 0
        while i < n_miss:
            j = i
            b = miss_block[ranked[i]]
            size = graph.block_bytes[b]
            parent = graph.block_parent[b]
            # one lead for all engines that can receive the block early, so that it is one multicast
            ahead = rules.ahead
            early = 0
            while j < n_miss and miss_block[ranked[j]] == b:
                e, source = miss_engine[ranked[j]], miss_source[ranked[j]]
                since = _known_since(source, parent, ready, stored)
                if stays.latest[b] > since:
                    since = max(since, gone[slot_of(b, e, engines, entries)])
                k = _lead(past, e, p, depth, rules.ahead, size, net.buffer, since)
                leads[j] = k
                if k > 0:
                    ahead = min(ahead, k)
                    early += 1
                j += 1
            port_early, port_late = NONE, NONE
            for q in range(i, j):
                m = ranked[q]
                e, source = miss_engine[m], miss_source[m]
                k = ahead if early > 0 and leads[q] >= ahead else 0
                if source != NONE:
                    place = where[source]
                elif k > 0:
                    if port_early == NONE:
                        port_early = nearest_port(ports, e, size, True)
                    place = port_early
                else:
                    if port_late == NONE:
                        port_late = nearest_port(ports, e, size, True)
                    place = port_late
                begin, last = (p - k, p - 1) if k > 0 else (p, p)
                for r in range(begin, p):
                    past[e, r % depth] += size
                moves[n_moves, BLOCK], moves[n_moves, SOURCE], moves[n_moves, TARGET] = b, place, e
                moves[n_moves, FIRST], moves[n_moves, LAST] = begin, last
                n_moves += 1
                node = link(e, b, copies, lists, stays)
                start[node], ready[node], coming[node] = begin, last, miss_again[m]
                held[e] += size
            i = j
        for i in range(order.starts[s], order.starts[s + 1]):
            t = order.tasks[i]
            e = order.engine[t]
            at[t] = p
            node = link(e, t, copies, lists, stays)
            start[node], ready[node], home[node] = p, p, True
            coming[node] = (
                order.uses[order.use_starts[t]] if order.use_starts[t + 1] > order.use_starts[t] else NONE
            )
            held[e] += graph.block_bytes[t]
        # move on: next uses, and what nobody needs any more
        for e in range(engines):
            past[e, p % depth] = held[e]
            node = first_on[e]
            while node != NONE:
                following = after[node]
                b = block[node]
                if home[node]:
                    while pointer[b] < order.use_starts[b + 1] and order.uses[pointer[b]] <= s:
                        pointer[b] += 1
                    coming[node] = order.uses[pointer[b]] if pointer[b] < order.use_starts[b + 1] else NONE
                    if order.outside[b]:
                        coming[node] = NONE
                if home[node] and (graph.is_output[b] or order.outside[b]) and ready[node] == p:
                    leaving[n_leaving] = node
                    n_leaving += 1
                elif coming[node] == NONE or coming[node] <= s:
                    held[e] -= graph.block_bytes[b]
                    unlink(node, p, count, copies, gone, lists, stays)
                node = following
        p += 1
    port_load[:] = 0.0
    if n_leaving > 0:
        n_moves += send_results(
            p, leaving[:n_leaving], moves[n_moves:], block, where, stored, ports, graph.block_bytes
        )
        p += 1
    for e in range(engines):
        while first_on[e] != NONE:
            unlink(first_on[e], p - 1, count, copies, gone, lists, stays)
    ended = numbers[0]
    return (
        NONE,
        at,
        p,
        moves[:n_moves],
        left_block[:ended],
        left_where[:ended],
        left_start[:ended],
        left_end[:ended],
    )


@compiled
def _rank(keys: Int64s, ranked: Int64s) -> None:  # pragma: no cover
    """Write places in the order of their keys; what sorting needs is given back at once."""
    places = np.argsort(keys)
    ranked[: len(keys)] = places


@compiled
def _doubled(old: Any) -> Any:  # pragma: no cover
    """The same entries, and as many more."""
    new = np.empty(2 * len(old), dtype=old.dtype)
    new[: len(old)] = old
    return new


@compiled(inline=True)
def _known_since(source: int, parent: int, ready: Int32s, stored: Int32s) -> Any:  # pragma: no cover
    """The last step in which data was not yet where it comes from: the copy, or DRAM; -1 for inputs."""
    if source != NONE:
        return ready[source]
    return stored[parent] if parent >= 0 else np.int32(NONE)


@compiled(inline=True)
def _lead(
    past: Any, e: int, p: int, depth: int, ahead: int, size: int, buffer: int, since: int
) -> Any:  # pragma: no cover
    """For how many steps before ``p``, all after ``since``, an engine has capacity for so many bytes more."""
    k, most = 0, min(ahead, p - 1 - since)
    while k < most and past[e, (p - 1 - k) % depth] + size <= buffer:
        k += 1
    return k
