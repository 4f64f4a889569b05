"""Many layers and little time: there is always a bound, and what is known so far is told."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from clocks import delay
from graphs import problem_of

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.cost_tables.costs_progress import CostsProgress
from tilewright.solvers.scheduling.herald.registry import METHODS


def unlike_runs(runs: int, layers: int) -> SchedulingProblem:
    """Runs of which no two are alike, so that none can stand for another."""
    draw = random.Random(1)

    def option(engine: int) -> Option:
        return Option(
            engine, draw.randint(50, 5000), Fraction(draw.randint(1, 900)), fetch=draw.randint(0, 9)
        )

    return problem_of([[(option(0), option(1)) for _ in range(layers)] for _ in range(runs)])


MANY = unlike_runs(46, 45)


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        *((name, "edp") for name in METHODS.names()),
        *(("cpsat", objective) for objective in ("makespan", "energy")),
    ],
)
def test_there_is_always_a_bound(name: str, objective: str) -> None:
    """2,070 layers, and a limit that has already struck: a legal schedule and a bound all the same."""
    assert len(MANY.tasks) > 2000
    search = ScheduleSearch(ScheduleGoal(MANY, ScheduleObjective(objective)), Limits(seconds=0.0, threads=1))
    run_method(search, METHODS.make(name), name)
    assert search.bound is not None
    assert search.key is not None
    assert 0 < search.bound <= search.key


def test_a_heuristic_heeds_the_limit_and_keeps_its_bound() -> None:
    """Herald's feedback over 2,070 layers ends with the limit, and has the linear program's bound by then."""
    search = ScheduleSearch(ScheduleGoal(MANY, ScheduleObjective.EDP), Limits(seconds=2.0, threads=1))
    run_method(search, METHODS.make("herald"), "herald")
    assert search.limits.elapsed < 2 + delay()
    assert {point.source for point in search.trace} >= {"loads and chains", "assignment LP"}


def test_counts_are_told_once_a_second() -> None:
    """The first and the last count are told at once, those between only now and then."""
    said: list[str] = []
    progress = CostsProgress(said.append)
    for done in range(101):
        progress.reported(done, 100)
    assert said == ["costs of layers: 0 of 100 computed", "costs of layers: 100 of 100 computed"]
    assert progress.stopped.startswith("stopped while costs of layers: 100 of 100")
