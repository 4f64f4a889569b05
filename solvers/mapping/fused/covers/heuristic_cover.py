"""Covers by groups whose trees a heuristic proposes; bounds are those that are known before any search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.fused.arena import FusionMethod, Menu, Names, TreeChoice
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.answers import FusedStart, GroupAnswer
from tilewright.solvers.mapping.fused.covers.cover_search import STOPPED, CoverAnswer, CoverSearch
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.solvers.mapping.fused.trees.candidates import CandidateSpace
from tilewright.solvers.mapping.fused.trees.proposed_trees import ProposedTrees
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnSolver


class HeuristicCover(CoverSearch):
    """The best cover by groups whose trees a heuristic proposes.

    Parameters
    ----------
    problem, told, starts : as of `CoverSearch`
    method : the heuristic
    """

    def __init__(
        self,
        problem: FusionProblem,
        told: Callable[[GroupAnswer], None],
        method: FusionMethod,
        starts: Iterable[FusedStart] = (),
    ) -> None:
        super().__init__(problem, told, starts)
        self.method = method

    def run(self, engine: Engine, limits: Limits) -> CoverAnswer:
        """Let the heuristic propose until it is done or a limit strikes; then cover by what is best."""
        self._begin(engine, limits)
        arena, stopped = _Arena(self), False
        try:
            self.method.solve(arena)
        except LimitReachedError:
            stopped = True
        for number, same in enumerate(self.classes):
            place = next(iter(same))
            before = self.answers[place]
            if before.is_settled:
                continue  # no home, or its reads alone take more
            answer = self._answer(before, arena.kinds.get(number))
            if before.value is not None and (answer.value is None or before.value <= answer.value):
                answer = replace(
                    answer, tree=before.tree, value=before.value, cycles=before.cycles, reason=""
                )
            if stopped and answer.tree is None:
                answer = replace(answer, reason=STOPPED)
            self._note(same, answer)
            if number in arena.kinds:
                self.told(self.answers[place])
        return self._covered()

    def _answer(self, before: GroupAnswer, kind: ProposedTrees | None) -> GroupAnswer:
        if kind is None:
            return replace(before, reason=f"{self.method.name} does not propose it")
        if kind.best is None or kind.value is None:
            return replace(before, reason="nothing that was proposed fits", opened=kind.priced)
        evaluation = evaluate_fused(kind.group, self.engine, self.model, kind.best)
        return replace(
            before,
            tree=kind.best,
            value=kind.value,
            reason="",
            cycles=evaluation.cycles,
            seconds=kind.seconds,
            opened=kind.priced,
            solves=kind.solver.solves,
        )


class _Arena:
    """What a heuristic sees of a cover (`FusionArena`)."""

    def __init__(self, cover: HeuristicCover) -> None:
        self.cover = cover
        self.engine, self.limits = cover.engine, cover.limits
        self.kinds: dict[int, ProposedTrees] = {}
        self._number = {place: number for number, same in enumerate(cover.classes) for place in same}
        self._place = {tuple(cover.graph.names[layer] for layer in place): place for place in self._number}

    def order(self) -> Sequence[str]:
        """All layers, in the network's order."""
        return [*self.cover.places]

    def groups(self) -> Sequence[Names]:
        """All groups whose results have a home, and that may gain."""
        return [names for names, place in self._place.items() if not self.cover.answers[place].is_settled]

    def group(self, names: Names) -> FusedGroup:
        """The layers of a group."""
        place = self._place[names]
        return self.cover.classes[self._number[place]][place]

    def kind(self, names: Names) -> int:
        """The number of its class."""
        return self._number[self._place[names]]

    def alone(self, names: Names) -> Fraction | None:
        """pJ of some layers one by one."""
        values = [self.cover.answers[self.cover.places[name],].value for name in names]
        known = [value for value in values if value is not None]
        return sum(known, Fraction(0)) if len(known) == len(values) else None

    def shapes(self, names: Names) -> Sequence[Branch]:
        """Sequences with homes, without loops."""
        return self._of(names).shapes

    def menus(self, names: Names, shape: int) -> Sequence[Menu]:
        """The loops that a shape may have, by the names of the group's layers."""
        kind = self._of(names)
        called = dict(zip(kind.group.names, names, strict=True))
        return [replace(menu, layer=called[menu.layer]) for menu in kind.menus(shape)]

    def outside(self, names: Names) -> int:
        """How many tensors come from outside the group, or leave it."""
        group = self._of(names).group
        passed = {name for name in names if group.read_by(group.names[names.index(name)])}
        tensors = sum(len(operator.tensors) for operator in group.operators.values())
        return tensors - len(group.readings) - len(passed)

    def price(self, names: Names, choice: TreeChoice) -> Fraction | None:
        """pJ of a tree with the best mappings of its turns."""
        kind = self._of(names)
        self.limits.check()
        started = time.monotonic()
        try:
            return kind.price(choice, self.cover.model)
        finally:
            kind.seconds += time.monotonic() - started

    def _of(self, names: Names) -> ProposedTrees:
        number = self.kind(names)
        if number not in self.kinds:
            problem, group = self.cover.problem, next(iter(self.cover.classes[number].values()))
            perfect = problem.factors == "perfect"
            self.kinds[number] = ProposedTrees(
                group,
                SkeletonSpace(group, self.engine, problem.home_level, perfect=perfect),
                CandidateSpace(group, problem.turn_engines(self.engine)),
                TurnSolver(
                    self.engine,
                    self.cover.model,
                    parse_objective("energy"),
                    problem.factors,
                    problem.storage,
                    self.limits,
                ),
            )
        return self.kinds[number]
