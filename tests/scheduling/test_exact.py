"""CP-SAT's schedules against plain enumeration, and every method against the evaluator."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from graphs import optimum_by_clock, optimum_by_orders, problem_of, small_problems
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleResult, ScheduleSearch
from tilewright.solvers import cpsat_rows
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing


def solved(
    problem: SchedulingProblem,
    objective: ScheduleObjective,
    name: str = "cpsat",
    seconds: float | None = None,
    gap: float = 0.0,
) -> ScheduleResult:
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=seconds, gap=gap, threads=1))
    return run_method(search, METHODS.make(name), name)


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(), st.sampled_from(ScheduleObjective))
def test_optimum_equals_enumeration_of_orders(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """On small random problems the proven optimum is that of all orders and options."""
    result = solved(problem, objective)
    assert result.status is Status.OPTIMAL
    assert result.key == optimum_by_orders(problem, objective)


@settings(max_examples=effort(10), deadline=None)
@given(small_problems(), st.sampled_from(ScheduleObjective))
def test_rows_stated_by_digits_give_the_same_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """Where rows of 4 count as wide and digits have two bits, the proven optimum is that of all orders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpsat_rows, "WIDE", 4)
        patch.setattr(cpsat_rows, "_DIGIT", 2)
        result = solved(problem, objective)
    assert result.status is Status.OPTIMAL
    assert result.key == optimum_by_orders(problem, objective)


@settings(max_examples=effort(15), deadline=None)
@given(small_problems(most=4), st.sampled_from((ScheduleObjective.MAKESPAN, ScheduleObjective.ENERGY)))
def test_tasks_of_billions_of_cycles(problem: SchedulingProblem, objective: ScheduleObjective) -> None:
    """Where cycles pass 2^31 the proven optimum is that of all orders."""
    long = 3 * 10**9 + 1
    tasks = [
        replace(
            task,
            options=tuple(replace(o, cycles=o.cycles * long, fetch=o.fetch * long) for o in task.options),
        )
        for task in problem.tasks
    ]
    slow = replace(problem, tasks=tuple(tasks), context_cycles=problem.context_cycles * long)
    result = solved(slow, objective)
    least = optimum_by_orders(slow, objective)
    assert result.status is Status.OPTIMAL
    assert result.key == least == result.bound


@settings(max_examples=effort(25), deadline=None)
@given(small_problems(most=4, fetch_memory=True))
@example(
    problem_of([[(Option(0, 1, Fraction(), fetch_memory=1), Option(1, 1, Fraction(), fetch=1))]], memory=0)
)
def test_makespan_equals_enumeration_of_start_cycles(problem: SchedulingProblem) -> None:
    """Where fetches take memory too, the proven makespan is that of all start cycles."""
    result = solved(problem, ScheduleObjective.MAKESPAN)
    assert result.status is Status.OPTIMAL
    assert result.key == optimum_by_clock(problem)


@pytest.mark.slow
@settings(max_examples=effort(60), deadline=None)
@given(small_problems(most=8), st.sampled_from(ScheduleObjective))
def test_optimum_equals_enumeration_up_to_eight_layers(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """The same with up to eight layers."""
    assert solved(problem, objective).key == optimum_by_orders(problem, objective)


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=10, fetch_memory=True), st.sampled_from(ScheduleObjective))
def test_every_method_passes_the_evaluator(problem: SchedulingProblem, objective: ScheduleObjective) -> None:
    """Heuristics return legal schedules whose value is not below the bound that they report."""
    for name in ("greedy", "herald"):
        assert name in METHODS.names()
        result = solved(problem, objective, name)
        assert result.answer is not None
        assert not evaluate_schedule(problem, result.answer).violations
        assert result.bound is not None
        assert result.key is not None
        assert result.bound <= result.key


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=8, fetch_memory=True), st.data())
def test_decoded_schedules_are_legal(problem: SchedulingProblem, data: st.DataObject) -> None:
    """List scheduling makes a legal schedule of any options and priorities."""
    options = feasible_options(problem)
    choice = [data.draw(st.integers(0, len(own) - 1)) for own in options]
    priority = [float(data.draw(st.integers(0, 9))) for _ in options]
    schedule = ScheduleAnnealing(problem, options, 0).decode(choice, priority)
    assert not evaluate_schedule(problem, schedule).violations


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=5), st.sampled_from(ScheduleObjective))
def test_cheap_bounds_are_valid(problem: SchedulingProblem, objective: ScheduleObjective) -> None:
    """Critical path, cheapest options and the assignment LP never exceed the optimum."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits())
    basic_bounds(search, feasible_options(problem))
    assert search.bound is not None
    assert search.bound <= optimum_by_orders(problem, objective)


def _repeated(runs: int, layers: int) -> SchedulingProblem:
    options = [
        (Option(0, 3 + i % 4, 5 + i % 3, layout="a"), Option(1, 2 + i % 5, 7 - i % 4, layout="b"))
        for i in range(layers)
    ]
    return problem_of([options for _ in range(runs)])


@pytest.mark.parametrize("objective", ["makespan", "edp"])
def test_large_problems_end_with_a_valid_gap(objective: str) -> None:
    """Beyond one model, annealing and relaxations meet within a few percent, and values hold."""
    result = solved(_repeated(6, 20), ScheduleObjective(objective), seconds=60, gap=0.05)
    assert result.gap is not None
    assert 0 <= result.gap <= 0.05


def test_products_beyond_exact_floats_are_proven() -> None:
    """An energy-delay product above 2**53 is compared exactly."""
    big = 10**8 + 7
    options = [(Option(0, big, Fraction(big)), Option(1, big - 5, Fraction(big + 9))) for _ in range(2)]
    result = solved(problem_of([[own] for own in options]), ScheduleObjective.EDP)
    assert result.status is Status.OPTIMAL
    assert result.key == big * (2 * big + 9)


def test_memory_below_the_largest_layer_is_infeasible() -> None:
    """The reason names the layer and both sizes."""
    problem = problem_of([[(Option(0, 1, 1, memory=5),), (Option(0, 1, 1, memory=9),)]], memory=8)
    result = solved(problem, ScheduleObjective.MAKESPAN)
    assert result.status is Status.INFEASIBLE
    assert result.message == "net/0:layer1 needs 9 bytes of the shared memory, which has 8"


def test_a_layer_that_fits_nowhere_is_infeasible() -> None:
    """The reason names the layer."""
    result = solved(problem_of([[(), (Option(0, 1, 1),)]]), ScheduleObjective.EDP)
    assert result.status is Status.INFEASIBLE
    assert result.message == "net/0:layer0 fits on no engine"
