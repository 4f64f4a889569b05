"""Hints: where the transfers of a plan of nearly the same atoms came from and when, as a start of smoothing.

A change of a few layers leaves most of a smoothed plan's transfers as they were.  Blocks of the two plans are
matched layer by layer, steps too, and every multicast is offered the source and the steps that it had.  What
no longer is legal, or gains nothing, stays as completion made it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.foundation.arrays import Bools, Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.smoothing_loads import Casts
from tilewright.heuristics.scheduling.tiled.smoothing_moves import Setting, earliest, moved

KINDS = 4
"""Kinds of blocks."""


AROUND = 8
"""Steps before a layer that differs whose transfers are moved on, too: completion brings data so early."""


class Hints(NamedTuple):
    """What smoothing begins with.

    Parameters
    ----------
    source, first, last : per multicast a place that may be its source, -1 for no hint, and steps that may be
        its own; empty without hints
    stirred : per step, whether transfers are moved on there
    """

    source: Int32s
    first: Int32s
    last: Int32s
    stirred: Bools


def no_hints(steps: int) -> Hints:
    """Hints for no multicast of a plan with so many steps."""
    none = np.zeros(0, dtype=np.int32)
    return Hints(none, none, none, np.ones(steps, dtype=np.bool_))


def hints_from(old: tuple[AtomicDag, Plan], dag: AtomicDag, plan: Plan, casts: Casts, engines: int) -> Hints:
    """What the multicasts of a plan may take over from another one of the same network.

    Parameters
    ----------
    old : atoms and plan that are taken over
    dag, plan : the atoms, and the plan that is smoothed
    casts : the multicasts of the plan
    engines : of the machine
    """
    before, smoothed = old
    of_old = _matched(before, dag)
    moving = smoothed.transfers
    inward = np.flatnonzero(moving.target < engines)
    key = moving.block[inward].astype(np.int64) * engines + moving.target[inward]
    # the k-th copy of a block on an engine takes after the k-th one there
    order = np.lexsort((moving.first[inward], key))
    known = _numbered(key[order])
    if not len(known):
        return no_hints(plan.steps)
    head = casts.starts[:-1]
    block = of_old[casts.block]
    wanted = block * engines + casts.engine[head]
    turn = np.lexsort((casts.first, wanted))
    asked = np.empty((len(wanted), 2), dtype=np.int64)
    asked[turn] = _numbered(wanted[turn])
    span = np.int64(1 << 20)
    at = np.searchsorted(known[:, 0] * span + known[:, 1], asked[:, 0] * span + asked[:, 1])
    at = np.minimum(at, len(known) - 1)
    same = (block >= 0) & (known[at] == asked).all(axis=1)
    picked = inward[order][at]
    steps = _steps(before, smoothed, dag, plan)
    source = np.where(same, moving.source[picked], -1).astype(np.int32)
    return Hints(source, steps[moving.first[picked]], steps[moving.last[picked]], _stirred(old, dag, plan))


def _numbered(keys: Int64s) -> Int64s:
    """Sorted keys, each with how many equal ones stand before it, shape (keys, 2)."""
    begins = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    lengths = np.diff(np.append(begins, len(keys)))
    rank = np.arange(len(keys)) - np.repeat(begins, lengths)
    return np.stack([keys, rank], axis=1)


def _matched(before: AtomicDag, dag: AtomicDag) -> Int64s:
    """Per block the same block of other atoms, -1 where its layer has others."""
    theirs, mine = _families(before), _families(dag)
    count = max(int(theirs.max()), int(mine.max())) + 1
    order = np.argsort(theirs, kind="stable")
    many, starts = np.bincount(theirs, minlength=count), np.zeros(count, dtype=np.int64)
    starts[1:] = np.cumsum(many)[:-1]
    turn = np.argsort(mine, kind="stable")
    rank = np.empty(len(mine), dtype=np.int64)
    rank[turn] = _numbered(mine[turn])[:, 1]
    same = np.bincount(mine, minlength=count)[mine] == many[mine]
    at = np.minimum(starts[mine] + rank, len(order) - 1)
    matched: Int64s = np.where(same, order[at], -1)
    return matched


def _families(dag: AtomicDag) -> Int64s:
    """Per block its kind and the layer that makes it, or that reads it first."""
    unit = np.zeros(dag.blocks, dtype=np.int64)
    readers = np.repeat(dag.unit, np.diff(dag.read_starts))
    unit[dag.reads[::-1]] = readers[::-1]
    made = dag.block_parent >= 0
    unit[made] = dag.unit[dag.block_parent[made]]
    return unit * KINDS + dag.block_kind


def _steps(before: AtomicDag, smoothed: Plan, dag: AtomicDag, plan: Plan) -> Int32s:
    """Per step of a plan the step of another one: layers begin together, and steps in between follow."""
    own, first = np.unique(_begins(before, smoothed), return_index=True)
    theirs = np.maximum.accumulate(_begins(dag, plan)[first])
    at = np.interp(np.arange(smoothed.steps), own, theirs)
    steps: Int32s = np.minimum(at, plan.steps - 1).astype(np.int32)
    return steps


def _begins(dag: AtomicDag, plan: Plan) -> Int64s:
    """Per layer the step in which it begins, and the number of steps."""
    begin = np.full(len(dag.units) + 1, plan.steps, dtype=np.int64)
    np.minimum.at(begin, dag.unit, plan.first)
    return begin


def _stirred(old: tuple[AtomicDag, Plan], dag: AtomicDag, plan: Plan) -> Bools:
    """The steps of layers whose atoms or engines differ, of those right after them, and some before."""
    before, smoothed = old
    stirred = np.zeros(plan.steps, dtype=np.bool_)
    begin, end = _begins(dag, plan), np.zeros(len(dag.units) + 1, dtype=np.int64)
    np.maximum.at(end, dag.unit, plan.first)
    for i, after in pairwise(np.argsort(begin, kind="stable").tolist()):
        own, other = (slice(*of.base[i : i + 2]) for of in (dag, before))
        same = dag.tilings[i] == before.tilings[i]
        if not same or (plan.engine[own] != smoothed.engine[other]).any():
            stirred[max(0, begin[i] - AROUND) : max(end[i], end[after]) + 2] = True
    return stirred


@compiled
def follow(of: Setting, hints: Hints) -> Any:  # pragma: no cover
    """Move multicasts to where hints say, as far as that is legal, in the order in which they are read.

    Parameters
    ----------
    of : the plan
    hints : per multicast

    Returns
    -------
    cycles that the plan takes more
    """
    casts, copies, total = of.casts, of.copies, 0.0
    for at in range(len(of.due)):
        g = of.due[at]
        if hints.source[g] < 0:
            continue
        low, top = earliest(of.net, casts, g, copies, of.loads, casts.due[g]), casts.due[g]
        for q in range(casts.starts[g], casts.starts[g + 1]):
            top = min(top, copies.passed[casts.held[q]] - 1)
        if top < low:
            continue
        first = min(top, max(low, hints.first[g]))
        last = min(top, max(first, hints.last[g]))
        source, holder = _from(of, g, hints.source[g], first, last)
        if source < 0:
            source, holder = _from(of, g, casts.source[g], first, last)
        if source >= 0 and (source != casts.source[g] or first != casts.first[g] or last != casts.last[g]):
            total += moved(of, g, source, holder, first, last, np.inf)[1]
    return total


@compiled
def _from(of: Setting, g: int, place: int, first: int, last: int) -> Any:  # pragma: no cover
    """A place and the residency there that a multicast can be sent from; (-1, -1) where it cannot."""
    casts, copies = of.casts, of.copies
    b = casts.block[g]
    parent = of.parent[b]
    if place >= of.net.engines:
        if parent < 0 or of.stored[b] < first:
            return place, -1
        return -1, -1
    for q in range(casts.starts[g], casts.starts[g + 1]):
        if casts.engine[q] == place:
            return -1, -1
    for whole in range(2):
        block = parent if whole == 1 else b
        if block < 0:
            break
        for i in range(copies.of_block[block], copies.of_block[block + 1]):
            there = copies.ready[i] < first and copies.start[i] <= first and copies.end[i] >= last
            if copies.engine[i] == place and there:
                return place, i
    return -1, -1
