"""The least sum of costs of choices and of pairs of choices, by eliminating one variable after the other.

The variable with the smallest table goes first: the costs that name it are added up, and their least over its
choices becomes a cost of the others (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972).  Before a
large table is made, choices go that another choice of the same variable undercuts whatever all others choose
(Goldstein, "Efficient rotamer elimination applied to protein side-chains", 1994).  On chains and on networks
with skips tables stay small, and the choice is the best of all.  Where a cost would be too large, the
variable takes its best choice by its own costs instead, and nothing is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.heuristics.scheduling.tiled.layouts.elimination_kernel import least_sums, most_beyond

MOST = 100_000
"""Entries of a cost that takes the place of others."""

LARGE = 20_000
"""Entries of a table before which choices go that another one undercuts."""

RIVALS = 8
"""Choices of a variable that may undercut others, those of the least costs."""

WORTH = 8
"""Times as many entries as the costs that name a variable has a table that is worth comparing its choices."""

ROUNDING = 1e-12
"""Part of its costs by which a choice undercuts another one at least."""

Scope = tuple[int, ...]
"""The variables that a cost names, ascending: one axis each."""


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
    most : entries of a cost at most that takes the place of those that name a variable
    limits : within which that must be done

    Raises
    ------
    LimitReachedError : where limits strike on the way
    """
    costs = _Sum(own)
    for pair, cost in pairs.items():
        costs.add(pair, np.asarray(cost))
    undo: list[_Eliminated] = []
    fixed: dict[int, int] = {}
    proven = True
    while costs.sizes:
        check(limits)
        variable = min(costs.sizes, key=lambda i: (costs.sizes[i], i))
        if costs.sizes[variable] > LARGE and costs.prune(variable):
            continue
        if costs.sizes[variable] <= most * len(costs.left[variable]):
            undo.append(costs.eliminate(variable))
        else:
            fixed[variable] = costs.fix(variable)
            proven = False
    for step in reversed(undo):
        fixed[step.variable] = step.best(fixed)
    return [fixed[i] for i in range(len(own))], proven


@dataclass(frozen=True, eq=False)
class _Eliminated:
    """A variable that takes its best choice whatever others choose.

    Parameters
    ----------
    variable : which
    left : choices that were left, of it and of those that its costs name
    parts : the costs that name it
    """

    variable: int
    left: dict[int, Int64s]
    parts: list[tuple[Scope, Floats]]

    def best(self, fixed: Mapping[int, int]) -> int:
        """Its best choice for those of the others."""
        at: dict[int, Any] = {
            i: left.searchsorted(fixed[i]) for i, left in self.left.items() if i != self.variable
        }
        total = np.zeros(len(self.left[self.variable]))
        for scope, cost in self.parts:
            total += cost[tuple(at.get(i, slice(None)) for i in scope)]
        return int(self.left[self.variable][total.argmin()])


class _Sum:
    """A sum of costs of variables that are still open.

    Attributes
    ----------
    left : per variable the choices that are left
    sizes : per open variable the entries of a table of all costs that name it
    """

    def __init__(self, own: Sequence[Floats]) -> None:
        self.left: list[Int64s] = [np.arange(len(cost)) for cost in own]
        self.sizes = {i: len(cost) for i, cost in enumerate(own)}
        self._tables: dict[Scope, Floats] = {(i,): np.asarray(cost) for i, cost in enumerate(own)}
        self._naming: list[set[Scope]] = [{(i,)} for i in range(len(own))]
        self._changed = set(self.sizes)

    def add(self, variables: Sequence[int], cost: Floats) -> None:
        """Add a cost with an axis of its choices that are left for each of some variables."""
        order = np.argsort(variables).tolist()
        scope, cost = tuple(variables[i] for i in order), cost.transpose(order)
        known = self._tables.get(scope)
        self._tables[scope] = cost if known is None else known + cost
        for i in scope:
            self._naming[i].add(scope)
        self._changed.update(scope)
        self._measure(scope)

    def eliminate(self, variable: int) -> _Eliminated:
        """Take out a variable that is to take its best choice whatever others choose."""
        near = self._near(variable)
        mine = self._taken(variable)
        parts: list[tuple[Scope, Floats]] = []
        for scope, cost in reversed(mine):
            for at, (wider, total) in enumerate(parts):
                if set(scope) <= set(wider):
                    parts[at] = wider, total + _spread(scope, cost, wider)
                    break
            else:
                parts.append((scope, cost))
        if len(near) > 1:
            self.add(*_least(variable, parts))
        return _Eliminated(variable, {i: self.left[i] for i in near}, parts)

    def fix(self, variable: int) -> int:
        """Let a variable take the choice that is best if all others took what suits it most; returns that."""
        mine = self._taken(variable)
        pick = int(np.sum([_rows(*cost, variable).min(axis=1) for cost in mine], axis=0).argmin())
        for scope, cost in mine:
            others = [i for i in scope if i != variable]
            if others:
                self.add(others, np.moveaxis(cost, scope.index(variable), 0)[pick])
        return int(self.left[variable][pick])

    def prune(self, variable: int) -> bool:
        """Drop choices of a variable, and of those that its costs name, which another one undercuts; whether
        there are any.
        """
        worth = self.sizes[variable] / WORTH
        near = self._changed.intersection(self._near(variable))
        self._changed -= near
        few = [i for i in sorted(near) if sum(self._tables[scope].size for scope in self._naming[i]) <= worth]
        dropped = [self._drop_undercut(i) for i in few]
        return any(dropped)

    def _drop_undercut(self, variable: int) -> bool:
        """Drop choices of a variable that another one undercuts; whether there are any.

        Proof: take any choices with x for the variable, and the same ones with y instead.  Of each
        cost that names the variable, y has at most the largest difference of both, over the choices of all
        others, more than x has, and no other cost changes.  Where these differences sum up to less than 0,
        the choices with y have the lesser sum, so that x is in no least one.
        """
        scopes = self._naming[variable]
        tables = [_rows(scope, self._tables[scope], variable) for scope in scopes]
        hoped = np.sum([cost.min(axis=1) for cost in tables], axis=0)
        rivals = hoped.argsort(kind="stable")[:RIVALS]
        beyond = np.sum([most_beyond(cost.T.copy(), rivals) for cost in tables], axis=0)
        kept = np.flatnonzero((beyond >= -ROUNDING * np.abs(hoped[rivals])[:, None]).all(axis=0))
        if len(kept) == len(hoped):
            return False
        self.left[variable] = self.left[variable][kept]
        for scope in scopes:
            self._tables[scope] = self._tables[scope].take(kept, axis=scope.index(variable))
        near = self._near(variable)
        self._measure(near)
        return True

    def _near(self, variable: int) -> list[int]:
        """All variables that costs of one name, it among them."""
        return sorted({i for scope in self._naming[variable] for i in scope})

    def _measure(self, variables: Sequence[int]) -> None:
        for variable in variables:
            self.sizes[variable] = prod(len(self.left[i]) for i in self._near(variable))

    def _taken(self, variable: int) -> list[tuple[Scope, Floats]]:
        """Take out a variable; returns the costs that named it, those with fewer variables first."""
        near = self._near(variable)
        mine = [(scope, self._tables.pop(scope)) for scope in sorted(self._naming[variable], key=len)]
        for i in near:
            self._naming[i].difference_update([scope for scope, _ in mine])
        del self.sizes[variable]
        return mine


def _least(variable: int, parts: Sequence[tuple[Scope, Floats]]) -> tuple[Scope, Floats]:
    """The least of a sum of costs over the choices of a variable, and which others it names."""
    *others, (last, largest) = sorted(parts, key=lambda part: part[1].size)
    rest = [i for i in last if i != variable]
    first = sorted({i for scope, _ in others for i in scope if i != variable})
    if not others:
        return tuple(rest), largest.min(axis=last.index(variable))
    if set(first).isdisjoint(rest):
        axes = (variable, *first)
        total: Any = sum(_spread(scope, cost, axes) for scope, cost in others)
        flat = np.ascontiguousarray(total.reshape(len(total), -1)), _rows(last, largest, variable)
        shape = *total.shape[1:], *(n for i, n in zip(last, largest.shape, strict=True) if i != variable)
        return (*first, *rest), least_sums(*flat).reshape(shape)
    axes = (variable, *sorted({*first, *rest}))
    least: Any = np.inf
    for costs in zip(*(_spread(scope, cost, axes) for scope, cost in parts), strict=True):
        least = np.minimum(least, sum(costs))
    return axes[1:], least


def _rows(scope: Scope, cost: Floats, variable: int) -> Floats:
    """A cost with a row for each choice of a variable."""
    at = scope.index(variable)
    return np.ascontiguousarray(np.moveaxis(cost, at, 0).reshape(cost.shape[at], -1))


def _spread(scope: Scope, cost: Floats, axes: Sequence[int]) -> Floats:
    """A cost with one axis per variable, of length 1 for those that it does not name."""
    named = [i for i in axes if i in scope]
    lengths = dict(zip(scope, cost.shape, strict=True))
    return cost.transpose([scope.index(i) for i in named]).reshape([lengths.get(i, 1) for i in axes])
