"""The machine code of smoothing: moves of multicasts in time and between sources.

A move touches the steps of its old and new window alone, so that a trial costs some hundred links.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort
from tilewright.formulation.scheduling.tiled.plan_kernel import Network
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.smoothing_loads import (
    NEVER,
    Casts,
    Copies,
    Loads,
    Scratch,
    busiest,
    cost,
    draw,
    put,
    slowest,
    tree,
)

AGAIN = 4
"""Moves that one pass makes for one step at most."""

ENOUGH = 1e-4
"""Part of the plan that a pass must gain for another to follow."""


class Setting(NamedTuple):
    """What smoothing works on.

    Parameters
    ----------
    parent : per block the task of which it is (part of) the result
    stored : per block, the last step of its write-back, `NEVER` without one
    due_starts, due : multicasts by the step by which they are read
    work : cycles of the task of every step and engine, 0 without one, shape (steps, engines)
    touched, old : arrays for the steps of a move and what they were
    hop, memory : cycles that it is worth to spare a byte one link between routers, and to read it from a
        buffer and not from DRAM
    """

    net: Network
    casts: Casts
    copies: Copies
    loads: Loads
    scratch: Scratch
    parent: Int32s
    stored: Int32s
    due_starts: Int64s
    due: Int64s
    work: Int64s
    touched: Int64s
    old: Floats
    hop: float
    memory: float


class Tries(NamedTuple):
    """How much is tried.

    Parameters
    ----------
    rounds, tries, most : passes over all steps, moves per multicast, multicasts per step and pass
    far : steps before its use in which data may arrive
    widths : windows have 1, 2, 4 … steps, so many sizes of them; 1 for single steps
    """

    rounds: int
    tries: int
    most: int
    far: int
    widths: int


@compiled
def _earliest(
    net: Network, casts: Casts, g: int, copies: Copies, loads: Loads, far: int
) -> Any:  # pragma: no cover
    """The earliest first step for which all targets have capacity, at most so far before the step of use."""
    low = max(0, casts.due[g] - far)
    for q in range(casts.starts[g], casts.starts[g + 1]):
        # two copies of a block on one engine must not overlap: the one before ends first
        i, e = casts.held[q], casts.engine[q]
        if i > 0 and copies.block[i - 1] == copies.block[i] and copies.engine[i - 1] == e:
            low = max(low, copies.end[i - 1] + 1)
        step = copies.start[i]
        while step > low and loads.full[e, step - 1] + casts.size[g] <= net.buffer:
            step -= 1
        low = max(low, step)
    return low


@compiled
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


@compiled
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
    # DRAM has inputs from the start, and results from the step after their write-back
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
    # an engine that receives the multicast cannot send it
    for q in range(casts.starts[g], casts.starts[g + 1]):
        if casts.engine[q] == copies.engine[i]:
            return -1, -1
    return copies.engine[i], i


@compiled
def _suspects(of: Setting, step: int, far: int, found: Int64s) -> Any:  # pragma: no cover
    """The multicasts that a step waits for, into ``found``; how many."""
    net, casts, loads, scratch = of.net, of.casts, of.loads, of.scratch
    link = busiest(net, step, loads)
    low, high, late = of.due_starts[step], of.due_starts[min(len(of.due_starts) - 1, step + far + 1)], False
    if loads.task[step] > loads.wait[step]:
        # a task with what it waits for is longer than any link: only what arrives in this step helps
        _, link = slowest(net, step, casts, of.due_starts, of.due, of.work, loads, scratch)
        high, late = of.due_starts[step + 1], True
    n = 0
    for i in range(low, high):
        g = of.due[i]
        if casts.first[g] > step or casts.last[g] < step or (late and casts.last[g] != step):
            continue
        hit = link == -1 and casts.source[g] >= net.engines
        if link >= 0:
            for r in range(tree(net, casts, g, casts.source[g], scratch)):
                hit |= scratch.tree[r] == link
        if hit:
            found[n] = g
            n += 1
    return n


@compiled
def _proposed(of: Setting, g: int, low: int, top: int, widths: int, draws: Any) -> Any:  # pragma: no cover
    """Another source, window or both for a multicast.

    Returns
    -------
    legal, source, holder, first, last
    """
    casts, copies = of.casts, of.copies
    b = casts.block[g]
    source, holder = casts.source[g], casts.holder[g]
    first, last = casts.first[g], casts.last[g]
    kind = draw(draws, 4)
    if kind > 0:
        reach = top - low
        # late windows are drawn more often: they hold buffers for less time
        part = draw(draws, 1 << 20) / (1 << 20)
        last = top - int((part if kind == 1 else part**3) * (reach + 1))
        first = max(low, last - (1 << draw(draws, widths)) + 1)
        if holder >= 0:
            first = max(first, copies.ready[holder] + 1)
    if kind < 3:
        source, holder = _source(
            net=of.net,
            casts=casts,
            g=g,
            copies=copies,
            parent=of.parent[b],
            stored=of.stored[b],
            first=first,
            last=last,
            pick=draw(draws, 1 << 20),
        )
    # a result comes from DRAM only after its write-back, which an earlier window may precede
    elif holder < 0 and of.parent[b] >= 0 and of.stored[b] >= first:
        source = -1
    legal = source >= 0 and low <= first <= last <= top
    if legal and holder >= 0 and (copies.end[holder] < last or copies.ready[holder] >= first):
        legal = False
    if source == casts.source[g] and first == casts.first[g] and last == casts.last[g]:
        legal = False
    return legal, source, holder, first, last


@compiled
def _spent(of: Setting, g: int, source: int) -> Any:  # pragma: no cover
    """What the energy of a multicast from a source is worth in cycles; copies at its targets aside."""
    net, routers = of.net, 0
    for r in range(tree(net, of.casts, g, source, of.scratch)):
        if of.scratch.tree[r] >= net.routers:
            routers += 1
    return of.casts.size[g] * (of.hop * routers + (of.memory if source >= net.engines else 0.0))


@compiled
def _moved(of: Setting, g: int, source: int, holder: int, first: int, last: int) -> Any:  # pragma: no cover
    """Move a multicast; take it back where that gains nothing.

    Returns
    -------
    gained, cycles that the plan takes more (or less)
    """
    net, casts, copies, loads, scratch = of.net, of.casts, of.copies, of.loads, of.scratch
    o_source, o_holder, o_first, o_last = casts.source[g], casts.holder[g], casts.first[g], casts.last[g]
    # only steps of the old and of the new window change, so that only they are priced
    m = 0
    for r in range(min(first, o_first), max(last, o_last) + 1):
        if first <= r <= last or o_first <= r <= o_last:
            of.touched[m] = r
            m += 1
    delta, longer = 0.0, 0.0
    if of.hop > 0.0 and source != o_source:
        delta = _spent(of, g, source) - _spent(of, g, o_source)
    for r in range(m):
        s = of.touched[r]
        of.old[r, 0], of.old[r, 1], of.old[r, 2] = loads.wait[s], loads.task[s], loads.smooth[s]
        delta -= cost(loads, s)
        longer -= max(loads.wait[s], loads.task[s])
    put(net, casts, g, -1.0, loads, scratch)
    _set(casts, g, source, holder, first, last, copies, loads)
    put(net, casts, g, 1.0, loads, scratch)
    due = casts.due[g]
    for r in range(m):
        s = of.touched[r]
        busiest(net, s, loads)
        if s == due:  # in no other step does a task wait for this multicast
            slowest(net, s, casts, of.due_starts, of.due, of.work, loads, scratch)
        delta += cost(loads, s)
        longer += max(loads.wait[s], loads.task[s])
    if delta < -1e-6:
        return True, longer
    put(net, casts, g, -1.0, loads, scratch)
    _set(casts, g, o_source, o_holder, o_first, o_last, copies, loads)
    put(net, casts, g, 1.0, loads, scratch)
    for r in range(m):
        s = of.touched[r]
        loads.wait[s], loads.task[s], loads.smooth[s] = of.old[r, 0], of.old[r, 1], of.old[r, 2]
    return False, 0.0


@compiled
def _relieved(of: Setting, step: int, tries: Tries, suspects: Int64s, draws: Any) -> Any:  # pragma: no cover
    """Try to shorten a step by one move; whether one was found, and cycles that the plan takes more."""
    n = _suspects(of, step, tries.far, suspects)
    for _ in range(min(n, tries.most)):
        # without replacement: the last suspect takes the place of the one that is drawn
        pick = draw(draws, n)
        g = suspects[pick]
        n -= 1
        suspects[pick] = suspects[n]
        gained, longer = _tried(of, g, tries, draws)
        if gained:
            return True, longer
    return False, 0.0


@compiled
def _tried(of: Setting, g: int, tries: Tries, draws: Any) -> Any:  # pragma: no cover
    """Try to gain by one move of a multicast; whether one was found, and cycles that the plan takes more."""
    casts, copies = of.casts, of.copies
    low = _earliest(of.net, casts, g, copies, of.loads, tries.far)
    # it must arrive before its copies are sent on
    top = casts.due[g]
    for q in range(casts.starts[g], casts.starts[g + 1]):
        top = min(top, copies.passed[casts.held[q]] - 1)
    if top < low:
        return False, 0.0
    for _ in range(tries.tries):
        legal, source, holder, first, last = _proposed(of, g, low, top, tries.widths, draws)
        if legal:
            gained, longer = _moved(of, g, source, holder, first, last)
            if gained:
                return True, longer
    return False, 0.0


@compiled
def _nearer(of: Setting, g: int, tries: int, draws: Any) -> Any:  # pragma: no cover
    """Give a multicast sources that spare energy; cycles that the plan takes more."""
    casts, total = of.casts, 0.0
    block = casts.block[g]
    for _ in range(tries):
        source, holder = _source(
            net=of.net,
            casts=casts,
            g=g,
            copies=of.copies,
            parent=of.parent[block],
            stored=of.stored[block],
            first=casts.first[g],
            last=casts.last[g],
            pick=draw(draws, 1 << 20),
        )
        if source >= 0 and _spent(of, g, source) < _spent(of, g, casts.source[g]):
            total += _moved(of, g, source, holder, casts.first[g], casts.last[g])[1]
    return total


@compiled
def level(
    net: Network,
    casts: Casts,
    copies: Copies,
    work: Int64s,
    back: Any,
    parent: Int32s,
    stored: Int32s,
    steps: int,
    tries: Tries,
    worth: Any,
    seed: int,
    halt: Any,
) -> Any:  # pragma: no cover
    """Move multicasts while that shortens steps; they are changed in place.

    Where energy is worth cycles, all multicasts are tried besides, whether or not a step waits for them.

    Parameters
    ----------
    worth : cycles that a byte over a link, and a byte from DRAM, are worth, see `Setting`
    back : loads of what may not move, shapes (steps, links) and (steps,), and the buffers' contents
    halt : a flag, see `halting`: once it is set the plan is left as it is then

    Returns
    -------
    cycles : of the plan
    """
    draws = np.array([2 * seed + 1], dtype=np.uint64)
    links, count = len(net.rates), len(casts.block)
    loads = Loads(back[0], back[1], back[2], np.zeros(steps), np.zeros(steps), np.zeros(steps))
    scratch = Scratch(
        np.zeros(1, dtype=np.int64),
        np.full(links, -1, dtype=np.int64),
        np.empty(links, dtype=np.int32),
        np.zeros(links),
    )
    due_starts, due = counting_sort(casts.due, np.arange(count), steps)
    touched, old = np.empty(steps, dtype=np.int64), np.empty((steps, 3), dtype=np.float64)
    of = Setting(
        net=net,
        casts=casts,
        copies=copies,
        loads=loads,
        scratch=scratch,
        parent=parent,
        stored=stored,
        due_starts=due_starts,
        due=due,
        work=work,
        touched=touched,
        old=old,
        hop=worth[0],
        memory=worth[1],
    )
    for g in range(count):
        put(net, casts, g, 1.0, loads, scratch)
    total = 0.0
    for step in range(steps):
        busiest(net, step, loads)
        slowest(net, step, casts, due_starts, due, work, loads, scratch)
        total += max(loads.wait[step], loads.task[step])
    suspects = np.empty(count, dtype=np.int64)
    for _ in range(tries.rounds):
        before = total
        # copies that are sources: the first step in which one is read
        copies.passed[:] = NEVER
        for g in range(count):
            if casts.holder[g] >= 0:
                copies.passed[casts.holder[g]] = min(copies.passed[casts.holder[g]], casts.first[g])
        for step in range(steps):
            if halt[0] != 0:
                return total
            plain = work[step].max()  # no move makes the step shorter than its longest task
            for _again in range(AGAIN):
                if max(loads.wait[step], loads.task[step]) <= plain + 0.5:
                    break
                relieved, longer = _relieved(of, step, tries, suspects, draws)
                total += longer
                if not relieved:
                    break
        if worth[0] > 0.0:
            for g in range(count):
                if halt[0] != 0:
                    return total
                total += _nearer(of, g, tries.tries, draws)
        if before - total < ENOUGH * before:
            break
    return total
