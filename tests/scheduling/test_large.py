"""The large path: relaxations, annealing and neighbourhoods, against plain enumeration."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from types import SimpleNamespace

import pytest
from clocks import wait_until
from effort import effort
from graphs import optimum_by_orders, problem_of, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin, TracePoint
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald import cpsat
from tilewright.solvers.scheduling.herald.improving import Improver, gain_of
from tilewright.solvers.scheduling.herald.lower_bounds import relaxations
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front
from tilewright.solvers.scheduling.herald.lower_bounds.relaxations import Relaxation
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.dispatching import Dispatching
from tilewright.solvers.scheduling.herald.walks.list_kernel import Cooling
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices
from tilewright.solvers.scheduling.herald.windows import WindowSearch

TIMED = st.sampled_from([ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])


def begun(problem: SchedulingProblem, objective: ScheduleObjective, seconds: float = 5) -> ScheduleSearch:
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=seconds, threads=2))
    cpsat.warm_start(search)
    return search


def chains(runs: int, layers: int, seed: int = 0) -> SchedulingProblem:
    """Runs of one network with heavy-tailed costs on two unlike engines."""
    draw = random.Random(seed)
    own = []
    for _ in range(layers):
        size = int(draw.paretovariate(1.1) * 100)
        first, second = size, int(size * draw.uniform(0.2, 3)) + 1
        own.append(
            (
                Option(0, first, Fraction(draw.randint(1, size)), fetch=draw.randint(0, 20), layout="a"),
                Option(1, second, Fraction(draw.randint(1, size)), fetch=draw.randint(0, 20), layout="b"),
            )
        )
    return problem_of([own for _ in range(runs)])


@settings(max_examples=effort(20), deadline=None)
@given(problem=small_problems(most=5), objective=TIMED)
def test_the_large_path_encloses_the_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """With relaxations, annealing and neighbourhoods alone: bound <= enumerated optimum <= value."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=0.15, threads=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpsat, "_WHOLE", 0)
        patch.setattr(relaxations, "_PATIENCE", 0.05)
        cpsat.CpSatScheduler().solve(search)
    optimum = optimum_by_orders(problem, objective)
    assert search.bound is not None
    assert search.key is not None
    assert search.bound <= optimum <= search.key


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=5), TIMED, st.integers(0, 5))
def test_bounds_of_relaxations_are_valid(
    problem: SchedulingProblem, objective: ScheduleObjective, size: int
) -> None:
    """Least makespans and half-planes, whatever is sequenced, never exceed the optimum."""
    search = begun(problem, objective)
    options = feasible_options(problem)
    front = basic_bounds(search, options)
    annealing = ScheduleAnnealing(problem, options, 0)
    relaxation = Relaxation(search, options, front, annealing, range(min(size, len(options))))
    relaxation.run(patience=1.0)
    assert search.bound is not None
    assert search.bound <= optimum_by_orders(problem, objective)


def test_half_planes_raise_the_bound_of_the_product() -> None:
    """Where choices are coarse, the relaxation's half-planes prove more than the LP."""
    own = [(Option(0, 10, Fraction(7)), Option(1, 16, Fraction(3)))]
    search = begun(problem_of([own for _ in range(3)]), ScheduleObjective.EDP)
    options = feasible_options(search.problem.instance)
    front = basic_bounds(search, options)
    before = front.least_product()[0]
    Relaxation(search, options, front, ScheduleAnnealing(search.problem.instance, options, 0), ()).run(
        patience=1.0
    )
    assert search.bound is not None
    assert before < search.bound <= optimum_by_orders(search.problem.instance, ScheduleObjective.EDP)


@settings(max_examples=effort(30), deadline=None)
@given(small_problems(most=7, fetch_memory=True), TIMED, st.data())
def test_neighbourhoods_are_legal_and_never_worse(
    problem: SchedulingProblem, objective: ScheduleObjective, data: st.DataObject
) -> None:
    """Whatever is freed, the outcome is legal; held tasks keep their options."""
    search = begun(problem, objective)
    assert search.answer is not None
    options = feasible_options(problem)
    windows = WindowSearch(problem, options, 0, even_prices(problem))
    ways = (windows.window, windows.stretch, windows.misplaced, windows.critical)
    schedule = search.answer
    free = data.draw(st.sampled_from(ways))(schedule, data.draw(st.integers(1, 7)))
    assert free <= set(range(len(options)))
    _, result = windows.solve(search, schedule, free)
    assert result is not None
    assert not evaluate_schedule(problem, result).violations
    before = {p.task: p.option for p in schedule.placements}
    assert all(p.option == before[p.task] for p in result.placements if p.task not in free)


def test_patience_and_turns_last_by_the_clock_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes a second further whenever it is read ends both after a few looks at it."""
    ticks, looks = count(), list[bool]()
    problem = chains(2, 3, seed=4)
    goal = ScheduleGoal(problem, ScheduleObjective.MAKESPAN)
    search = ScheduleSearch(goal, Limits(threads=1, clock=lambda: float(next(ticks))))
    cpsat.warm_start(search)
    options = feasible_options(problem)
    windows = WindowSearch(problem, options, 0, even_prices(problem))
    monkeypatch.setattr(windows, "step", lambda search: looks.append(True))
    windows.round(search)
    assert 1 <= len(looks) <= 4
    looks.clear()

    def run(*_: object, enough: Callable[[], bool], **__: object) -> SimpleNamespace:
        while not enough():
            looks.append(True)
        return SimpleNamespace(has_solution=False, status=cp_model.UNKNOWN)

    monkeypatch.setattr(relaxations, "run_model", run)
    annealing = ScheduleAnnealing(problem, options, 0)
    Relaxation(search, options, basic_bounds(search, options), annealing, ()).run(patience=3.0)
    assert 1 <= len(looks) <= 4


def test_freeing_everything_finds_the_optimum() -> None:
    """A neighbourhood of all tasks is the whole problem."""
    problem = chains(2, 3, seed=4)
    search = begun(problem, ScheduleObjective.MAKESPAN)
    assert search.answer is not None
    options = feasible_options(problem)
    windows = WindowSearch(problem, options, 0, Prices((0.0, 0.0)))
    _, result = windows.solve(search, search.answer, set(range(len(options))))
    assert result is not None
    assert result.makespan <= optimum_by_orders(problem, ScheduleObjective.MAKESPAN) * (
        1 + Fraction(1, 10**4)
    )


@pytest.mark.parametrize("by_energy", [False, True])
def test_annealed_sequences_have_their_true_value(by_energy: bool) -> None:
    """Starting anew only what a step changes gives the schedule that starting all tasks anew gives."""
    problem = chains(3, 12)
    options = feasible_options(problem)
    for seed in range(5):
        annealing = ScheduleAnnealing(problem, options, seed, [Prices((0.4, 0.6))])
        lines = annealing.lines_of(annealing.cheapest())
        value, best = annealing.walk(by_energy, lines, Cooling(2000, 1e-1, 1e-4, seed))
        evaluation = evaluate_schedule(problem, annealing.schedule_of(best))
        expected = math.log(evaluation.makespan) + (math.log(evaluation.energy) if by_energy else 0.0)
        assert value == pytest.approx(expected, rel=1e-9)


@settings(max_examples=effort(60), deadline=None)
@given(small_problems(most=6, fetch_memory=True), TIMED, st.integers(0, 3))
def test_annealed_sequences_are_legal(
    problem: SchedulingProblem, objective: ScheduleObjective, seed: int
) -> None:
    """A walk keeps every task, no line waits for itself, and nothing is below plain enumeration."""
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, seed)
    lines = annealing.lines_of(annealing.cheapest())
    _, best = annealing.walk(objective is ScheduleObjective.EDP, lines, Cooling(1000, 1.0, 1e-3, seed))
    for kept in (lines, best):
        schedule = annealing.schedule_of(kept)
        assert sorted(placement.task for placement in schedule.placements) == [*range(len(options))]
        evaluation = evaluate_schedule(problem, schedule)
        assert not evaluation.violations
        value = objective.of(evaluation.makespan, evaluation.energy)
        assert value >= optimum_by_orders(problem, objective)


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=6, fetch_memory=True), TIMED, st.integers(0, 3))
def test_engines_that_choose_make_legal_schedules(
    problem: SchedulingProblem, objective: ScheduleObjective, seed: int
) -> None:
    """Whatever the rule, the schedule is legal, and no better than the optimum of plain enumeration."""
    search = begun(problem, objective)
    options = feasible_options(problem)
    front = basic_bounds(search, options)
    (prices, *_) = lp_prices(problem, options, objective, front)
    dispatching = Dispatching(problem, options, seed, prices)
    optimum = optimum_by_orders(problem, objective)
    for rule in dispatching.rules():
        schedule = dispatching.decode(rule)
        evaluation = evaluate_schedule(problem, schedule)
        assert not evaluation.violations
        assert objective.of(evaluation.makespan, evaluation.energy) >= optimum


@pytest.mark.parametrize("by_energy", [False, True])
def test_an_annealed_rule_has_its_true_value(by_energy: bool) -> None:
    """Unfinished schedules are rejected ones only: the value returned is that of the rule returned."""
    problem = chains(6, 12)
    options = feasible_options(problem)
    dispatching = Dispatching(problem, options, 0, Prices((0.4, 0.6)))
    for seed, rule in enumerate(dispatching.rules()):
        value, best = dispatching.walk(by_energy, rule, Cooling(500, 1e-2, 1e-4, seed))
        evaluation = evaluate_schedule(problem, dispatching.decode(best))
        expected = math.log(evaluation.makespan) + (math.log(evaluation.energy) if by_energy else 0.0)
        assert value == pytest.approx(expected, rel=1e-9)


def test_engines_that_choose_leave_little_idle() -> None:
    """Of sixty runs the first rules schedule most within a tenth of the bound, where fixed options do not."""
    problem = chains(60, 20)
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), Limits())
    options = feasible_options(problem)
    (prices,) = lp_prices(problem, options, search.problem.objective, basic_bounds(search, options))
    Dispatching(problem, options, 0, prices).start(search)
    assert search.key is not None
    assert search.bound is not None
    assert search.key <= search.bound * Fraction(11, 10)
    annealing = ScheduleAnnealing(problem, options, 0, [prices])
    assert annealing.cheapest().makespan > search.key


def test_prices_are_those_of_the_linear_program() -> None:
    """An engine that is twice as fast is worth twice as much; energy counts for the product only."""
    own = [(Option(0, 40, Fraction(1)), Option(1, 20, Fraction(3)))]
    problem = problem_of([own for _ in range(30)])
    options = feasible_options(problem)
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), Limits())
    (prices,) = lp_prices(problem, options, search.problem.objective, basic_bounds(search, options))
    assert prices.engines == pytest.approx((1 / 3, 2 / 3))
    assert prices.of(own[0][1]) == pytest.approx(40 / 3)
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.EDP), Limits())
    front = basic_bounds(search, options)
    product, makespan = front.least_product()
    for prices in lp_prices(problem, options, search.problem.objective, front):
        assert sum(prices.engines) == pytest.approx(1)
        assert prices.energy == pytest.approx(float(makespan / (product / makespan)))


def test_engines_are_worth_the_same_where_a_chain_decides() -> None:
    """A load that limits nothing has no price, and what is left of rounding is none."""
    own = [
        (Option(engine, 10, Fraction(1)), Option(1 - engine, 30, Fraction(1))) for engine in (0, 1, 0, 1, 0)
    ]
    problem = problem_of([own])
    options = feasible_options(problem)
    search = ScheduleSearch(ScheduleGoal(problem, ScheduleObjective.MAKESPAN), Limits())
    (prices,) = lp_prices(problem, options, search.problem.objective, basic_bounds(search, options))
    assert prices.engines == (0.5, 0.5)


def test_parallel_half_planes_are_kept_once() -> None:
    """Of half-planes with one slope the farthest counts, however it is scaled."""
    front = Front(Fraction(1), Fraction(2))
    front.add(Fraction(1), Fraction(1), Fraction(10))
    front.add(Fraction(2), Fraction(2), Fraction(24))
    front.add(Fraction(1), Fraction(1), Fraction(11))
    front.add(Fraction(0), Fraction(1), Fraction(99))
    assert front.least_energy(Fraction(4)) == 8


@pytest.mark.parametrize("objective", [pytest.param("makespan", marks=pytest.mark.slow), "edp"])
def test_both_methods_get_turns(objective: str) -> None:
    """Dispatching, beams, annealing and neighbourhoods share a thread, and leave a legal schedule."""
    search = begun(chains(4, 20), ScheduleObjective(objective), seconds=3)
    options = feasible_options(search.problem.instance)
    front = basic_bounds(search, options)
    improver = Improver(
        search.problem.instance,
        options,
        0,
        lp_prices(search.problem.instance, options, search.problem.objective, front),
    )
    before = search.key
    for _ in range(5):
        improver.turn(search)
    assert search.key is not None
    assert before is not None
    assert search.bound is not None
    assert search.bound <= search.key <= before


def test_a_method_has_gained_what_it_found_itself() -> None:
    """What another thread's method finds in the same seconds is not its own, nor is a better bound."""
    offered = [(9, "beam", True), (9, "bound", False), (5, "annealing", True), (4, "beam", True)]
    points = [
        TracePoint(float(second), Fraction(key), Fraction(0), source, improved, Origin.HEURISTIC)
        for second, (key, source, improved) in enumerate(offered)
    ]
    gains = [gain_of(Fraction(11), points, source) for source in ("beam", "annealing", "windows")]
    assert gains == [3, 4, 0]


def test_neighbourhoods_are_a_method() -> None:
    """``lns`` returns a legal schedule within the bound."""
    search = ScheduleSearch(
        ScheduleGoal(chains(3, 15), ScheduleObjective.EDP), Limits(seconds=0.7, threads=1)
    )
    run_method(search, METHODS.make("lns"), "lns")
    result = search.result("lns", "")
    assert result.answer is not None
    assert not evaluate_schedule(search.problem.instance, result.answer).violations
    assert result.gap is not None


def test_control_returns_when_told_to_stop() -> None:
    """A stop from another thread ends the search though neither limit nor proof is in reach."""
    search = ScheduleSearch(ScheduleGoal(chains(8, 60), ScheduleObjective.EDP), Limits(threads=2))
    others = set(threading.enumerate())
    timer = threading.Timer(1.0, search.limits.stop.set)
    timer.start()
    run_method(search, METHODS.make("cpsat"), "cpsat")
    timer.join()
    assert search.answer is not None
    assert search.bound is not None
    wait_until(lambda: not set(threading.enumerate()) - others)  # what is left over ends by itself
