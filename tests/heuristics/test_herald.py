"""Herald's scheduler step by step, and its ways to choose partitions."""

from __future__ import annotations

from fractions import Fraction

from effort import effort
from graphs import problem_of, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, feasible_options
from tilewright.heuristics.scheduling.herald.partitions import binary_sample, grid, random_sample
from tilewright.heuristics.scheduling.herald.scheduler import (
    METRICS,
    HeraldSettings,
    IdleRule,
    Ordering,
    balanced,
    greedy,
    herald,
    in_order,
    initial_order,
    preferred,
)


def layer(first: tuple[int, int], second: tuple[int, int]) -> tuple[Option, ...]:
    """Cycles and energy on either engine."""
    return Option(0, first[0], Fraction(first[1])), Option(1, second[0], Fraction(second[1]))


def test_preference_follows_the_metric() -> None:
    """Each metric picks its own engine."""
    options = [layer((1, 9), (4, 2))]
    chosen = {metric: preferred(options, metric)[0].engine for metric in METRICS}
    assert chosen == {"cycles": 0, "energy": 1, "edp": 1}


def test_balancing_moves_layers_until_the_loads_are_near() -> None:
    """Equal layers that all prefer one engine end up on both."""
    problem = problem_of([[layer((4, 1), (5, 1))] * 4, [layer((4, 1), (5, 1))] * 4])
    options = feasible_options(problem)
    settings = HeraldSettings("cycles", unbalance=1.3)
    chosen = balanced(problem, options, preferred(options, "cycles"), settings)
    loads = [sum(o.cycles for o in chosen if o.engine == engine) for engine in (0, 1)]
    assert max(loads) <= 20 < 32


def test_orders() -> None:
    """Depth-first finishes a network before the next; breadth-first takes turns."""
    problem = problem_of([[layer((1, 1), (1, 1))] * 2, [layer((1, 1), (1, 1))] * 3])
    assert initial_order(problem, Ordering.DEPTH_FIRST) == [0, 1, 2, 3, 4]
    assert initial_order(problem, Ordering.BREADTH_FIRST) == [0, 2, 1, 3, 4]


def test_looking_ahead_fills_idle_time() -> None:
    """A layer of another network runs while the first one waits for the other engine (figure 9)."""
    waits = [(Option(0, 1, Fraction(1)),), (Option(1, 9, Fraction(1)),), (Option(0, 1, Fraction(1)),)]
    other = [(Option(0, 5, Fraction(1)),)]
    problem = problem_of([waits, other])
    chosen = preferred(feasible_options(problem), "cycles")
    order = initial_order(problem, Ordering.DEPTH_FIRST)
    assert in_order(problem, chosen, order, IdleRule.OFF).makespan == 16
    assert in_order(problem, chosen, order, IdleRule.EARLIEST).makespan == 11
    assert in_order(problem, chosen, order, IdleRule.PRINTED).makespan == 11


def test_the_printed_rule_moves_only_what_can_start_at_once() -> None:
    """Where no head can start when the engine becomes free, the printed rule keeps the order."""
    waits = [(Option(1, 9, Fraction(1)),), (Option(0, 1, Fraction(1)),)]
    other = [(Option(1, 1, Fraction(1)),), (Option(0, 5, Fraction(1)),)]
    problem = problem_of([waits, other])
    chosen = preferred(feasible_options(problem), "cycles")
    order = [2, 0, 1, 3]  # the second run's first layer begins; its second one is ready at cycle 1
    starts = {}
    for rule in IdleRule:
        schedule = in_order(problem, chosen, order, rule)
        assert not evaluate_schedule(problem, schedule).violations
        starts[rule] = {p.task: p.start for p in schedule.placements}
    assert starts[IdleRule.EARLIEST][3] == 1
    assert starts[IdleRule.PRINTED][3] == starts[IdleRule.OFF][3] == 11


@settings(max_examples=effort(60))
@given(
    small_problems(most=12, fetch_memory=True),
    st.sampled_from(METRICS),
    st.sampled_from(Ordering),
    st.sampled_from(IdleRule),
)
def test_schedules_are_legal(
    problem: SchedulingProblem, metric: str, ordering: Ordering, idle: IdleRule
) -> None:
    """Whatever the settings, Herald and the greedy baseline pass the evaluator."""
    chosen = HeraldSettings(metric, ordering, idle=idle)
    for schedule in (herald(problem, chosen), greedy(problem, metric)):
        assert not evaluate_schedule(problem, schedule).violations


def test_partition_samples() -> None:
    """The grid has every split; samples are parts of it."""
    points = grid(1024, 64, 16, 4, [None, None])
    assert len(points) == 15 * 3
    assert all(sum(p for p, _ in parts) == 1024 and sum(r for _, r in parts) == 16 for parts in points)
    binary = binary_sample(points, [None, None])
    assert {parts[0][0] for parts in binary} == {64, 128, 256, 512}
    assert set(binary) <= set(points)
    assert len(random_sample(points, 7, seed=1)) == 7
    assert len(grid(1024, 256, 16, 4, [None] * 3)) == 9
