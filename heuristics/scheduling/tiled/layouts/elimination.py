"""The least sum of costs of choices and of pairs of choices, by eliminating one variable after the other.

The variable with the smallest table goes first: the costs that name it are added up, and their least over its
choices becomes a cost of the others (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972).  On chains
and on networks with skips tables stay small, and the choice is the best of all.  Where a table would be too
large, the variable takes its best choice by its own costs instead, and nothing is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.foundation.arrays import Floats

MOST = 4_000_000
"""Entries of a table."""


def least_choice(
    own: Sequence[Floats],
    pairs: Mapping[tuple[int, int], Floats],
    most: int = MOST,
    limits: Limits | None = None,
) -> tuple[list[int], bool]:
    """A choice for every variable, and whether their sum is proven to be the least.

    Parameters
    ----------
    own : per variable the costs of its choices
    pairs : per two variables the costs, shape (choices of the first, choices of the second)
    most : entries of a table at most
    limits : within which that must be done

    Raises
    ------
    LimitReachedError : where limits strike on the way
    """
    tables: list[tuple[tuple[int, ...], Floats]] = [((i,), np.asarray(cost)) for i, cost in enumerate(own)]
    tables += [(pair, np.asarray(cost)) for pair, cost in pairs.items()]
    counts = [len(cost) for cost in own]
    left = set(range(len(own)))
    undo: list[tuple[int, tuple[int, ...], Floats]] = []
    proven = True
    fixed: dict[int, int] = {}
    near: dict[int, set[int]] = {i: {i} for i in left}
    for scope, _ in tables:
        for i in scope:
            near[i] |= set(scope)

    def size(i: int) -> int:
        return prod(counts[j] for j in near[i])

    while left:
        check(limits)
        variable = min(left, key=lambda i: (size(i), i))
        mine = [table for table in tables if variable in table[0]]
        tables = [table for table in tables if variable not in table[0]]
        if size(variable) > most:
            alone = np.zeros(counts[variable])
            for scope, cost in mine:
                alone += cost.min(axis=tuple(a for a, i in enumerate(scope) if i != variable))
            pick = int(np.argmin(alone))
            fixed[variable] = pick
            proven = False
            for scope, cost in mine:
                others = tuple(i for i in scope if i != variable)
                if others:
                    tables.append((others, np.take(cost, pick, axis=scope.index(variable))))
        else:
            others = tuple(sorted(near[variable] - {variable}))
            total = np.zeros([counts[variable], *(counts[i] for i in others)])
            for scope, cost in mine:
                total += _aligned(scope, cost, (variable, *others))
            undo.append((variable, others, total))
            if others:
                tables.append((others, total.min(axis=0)))
                for i in others:
                    near[i] |= set(others)
        left.discard(variable)
        for i in near.pop(variable):
            if i in near:
                near[i].discard(variable)
    for variable, others, total in reversed(undo):
        rest: tuple[Any, ...] = (slice(None), *(fixed[i] for i in others))
        fixed[variable] = int(total[rest].argmin())
    return [fixed[i] for i in range(len(own))], proven


def _aligned(scope: tuple[int, ...], cost: Floats, axes: tuple[int, ...]) -> Floats:
    """A table with one axis per variable, of length 1 for those that it does not name."""
    order = sorted(range(len(scope)), key=lambda a: axes.index(scope[a]))
    moved = np.transpose(cost, order)
    named = {scope[a] for a in order}
    lengths = iter(moved.shape)
    return moved.reshape([next(lengths) if i in named else 1 for i in axes])
