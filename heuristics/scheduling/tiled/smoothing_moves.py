"""Moves of smoothing in machine code: a multicast gets another source, other steps, or both.

A move touches the steps of its old and new window alone, so that a trial costs some hundred links.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.formulation.scheduling.tiled.plan_kernel import Network
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.smoothing_loads import (
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


class Setting(NamedTuple):
    """What smoothing works on.

    Parameters
    ----------
    parent : per block the task of which it is (part of) the result
    stored : per block, the last step of its write-back, `NEVER` without one
    due_starts, due : multicasts by the step by which they are read
    early : per such step, one that none of its multicasts begins before
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
    early: Int64s
    work: Int64s
    touched: Int64s
    old: Floats
    hop: float
    memory: float


@compiled
def earliest(
    net: Network, casts: Casts, g: int, copies: Copies, loads: Loads, far: int
) -> Any:  # pragma: no cover
    """The earliest first step for which all targets have capacity, at most so far before the step of use.

    Parameters
    ----------
    net, casts, g : the machine, all multicasts, and which of them
    copies, loads : all residencies, and what the plan loads
    far : steps before its use
    """
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
def set_window(
    casts: Casts, g: int, source: int, holder: int, first: int, last: int, copies: Copies, loads: Loads
) -> None:  # pragma: no cover
    """Give a multicast a source and a window; its targets' residencies follow.

    Parameters
    ----------
    casts, g : all multicasts, and which of them
    source, holder : where it comes from, and the residency that this reads, -1 for DRAM
    first, last : its steps
    copies, loads : changed in place; loads of links stay
    """
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
def other_source(
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

    Parameters
    ----------
    net, casts, g : the machine's routes, all multicasts, and which of them
    copies : all residencies
    parent, stored : the task of which its block is (part of) the result, and the last step of its write-back
    first, last : the window
    pick : a random number

    Returns
    -------
    source, holder : the ``pick``-th in turn among ports and copies; (-1, -1) where that one cannot
    """
    outside, choices = choices_of(net, casts.block[g], copies, parent, stored, first)
    if choices == 0:
        return -1, -1
    return source_at(net, casts, g, copies, parent, outside, first, last, pick % choices)


@compiled
def choices_of(
    net: Network, b: int, copies: Copies, parent: int, stored: int, first: int
) -> Any:  # pragma: no cover
    """Places that may hold a block: how many of them are ports, and how many there are.

    Parameters
    ----------
    net, b, copies : the machine's routes, the block, and all residencies
    parent, stored : as of `other_source`
    first : step in which it is sent
    """
    # DRAM has inputs from the start, and results from the step after their write-back
    outside = net.places - net.engines if parent < 0 or stored < first else 0
    whole = copies.of_block[parent + 1] - copies.of_block[parent] if parent >= 0 and parent != b else 0
    return outside, copies.of_block[b + 1] - copies.of_block[b] + whole + outside


@compiled
def source_at(
    net: Network,
    casts: Casts,
    g: int,
    copies: Copies,
    parent: int,
    outside: int,
    first: int,
    last: int,
    k: int,
) -> Any:  # pragma: no cover
    """The ``k``-th place that may hold a block, and the residency there; (-1, -1) where it does not.

    Parameters
    ----------
    net, casts, g, copies, parent, first, last : as of `other_source`
    outside : ports among the places
    k : number of the place, copies of the block first, then of the whole result, then ports
    """
    b = casts.block[g]
    copies_of = copies.of_block[b + 1] - copies.of_block[b]
    whole = copies.of_block[parent + 1] - copies.of_block[parent] if parent >= 0 and parent != b else 0
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
def suspects_of(of: Setting, step: int, far: int, suspects: Int64s) -> Any:  # pragma: no cover
    """The multicasts that a step waits for; how many.

    Parameters
    ----------
    of : the plan
    step, far : the step, and steps before its use in which data may arrive
    suspects : filled in
    """
    net, casts, loads, scratch = of.net, of.casts, of.loads, of.scratch
    link = busiest(net, step, loads)
    ends, late = min(len(of.early), step + far + 1), False
    if loads.task[step] > loads.wait[step]:
        # a task with what it waits for is longer than any link: only what arrives in this step helps
        _, link = slowest(net, step, casts, of.due_starts, of.due, of.work, loads, scratch)
        ends, late = step + 1, True
    n = 0
    for due in range(step, ends):
        if of.early[due] > step:
            continue
        for i in range(of.due_starts[due], of.due_starts[due + 1]):
            g = of.due[i]
            if casts.first[g] > step or casts.last[g] < step or (late and casts.last[g] != step):
                continue
            if passes(net, casts, g, link):
                suspects[n] = g
                n += 1
    return n


@compiled
def passes(net: Network, casts: Casts, g: int, link: int) -> Any:  # pragma: no cover
    """Whether a multicast passes a link.

    Parameters
    ----------
    net, casts, g : the machine, all multicasts, and the number of one
    link : -1 is DRAM, -2 none
    """
    if link < 0:
        return link == -1 and casts.source[g] >= net.engines
    for q in range(casts.starts[g], casts.starts[g + 1]):
        route = casts.source[g] * net.places + casts.engine[q]
        for r in range(net.starts[route], net.starts[route + 1]):
            if net.links[r] == link:
                return True
    return False


@compiled
def proposed(of: Setting, g: int, low: int, top: int, widths: int, draws: Any) -> Any:  # pragma: no cover
    """Another source, window or both for a multicast.

    Parameters
    ----------
    of, g : the plan, and the multicast
    low, top : first and last step that a window may have
    widths : windows have 1, 2, 4 … steps, so many sizes of them
    draws : state of the random numbers

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
        source, holder = other_source(
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
def spent(of: Setting, g: int, source: int) -> Any:  # pragma: no cover
    """What the energy of a multicast from a source is worth in cycles; copies at its targets aside."""
    net, casts, routers = of.net, of.casts, 0
    if casts.starts[g + 1] - casts.starts[g] == 1:
        route = source * net.places + casts.engine[casts.starts[g]]
        for r in range(net.starts[route], net.starts[route + 1]):
            if net.links[r] >= net.routers:
                routers += 1
    else:
        for r in range(tree(net, casts, g, source, of.scratch)):
            if of.scratch.tree[r] >= net.routers:
                routers += 1
    return of.casts.size[g] * (of.hop * routers + (of.memory if source >= net.engines else 0.0))


@compiled
def moved(
    of: Setting, g: int, source: int, holder: int, first: int, last: int, allowed: float
) -> Any:  # pragma: no cover
    """Move a multicast; take it back where that costs more than is allowed.

    Parameters
    ----------
    of, g : the plan, and the multicast
    source, holder : where it comes from then, and the residency that this reads, -1 for DRAM
    first, last : its steps then
    allowed : cycles, those that energy and plateaus are worth included, that the plan may take more by a move
        that stays

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
        delta = spent(of, g, source) - spent(of, g, o_source)
    for r in range(m):
        s = of.touched[r]
        of.old[r, 0], of.old[r, 1], of.old[r, 2] = loads.wait[s], loads.task[s], loads.smooth[s]
        delta -= cost(loads, s)
        longer -= max(loads.wait[s], loads.task[s])
    put(net, casts, g, -1.0, loads, scratch)
    set_window(casts, g, source, holder, first, last, copies, loads)
    put(net, casts, g, 1.0, loads, scratch)
    due = casts.due[g]
    for r in range(m):
        s = of.touched[r]
        busiest(net, s, loads)
        if s == due:  # in no other step does a task wait for this multicast
            slowest(net, s, casts, of.due_starts, of.due, of.work, loads, scratch)
        delta += cost(loads, s)
        longer += max(loads.wait[s], loads.task[s])
    if delta < allowed - 1e-6:
        of.early[due] = min(of.early[due], first)
        return True, longer
    put(net, casts, g, -1.0, loads, scratch)
    set_window(casts, g, o_source, o_holder, o_first, o_last, copies, loads)
    put(net, casts, g, 1.0, loads, scratch)
    for r in range(m):
        s = of.touched[r]
        loads.wait[s], loads.task[s], loads.smooth[s] = of.old[r, 0], of.old[r, 1], of.old[r, 2]
    return False, 0.0
