"""Mappings of tasks on tiles from machine files, searched when a plan asks for them and cached on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import Objective
from tilewright.formulation.scheduling.tiled.own_costs import (
    LeastPrices,
    TaskPrice,
    TaskShape,
    counted_price,
    task_operator,
)
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.own_engine import OwnTile
from tilewright.solvers.scheduling.own_costs import MappingAnswer, MappingQuestion, best_mappings

_PART = 0.25
"""Part of the time left that the tasks of one question may take."""


class SearchedPrices:
    """The best mapping of every task that is asked for, see `best_mappings`.  Compared by identity.

    Parameters
    ----------
    limits : of the whole search
    metric : by which mappings are chosen
    folder : of the file of answers; by default the user's cache directory
    """

    def __init__(self, limits: Limits, metric: str, folder: Path | None = None) -> None:
        self._limits, self._metric, self._folder = limits, metric, folder
        self.known: dict[tuple[OwnTile, TaskShape], tuple[TaskPrice, MappingAnswer]] = {}

    def prices(self, own: OwnTile, shapes: Sequence[TaskShape]) -> Sequence[TaskPrice]:
        """What tasks cost on a tile.

        Raises
        ------
        InputError : for a task that has no legal mapping
        LimitReachedError : where a limit struck before each had one
        """
        missing = [shape for shape in shapes if (own, shape) not in self.known]
        if missing:
            self._search(own, missing)
        return [self.known[own, shape][0] for shape in shapes]

    def mapping(self, own: OwnTile, shape: TaskShape) -> tuple[Mapping, bool]:
        """The mapping of a task that has a price, and whether it is proven best."""
        mapping, proven = self.known[own, shape][1].mapping, self.known[own, shape][1].proven
        assert mapping is not None
        return mapping, proven

    def _search(self, own: OwnTile, shapes: Sequence[TaskShape]) -> None:
        if self._limits.expired:
            raise LimitReachedError
        engine = own.inside
        questions = {shape: MappingQuestion(task_operator(shape), engine, self._metric) for shape in shapes}
        limits = self._limits.share(_PART)
        answers = best_mappings(questions.values(), limits, self._folder, continued=False)
        for shape, question in questions.items():
            answer = answers[question]
            if answer.mapping is None:
                message = f"no mapping fits a task of trips {[*shape]}"
                raise InputError(own.engine.name, None, message)
            self.known[own, shape] = counted_price(own, shape, answer.mapping), answer


def metric_of(objective: Objective) -> str:
    """By which mappings of tasks are chosen: as the objective weighs energy and cycles."""
    if not objective.energy_power:
        return "cycles"
    return "edp" if objective.delay_power else "energy"


def priced(problem: TiledProblem, limits: Limits) -> TiledProblem:
    """The problem with prices of tasks, where its tiles are machine files."""
    engine = problem.machine.engine
    if engine.own is None or isinstance(engine.prices, SearchedPrices):
        return problem
    prices = SearchedPrices(limits, metric_of(problem.objective))
    return replace(problem, machine=problem.machine.changed(engine=replace(engine, prices=prices)))


def least_priced(problem: TiledProblem) -> TiledProblem:
    """The problem with costs of tasks that no mapping undercuts, where its tiles are machine files."""
    engine = problem.machine.engine
    if engine.own is None:
        return problem
    return replace(problem, machine=problem.machine.changed(engine=replace(engine, prices=LeastPrices())))
