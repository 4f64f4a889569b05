"""Bounds by windows of time between the longest tasks, against plain enumeration and random schedules."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from effort import effort
from graphs import optimum_by_orders, problem_of, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.solvers.scheduling.herald.lower_bounds import long_tasks
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import SAFETY, basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.lower_bounds.long_tasks import LongTasks, spans_with
from tilewright.solvers.scheduling.herald.lower_bounds.window_relaxation import Span, WindowRelaxation
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices

TIMED = st.sampled_from([ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])


def raised(problem: SchedulingProblem, objective: ScheduleObjective, patience: float = 9) -> ScheduleSearch:
    """A search whose bound is the assignment LP's, raised by all windows of long tasks."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=60, threads=1))
    options = feasible_options(problem)
    front = basic_bounds(search, options)
    search.confirm(greedy(problem), "greedy")
    for prices in lp_prices(problem, options, objective, front):
        LongTasks(search, options, prices, front).run(patience)
    return search


def beside_a_long_task(links: int) -> SchedulingProblem:
    """A task of 100 cycles on engine 0 between two short ones, and links of 10 on either engine in turn.

    While the long task runs, engine 0 does nothing else; what of the links waits for it comes before or
    after it.
    """
    on = [tuple(Option(e, 10 if e == own else 90, Fraction(1)) for e in range(2)) for own in range(2)]
    long = (Option(0, 100, Fraction(1)), Option(1, 900, Fraction(1)))
    return problem_of([[on[1], long, on[1]], [on[at % 2] for at in range(links)]])


@settings(max_examples=effort(100), deadline=None)
@given(small_problems(most=6), TIMED, st.integers(1, 4))
def test_the_bound_is_below_the_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective, spans: int
) -> None:
    """However many tasks count as long, beside fetches, memory and context changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_tasks, "_LONG", 0.0)
        patch.setattr(long_tasks, "_SPANS", spans)
        search = raised(problem, objective, patience=0.3)
    assert search.bound is not None
    assert search.bound <= optimum_by_orders(problem, objective)


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=5), st.integers(1, 4), st.sampled_from([0.0, 0.5, 3.0]))
def test_some_order_holds_the_best_schedule(problem: SchedulingProblem, spans: int, worth: float) -> None:
    """Random schedules cost at least the least of all nodes, by whatever price of energy."""
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.EDP), Limits(seconds=60, threads=1))
    options = feasible_options(problem)
    prices = Prices((1 / len(problem.engines),) * len(problem.engines), worth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_tasks, "_LONG", 0.0)
        patch.setattr(long_tasks, "_SPANS", spans)
        front = basic_bounds(search, options)
        search.confirm(greedy(problem), "greedy")
        LongTasks(search, options, prices, front).run(0.3)
    least = front.least_cost(Fraction(worth))
    for seed in range(20):
        schedule = drawn(problem, seed)
        evaluation = evaluate_schedule(problem, schedule)
        if not evaluation.violations:
            assert least <= evaluation.makespan + Fraction(worth) * evaluation.energy


def drawn(problem: SchedulingProblem, seed: int) -> Schedule:
    """A schedule of random options and priorities."""
    draw = random.Random(seed)
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, seed)
    choice = [draw.randrange(len(own)) for own in options]
    return annealing.decode(choice, [draw.random() for _ in options])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("objective", [ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])
def test_the_bound_is_below_random_schedules(seed: int, objective: ScheduleObjective) -> None:
    """Of runs with long tasks, equal ones among them, on three engines."""
    draw = random.Random(seed)
    kinds = [
        [
            tuple(
                Option(
                    e,
                    max(1, round(draw.lognormvariate(3, 1.7) / draw.choice((1, 3, 8)))),
                    Fraction(draw.randint(1, 99)),
                    fetch=draw.randint(0, 3),
                )
                for e in range(3)
            )
            for _ in range(8)
        ]
        for _ in range(3)
    ]
    problem = problem_of([kinds[run % 3] for run in range(5)], engines=3, skips=bool(seed % 2))
    search = raised(problem, objective, patience=0.1)
    assert search.bound is not None
    for number in range(50):
        evaluation = evaluate_schedule(problem, drawn(problem, number))
        assert search.bound <= objective.of(evaluation.makespan, evaluation.energy)


@pytest.mark.parametrize("seed", range(4))
def test_a_program_that_is_asked_again_says_what_a_new_one_says(seed: int) -> None:
    """Options are chosen and given back, of equal runs, too, whose weights change with what is chosen."""
    draw = random.Random(seed)
    kinds = [
        [
            tuple(Option(e, draw.randint(1, 99), Fraction(draw.randint(1, 99))) for e in range(2))
            for _ in range(3)
        ]
        for _ in range(2)
    ]
    problem = problem_of([kinds[run % 2] for run in range(5)])
    options, prices = feasible_options(problem), Prices((0.5, 0.5), draw.choice((0.0, 1.0)))
    kept = WindowRelaxation(problem, options, prices)
    span = draw.choice(problem.order)
    for _ in range(60):
        others = draw.sample([task for task in problem.order if task != span], draw.randrange(6))
        chosen = {task: draw.randrange(2) for task in (span, *others)}
        spans = draw.choice([(), *spans_with((), span)])
        again, new = (
            own.solve(chosen, spans, None) for own in (kept, WindowRelaxation(problem, options, prices))
        )
        assert again is not None
        assert new is not None
        assert again.cost == pytest.approx(new.cost, rel=float(SAFETY))


def test_what_waits_for_a_long_task_counts() -> None:
    """The bound is the optimum where loads and chains alone tell less."""
    problem = beside_a_long_task(5)
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), Limits())
    by_loads = basic_bounds(search, feasible_options(problem)).makespan
    search = raised(problem, ScheduleObjective.MAKESPAN)
    optimum = optimum_by_orders(problem, ScheduleObjective.MAKESPAN)
    assert search.bound is not None
    assert by_loads < search.bound <= optimum
    assert search.bound >= optimum * (1 - 2 * SAFETY)


def test_all_orders_of_begins_and_ends() -> None:
    """Two spans lie in six orders; a third one's begin and end go anywhere into each."""
    (first,) = spans_with((), 7)
    assert first == (Span(7, 1, 1),)
    pairs = [*spans_with(first, 8)]
    assert pairs == [
        (Span(7, 3, 3), Span(8, 1, 1)),
        (Span(7, 2, 3), Span(8, 1, 2)),
        (Span(7, 2, 2), Span(8, 1, 3)),
        (Span(7, 1, 3), Span(8, 2, 2)),
        (Span(7, 1, 2), Span(8, 2, 3)),
        (Span(7, 1, 1), Span(8, 3, 3)),
    ]
    assert len({spans for pair in pairs for spans in spans_with(pair, 9)}) == 6 * 15
