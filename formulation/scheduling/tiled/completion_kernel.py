"""The machine code of completion: one pass over the steps, buffers as linked lists of copies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tilewright.formulation.scheduling.tiled.kernel import Graph, Network

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NONE = -1
HALTED = -2
FAR = 1 << 30
TABLE = 1 << 18


class Order(NamedTuple):
    """Tasks by logical step, and when data is read again.

    Parameters
    ----------
    engine, step : per task
    starts, tasks : tasks of step ``s`` are ``tasks[starts[s] : starts[s + 1]]``
    again : per read, the next step in which the same engine reads the same block, -1 if none
    use_starts, uses : per task, ascending steps in which its result or parts of it are read
    outside : per task, whether its result is written back at once and read from DRAM only
    """

    engine: Ints
    step: Ints
    starts: Longs
    tasks: Longs
    again: Ints
    use_starts: Longs
    uses: Ints
    outside: Flags


class Rules(NamedTuple):
    """The rules by which completion decides.

    Parameters
    ----------
    furthest : whether the victim is the copy whose next use is furthest, otherwise the one with the largest
        product of bytes and steps to its next use (algorithm 3)
    ahead : steps before its use in which data may arrive
    """

    furthest: bool
    ahead: int


class Lists(NamedTuple):
    """Copies of blocks in two linked lists each: of their engine, and of their block.

    Parameters
    ----------
    after, before : per copy, its neighbours on the same engine
    down, up : per copy, its neighbours of the same block
    first_on : per engine, its first copy
    first_of : per block, its first copy
    """

    after: Ints
    before: Ints
    down: Ints
    up: Ints
    first_on: Ints
    first_of: Ints


class Ports(NamedTuple):
    """The way to DRAM: routes, their hops, and the bytes that this step has put on every port so far."""

    net: Network
    hops: Ints
    load: Floats


@njit(cache=True, nogil=True)
def uses_of(
    graph: Graph, engine: Ints, step: Ints, starts: Longs, tasks: Longs, engines: int
) -> Any:  # pragma: no cover
    """``again``, ``use_starts`` and ``uses`` of `Order`."""
    blocks, count = len(graph.block_bytes), len(engine)
    per_block = np.zeros(blocks + 1, dtype=np.int64)
    use_starts = np.zeros(count + 1, dtype=np.int64)
    for k in range(len(graph.reads)):
        b = graph.reads[k]
        per_block[b + 1] += 1
        if graph.block_parent[b] >= 0:
            use_starts[graph.block_parent[b] + 1] += 1
    for b in range(blocks):
        per_block[b + 1] += per_block[b]
    for t in range(count):
        use_starts[t + 1] += use_starts[t]
    at_block, at_use = per_block[:-1].copy(), use_starts[:-1].copy()
    listed = np.empty(len(graph.reads), dtype=np.int64)
    reader = np.empty(len(graph.reads), dtype=np.int32)
    uses = np.empty(use_starts[count], dtype=np.int32)
    for i in range(len(tasks)):
        t = tasks[i]
        for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
            b = graph.reads[k]
            reader[k] = t
            listed[at_block[b]] = k
            at_block[b] += 1
            parent = graph.block_parent[b]
            if parent >= 0:
                uses[at_use[parent]] = step[t]
                at_use[parent] += 1
    again = np.full(len(graph.reads), NONE, dtype=np.int32)
    seen = np.zeros(engines, dtype=np.int32)
    stamp = np.full(engines, -1, dtype=np.int64)
    for b in range(blocks):
        for i in range(per_block[b + 1] - 1, per_block[b] - 1, -1):
            k = listed[i]
            t = reader[k]
            e = engine[t]
            if stamp[e] == b and seen[e] > step[t]:
                again[k] = seen[e]
            stamp[e] = b
            seen[e] = step[t]
    return again, use_starts, uses


@njit(cache=True, nogil=True)
def complete(
    graph: Graph, order: Order, net: Network, hops: Ints, steps: int, rules: Rules, halt: Any
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
    moves : rows of (block, source, target, first, last), their number
    holds : rows of (block, engine, start, end), their number
    """
    count, blocks, engines = len(order.engine), len(graph.block_bytes), net.engines
    most = len(graph.reads) + count + 1
    at = np.zeros(count, dtype=np.int32)
    moves = np.empty((2 * most, 5), dtype=np.int32)
    n_moves = 0
    block = np.empty(most, dtype=np.int32)
    where = np.empty(most, dtype=np.int32)
    start = np.empty(most, dtype=np.int32)
    end = np.full(most, NONE, dtype=np.int32)
    ready = np.empty(most, dtype=np.int32)
    coming = np.empty(most, dtype=np.int32)
    home = np.zeros(most, dtype=np.bool_)
    pinned = np.full(most, -1, dtype=np.int64)
    after = np.full(most, NONE, dtype=np.int32)
    before = np.full(most, NONE, dtype=np.int32)
    down = np.full(most, NONE, dtype=np.int32)
    up = np.full(most, NONE, dtype=np.int32)
    first_on = np.full(engines, NONE, dtype=np.int32)
    first_of = np.full(blocks, NONE, dtype=np.int32)
    lists = Lists(after, before, down, up, first_on, first_of)
    nodes = 0
    held = np.zeros(engines, dtype=np.int64)
    depth = rules.ahead + 1
    past = np.zeros((engines, depth), dtype=np.int64)
    stored = np.full(count, FAR, dtype=np.int32)
    pointer = order.use_starts[:-1].copy()
    miss_block = np.empty(1024, dtype=np.int64)
    miss_engine = np.empty(1024, dtype=np.int32)
    miss_again = np.empty(1024, dtype=np.int32)
    miss_source = np.empty(1024, dtype=np.int32)
    need = np.zeros(engines, dtype=np.int64)
    gone = np.full(TABLE, -1, dtype=np.int32)
    port_load = np.zeros(max(1, net.places - engines), dtype=np.float64)
    ports = Ports(net, hops, port_load)
    leaving = np.empty(count + 1, dtype=np.int32)
    n_leaving = 0
    p = 0
    mark = np.int64(0)
    for s in range(steps):
        if halt[0] != 0:
            return HALTED, at, p, moves, 0, block, where, start, end, 0
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
                    found = NONE
                    node = first_of[b]
                    while node != NONE:
                        if where[node] == e and not (through and home[node]):
                            found = node
                            break
                        node = down[node]
                    if found == NONE and parent >= 0 and parent != b:
                        node = first_of[parent]
                        while node != NONE:
                            if where[node] == e and not (through and home[node]):
                                found = node
                                break
                            node = down[node]
                    if found != NONE:
                        pinned[found] = mark
                        if not home[found]:
                            coming[found] = order.again[k]
                        continue
                    twice = False
                    for m in range(own, n_miss):
                        if miss_block[m] == b:
                            twice = True
                    if twice:
                        continue
                    if n_miss == len(miss_block):
                        grown = 2 * n_miss
                        new_block, new_engine = (
                            np.empty(grown, dtype=np.int64),
                            np.empty(grown, dtype=np.int32),
                        )
                        new_again, new_source = (
                            np.empty(grown, dtype=np.int32),
                            np.empty(grown, dtype=np.int32),
                        )
                        new_block[:n_miss], new_engine[:n_miss] = miss_block, miss_engine
                        new_again[:n_miss], new_source[:n_miss] = miss_again, miss_source
                        miss_block, miss_engine, miss_again, miss_source = (
                            new_block,
                            new_engine,
                            new_again,
                            new_source,
                        )
                    miss_block[n_miss], miss_engine[n_miss], miss_again[n_miss] = b, e, order.again[k]
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
            # make room
            for i in range(order.starts[s], order.starts[s + 1]):
                e = order.engine[order.tasks[i]]
                if need[e] > net.buffer:
                    return order.tasks[i], at, p, moves, 0, block, where, start, end, 0
                while held[e] + need[e] > net.buffer:
                    victim, worst = NONE, np.int64(-1)
                    node = first_on[e]
                    while node != NONE:
                        b = block[node]
                        free = pinned[node] != mark
                        if (
                            free
                            and home[node]
                            and coming[node] != NONE
                            and stored[b] == FAR
                            and ready[node] > p - 2
                        ):
                            free = False
                        if free:
                            wait = np.int64(FAR) if coming[node] == NONE else np.int64(coming[node] - s)
                            badness = wait if rules.furthest else wait * graph.block_bytes[b]
                            if badness > worst:
                                victim, worst = node, badness
                        node = after[node]
                    if victim == NONE:
                        short = True
                        break
                    b = block[victim]
                    if home[victim] and coming[victim] != NONE and stored[b] == FAR:
                        port = _nearest(ports, where[victim], graph.block_bytes[b], False)
                        begin = max(ready[victim] + 1, p - 4)
                        moves[n_moves, 0], moves[n_moves, 1], moves[n_moves, 2] = b, e, port
                        moves[n_moves, 3], moves[n_moves, 4] = begin, p - 1
                        n_moves += 1
                        stored[b] = p - 1
                    end[victim] = max(p - 1, start[victim])
                    held[e] -= graph.block_bytes[b]
                    _unlink(victim, e, b, end, gone, lists)
            if not short:
                break
            # an idle step: write back what stands in the way
            if tries > 4 * engines + 8:
                return order.tasks[order.starts[s]], at, p, moves, 0, block, where, start, end, 0
            n_leaving = _send_results(
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
                while held[e] + need[e] > net.buffer:
                    victim, worst = NONE, np.int64(-1)
                    node = first_on[e]
                    while node != NONE:
                        if pinned[node] != mark:
                            wait = np.int64(FAR) if coming[node] == NONE else np.int64(coming[node] - s)
                            badness = wait if rules.furthest else wait * graph.block_bytes[block[node]]
                            if badness > worst:
                                victim, worst = node, badness
                        node = after[node]
                    if victim == NONE:
                        break
                    b = block[victim]
                    if home[victim] and coming[victim] != NONE and stored[b] == FAR:
                        port = _nearest(ports, where[victim], graph.block_bytes[b], False)
                        moves[n_moves, 0], moves[n_moves, 1], moves[n_moves, 2] = b, e, port
                        moves[n_moves, 3], moves[n_moves, 4] = p, p
                        n_moves += 1
                        stored[b] = p
                    end[victim] = p
                    held[e] -= graph.block_bytes[b]
                    _unlink(victim, e, b, end, gone, lists)
            for q in range(n_leaving):
                n_free = leaving[q]
                if coming[n_free] == NONE and end[n_free] == NONE:
                    end[n_free] = p
                    held[where[n_free]] -= graph.block_bytes[block[n_free]]
                    _unlink(n_free, where[n_free], block[n_free], end, gone, lists)
            n_leaving = 0
            p += 1
        # results made in the step before leave now
        sent = _send_results(
            p, leaving[:n_leaving], moves[n_moves:], block, where, stored, ports, graph.block_bytes
        )
        n_moves += sent
        for q in range(n_leaving):
            node = leaving[q]
            if coming[node] == NONE:
                coming[node] = s - 1
        n_leaving = 0
        # fetch what is missing, block by block, so that engines that need it together get it together
        ranked = np.argsort(miss_block[:n_miss])
        i = 0
        while i < n_miss:
            j = i
            b = miss_block[ranked[i]]
            size = graph.block_bytes[b]
            parent = graph.block_parent[b]
            ahead = rules.ahead
            early = 0
            while j < n_miss and miss_block[ranked[j]] == b:
                e, source = miss_engine[ranked[j]], miss_source[ranked[j]]
                k = min(_slack(past, e, p, depth, min(ahead, p), size, net.buffer), p - 1 - gone[_slot(b, e)])
                if source != NONE:
                    k = min(k, p - 1 - ready[source])
                elif parent >= 0:
                    k = min(k, p - 1 - stored[parent])
                if k > 0:
                    ahead = min(ahead, k)
                    early += 1
                j += 1
            port_early, port_late = NONE, NONE
            for q in range(i, j):
                m = ranked[q]
                e, source = miss_engine[m], miss_source[m]
                k = 0
                if early > 0:
                    k = min(
                        _slack(past, e, p, depth, min(ahead, p), size, net.buffer), p - 1 - gone[_slot(b, e)]
                    )
                if source != NONE:
                    k = min(k, p - 1 - ready[source])
                elif parent >= 0:
                    k = min(k, p - 1 - stored[parent])
                k = ahead if k >= ahead and early > 0 else 0
                if source != NONE:
                    place = where[source]
                elif k > 0:
                    if port_early == NONE:
                        port_early = _nearest(ports, e, size, True)
                    place = port_early
                else:
                    if port_late == NONE:
                        port_late = _nearest(ports, e, size, True)
                    place = port_late
                begin, last = (p - k, p - 1) if k > 0 else (p, p)
                for r in range(begin, p):
                    past[e, r % depth] += size
                moves[n_moves, 0], moves[n_moves, 1], moves[n_moves, 2] = b, place, e
                moves[n_moves, 3], moves[n_moves, 4] = begin, last
                n_moves += 1
                node = nodes
                nodes += 1
                block[node], where[node], start[node], ready[node] = b, e, begin, last
                coming[node] = miss_again[m]
                _link(node, e, b, lists)
                held[e] += size
                if source != NONE:
                    end[source] = NONE
            i = j
        for i in range(order.starts[s], order.starts[s + 1]):
            t = order.tasks[i]
            e = order.engine[t]
            at[t] = p
            node = nodes
            nodes += 1
            block[node], where[node], start[node], ready[node] = t, e, p, p
            home[node] = True
            coming[node] = (
                order.uses[order.use_starts[t]] if order.use_starts[t + 1] > order.use_starts[t] else NONE
            )
            _link(node, e, t, lists)
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
                    end[node] = p
                    held[e] -= graph.block_bytes[b]
                    _unlink(node, e, b, end, gone, lists)
                node = following
        p += 1
    port_load[:] = 0.0
    if n_leaving > 0:
        n_moves += _send_results(
            p, leaving[:n_leaving], moves[n_moves:], block, where, stored, ports, graph.block_bytes
        )
        for q in range(n_leaving):
            end[leaving[q]] = p
        p += 1
    for node in range(nodes):
        if end[node] == NONE:
            end[node] = p - 1
    return NONE, at, p, moves, n_moves, block, where, start, end, nodes


@njit(cache=True, nogil=True)
def _send_results(
    p: int,
    leaving: Ints,
    moves: Any,
    block: Ints,
    where: Ints,
    stored: Ints,
    ports: Ports,
    block_bytes: Longs,
) -> Any:  # pragma: no cover
    """Write-backs, in step ``p``, of results that leave the network; how many there are."""
    for q in range(len(leaving)):
        node = leaving[q]
        b, e = block[node], where[node]
        moves[q, 0], moves[q, 1] = b, e
        moves[q, 2] = _nearest(ports, e, block_bytes[b], False)
        moves[q, 3], moves[q, 4] = p, p
        stored[b] = p
    return len(leaving)


@njit(cache=True, nogil=True)
def _slack(
    past: Any, e: int, p: int, depth: int, ahead: int, size: int, buffer: int
) -> Any:  # pragma: no cover
    """For how many steps before ``p`` an engine has room for so many bytes more."""
    k = 0
    while k < ahead and past[e, (p - 1 - k) % depth] + size <= buffer:
        k += 1
    return k


@njit(cache=True, nogil=True)
def _nearest(ports: Ports, e: int, size: int, inward: bool) -> Any:  # pragma: no cover
    """The port with the least load of this step, distances counted in."""
    engines, places = ports.net.engines, ports.net.places
    best, least = engines, np.inf
    for port in range(engines, places):
        distance = ports.hops[port * places + e] if inward else ports.hops[e * places + port]
        cost = ports.load[port - engines] + 0.25 * size * distance
        if cost < least:
            best, least = port, cost
    ports.load[best - engines] += size
    return best


@njit(cache=True, nogil=True, inline="always")
def _slot(b: int, e: int) -> Any:  # pragma: no cover
    """Where a table of block and engine has its entry; others may share it, which only delays an arrival."""
    return ((b * 40503 + e * 2654435) ^ (b >> 9)) & (TABLE - 1)


@njit(cache=True, nogil=True)
def _link(node: int, e: int, b: int, lists: Lists) -> None:  # pragma: no cover
    """Put a copy into its engine's list and its block's."""
    after, before, down, up, first_on, first_of = lists
    after[node], before[node] = first_on[e], NONE
    if first_on[e] != NONE:
        before[first_on[e]] = node
    first_on[e] = node
    down[node], up[node] = first_of[b], NONE
    if first_of[b] != NONE:
        up[first_of[b]] = node
    first_of[b] = node


@njit(cache=True, nogil=True)
def _unlink(node: int, e: int, b: int, end: Ints, gone: Ints, lists: Lists) -> None:  # pragma: no cover
    """Take a copy out of both lists, and note how long it stood there."""
    after, before, down, up, first_on, first_of = lists
    slot = _slot(b, e)
    gone[slot] = max(gone[slot], end[node])
    if before[node] == NONE:
        first_on[e] = after[node]
    else:
        after[before[node]] = after[node]
    if after[node] != NONE:
        before[after[node]] = before[node]
    if up[node] == NONE:
        first_of[b] = down[node]
    else:
        down[up[node]] = down[node]
    if down[node] != NONE:
        up[down[node]] = up[node]
