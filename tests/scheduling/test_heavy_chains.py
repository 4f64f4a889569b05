"""The relaxation of the heaviest chains, against plain enumeration and random schedules."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from effort import effort
from graphs import optimum_by_orders, problem_of, random_values, small_problems, taking_turns
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
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.solvers.scheduling.herald.lower_bounds import heavy_chains
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds
from tilewright.solvers.scheduling.herald.lower_bounds.chain_labels import ChainRelaxation, undominated
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_chains import (
    heaviest_chains,
    sequence_heavy_chains,
)
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices

WORTH = st.sampled_from([0.0, 0.1, 1.0, 3.0])
SHARE = st.sampled_from([0, 1, 2, 7])


@dataclass(frozen=True)
class Cost:
    """Makespan plus energy at its price, in the place of an objective."""

    price: Fraction

    def of(self, makespan: int, energy: Fraction) -> Fraction:
        return makespan + self.price * energy


def optimum(problem: SchedulingProblem, price: float) -> Fraction:
    return optimum_by_orders(problem, Cost(Fraction(price)))  # type: ignore[arg-type]


def shares(problem: SchedulingProblem, draw: st.DataObject) -> tuple[float, ...]:
    """Prices of engines, some of them nothing."""
    drawn = [draw.draw(SHARE) for _ in problem.engines]
    return tuple(share / max(1, sum(drawn)) for share in drawn) if any(drawn) else (1.0,) * len(drawn)


@settings(max_examples=effort(150), deadline=None)
@given(st.data(), small_problems(most=6), st.integers(1, 4), WORTH)
def test_its_bound_is_below_the_optimum(
    data: st.DataObject, problem: SchedulingProblem, chains: int, worth: float
) -> None:
    """Whatever the prices, the limit and the number of chains, beside fetches, memory and context changes."""
    options, prices = feasible_options(problem), Prices(shares(problem, data), worth)
    sequenced = heaviest_chains(problem, options, prices)[:chains]
    relaxation = ChainRelaxation(options, prices, sequenced, beside=data.draw(st.booleans()))
    limit = relaxation.least * data.draw(st.sampled_from([0.9, 1.0, 1.1, 1.5, 9.0])) + 1
    found = relaxation.bound(limit, lambda: False)
    assert found is not None
    assert found.cost <= limit
    assert found.cost <= optimum(problem, worth)


@st.composite
def chains_alone(draw: st.DrawFn) -> SchedulingProblem:
    """Chains without fetches and memory, some of them equal."""
    engines = draw(st.integers(1, 3))
    cycles = st.integers(1, 6)
    layer = st.tuples(*(st.tuples(cycles, st.integers(1, 9)) for _ in range(engines)))
    kinds = draw(st.lists(st.lists(layer, min_size=1, max_size=3), min_size=1, max_size=2))
    runs = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
    return problem_of(
        [
            [tuple(Option(e, c, Fraction(p)) for e, (c, p) in enumerate(options)) for options in run]
            for run in runs
        ],
        engines,
    )


@settings(max_examples=effort(100), deadline=None)
@given(st.data(), chains_alone(), WORTH)
def test_it_is_the_optimum_where_nothing_else_is_left(
    data: st.DataObject, problem: SchedulingProblem, worth: float
) -> None:
    """No label is dropped that leads to the best schedule, and no schedule is counted as less than it is."""
    options, prices = feasible_options(problem), Prices(shares(problem, data), worth)
    relaxation = ChainRelaxation(options, prices, list(problem.instances.values()))
    annealing = ScheduleAnnealing(problem, options, 0)
    best = float(optimum(problem, worth))
    assert relaxation.alone
    for limit in (best, 2 * best, 9 * best):
        found = relaxation.bound(limit, lambda: False)
        assert found is not None
        assert found.cost == pytest.approx(best, rel=1e-6)
        assert found.cost <= best
        evaluation = evaluate_schedule(problem, annealing.schedule_of(annealing.lines_in_turn(found.taken)))
        assert not evaluation.violations
        assert float(Cost(Fraction(worth)).of(evaluation.makespan, evaluation.energy)) == pytest.approx(best)


@settings(max_examples=effort(40), deadline=None)
@given(
    small_problems(most=6),
    st.sampled_from([ScheduleObjective.MAKESPAN, ScheduleObjective.EDP]),
    st.booleans(),
)
def test_the_bound_of_a_search_is_below_the_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective, far: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heavy_chains, "_HEAVY", 0.0)
        if far:
            patch.setattr(heavy_chains, "_STEPS", (0.1, 10.0))
        search = searched(problem, objective)
    assert search.bound is not None
    assert search.key is not None
    assert search.bound <= optimum_by_orders(problem, objective) <= search.key


def searched(problem: SchedulingProblem, objective: ScheduleObjective) -> ScheduleSearch:
    """A search that knows the greedy schedule, the cheap bounds and what the relaxation says."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=20, threads=1))
    search.confirm(greedy(problem, "cycles"), "greedy")
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, 0)
    sequence_heavy_chains(search, options, basic_bounds(search, options), annealing)
    return search


def unlike(seed: int) -> SchedulingProblem:
    """Five runs on two or three engines, of which the first two are most of the work."""
    draw = random.Random(seed)
    engines = 2 + seed % 2
    own = []
    for run in range(5):
        size = 300 if run < 2 else 40
        own.append(
            [
                tuple(
                    Option(engine, draw.randint(1, size), Fraction(draw.randint(1, 99)))
                    for engine in range(engines)
                )
                for _ in range(6)
            ]
        )
    return problem_of(own, engines, skips=bool(seed % 3))


@pytest.mark.parametrize("objective", [ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])
def test_its_bound_is_below_random_schedules(objective: ScheduleObjective) -> None:
    """Also where most runs are taken for work alone; and it is above the linear program's."""
    draw = random.Random(2)
    risen = 0
    for seed in range(effort(2)):
        problem = unlike(seed)
        search = searched(problem, objective)
        options = feasible_options(problem)
        plain = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=20, threads=1))
        basic_bounds(plain, options)
        assert search.bound is not None
        assert plain.bound is not None
        assert search.bound >= plain.bound
        risen += search.bound > plain.bound * Fraction(10001, 10000)
        assert search.bound <= min(random_values(problem, objective, draw, 200))
    assert risen


def test_it_sees_what_the_linear_program_does_not() -> None:
    """Two runs that take turns on both engines: the second ends a task later than loads and chains say."""
    search = searched(taking_turns(), ScheduleObjective.MAKESPAN)
    assert search.bound == search.key == 30
    assert next(point.source for point in search.result("", "").trace if point.bound == 30) == "heavy chains"


def test_it_gives_up_where_it_may_hold_too_few_labels_or_is_over() -> None:
    problem = unlike(0)
    options, prices = feasible_options(problem), Prices((0.5, 0.5))
    relaxation = ChainRelaxation(options, prices, heaviest_chains(problem, options, prices)[:2])
    assert relaxation.bound(2 * relaxation.least, lambda: False, labels=3) is None
    assert relaxation.bound(2 * relaxation.least, lambda: True) is None


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=200))
def test_undominated_rows_are_those_of_plain_comparison(drawn: list[list[int]]) -> None:
    distinct = {tuple(row) for row in drawn}
    alone = {
        row
        for row in distinct
        if not any(o != row and all(a <= b for a, b in zip(o, row, strict=True)) for o in distinct)
    }
    kept = [tuple(map(int, row)) for row in undominated(np.array(drawn, np.float64))]
    assert sorted(kept) == sorted(alone)


def test_the_least_cost_of_half_planes_is_that_of_many_points() -> None:
    front = Front(Fraction(10), Fraction(5))
    for slope, least in ((4, 60), (1, 31), (9, 90)):
        front.add(Fraction(1), Fraction(slope), Fraction(least))
    for price in (Fraction(0), Fraction(1, 7), Fraction(1), Fraction(8)):
        points = [Fraction(at, 20) for at in range(100, 1000)]
        sampled = min(at + price * front.least_energy(at) for at in points)
        assert front.least_cost(price) <= sampled <= front.least_cost(price) + Fraction(1, 4)
