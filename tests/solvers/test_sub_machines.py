"""Machines without levels that all tensors may bypass: their answers are answers of the whole machine."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from fractions import Fraction
from itertools import chain, repeat

import pytest
from effort import effort
from random_machines import loose_problem, smaller

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.nests.idle_levels import loose_levels
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping import beside, problem_kinds
from tilewright.solvers.mapping.beside import Beside
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.patterns import storage_patterns, sub_machines
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds
from tilewright.solvers.mapping.patterns.pattern_machines import machine_of, machines_stand_alone
from tilewright.solvers.mapping.patterns.storage_patterns import PatternTrees
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm


def stopped(problem: LayerProblem, work: int) -> Fraction | None:
    """The best key of a search that is stopped once it has done so much work, whatever the clock says."""
    searches: list[LayerSearch] = []
    done = 0

    def clock() -> float:
        nonlocal done
        for search in searches:
            done = max(done, search.tally.nodes + 100_000 * search.tally.trees)
        return float(done)

    search = LayerSearch(problem, Limits(float(work), threads=1, clock=clock))
    searches.append(search)
    with suppress(LimitReachedError):
        Branch().solve(search)
    return search.key


@pytest.mark.parametrize("seed", range(effort(12)))
def test_every_machine_of_fewer_levels_has_its_turn(seed: int) -> None:
    """The sets of levels are those with all levels that some tensor must use, those of few levels first."""
    problem = loose_problem(seed)
    sets = [*sub_machines.level_sets(problem)] if machines_stand_alone(problem) else []
    assert sorted(sets) == (sorted(smaller(problem.engine)) if sets else [])
    assert [*map(len, sets)] == sorted(map(len, sets))


@pytest.mark.parametrize("needed", [None, 1, 2])
def test_levels_left_out_together_leave_no_two_arrays_in_sequence(needed: int | None) -> None:
    """Between two arrays some level is there on every machine, or the whole is searched at once."""
    arrays = {0: Fanout((ArrayAxis("x", 4),)), 2: Fanout((ArrayAxis("y", 4),))}
    levels = tuple(
        MemoryLevel(
            f"L{place}",
            capacity,
            Fraction(energy),
            Fraction(energy),
            may_bypass=frozenset() if place in (0, needed, 3) else frozenset(Role),
            fanout=arrays.get(place),
        )
        for place, (capacity, energy) in enumerate([(None, 2), (500, 9000), (100, 9000), (20, 1)])
    )
    engine = Engine("arrays", "hierarchy", 16, Fraction(1), Fraction(1000), levels)
    problem = layer_problem(gemm(m=4, n=2, k=2), engine, parse_objective("ed2p"), factors="perfect")
    assert machines_stand_alone(problem) == (needed is not None)
    result = solve(problem, "branch")
    assert result.status is Status.OPTIMAL
    assert result.key == solve(problem, "exhaustive").key


def compare_optima(seed: int) -> None:
    problem = loose_problem(seed)
    search = LayerSearch(problem, Limits(threads=1))
    for _ in sub_machines.machine_steps(search, "test"):
        pass
    optima = [
        solve(problem.on(machine_of(problem.engine, stored)), "branch").key
        for stored in smaller(problem.engine)
    ]
    assert search.key == min((key for key in optima if key is not None), default=None)


@pytest.mark.parametrize("seed", [1, 4])
def test_turns_end_in_the_best_of_all_smaller_machines(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the length of turns, nothing better is left than the least optimum of all of them."""
    monkeypatch.setattr(sub_machines, "_TURN", 1)
    compare_optima(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_turns_end_in_the_best_of_many_smaller_machines(seed: int) -> None:
    """The same, for many machines."""
    compare_optima(seed)


def compare_bounds(seed: int) -> None:
    problem = loose_problem(seed)
    assert problem_kinds.has_patterns(problem)
    bounds = PatternBounds(LayerSearch(problem, Limits(threads=1)))
    while bounds.take() is not None:
        pass
    optima = {
        stored: solve(problem.on(machine_of(problem.engine, stored)), "branch").key
        for stored in smaller(problem.engine)
    }
    assert optima
    for stored, optimum in optima.items():
        assert optimum is None or 0 < bounds.key_within(stored) <= optimum * (1 + Fraction(1, 10**12))
    search = LayerSearch(problem, Limits(threads=1))
    asked: list[Collection[int]] = []

    def exclude(levels: Collection[int]) -> bool:
        asked.append(levels)
        return False

    assert not [*sub_machines.machine_steps(search, "test", exclude)]
    assert search.key is None
    assert sorted(asked) == sorted(optima)


@pytest.mark.parametrize("seed", [28, 33])
def test_bounds_of_smaller_machines_are_not_above_their_optima(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of patterns bounds every machine of some levels, and what is excluded takes no step."""
    monkeypatch.setattr(problem_kinds, "FEW", 0)
    compare_bounds(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 8, 12, 13, 22, 32])
def test_bounds_of_many_smaller_machines_are_not_above_their_optima(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, for more machines."""
    monkeypatch.setattr(problem_kinds, "FEW", 0)
    compare_bounds(seed)


def compared(seed: int, work: int) -> list[bool]:
    """Whether a search is no worse than those of all smaller machines, each stopped after the same work."""
    problem = loose_problem(seed)
    key = stopped(problem, work)
    others = [
        stopped(problem.on(machine_of(problem.engine, stored)), work) for stored in smaller(problem.engine)
    ]
    return [key is not None and key <= other for other in others if other is not None]


@pytest.mark.parametrize("seed", [5, 8])
def test_a_search_stopped_early_is_no_worse_than_smaller_machines(seed: int) -> None:
    """After the same work, counted in nodes and trees, the answer is at most that of every sub-machine."""
    no_worse = compared(seed, 2_000_000)
    assert no_worse
    assert all(no_worse)


@pytest.mark.slow
def test_searches_stopped_early_are_rarely_worse_than_smaller_machines() -> None:
    """Of many machines stopped after the same work at most one comparison in twenty is lost."""
    no_worse = [result for seed in range(10, 26) for result in compared(seed, 3_000_000)]
    assert len(no_worse) > 50
    assert no_worse.count(False) <= len(no_worse) / 20


@pytest.mark.parametrize("seed", [13, 16, 22])
def test_machines_of_one_inner_level_come_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns are bounded with what is no worse than the optima of machines of one inner level or none."""
    problem = loose_problem(seed)
    search = LayerSearch(problem, Limits(threads=1))
    keys: list[Fraction | None] = []

    def stop(*_: object) -> None:
        keys.append(search.key)
        raise LimitReachedError

    monkeypatch.setattr(storage_patterns, "PatternBounds", stop)
    with search.at_work("test"):
        PatternTrees(search, "test").run()
    [key] = keys
    assert key is not None
    required = len(problem.engine.levels) - len(loose_levels(problem.space.nest))
    optima = [
        solve(problem.on(machine_of(problem.engine, stored)), "branch").key
        for stored in smaller(problem.engine)
        if len(stored) <= required + 1
    ]
    assert len(optima) > 1
    assert all(key <= optimum for optimum in optima if optimum is not None)


def test_steps_have_their_share_of_the_work() -> None:
    """Steps are taken while they are behind, at once without a mapping, and not once they have ended."""
    problem = loose_problem(2)
    search = LayerSearch(problem, Limits(threads=1))
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 1
        search.tally.nodes += 10

    with search.at_work("test") as tally:
        steps = Beside(search, (step() for _ in chain(range(60), repeat(None, 40))))
        assert not steps.are_behind
        steps.begin(2)
        assert taken == 2
        assert not steps.are_behind
        tally.nodes += 40
        steps.keep_up()
        assert taken == 5  # as much as all else, and a share of it
        tally.nodes += 10 * beside._EARLY
        steps.keep_up()
        assert taken == 100
        assert not steps.are_behind
