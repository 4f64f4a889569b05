"""Problems of merged tasks: what they say of the whole, on random problems."""

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
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.formulation.scheduling.herald.timeline import in_start_order
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.solvers.scheduling.herald import merging
from tilewright.solvers.scheduling.herald.improving import Improver
from tilewright.solvers.scheduling.herald.merged_search import MergedSearch
from tilewright.solvers.scheduling.herald.merging import merged
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices

GRAINS = st.sampled_from([0.0, 0.3, 100.0])


def stretches(runs: int, lengths: int, seed: int) -> SchedulingProblem:
    """Runs of stretches of ten layers that are three times as fast on one of two engines."""
    draw = random.Random(seed)
    own = []
    for _ in range(runs):
        layers = []
        for _ in range(lengths):
            fast = draw.randrange(2)
            for _ in range(10):
                size = draw.randint(5, 40)
                layers.append(
                    tuple(Option(e, size if e == fast else 3 * size, Fraction(size)) for e in range(2))
                )
        own.append(layers)
    return problem_of(own)


@settings(max_examples=effort(60), deadline=None)
@given(small_problems(most=6, fetch_memory=True), GRAINS, st.booleans())
def test_schedules_of_merged_tasks_are_schedules_of_the_whole(
    problem: SchedulingProblem, grain: float, alone: bool
) -> None:
    """Every task once, each stretch a part of one run, and a legal schedule no better than the optimum."""
    options = feasible_options(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_GRAIN", grain)
        patch.setattr(merging, "_LARGE", 1.5 if alone else 1e9)
        patch.setattr(merging, "_LONGEST", 1.0)
        part = merged(problem, options, even_prices(problem))
    assert sorted(task for stretch in part.stretches for task in stretch) == [*range(len(options))]
    assert all(len({problem.tasks[task].instance for task in stretch}) == 1 for stretch in part.stretches)
    schedule = in_start_order(problem, *part.placed(greedy(part.problem, "cycles")))
    evaluation = evaluate_schedule(problem, schedule)
    assert not evaluation.violations
    assert evaluation.makespan >= optimum_by_orders(problem, ScheduleObjective.MAKESPAN)


def test_stretches_are_where_one_engine_is_best() -> None:
    """They cost what their layers cost where each costs least, and equal runs have equal ones."""
    one = stretches(1, 4, 0)
    problem = problem_of([[task.options for task in one.tasks]] * 3)
    options = feasible_options(problem)
    prices = even_prices(problem)
    part = merged(problem, options, prices)
    assert len(part.stretches) <= 0.4 * len(options)
    least = sum(min(map(prices.of, own)) for own in options)
    assert sum(min(map(prices.of, task.options)) for task in part.problem.tasks) == pytest.approx(least)
    lengths = [[len(part.stretches[task]) for task in tasks] for tasks in part.problem.instances.values()]
    assert lengths[0] == lengths[1] == lengths[2]


def test_an_engine_without_a_price_has_no_endless_stretches() -> None:
    problem = stretches(2, 4, 1)
    part = merged(problem, feasible_options(problem), Prices((0.0, 1.0)))
    assert len(part.stretches) == len(
        merged(problem, feasible_options(problem), even_prices(problem)).stretches
    )


@pytest.mark.parametrize("objective", [ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])
def test_beams_over_merged_tasks_improve_the_whole(objective: ScheduleObjective) -> None:
    """What they find is offered as schedules of the whole; an improver has them where they are fewer."""
    problem = stretches(6, 4, 2)
    options = feasible_options(problem)
    prices = even_prices(problem)
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=20, threads=1))
    before = search.confirm(greedy(problem, "energy"), "greedy")
    part = merged(problem, options, prices)
    MergedSearch(problem, part, 0, [prices]).round(search)
    assert search.key is not None
    assert search.key < before
    assert search.result("", "").trace[-1].source == "merged tasks"
    improver = Improver(problem, options, 0, [prices])
    for _ in range(2):
        improver.turn(search)
    assert improver._spent["merged tasks"] > 0
    plain = problem_of([[task.options for task in problem.tasks if task.instance == "net/0"][:4]] * 6)
    assert "merged tasks" not in Improver(plain, feasible_options(plain), 0, [even_prices(plain)])._spent
