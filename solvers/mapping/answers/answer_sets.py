"""Answers beyond one optimum: Pareto fronts, the k best mappings, all optimal ones, conflicts of constraints.

All are searches of the same tree (:mod:`tilewright.solvers.mapping.tree.tree`) with another goal, and as
proven: a part of the space is closed only when its bounds show that it holds nothing that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.compiled.cuts import (
    BAND,
    EVERYTHING,
    NOTHING,
    Cut,
    cut_at,
    cut_below,
    cut_by_front,
)
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves
from tilewright.solvers.mapping.tree.tree import Tree

if TYPE_CHECKING:
    from tilewright.formulation.mapping.canonical import CanonicalForm

_LOOKED_AT = 4096  # complete decisions taken from one batch before the goal closes more of them


@dataclass(frozen=True, slots=True)
class Solution:
    """A mapping and what it costs."""

    mapping: Mapping
    evaluation: Evaluation


@dataclass(frozen=True)
class AnswerSet:
    """Several solutions.

    Parameters
    ----------
    solutions : in increasing order of the objective key (of cycles for a front)
    complete : whether it is proven that there are no others to report
    """

    solutions: tuple[Solution, ...]
    complete: bool


class _Front(Goal):
    """Every pair of energy and cycles that no other pair beats in both."""

    both = True

    def __init__(self, problem: LayerProblem) -> None:
        self._problem = problem
        self._points: list[tuple[int, int]] = []  # energy (scaled), cycles; cycles increasing
        self._solution_at: dict[tuple[int, int], Solution] = {}

    def cut(self) -> Cut:
        """Parts that no point found so far is at least as good as in both respects."""
        return cut_by_front([point[0] for point in self._points], [point[1] for point in self._points])

    def take(self, leaves: Leaves) -> None:
        """Add what is new, best product first."""
        open_ = np.argsort(leaves.energy * leaves.cycles, kind="stable")
        while len(open_):
            open_ = open_[self.wanted(leaves.energy[open_], leaves.cycles[open_], leaves.keys[open_])]
            if len(open_):
                self._add(leaves.mapping(int(open_[0])))
                open_ = open_[1:]

    def _add(self, mapping: Mapping) -> None:
        evaluation = self._problem.evaluate(mapping)
        if evaluation.violations:
            return
        point = int(evaluation.energy * self._problem.statement.energy_scale), evaluation.cycles
        if any(e <= point[0] and c <= point[1] for e, c in self._points):
            return
        self._points = [(e, c) for e, c in self._points if e < point[0] or c < point[1]]
        self._points = sorted([*self._points, point], key=lambda pair: pair[1])
        self._solution_at[point] = Solution(mapping, evaluation)

    def solutions(self) -> tuple[Solution, ...]:
        return tuple(self._solution_at[point] for point in self._points)


class _Best(Goal):
    """The ``count`` mappings of least key; with ``ties_only``, those of the very least."""

    def __init__(self, problem: LayerProblem, count: int, ties_only: bool) -> None:
        self._problem = problem
        self._count = count
        self._ties_only = ties_only
        self._solutions: list[tuple[Fraction, Solution]] = []
        self._seen: set[CanonicalForm] = set()
        self.cut_off = False

    def _limit(self) -> Fraction | None:
        """No key above this is asked for."""
        if not self._solutions:
            return None
        if self._ties_only:
            return self._solutions[0][0]
        return self._solutions[-1][0] if len(self._solutions) == self._count else None

    def cut(self) -> Cut:
        limit = self._limit()
        if limit is None:
            return EVERYTHING
        full = len(self._solutions) == self._count
        goal = limit * self._problem.key_scale
        if full and not self._ties_only:  # only strictly better ones; of ties, equals are wanted too
            return cut_below(goal, self._problem.objective.key_powers)
        return cut_at(most=float(goal) * (1 + BAND))

    def take(self, leaves: Leaves) -> None:
        order = np.argsort(leaves.keys, kind="stable")
        for start in range(0, len(order), _LOOKED_AT):
            part = order[start : start + _LOOKED_AT]
            for index in part[self.wanted(leaves.energy[part], leaves.cycles[part], leaves.keys[part])]:
                self._add(leaves.mapping(int(index)))

    def _add(self, mapping: Mapping) -> None:
        from tilewright.formulation.mapping.canonical import canonical_form

        form = canonical_form(self._problem.operator, self._problem.engine, mapping)
        if form in self._seen:
            return
        evaluation = self._problem.evaluate(mapping)
        key = self._problem.key_of(evaluation)
        if evaluation.violations:
            return
        limit = self._limit()
        if limit is not None and (key > limit or (key == limit and not self._ties_only)):
            return
        self._seen.add(form)
        self._solutions.append((key, Solution(mapping, evaluation)))
        self._solutions.sort(key=lambda pair: pair[0])
        if self._ties_only:
            self._solutions = [pair for pair in self._solutions if pair[0] == self._solutions[0][0]]
        if len(self._solutions) > self._count:
            self.cut_off = self._ties_only
            del self._solutions[self._count :]

    def solutions(self) -> tuple[Solution, ...]:
        return tuple(solution for _, solution in self._solutions)


def pareto_front(problem: LayerProblem, limits: Limits | None = None) -> AnswerSet:
    """All mappings of the energy-cycles Pareto front, one per point.

    The problem's objective only guides the order of the search.
    """
    goal = _Front(problem)
    complete = _search(problem, goal, limits)
    return AnswerSet(goal.solutions(), complete)


def best_mappings(problem: LayerProblem, count: int, limits: Limits | None = None) -> AnswerSet:
    """The ``count`` best different mappings of the searched space, or all that there are.

    Mappings are different where their tiles, stores or the effects of their loop orders are
    (:mod:`tilewright.formulation.mapping.canonical`).  An order that another one dominates is
    never better, but may well be the second best: for more than one mapping every effect is searched.
    """
    searched = problem if count == 1 else problem.with_every_order()
    return _answers(_Best(searched, count, ties_only=False), searched, limits)


def optimal_mappings(problem: LayerProblem, limits: Limits | None = None, most: int = 1000) -> AnswerSet:
    """All different mappings of the least key; incomplete where there are more than ``most``."""
    searched = problem.with_every_order()
    return _answers(_Best(searched, most, ties_only=True), searched, limits)


def _answers(goal: _Best, problem: LayerProblem, limits: Limits | None) -> AnswerSet:
    complete = _search(problem, goal, limits)
    return AnswerSet(goal.solutions(), complete and not goal.cut_off)


def _search(problem: LayerProblem, goal: _Front | _Best, limits: Limits | None) -> bool:
    return _finished(problem, goal, limits or Limits())


def _finished(problem: LayerProblem, goal: Goal, limits: Limits) -> bool:
    """Search until the goal wants nothing more; whether it came so far within the limits."""
    search = LayerSearch(problem, limits)
    if problem.is_uneven:
        from tilewright.solvers.mapping.arrangements.arrangement_trees import ArrangementTrees

        return ArrangementTrees(search, goal, Branch()).run() is None
    try:
        tree = Tree(search, goal)
    except LimitReachedError:
        return False
    return tree.empty or tree.run() is None


def minimal_conflict(problem: LayerProblem, limits: Limits | None = None) -> tuple[str, ...]:
    """A smallest-by-deletion set of constraints that no mapping satisfies together.

    Capacities, array axes and the user's demands are left out one after the other; what cannot be left
    out without a mapping appearing remains.  Empty where a mapping exists or the limits strike first.
    """
    if problem.is_uneven:  # constraints that even storage cannot meet are no conflict of the uneven space
        return ()
    limits = limits or Limits()
    demands = list(problem.constraints.texts)
    names = [limit.name for limit in problem.statement.limits]

    def feasible(kept_demands: Sequence[str], kept_names: Sequence[str]) -> bool | None:
        return _feasible(_relaxed(problem, kept_demands, kept_names), limits)

    if feasible(demands, names) is not False:
        return ()
    for group in (demands, names):
        for name in list(group):
            group.remove(name)
            if feasible(demands, names) is not False:
                group.append(name)
            if limits.expired:
                return ()
    return (*demands, *names)


def proves_conflict(problem: LayerProblem, names: Sequence[str], limits: Limits | None = None) -> bool | None:
    """Whether no mapping satisfies these constraints together; ``None`` where time ran out.

    Parameters
    ----------
    names : some of the user's demands and of the machine's limits
    """
    if problem.is_uneven:
        return None
    demands = [name for name in problem.constraints.texts if name in names]
    feasible = _feasible(_relaxed(problem, demands, names), limits or Limits())
    return None if feasible is None else not feasible


def _relaxed(problem: LayerProblem, demands: Sequence[str], names: Sequence[str]) -> LayerProblem:
    """The problem with some of the user's demands and some of the machine's limits only."""
    perfect = "perfect" if problem.space.nest.perfect else "imperfect"
    stated = layer_problem(
        problem.operator, problem.engine, problem.objective, problem.model.name, demands, perfect
    )
    kept = [limit for limit in stated.statement.limits if limit.name in names]
    extra = stated.limits[len(stated.statement.limits) :]
    return replace(stated, limits=(*kept, *extra))


def _feasible(problem: LayerProblem, limits: Limits) -> bool | None:
    """Whether any decision satisfies the problem's limits; ``None`` where time ran out."""
    is_feasible = False

    class First(Goal):
        def cut(self) -> Cut:
            return NOTHING if is_feasible else EVERYTHING

        def take(self, leaves: Leaves) -> None:
            nonlocal is_feasible
            is_feasible = is_feasible or len(leaves) > 0

    finished = _finished(problem, First(), replace(limits, gap=0.0))
    return True if is_feasible else (False if finished else None)
