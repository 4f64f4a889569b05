"""The relaxation that sequences the heaviest runs only, against plain enumeration and random schedules."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from effort import effort
from graphs import optimum_by_orders, problem_of, random_values, small_problems, taking_turns
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.solvers.scheduling.herald.lower_bounds import heavy_runs
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_runs import heavy_tasks, sequence_heavy_runs
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import even_prices

TIMED = st.sampled_from([ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])


def searched(problem: SchedulingProblem, objective: ScheduleObjective) -> ScheduleSearch:
    """A search that knows the greedy schedule, the cheap bounds and what the relaxation says."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=20, threads=1))
    search.confirm(greedy(problem, "cycles"), "greedy")
    options = feasible_options(problem)
    front = basic_bounds(search, options)
    prices = lp_prices(problem, options, objective, front)
    sequence_heavy_runs(search, options, prices[0], front, ScheduleAnnealing(problem, options, 0, prices))
    return search


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=6), TIMED, st.sampled_from([1, 3, 6]))
def test_its_bound_is_below_the_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective, tasks: int
) -> None:
    """However many runs it sequences; and what it makes of its solution is legal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heavy_runs, "_TASKS", tasks)
        patch.setattr(heavy_runs, "_HEAVY", 0.0)
        patch.setattr(heavy_runs, "_PART", 0.01)
        search = searched(problem, objective)
    optimum = optimum_by_orders(problem, objective)
    assert search.bound is not None
    assert search.key is not None
    assert search.bound <= optimum <= search.key


def unlike(runs: int, layers: int, seed: int) -> SchedulingProblem:
    """Runs of which the first two are most of the work."""
    draw = random.Random(seed)
    own = []
    for run in range(runs):
        size = 400 if run < 2 else 30
        cycles = [(draw.randint(1, size), draw.randint(1, size)) for _ in range(layers)]
        own.append(
            [
                (
                    Option(0, first, Fraction(draw.randint(1, 99))),
                    Option(1, second, Fraction(draw.randint(1, 99))),
                )
                for first, second in cycles
            ]
        )
    return problem_of(own)


@pytest.mark.parametrize("objective", [ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])
def test_its_bound_is_below_random_schedules(
    objective: ScheduleObjective, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where most runs are taken for work alone."""
    monkeypatch.setattr(heavy_runs, "_TASKS", 10)
    draw = random.Random(1)
    for seed in range(4):
        problem = unlike(5, 5, seed)
        search = searched(problem, objective)
        assert search.bound is not None
        assert search.bound <= min(random_values(problem, objective, draw, 300))


def test_it_sees_what_the_linear_program_does_not() -> None:
    """Two runs that take turns on both engines: the second ends a task later than loads and chains say."""
    search = searched(taking_turns(), ScheduleObjective.MAKESPAN)
    assert search.bound == search.key == 30
    assert next(point.source for point in search.result("", "").trace if point.bound == 30) == "heavy runs"


def test_runs_are_heavy_only_where_few_are_much_of_the_work() -> None:
    problem = unlike(6, 5, 0)
    prices = even_prices(problem)
    assert {
        problem.tasks[task].instance for task in heavy_tasks(problem, feasible_options(problem), prices)
    } >= {"net/0", "net/1"}
    many = problem_of([[(Option(0, 5, Fraction(1)), Option(1, 5, Fraction(1)))] * 20] * 30)
    assert heavy_tasks(many, feasible_options(many), even_prices(many)) == ()
