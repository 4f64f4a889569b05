"""The machine code of smoothing: what transfers load, step by step, and what every step waits for.

Tasks take one step each here, so that a plan takes the sum of its steps, and a step takes the longer of its
busiest link and its longest task with what that waits for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.plan_kernel import Network
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled

NEVER = 1 << 30
SMOOTH = 0.02
"""Weight of the load of all links against that of the busiest, so that moves on plateaus have a direction."""

BEYOND = 0.7
"""Weight in that of what links need beyond the step's longest task: of many that are equally busy, each that
is relieved brings a shorter step nearer, while links that nobody waits for may be loaded."""


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

    block: Int32s
    source: Int32s
    first: Int32s
    last: Int32s
    size: Int64s
    holder: Int32s
    due: Int32s
    starts: Int64s
    engine: Int32s
    held: Int32s
    needed: Int32s


class Copies(NamedTuple):
    """Residencies, in the order of a plan.

    Parameters
    ----------
    ready : the last step of what supplies it
    passed : the first step of a transfer that reads it, `NEVER` if none
    of_block : per block, where its residencies begin
    """

    block: Int32s
    engine: Int32s
    start: Int32s
    end: Int32s
    ready: Int32s
    passed: Int32s
    of_block: Int64s


class Loads(NamedTuple):
    """What a plan loads.

    Parameters
    ----------
    link : bytes, shape (steps, links)
    dram : bytes per step
    full : bytes in every buffer, shape (engines, steps)
    pace : cycles that a byte takes on every link
    plain : per step the cycles of the longest task without any wait
    wait, task, smooth : per step the cycles of the busiest link, of the longest task with its wait, and a
        norm of all links with what they need beyond the longest task
    """

    link: Floats
    dram: Floats
    full: Int64s
    pace: Floats
    plain: Int64s
    wait: Floats
    task: Floats
    smooth: Floats


class Scratch(NamedTuple):
    """Arrays for one multicast: marks of links, its tree, and what arrives late over every link."""

    mark: Int64s
    stamp: Int64s
    tree: Int32s
    late: Floats


@compiled
def draw(state: Any, below: int) -> Any:  # pragma: no cover
    """A whole number from 0 to ``below - 1`` (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(33)) % below


@compiled
def tree(net: Network, casts: Casts, g: int, source: int, scratch: Scratch) -> Any:  # pragma: no cover
    """The links of a multicast from a source, into ``scratch.tree``; how many.

    Parameters
    ----------
    net : routes of the machine
    casts, g : the multicast
    source : a place
    scratch : filled in
    """
    scratch.mark[0] += 1
    mark, n = scratch.mark[0], 0
    for q in range(casts.starts[g], casts.starts[g + 1]):
        route = source * net.places + casts.engine[q]
        for r in range(net.starts[route], net.starts[route + 1]):
            link = net.links[r]
            if scratch.stamp[link] != mark:
                scratch.stamp[link] = mark
                scratch.tree[n] = link
                n += 1
    return n


@compiled
def put(
    net: Network, casts: Casts, g: int, sign: float, loads: Loads, scratch: Scratch
) -> None:  # pragma: no cover
    """Add (or take away) what a multicast loads.

    Parameters
    ----------
    net : routes of the machine
    casts, g : the multicast
    sign : 1 to add, -1 to take away
    loads : changed in place
    scratch : filled in
    """
    n = tree(net, casts, g, casts.source[g], scratch)
    share = sign * casts.size[g] / (casts.last[g] - casts.first[g] + 1)
    for step in range(casts.first[g], casts.last[g] + 1):
        for i in range(n):
            loads.link[step, scratch.tree[i]] += share
        if casts.source[g] >= net.engines:
            loads.dram[step] += share


@compiled
def busiest(net: Network, step: int, loads: Loads) -> Any:  # pragma: no cover
    """The link that a step waits for longest (-1: DRAM); notes the wait and the norm."""
    longest = loads.dram[step] / net.dram_rate
    busiest = -1
    # a norm of high power: near the maximum, yet every relieved link counts; in four sums, as one is slower
    total, second, third, fourth = longest**6, 0.0, 0.0, 0.0
    plain = float(loads.plain[step])
    beyond = max(0.0, longest - plain)
    links = len(loads.pace)
    for link in range(0, links - 3, 4):
        a = loads.link[step, link] * loads.pace[link]
        b = loads.link[step, link + 1] * loads.pace[link + 1]
        c = loads.link[step, link + 2] * loads.pace[link + 2]
        d = loads.link[step, link + 3] * loads.pace[link + 3]
        most = max(max(a, b), max(c, d))
        if most > plain:
            beyond += max(0.0, a - plain) + max(0.0, b - plain)
            beyond += max(0.0, c - plain) + max(0.0, d - plain)
        if most > longest:
            if a > longest:
                longest, busiest = a, link
            if b > longest:
                longest, busiest = b, link + 1
            if c > longest:
                longest, busiest = c, link + 2
            if d > longest:
                longest, busiest = d, link + 3
        a, b, c, d = a * a, b * b, c * c, d * d
        total += a * a * a
        second += b * b * b
        third += c * c * c
        fourth += d * d * d
    for link in range(links - links % 4, links):
        need = loads.link[step, link] * loads.pace[link]
        if need > longest:
            longest, busiest = need, link
        beyond += max(0.0, need - plain)
        total += need**6
    total += second + third + fourth
    loads.wait[step] = longest
    loads.smooth[step] = total ** (1.0 / 6.0) + BEYOND * beyond
    return busiest


@compiled
def slowest(
    net: Network,
    step: int,
    casts: Casts,
    due_starts: Int64s,
    due: Int64s,
    work: Int64s,
    loads: Loads,
    scratch: Scratch,
) -> Any:  # pragma: no cover
    """The engine that a step waits for, and the link that delays it (-1: DRAM, -2: none); notes the time.

    Parameters
    ----------
    net : routes and rates of the machine
    step : of the plan
    casts : all multicasts
    due_starts, due : multicasts that are read first in step ``s`` are
        ``due[due_starts[s] : due_starts[s + 1]]``
    work : cycles of the task in every step and engine, 0 for none
    loads : its time of the step's slowest task is changed
    scratch : filled in
    """
    scratch.late[:] = 0.0
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
        scratch.mark[0] += 1
        mark = scratch.mark[0]
        for q in range(casts.starts[g], casts.starts[g + 1]):
            if casts.needed[q] != step:
                continue
            route = casts.source[g] * net.places + casts.engine[q]
            for r in range(net.starts[route], net.starts[route + 1]):
                link = net.links[r]
                if scratch.stamp[link] != mark:
                    scratch.stamp[link] = mark
                    scratch.late[link] += share
    slowest, longest, cause = -1, 0.0, -2
    for e in range(net.engines):
        if work[step, e] > longest:
            slowest, longest = e, float(work[step, e])
    # what arrives late for several tasks shares links, so that all loads are known before any wait
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
                    if scratch.late[link] / net.rates[link] > wait:
                        wait, link_of = scratch.late[link] / net.rates[link], link
                if casts.source[g] >= net.engines and memory / net.dram_rate > wait:
                    wait, link_of = memory / net.dram_rate, -1
                wait += max(0, net.starts[route + 1] - net.starts[route] - 2) * net.hop_cycles
                if wait + work[step, e] > longest:
                    longest, slowest, cause = wait + work[step, e], e, link_of
    loads.task[step] = longest
    return slowest, cause


@compiled(inline=True)
def cost(loads: Loads, step: int) -> Any:  # pragma: no cover
    return max(loads.wait[step], loads.task[step]) + SMOOTH * loads.smooth[step]
