"""The machine code of levelling: moves of transfers in time and between sources, step by step.

Tasks take one step each here, so that a plan takes the sum of its steps, and a step takes the longer of its
busiest link and its longest task with what that waits for.  A move touches only the steps of its window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tilewright.formulation.scheduling.tiled.kernel import Network

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEVER = 1 << 30
SMOOTH = 0.02
"""Weight of the load of all links beside that of the busiest, so that moves on plateaus have a direction."""


class Casts(NamedTuple):
    """Multicasts: the transfers of a plan that share block, source and steps.

    Parameters
    ----------
    block, source, first, last, size : of each; the source is a place
    holder : the residency that the source reads, -1 for DRAM
    due : the step by which the first target reads it
    starts, engine, held, needed : per target its engine, the residency that it supplies, and the step by
        which that is read; targets of cast ``g`` are ``starts[g] : starts[g + 1]``
    """

    block: Ints
    source: Ints
    first: Ints
    last: Ints
    size: Longs
    holder: Ints
    due: Ints
    starts: Longs
    engine: Ints
    held: Ints
    needed: Ints


class Copies(NamedTuple):
    """Residencies, in the order of a plan.

    Parameters
    ----------
    ready : the last step of what supplies it
    passed : the first step of a transfer that reads it, `NEVER` if none
    of_block : per block, where its residencies begin
    """

    block: Ints
    engine: Ints
    start: Ints
    end: Ints
    ready: Ints
    passed: Ints
    of_block: Longs


class Loads(NamedTuple):
    """What a plan loads.

    Parameters
    ----------
    link : bytes, shape (steps, links)
    dram : bytes per step
    full : bytes in every buffer, shape (engines, steps)
    wait, task, smooth : per step the cycles of the busiest link, of the longest task with its wait, and a
        norm of all links
    """

    link: Floats
    dram: Floats
    full: Longs
    wait: Floats
    task: Floats
    smooth: Floats


class Scratch(NamedTuple):
    """Room for one move: marks of links, and trees of links."""

    mark: Longs
    stamp: Longs
    tree: Ints
    late: Floats
    seen: Longs


@njit(cache=True, nogil=True)
def _draw(state: Any, below: int) -> Any:  # pragma: no cover
    """A whole number from 0 to ``below - 1`` (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(33)) % below


@njit(cache=True, nogil=True)
def _tree(net: Network, casts: Casts, g: int, source: int, room: Scratch) -> Any:  # pragma: no cover
    """The links of a multicast from a source, into ``room.tree``; how many."""
    room.mark[0] += 1
    mark, n = room.mark[0], 0
    for q in range(casts.starts[g], casts.starts[g + 1]):
        route = source * net.places + casts.engine[q]
        for r in range(net.starts[route], net.starts[route + 1]):
            link = net.links[r]
            if room.stamp[link] != mark:
                room.stamp[link] = mark
                room.tree[n] = link
                n += 1
    return n


@njit(cache=True, nogil=True)
def _put(
    net: Network, casts: Casts, g: int, sign: float, loads: Loads, room: Scratch
) -> None:  # pragma: no cover
    """Add (or take away) what a multicast loads."""
    n = _tree(net, casts, g, casts.source[g], room)
    share = sign * casts.size[g] / (casts.last[g] - casts.first[g] + 1)
    for step in range(casts.first[g], casts.last[g] + 1):
        for i in range(n):
            loads.link[step, room.tree[i]] += share
        if casts.source[g] >= net.engines:
            loads.dram[step] += share


@njit(cache=True, nogil=True)
def _busiest(net: Network, step: int, loads: Loads) -> Any:  # pragma: no cover
    """The link that a step waits for longest (-1: DRAM); notes the wait and the norm."""
    longest = loads.dram[step] / net.dram_rate
    total = longest**6
    busiest = -1
    for link in range(len(net.rates)):
        load = loads.link[step, link]
        if load > 0.0:
            need = load / net.rates[link]
            square = need * need
            total += square * square * square
            if need > longest:
                longest, busiest = need, link
    loads.wait[step] = longest
    loads.smooth[step] = total ** (1.0 / 6.0)
    return busiest


@njit(cache=True, nogil=True)
def _slowest(
    net: Network,
    step: int,
    casts: Casts,
    due_starts: Longs,
    due: Longs,
    work: Longs,
    loads: Loads,
    room: Scratch,
) -> Any:  # pragma: no cover
    """The engine that a step waits for, and the link that delays it (-1: DRAM, -2: none); notes the time."""
    room.late[:] = 0.0
    memory = 0.0
    any_late = False
    for i in range(due_starts[step], due_starts[step + 1]):
        g = due[i]
        if casts.last[g] != step:
            continue
        any_late = True
        share = casts.size[g] / (casts.last[g] - casts.first[g] + 1)
        if casts.source[g] >= net.engines:
            memory += share
        room.mark[0] += 1
        mark = room.mark[0]
        for q in range(casts.starts[g], casts.starts[g + 1]):
            if casts.needed[q] != step:
                continue
            route = casts.source[g] * net.places + casts.engine[q]
            for r in range(net.starts[route], net.starts[route + 1]):
                link = net.links[r]
                if room.stamp[link] != mark:
                    room.stamp[link] = mark
                    room.late[link] += share
    slowest, longest, cause = -1, 0.0, -2
    for e in range(net.engines):
        if work[step, e] > longest:
            slowest, longest = e, float(work[step, e])
    if any_late:
        for i in range(due_starts[step], due_starts[step + 1]):
            g = due[i]
            if casts.last[g] != step:
                continue
            for q in range(casts.starts[g], casts.starts[g + 1]):
                if casts.needed[q] != step:
                    continue
                e = casts.engine[q]
                route = casts.source[g] * net.places + e
                wait, link_of = 0.0, -2
                for r in range(net.starts[route], net.starts[route + 1]):
                    link = net.links[r]
                    if room.late[link] / net.rates[link] > wait:
                        wait, link_of = room.late[link] / net.rates[link], link
                if casts.source[g] >= net.engines and memory / net.dram_rate > wait:
                    wait, link_of = memory / net.dram_rate, -1
                wait += max(0, net.starts[route + 1] - net.starts[route] - 2) * net.hop_cycles
                if wait + work[step, e] > longest:
                    longest, slowest, cause = wait + work[step, e], e, link_of
    loads.task[step] = longest
    return slowest, cause


@njit(cache=True, nogil=True, inline="always")
def _cost(loads: Loads, step: int) -> Any:  # pragma: no cover
    return max(loads.wait[step], loads.task[step]) + SMOOTH * loads.smooth[step]


@njit(cache=True, nogil=True)
def _earliest(
    net: Network, casts: Casts, g: int, copies: Copies, loads: Loads, far: int
) -> Any:  # pragma: no cover
    """The earliest first step for which all targets have room, at most so far before the step of use."""
    low = max(0, casts.due[g] - far)
    for q in range(casts.starts[g], casts.starts[g + 1]):
        i, e = casts.held[q], casts.engine[q]
        if i > 0 and copies.block[i - 1] == copies.block[i] and copies.engine[i - 1] == e:
            low = max(low, copies.end[i - 1] + 1)
        step = copies.start[i]
        while step > low and loads.full[e, step - 1] + casts.size[g] <= net.buffer:
            step -= 1
        low = max(low, step)
    return low


@njit(cache=True, nogil=True)
def _set(
    casts: Casts, g: int, source: int, holder: int, first: int, last: int, copies: Copies, loads: Loads
) -> None:  # pragma: no cover
    """Give a multicast a source and a window; its targets' residencies follow."""
    for q in range(casts.starts[g], casts.starts[g + 1]):
        i, e = casts.held[q], casts.engine[q]
        for step in range(first, copies.start[i]):
            loads.full[e, step] += casts.size[g]
        for step in range(copies.start[i], first):
            loads.full[e, step] -= casts.size[g]
        copies.start[i], copies.ready[i] = first, last
    casts.source[g], casts.holder[g], casts.first[g], casts.last[g] = source, holder, first, last
    if holder >= 0:
        copies.passed[holder] = min(copies.passed[holder], first)


@njit(cache=True, nogil=True)
def _source(
    net: Network,
    casts: Casts,
    g: int,
    copies: Copies,
    parent: int,
    stored: int,
    first: int,
    last: int,
    pick: int,
) -> Any:  # pragma: no cover
    """One of the places that hold a block (or the whole of which it is part) throughout a window.

    Returns
    -------
    source, holder : the ``pick``-th in turn among ports and copies; (-1, -1) where that one cannot
    """
    ports = net.places - net.engines
    b = casts.block[g]
    outside = parent < 0 or stored < first
    copies_of = copies.of_block[b + 1] - copies.of_block[b]
    whole = copies.of_block[parent + 1] - copies.of_block[parent] if parent >= 0 and parent != b else 0
    choices = copies_of + whole + (ports if outside else 0)
    if choices == 0:
        return -1, -1
    k = pick % choices
    if k >= copies_of + whole:
        return net.engines + k - copies_of - whole, -1
    i = copies.of_block[b] + k if k < copies_of else copies.of_block[parent] + k - copies_of
    if copies.ready[i] >= first or copies.start[i] > first or copies.end[i] < last:
        return -1, -1
    for q in range(casts.starts[g], casts.starts[g + 1]):
        if casts.engine[q] == copies.engine[i]:
            return -1, -1
    return copies.engine[i], i


@njit(cache=True, nogil=True)
def level(
    net: Network,
    casts: Casts,
    copies: Copies,
    work: Longs,
    back: Any,
    parent: Ints,
    stored: Ints,
    steps: int,
    rounds: int,
    tries: int,
    most: int,
    far: int,
    seed: int,
) -> Any:  # pragma: no cover
    """Move multicasts while that shortens steps; they are changed in place.

    Parameters
    ----------
    work : cycles of the task of every step and engine, 0 without one, shape (steps, engines)
    back : loads of what may not move, shapes (steps, links) and (steps,), and the buffers' contents
    parent : per block the task of which it is (part of) the result
    stored : per block, the last step of its write-back, `NEVER` without one
    rounds, tries, most : passes over all steps, moves per multicast, multicasts per step and pass
    far : steps before its use in which data may arrive

    Returns
    -------
    cycles : of the plan
    """
    draws = np.array([2 * seed + 1], dtype=np.uint64)
    links = len(net.rates)
    count = len(casts.block)
    loads = Loads(back[0], back[1], back[2], np.zeros(steps), np.zeros(steps), np.zeros(steps))
    room = Scratch(
        np.zeros(1, dtype=np.int64),
        np.full(links, -1, dtype=np.int64),
        np.empty(links, dtype=np.int32),
        np.zeros(links),
        np.full(steps, -1, dtype=np.int64),
    )
    due_starts = np.zeros(steps + 1, dtype=np.int64)
    for g in range(count):
        due_starts[min(casts.due[g], steps - 1) + 1] += 1
    for step in range(steps):
        due_starts[step + 1] += due_starts[step]
    at = due_starts[:-1].copy()
    due = np.empty(count, dtype=np.int64)
    for g in range(count):
        step = min(casts.due[g], steps - 1)
        due[at[step]] = g
        at[step] += 1
    for g in range(count):
        _put(net, casts, g, 1.0, loads, room)
    total = 0.0
    for step in range(steps):
        _busiest(net, step, loads)
        _slowest(net, step, casts, due_starts, due, work, loads, room)
        total += max(loads.wait[step], loads.task[step])
    touched = np.empty(2 * steps, dtype=np.int64)
    old = np.empty((2 * steps, 3), dtype=np.float64)
    candidates = np.empty(count, dtype=np.int64)
    turn = np.int64(0)
    for _ in range(rounds):
        before = total
        # copies that are sources: the first step in which one is read
        copies.passed[:] = NEVER
        for g in range(count):
            if casts.holder[g] >= 0:
                copies.passed[casts.holder[g]] = min(copies.passed[casts.holder[g]], casts.first[g])
        for step in range(steps):
            plain = 0.0
            for e in range(net.engines):
                plain = max(plain, float(work[step, e]))
            for _again in range(4):
                if max(loads.wait[step], loads.task[step]) <= plain + 0.5:
                    break
                busiest = _busiest(net, step, loads)
                n = 0
                if loads.wait[step] >= loads.task[step]:
                    last_due = min(steps, step + far + 1)
                    for i in range(due_starts[step], due_starts[last_due]):
                        g = due[i]
                        if casts.first[g] > step or casts.last[g] < step:
                            continue
                        if busiest == -1:
                            hit = casts.source[g] >= net.engines
                        else:
                            hit = False
                            k = _tree(net, casts, g, casts.source[g], room)
                            for r in range(k):
                                hit |= room.tree[r] == busiest
                        if hit:
                            candidates[n] = g
                            n += 1
                else:
                    _e, cause = _slowest(net, step, casts, due_starts, due, work, loads, room)
                    for i in range(due_starts[step], due_starts[step + 1]):
                        g = due[i]
                        if casts.last[g] != step:
                            continue
                        if cause == -1:
                            hit = casts.source[g] >= net.engines
                        else:
                            hit = False
                            k = _tree(net, casts, g, casts.source[g], room)
                            for r in range(k):
                                hit |= room.tree[r] == cause
                        if hit:
                            candidates[n] = g
                            n += 1
                better = False
                for _c in range(min(n, most)):
                    pick = _draw(draws, n)
                    g = candidates[pick]
                    n -= 1
                    candidates[pick] = candidates[n]
                    low = _earliest(net, casts, g, copies, loads, far)
                    top = casts.due[g]
                    for q in range(casts.starts[g], casts.starts[g + 1]):
                        top = min(top, copies.passed[casts.held[q]] - 1)
                    top = min(top, steps - 1)
                    if top < low:
                        continue
                    for _t in range(tries):
                        first, last = casts.first[g], casts.last[g]
                        source, holder = casts.source[g], casts.holder[g]
                        kind = _draw(draws, 4)
                        if kind > 0:
                            reach = top - low
                            back_by = int((_draw(draws, 1 << 20) / (1 << 20)) ** 3 * (reach + 1))
                            last = top - back_by
                            span = 1 << _draw(draws, 5)
                            first = max(low, last - span + 1)
                            if holder >= 0:
                                first = max(first, copies.ready[holder] + 1)
                        if kind < 3:
                            source, holder = _source(
                                net,
                                casts,
                                g,
                                copies,
                                parent[casts.block[g]],
                                stored[casts.block[g]],
                                first,
                                last,
                                _draw(draws, 1 << 20),
                            )
                            if source < 0:
                                continue
                        elif holder < 0 and parent[casts.block[g]] >= 0 and stored[casts.block[g]] >= first:
                            continue
                        if first > last or last > top:
                            continue
                        if holder >= 0 and copies.end[holder] < last:
                            continue
                        o_source, o_holder = casts.source[g], casts.holder[g]
                        o_first, o_last = casts.first[g], casts.last[g]
                        if source == o_source and first == o_first and last == o_last:
                            continue
                        turn += 1
                        m = 0
                        for r in range(o_first, o_last + 1):
                            room.seen[r] = turn
                            touched[m] = r
                            m += 1
                        for r in range(first, last + 1):
                            if room.seen[r] != turn:
                                touched[m] = r
                                m += 1
                        delta = 0.0
                        for r in range(m):
                            s = touched[r]
                            old[r, 0], old[r, 1], old[r, 2] = loads.wait[s], loads.task[s], loads.smooth[s]
                            delta -= _cost(loads, s)
                            total -= max(loads.wait[s], loads.task[s])
                        _put(net, casts, g, -1.0, loads, room)
                        _set(casts, g, source, holder, first, last, copies, loads)
                        _put(net, casts, g, 1.0, loads, room)
                        for r in range(m):
                            s = touched[r]
                            _busiest(net, s, loads)
                        d = casts.due[g]
                        if room.seen[min(d, steps - 1)] == turn or (first <= d <= last):
                            _slowest(net, d, casts, due_starts, due, work, loads, room)
                        for r in range(m):
                            s = touched[r]
                            delta += _cost(loads, s)
                            total += max(loads.wait[s], loads.task[s])
                        if delta < -1e-6:
                            better = True
                            break
                        for r in range(m):
                            s = touched[r]
                            total -= max(loads.wait[s], loads.task[s])
                        _put(net, casts, g, -1.0, loads, room)
                        _set(casts, g, o_source, o_holder, o_first, o_last, copies, loads)
                        _put(net, casts, g, 1.0, loads, room)
                        for r in range(m):
                            s = touched[r]
                            loads.wait[s], loads.task[s], loads.smooth[s] = old[r, 0], old[r, 1], old[r, 2]
                            total += max(loads.wait[s], loads.task[s])
                    if better:
                        break
                if not better:
                    break
        if before - total < 1e-4 * before:
            break
    return total
