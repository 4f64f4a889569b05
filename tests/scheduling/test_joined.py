"""Runs that read each other's results: every method, every bound, every proof."""

from __future__ import annotations

from fractions import Fraction

import pytest
from effort import effort
from graphs import optimum_by_orders
from hypothesis import given, settings
from hypothesis import strategies as st
from joined import joined_problems

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    Task,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import (
    METRICS,
    HeraldSettings,
    IdleRule,
    Ordering,
    greedy,
    herald,
    initial_order,
)
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.solvers.scheduling.herald.second_opinions.second_opinion import ask_for_better
from tilewright.solvers.second_opinion import Verdict


@settings(max_examples=effort(60), deadline=None)
@given(joined_problems(most=12, fetch_memory=True), st.sampled_from(METRICS), st.sampled_from(IdleRule))
def test_orders_respect_edges_between_runs(problem: SchedulingProblem, metric: str, idle: IdleRule) -> None:
    """Either initial order has every task behind what it reads; Herald and greedy are legal."""
    for ordering in Ordering:
        place = {task: index for index, task in enumerate(initial_order(problem, ordering))}
        assert len(place) == len(problem.tasks)
        assert all(place[first] < place[second] for first, second in problem.edges)
        chosen = HeraldSettings(metric, ordering, idle=idle)
        assert not evaluate_schedule(problem, herald(problem, chosen)).violations
    assert not evaluate_schedule(problem, greedy(problem, metric)).violations


@settings(max_examples=effort(40), deadline=None)
@given(joined_problems(most=5), st.sampled_from(ScheduleObjective))
def test_proven_optima_are_those_of_enumeration(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """Bounds, optimum and second opinion agree with all orders and options."""
    optimum = optimum_by_orders(problem, objective)
    cheap = ScheduleSearch(ScheduleGoal(problem, objective), Limits())
    basic_bounds(cheap, feasible_options(problem))
    assert cheap.bound is not None
    assert cheap.bound <= optimum
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(threads=1))
    run_method(search, METHODS.make("cpsat"), "cpsat")
    result = search.result("cpsat", "")
    assert (result.status, result.key) == (Status.OPTIMAL, optimum)
    verdict, _, text = ask_for_better(problem, objective, optimum, Limits(seconds=20, threads=1))
    assert verdict is Verdict.CONFIRMED, text


def _two_alike(read: int) -> SchedulingProblem:
    """Two runs alike, of which one is read by a long third."""
    short, long = (Option(0, 3, Fraction(1)),), (Option(1, 9, Fraction(1)),)
    tasks = (Task("a", "a", "x", short), Task("b", "a", "x", short), Task("c", "c", "y", long))
    return SchedulingProblem("alike", ("first", "second"), tasks, ((read, 2),))


@pytest.mark.parametrize("read", [0, 1])
def test_a_run_that_another_one_reads_is_not_exchanged(read: int) -> None:
    """Of two runs alike the one that is waited for goes first, wherever it stands."""
    search = ScheduleSearch(ScheduleGoal(_two_alike(read), ScheduleObjective.MAKESPAN), Limits(threads=1))
    run_method(search, METHODS.make("cpsat"), "cpsat")
    result = search.result("cpsat", "")
    assert (result.status, result.key) == (Status.OPTIMAL, 12)


@pytest.mark.parametrize("name", ["lns", "annealing"])
def test_improving_methods_take_joined_runs(name: str) -> None:
    """The methods that begin with the greedy schedule end with a legal one."""
    limits = Limits(seconds=20, threads=1)

    def met(point: TracePoint) -> None:
        if point.key == 12 * 3:
            limits.stop.set()

    search = ScheduleSearch(ScheduleGoal(_two_alike(1), ScheduleObjective.EDP), limits, met)
    run_method(search, METHODS.make(name), name)
    assert search.key == 12 * 3
