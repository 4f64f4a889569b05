"""Beam searches over what engines take next, against plain enumeration."""

from __future__ import annotations

import math
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
    Task,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.solvers.scheduling.herald.beams.beam_attempts import Attempts
from tilewright.solvers.scheduling.herald.beams.beam_chains import ALL, Chaining, Telling
from tilewright.solvers.scheduling.herald.beams.beam_search import BeamSearch, Part, Shape
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices

TIMED = st.sampled_from([ScheduleObjective.MAKESPAN, ScheduleObjective.EDP])
SHAPE = Shape(20, 60, 0.0, 1.0, ALL)


def begun(problem: SchedulingProblem, objective: ScheduleObjective) -> ScheduleSearch:
    """A search that knows the greedy schedule."""
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=60, threads=1))
    search.confirm(greedy(problem, "cycles"), "greedy")
    return search


def beams_of(problem: SchedulingProblem, prices: Prices, seed: int = 0) -> BeamSearch:
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, seed, [prices])
    return BeamSearch(problem, options, seed, [prices], annealing)


def whole(search: ScheduleSearch) -> Part:
    """All of the best schedule, to be searched anew."""
    assert search.answer is not None
    return Part(search.answer)


def unlike_chains(runs: int, layers: int, seed: int) -> SchedulingProblem:
    """Runs of unlike networks, each layer much faster on one of two engines."""
    draw = random.Random(seed)
    networks: list[list[tuple[Option, ...]]] = []
    for _ in range(runs):
        own: list[tuple[Option, ...]] = []
        for _ in range(layers):
            size, factor = draw.randint(10, 40), draw.choice((0.3, 1.0, 3.0))
            first, second = size, max(1, int(size * factor))
            own.append((Option(0, first, Fraction(1)), Option(1, second, Fraction(1))))
        networks.append(own)
    return problem_of(networks)


@settings(max_examples=effort(40), deadline=None)
@given(
    small_problems(most=6, fetch_memory=True),
    TIMED,
    st.sampled_from([(), (0.15, 0.4)]),
    st.sampled_from(
        [
            SHAPE,
            Shape(3, 5, 0.03, 2.0, Telling(0.6, chains=True)),
            Shape(1, 1, 0.0, 3.0, Telling(0.3, chains=False)),
        ]
    ),
    st.tuples(st.sampled_from([0.0, 0.3, 0.7]), st.booleans()),
)
def test_what_beams_find_is_legal(
    problem: SchedulingProblem,
    objective: ScheduleObjective,
    spreads: tuple[float, ...],
    shape: Shape,
    cut: tuple[float, bool],
) -> None:
    """Every task is placed once, by the rules, and nothing is below plain enumeration."""
    search = begun(problem, objective)
    energy = 0.5 if objective is ScheduleObjective.EDP else 0.0
    prices = Prices(even_prices(problem).engines, energy)
    beams = beams_of(problem, prices)
    assert search.answer is not None
    lines = beams.find(search, prices, spreads, shape, Part(search.answer, *cut))
    if lines is None:
        return
    schedule = ScheduleAnnealing(problem, feasible_options(problem), 0).schedule_of(lines)
    assert sorted(placement.task for placement in schedule.placements) == [*range(len(problem.tasks))]
    evaluation = evaluate_schedule(problem, schedule)
    assert not evaluation.violations
    assert objective.of(evaluation.makespan, evaluation.energy) >= optimum_by_orders(problem, objective)


def equal_chains(seed: int) -> SchedulingProblem:
    """Three runs of one network."""
    unlike = unlike_chains(1, 2, seed)
    return problem_of([[task.options for task in unlike.tasks]] * 3)


@pytest.mark.parametrize(
    ("seed", "equal"), [(0, False), (1, False), (2, False), (0, True), (2, True), (4, True)]
)
def test_beams_find_the_optimum_of_small_problems(seed: int, equal: bool) -> None:
    """With room for all partial schedules, searches that each look for less end at the optimum.

    Where runs are equal and only the first of those that wait may begin, too.
    """
    problem = equal_chains(seed) if equal else unlike_chains(3, 2, seed)
    search = begun(problem, ScheduleObjective.MAKESPAN)
    optimum = optimum_by_orders(problem, ScheduleObjective.MAKESPAN)
    assert search.key is not None
    assert search.key > optimum
    prices = even_prices(problem)
    beams = beams_of(problem, prices)
    annealing = ScheduleAnnealing(problem, feasible_options(problem), 0)
    while (
        lines := beams.find(search, prices, (), Shape(200, 1000, 0.0, 1.0, ALL), whole(search))
    ) is not None:
        before = search.key
        search.confirm(annealing.schedule_of(lines), "beam")
        assert search.key < before
    assert search.key == optimum


def test_beams_beat_greedy_schedules_where_runs_compete() -> None:
    """Of eight unlike runs a narrow search leaves little of the greedy schedule's distance to the loads."""
    problem = unlike_chains(8, 12, 4)
    search = begun(problem, ScheduleObjective.MAKESPAN)
    prices = even_prices(problem)
    least = sum(min(prices.of(option) for option in task.options) for task in problem.tasks)
    assert search.key is not None
    distance = float(search.key) - least
    found = [
        beams_of(problem, prices).find(search, prices, (), Shape(50, 300, 0.003, 1.0, ALL), whole(search))
        for _ in range(2)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].line.tolist() == found[1].line.tolist()
    search.confirm(ScheduleAnnealing(problem, feasible_options(problem), 0).schedule_of(found[0]), "beam")
    assert least <= search.key < least + distance / 5


@settings(max_examples=effort(30), deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.9), st.booleans())
def test_searches_of_a_part_leave_the_rest_as_it_is(seed: int, kept: float, mirrored: bool) -> None:
    """What begins before the cut, from either end of time, keeps its engine and its place there."""
    problem = unlike_chains(4, 5, seed)
    search = begun(problem, ScheduleObjective.MAKESPAN)
    prices = even_prices(problem)
    schedule = search.answer
    assert schedule is not None
    beams = beams_of(problem, prices)
    lines = beams.find(search, prices, (), Shape(20, 60, 0.0, 1.5, ALL), Part(schedule, kept, mirrored))
    if lines is None:
        return
    for engine in range(2):
        found = lines.line[engine, : lines.held[engine]].tolist()
        own = schedule.on(engine)
        if mirrored:
            own, found = own[::-1], found[::-1]
        starts = [schedule.makespan - one.end if mirrored else one.start for one in own]
        stays = [one.task for one, start in zip(own, starts, strict=True) if start < kept * schedule.makespan]
        assert found[: len(stays)] == stays


def test_runs_that_read_each_other_are_one_chain() -> None:
    """An edge between runs puts their tasks into one chain; equal chains have equal marks."""
    own = (Option(0, 4, Fraction(1)), Option(0, 4, Fraction(1)))
    names = ("first", "second", "third", "fourth")
    tasks = tuple(Task(name, "net", f"l{layer}", own) for name in names for layer in range(2))
    edges = tuple((2 * run, 2 * run + 1) for run in range(4))
    apart = SchedulingProblem("apart", ("a", "b"), tasks, edges)
    chains, _ = Chaining(apart, feasible_options(apart)).chains(apart.order, [0] * 4, range(8))
    assert chains.task.tolist() == [0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1]
    assert chains.left.tolist() == [8, 4, 0] * 4
    assert len({tuple(row) for row in chains.mark.reshape(4, 3)}) == 1
    assert chains.twin.tolist() == [-1, 0, 1, 2]
    rest, ready = Chaining(apart, feasible_options(apart)).chains((1, 4, 5, 6, 7), [4, 9, 0, 0], range(8))
    assert rest.task.tolist() == [1, -1, 4, 5, -1, 6, 7, -1]
    assert rest.twin.tolist() == [-1, -1, 1]
    assert rest.mark[0] == rest.mark[3]  # the same is left
    assert ready.tolist() == [4, 0, 0]
    tied = SchedulingProblem("tied", ("a", "b"), tasks, (*edges, (7, 0)))
    chains, _ = Chaining(tied, feasible_options(tied)).chains(tied.order, [0] * 3, range(8))
    assert sorted(tuple(part) for part in _parts(chains.task.tolist())) == [(2, 3), (4, 5), (6, 7, 0, 1)]


def _parts(row: list[int]) -> list[list[int]]:
    """A row cut at its entries of -1."""
    parts: list[list[int]] = [[]]
    for task in row:
        if task < 0:
            parts.append([])
        else:
            parts[-1].append(task)
    return parts[:-1]


def test_light_tasks_do_not_tell_states_apart() -> None:
    """Places have the marks of what is left of the heaviest tasks or chains; twins are told as before."""
    sizes = (1, 2), (9, 1), (4, 3), (9, 1)
    problem = problem_of([[(Option(0, size, Fraction(1)),) for size in own] for own in sizes], 1)
    chaining = Chaining(problem, feasible_options(problem))
    weights = [float(task.options[0].cycles) for task in problem.tasks]
    for part, heaviest in {0.1: {6, 7}, 0.6: {2, 3, 6, 7}, 0.8: {2, 3, 4, 5, 6, 7}, 1.0: {*range(8)}}.items():
        assert chaining.heaviest(weights, Telling(part, chains=True)) == heaviest
    for part, heaviest in {0.1: {6}, 0.6: {2, 6}, 0.7: {2, 4, 6}, 1.0: {*range(8)}}.items():
        assert chaining.heaviest(weights, Telling(part, chains=False)) == heaviest
    assert chaining.heaviest([0.0] * 8, Telling(0.5, chains=False)) == {*range(8)}
    told, _ = chaining.chains(problem.order, [0] * 4, {2, 4, 6, 7})
    every, _ = chaining.chains(problem.order, [0] * 4, range(8))
    begun, after, end = told.mark.reshape(4, 3).T
    assert [bool(mark) for mark in begun] == [False, True, True, True]
    assert [bool(mark) for mark in after] == [False, False, False, True]
    assert not end.any()
    assert told.mark.reshape(4, 3)[3].tolist() == every.mark.reshape(4, 3)[3].tolist()
    assert told.twin.tolist() == every.twin.tolist() == [-1, -1, -1, 1]


@pytest.mark.parametrize("runs", [4, 20])
def test_few_chains_are_told_apart_in_several_ways(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """What tells states apart is drawn anew for each search; of many chains all tasks do."""
    problem = unlike_chains(runs, 5, 0)
    search = begun(problem, ScheduleObjective.MAKESPAN)
    beams = beams_of(problem, even_prices(problem))
    shapes: list[Shape] = []
    monkeypatch.setattr(beams, "find", lambda *arguments: shapes.append(arguments[3]))
    for _ in range(60):
        beams.round(search)
    drawn = {shape.telling for shape in shapes}
    assert drawn == {ALL} if runs == 20 else len(drawn) > 3


def test_attempts_start_over_and_end_with_the_best() -> None:
    """Searches that gain nothing start over from a schedule of their own; the best is cut in the end."""
    search = begun(unlike_chains(4, 5, 0), ScheduleObjective.MAKESPAN)
    best = search.answer
    assert best is not None
    assert search.key is not None
    value = math.log(search.key)
    attempts = Attempts(again=True)
    assert attempts.base(search) is best
    assert not attempts.anew
    for _ in range(40):
        attempts.searched(search, 0.0, left=1e9)
    assert attempts.anew
    own = Schedule(best.placements[::-1])
    attempts.note(value + 1, own)
    assert not attempts.anew
    assert attempts.base(search) is own
    for _ in range(60):
        attempts.searched(search, 0.0, left=0.0)
    assert not attempts.anew
    assert attempts.base(search) is best
