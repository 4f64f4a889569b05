"""Bounds by horizons that no schedule ends within, against plain enumeration and random schedules."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from effort import effort
from graphs import optimum_by_orders, problem_of, random_values, small_problems, taking_turns
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.scheduling.herald.lower_bounds import tight_horizons
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.lower_bounds.tight_horizons import TightHorizons, state_within
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices

TIMED = st.sampled_from([ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])


def raised(problem: SchedulingProblem, objective: ScheduleObjective, patience: float = 9) -> ScheduleSearch:
    """A search whose bound is the assignment LP's, raised by horizons."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=60, threads=1))
    options = feasible_options(problem)
    front = basic_bounds(search, options)
    search.confirm(greedy(problem), "greedy")
    for prices in lp_prices(problem, options, objective, front):
        TightHorizons(search, options, prices, front, ScheduleAnnealing(problem, options, 0)).run(patience)
    return search


@settings(max_examples=effort(60), deadline=None)
@given(small_problems(most=6), TIMED, st.sampled_from([Fraction(1, 1000), Fraction(1, 4), Fraction(9)]))
def test_the_bound_is_below_the_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective, step: Fraction
) -> None:
    """However far the first horizon is, beside fetches, memory and context changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tight_horizons, "_STEP", step)
        search = raised(problem, objective)
    assert search.bound is not None
    assert search.key is not None
    assert search.bound <= optimum_by_orders(problem, objective) <= search.key


@st.composite
def plain_problems(draw: st.DrawFn) -> SchedulingProblem:
    """Chains without fetches and memory, some of them equal: the model leaves nothing out."""
    engines = draw(st.integers(1, 3))
    layer = st.tuples(*(st.tuples(st.integers(1, 6), st.integers(1, 9)) for _ in range(engines)))
    kinds = draw(st.lists(st.lists(layer, min_size=1, max_size=3), min_size=1, max_size=2))
    runs = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
    return problem_of(
        [
            [tuple(Option(e, c, Fraction(p)) for e, (c, p) in enumerate(options)) for options in run]
            for run in runs
        ],
        engines,
    )


@settings(max_examples=effort(60), deadline=None)
@given(st.data(), plain_problems(), st.sampled_from([0, 1, 3]), st.sampled_from([0, 3, 24]))
def test_the_model_holds_schedules_from_the_least_cost_on(
    data: st.DataObject, problem: SchedulingProblem, worth: int, ordered: int
) -> None:
    """Whatever weights its row has and however many tasks have an order, and none that costs less."""
    options = feasible_options(problem)
    share = st.sampled_from([0.0, 0.1, 0.5, 0.9])
    prices = Prices(tuple(data.draw(share) for _ in problem.engines), float(worth))
    best = int(optimum_by_orders(problem, Cost(worth)))  # type: ignore[arg-type]
    for most, expected in ((best, cp_model.OPTIMAL), (best - 1, cp_model.INFEASIBLE)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tight_horizons, "_ORDERED", ordered)
            statement = state_within(problem, options, prices, most)
        run = CpSatRun(statement.model, Limits(seconds=60, threads=1), lambda: False, workers=1, brief=True)
        run.solve()
        assert run.status == expected


class Cost:
    """Makespan plus energy at its price, in the place of an objective."""

    def __init__(self, price: int) -> None:
        self._price = price

    def of(self, makespan: int, energy: Fraction) -> Fraction:
        return makespan + self._price * energy


def unlike(seed: int) -> SchedulingProblem:
    """Four runs on two or three engines, of which one is most of the work."""
    draw = random.Random(seed)
    engines = 2 + seed % 2
    own = []
    for run in range(4):
        size = 300 if not run else 80
        own.append(
            [
                tuple(
                    Option(engine, draw.randint(1, size), Fraction(draw.randint(1, 99)), draw.randint(0, 3))
                    for engine in range(engines)
                )
                for _ in range(7)
            ]
        )
    return problem_of([*own, own[-1]], engines, skips=bool(seed % 3))


@pytest.mark.parametrize("objective", [ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])
def test_the_bound_is_below_random_schedules(objective: ScheduleObjective) -> None:
    """Of runs of which one is most of the work, equal ones among them; and above the linear program's."""
    draw = random.Random(3)
    risen = 0
    for seed in range(effort(4)):
        problem = unlike(seed)
        options = feasible_options(problem)
        search = raised(problem, objective, patience=1)
        plain = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=20, threads=1))
        basic_bounds(plain, options)
        assert search.bound is not None
        assert plain.bound is not None
        assert search.bound >= plain.bound
        risen += search.bound > plain.bound * Fraction(1001, 1000)
        assert search.bound <= min(random_values(problem, objective, draw, 200))
    assert risen


def test_two_runs_that_take_turns_are_proven_and_scheduled() -> None:
    """The second ends a task later than loads and chains say; a solution is a schedule."""
    search = raised(taking_turns(), ScheduleObjective.MAKESPAN)
    assert search.bound == search.key == 30
    assert (
        next(point.source for point in search.result("", "").trace if point.bound == 30) == "tight horizons"
    )


def test_large_problems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tight_horizons, "_MOST", 3)
    search = raised(taking_turns(), ScheduleObjective.MAKESPAN)
    assert "tight horizons" not in {point.source for point in search.result("", "").trace}
