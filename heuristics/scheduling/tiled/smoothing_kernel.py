"""The machine code of smoothing: which multicasts are moved, and when moving ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort
from tilewright.formulation.scheduling.tiled.plan_kernel import Network
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.smoothing_hints import Hints, follow
from tilewright.heuristics.scheduling.tiled.smoothing_loads import (
    NEVER,
    Casts,
    Copies,
    Loads,
    Scratch,
    busiest,
    draw,
    put,
    slowest,
)
from tilewright.heuristics.scheduling.tiled.smoothing_moves import (
    Setting,
    choices_of,
    earliest,
    moved,
    proposed,
    source_at,
    spent,
    suspects_of,
)
from tilewright.heuristics.scheduling.tiled.smoothing_staging import staged

AGAIN = 4
"""Moves that one pass makes for one step at most."""

ENOUGH = 1e-4
"""Part of the plan that a pass must gain for another to follow."""


class Tries(NamedTuple):
    """How much is tried.

    Parameters
    ----------
    rounds, tries, most : passes over all steps, moves per multicast, multicasts per step and pass
    far : steps before its use in which data may arrive
    widths : windows have 1, 2, 4 … steps, so many sizes of them; 1 for single steps
    heat : cycles that a move may cost and stay in the first pass, evenly less in later ones, none in the last
    staged : whether all multicasts are timed anew at the beginning
    """

    rounds: int
    tries: int
    most: int
    far: int
    widths: int
    heat: float
    staged: bool


@compiled
def _relieved(
    of: Setting, step: int, tries: Tries, allowed: float, suspects: Int64s, draws: Any
) -> Any:  # pragma: no cover
    """Try to shorten a step by one move; whether one was found, and cycles that the plan takes more."""
    n = suspects_of(of, step, tries.far, suspects)
    for _ in range(min(n, tries.most)):
        # without replacement: the last suspect takes the place of the one that is drawn
        pick = draw(draws, n)
        g = suspects[pick]
        n -= 1
        suspects[pick] = suspects[n]
        gained, longer = _tried(of, g, tries, allowed, draws)
        if gained:
            return True, longer
    return False, 0.0


@compiled
def _tried(of: Setting, g: int, tries: Tries, allowed: float, draws: Any) -> Any:  # pragma: no cover
    """Try to gain by one move of a multicast; whether one was found, and cycles that the plan takes more."""
    casts, copies = of.casts, of.copies
    low = earliest(of.net, casts, g, copies, of.loads, tries.far)
    # it must arrive before its copies are sent on
    top = casts.due[g]
    for q in range(casts.starts[g], casts.starts[g + 1]):
        top = min(top, copies.passed[casts.held[q]] - 1)
    if top < low:
        return False, 0.0
    for _ in range(tries.tries):
        legal, source, holder, first, last = proposed(of, g, low, top, tries.widths, draws)
        if legal:
            gained, longer = moved(of, g, source, holder, first, last, allowed)
            if gained:
                return True, longer
    return False, 0.0


@compiled
def _nearer(of: Setting, g: int, tries: int, draws: Any) -> Any:  # pragma: no cover
    """Give a multicast sources that spare energy.

    Returns
    -------
    cycles that the plan takes more, and whether places that spare more were refused or not looked at
    """
    casts, total = of.casts, 0.0
    block = casts.block[g]
    parent, first, last = of.parent[block], casts.first[g], casts.last[g]
    outside, choices = choices_of(of.net, block, of.copies, parent, of.stored[block], first)
    if choices < 2:
        return total, False
    now, left = spent(of, g, casts.source[g]), choices > tries
    # all of few places in turn, some of many
    k = draw(draws, choices)
    for _ in range(min(tries, choices)):
        k = k + 1 if k + 1 < choices else 0
        source, holder = source_at(of.net, casts, g, of.copies, parent, outside, first, last, k)
        if source >= 0 and source != casts.source[g]:
            new = spent(of, g, source)
            if new < now:
                gained, longer = moved(of, g, source, holder, first, last, 0.0)
                total += longer
                if gained:
                    now = new
                else:
                    left = True
    return total, left


@compiled
def _pass(of: Setting) -> None:  # pragma: no cover
    """Note of copies that are sources the first step in which one is read, and where multicasts begin."""
    casts, copies = of.casts, of.copies
    copies.passed[:] = NEVER
    of.early[:] = NEVER
    for g in range(len(casts.block)):
        of.early[casts.due[g]] = min(of.early[casts.due[g]], casts.first[g])
        if casts.holder[g] >= 0:
            copies.passed[casts.holder[g]] = min(copies.passed[casts.holder[g]], casts.first[g])


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
    hints: Hints,
    tries: Tries,
    worth: Any,
    seed: int,
    halt: Any,
) -> Any:  # pragma: no cover
    """Move multicasts while that shortens steps; they are changed in place.

    Where energy is worth cycles, all multicasts are tried besides, whether or not a step waits for them.

    Parameters
    ----------
    hints : for every multicast or for none, and the steps that are tried
    worth : cycles that a byte over a link, and a byte from DRAM, are worth, see `Setting`
    back : loads of what may not move, shapes (steps, links) and (steps,), and the buffers' contents
    halt : a flag, see `halting`: once it is set the plan is left as it is then

    Returns
    -------
    cycles : of the plan
    """
    draws = np.array([2 * seed + 1], dtype=np.uint64)
    links, count = len(net.rates), len(casts.block)
    pace, none = np.ones(links), np.zeros(steps)
    longest = np.zeros(steps, dtype=np.int64)
    for step in range(steps):
        longest[step] = work[step].max()
    for link in range(links):
        pace[link] = 1.0 / net.rates[link]
    loads = Loads(back[0], back[1], back[2], pace, longest, none, np.zeros(steps), np.zeros(steps))
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
        early=np.full(steps, NEVER, dtype=np.int64),
        work=work,
        touched=touched,
        old=old,
        hop=worth[0],
        memory=worth[1],
    )
    for g in range(count):
        put(net, casts, g, 1.0, loads, scratch)
    if tries.staged:
        staged(of, halt)
    total = 0.0
    for step in range(steps):
        busiest(net, step, loads)
        slowest(net, step, casts, due_starts, due, work, loads, scratch)
        total += max(loads.wait[step], loads.task[step])
    suspects = np.empty(count, dtype=np.int64)
    far = np.ones(count, dtype=np.bool_)  # whether a multicast may have nearer places
    if len(hints.source):
        for _twice in range(2):
            _pass(of)
            total += follow(of, hints)
    for turn in range(tries.rounds):
        before = total
        allowed = tries.heat * (tries.rounds - 1 - turn) / max(1, tries.rounds - 1)
        _pass(of)
        for step in range(steps):
            if halt[0] != 0:
                return total
            if not hints.stirred[step]:
                continue
            plain = loads.plain[step]  # no move makes the step shorter than its longest task
            for _again in range(AGAIN):
                if max(loads.wait[step], loads.task[step]) <= plain + 0.5:
                    break
                relieved, longer = _relieved(of, step, tries, allowed, suspects, draws)
                total += longer
                if not relieved:
                    break
        if worth[0] > 0.0:
            for g in range(count):
                if halt[0] != 0:
                    return total
                if far[g] and hints.stirred[casts.due[g]]:
                    longer, left = _nearer(of, g, tries.tries, draws)
                    total += longer
                    far[g] = left
        if allowed == 0.0 and before - total < ENOUGH * before:
            break
    return total
