"""Mappings over the tiles that are best in parts of a machine, and limits that strike among parts."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import cache
from itertools import count

import pytest

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping import large_problems
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.large_problems import OF_PARTS, offer_initial_solution
from tilewright.solvers.mapping.patterns import pattern_bounds
from tilewright.solvers.mapping.patterns.inner_bounds import inner_keys
from tilewright.solvers.mapping.patterns.part_tiles import PartTiles
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import conv2d

OBJECTIVES = ("energy", "edp")


def stated(objective: str) -> LayerProblem:
    """A convolution of primes on four levels with an array, tiles that need not divide."""
    array = Fanout((ArrayAxis("y", 3), ArrayAxis("x", 4)), Fraction(2))
    levels = tuple(
        MemoryLevel(
            name,
            room,
            Fraction(energy),
            Fraction(energy),
            read_bandwidth=Fraction(8),
            write_bandwidth=Fraction(8),
            double_buffered=room is not None,
            fanout=array if name == "GLB" else None,
        )
        for name, room, energy in (("DRAM", None, 200), ("L2", 400, 20), ("GLB", 90, 6), ("RF", 12, 1))
    )
    engine = Engine("small", "hierarchy", 16, Fraction(1), Fraction(1000), levels)
    operator = conv2d(n=1, k=5, c=3, p=7, q=5, r=3, s=1)
    return layer_problem(operator, engine, parse_objective(objective))


@cache
def optimum_of(objective: str) -> Fraction:
    """The proven optimum of that problem."""
    optimum = solve(stated(objective), "branch").key
    assert optimum is not None
    return optimum


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_tiles_of_parts_are_a_part_of_the_space_with_a_good_mapping(objective: str) -> None:
    """Rows of the whole alone, their inner tiles those of parts; the best mapping is near the optimum."""
    problem = stated(objective)
    search = LayerSearch(problem, Limits())
    bounds, tiles = PatternBounds(search), PartTiles(problem)
    pattern = bounds.take()
    assert pattern is not None
    assert sum(map(tiles.learn, bounds.innermost))
    list(inner_keys(search, bounds, pattern))
    for answer in bounds.innermost:
        tiles.learn(answer)
    assert not any(tiles.learn(answer) for answer in bounds.innermost)
    part = tiles.problem
    for whole, group in zip(problem.space.groups, part.space.groups, strict=True):
        assert 0 < len(group) < len(whole)
        assert {*map(tuple, group.rows.tolist())} <= {*map(tuple, whole.rows.tolist())}
    inner = part.space.nest.boundaries[-2]
    for dim, size in inner.items():
        if isinstance(size, Variable):
            group = next(group for group in part.space.groups if size in group.variables)
            found = {*group.rows[:, group.variables.index(size)].tolist()}
            own = [(answer, answer.part.space.nest.boundaries[-2][dim]) for answer in bounds.innermost]
            assert found <= {answer.tiles[expr] for answer, expr in own if isinstance(expr, Variable)}
    best, optimum = solve(part, "branch"), optimum_of(objective)
    assert best.key is not None
    assert best.answer is not None
    assert optimum <= best.key <= optimum * Fraction(11, 10)
    assert problem.outside(best.answer) is None


def test_tiles_of_parts_are_offered_where_tiles_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large problem begins with them; what it offers is on both sides of the optimum."""
    problem, optimum = stated("energy"), optimum_of("energy")
    monkeypatch.setattr(large_problems, "HUGE", 0)
    search = LayerSearch(problem, Limits())
    offer_initial_solution(search, Branch())
    assert search.bound is not None
    assert search.key is not None
    assert search.bound <= optimum <= search.key
    assert any(OF_PARTS in method.method for method in search.result("", "", exhausted=False).effort.methods)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_a_limit_leaves_of_parts_bounds_the_optimum(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that strikes anywhere in the search of a part: what is known then is none above the optimum."""
    problem, optimum = stated(objective), optimum_of(objective)
    monkeypatch.setattr(pattern_bounds, "_EFFORTS", (1, 2))
    known: list[float] = []
    for ticks in (30, 120, 500):
        bounds = PatternBounds(LayerSearch(problem, Limits()))
        bounds.take()
        clock = map(float, count()).__next__
        with suppress(LimitReachedError):
            for pattern in bounds.deepened(LayerSearch(problem, Limits(ticks, started=0, clock=clock))):
                known.append(pattern.key)
    assert known
    assert max(known) <= optimum
