"""Bounds from sums of energy and cycles, and from what the innermost levels cost together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, hierarchies, operators
from stops import in_blocks_of
from written_out import keys_of_mappings

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts.inner_levels import firsts
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping import problem_kinds
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.large_problems import OF_INNER_LEVELS, _search_tiles_of_inner_levels
from tilewright.solvers.mapping.patterns import inner_bounds, pattern_bounds
from tilewright.solvers.mapping.patterns.inner_bounds import InnerLevels, inner_keys
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds, has_store_bounds
from tilewright.solvers.mapping.patterns.weighted_sums import corners, least_keys
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm


@settings(max_examples=effort(60))
@given(st.data())
def test_a_bound_of_sums_is_the_least_key_of_points_that_keep_to_them(data: st.DataObject) -> None:
    """No point of a fine grid within the bounds has less, and a corner of them has no more."""
    draw = data.draw
    weights = [0.0, *np.cumsum([draw(st.floats(0.1, 9)) for _ in range(draw(st.integers(0, 3)))])]
    energy, cycles = draw(st.floats(0.5, 50)), draw(st.floats(0.5, 50))
    sums = np.array([energy + weight * cycles * draw(st.floats(0.5, 2)) for weight in weights])
    powers = draw(st.sampled_from([(1, 0), (1, 1), (1, 2), (2, 1)]))
    bound = float(least_keys(sums[:, None], weights, cycles, powers)[0])
    times = cycles + np.linspace(0, 200, 4001)
    least = np.max([value - weight * times for value, weight in zip(sums, weights, strict=True)], axis=0)
    keys = least ** powers[0] * times ** powers[1]
    assert bound <= keys.min() * (1 + 1e-12)
    assert keys.min() <= bound * (1.05 ** (powers[1] + powers[0]))


@settings(max_examples=effort(60))
@given(st.data())
def test_corners_are_no_dearer_than_points_that_keep_to_bounds_of_sums(data: st.DataObject) -> None:
    """Whatever is added to both; where cycles are many, one corner is hardly cheaper than some point."""
    draw = data.draw
    weights = [0.0, *np.cumsum([draw(st.floats(0.1, 9)) for _ in range(draw(st.integers(1, 4)))]).tolist()]
    energy, cycles = draw(st.floats(0.5, 50)), draw(st.floats(0, 5e4))
    sums = np.maximum.accumulate([energy + own * cycles * draw(st.floats(0.2, 1)) for own in weights])
    powers, more = draw(st.sampled_from([(1, 1), (1, 2), (2, 1)])), draw(st.floats(0, 1e5))
    times = np.linspace(0, 6e4, 6001)
    least = np.max([own - weight * times for own, weight in zip(sums, weights, strict=True)], axis=0)
    keys = (least + more) ** powers[0] * (times + more) ** powers[1]
    known = [
        (own + more) ** powers[0] * (waiting + more) ** powers[1]
        for own, waiting in corners(sums.tolist(), weights)
    ]
    assert min(known) <= keys.min() * (1 + 1e-12)
    if more > 1e4:
        assert keys.min() <= min(known) * (1.01 ** (powers[1] + powers[0]))


@st.composite
def plain(draw: st.DrawFn, most: int) -> Instance:
    """A problem on a machine of four or five levels, each of which always stores the same tensors."""
    drawn = draw(hierarchies(levels=draw(st.sampled_from([4, 4, 5])), roomy=draw(st.booleans())))
    array = draw(st.integers(1, len(drawn.levels) - 1))
    levels = [
        replace(
            level,
            may_bypass=frozenset(),
            sliding_window=False,
            double_buffered=index > 0 and draw(st.integers(0, 3)) > 0,
            fanout=level.fanout if index >= array else None,
        )
        for index, level in enumerate(drawn.levels)
    ]
    objective = draw(st.sampled_from(["energy", "edp", "edp", "ed2p"]))
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    engine = replace(drawn, levels=tuple(levels))
    return Instance(draw(operators(most=most)), engine, objective, factors=factors)


def _compare(data: st.DataObject, most: int, enumerated: int) -> None:
    problem = data.draw(plain(most)).problem()
    assume(has_store_bounds(problem) and firsts(problem))
    search = LayerSearch(problem, Limits())
    bounds = PatternBounds(search)
    pattern = bounds.take()
    assume(pattern is not None)
    assert pattern is not None
    keys = [pattern.key, *inner_keys(search, bounds, pattern)]
    assert len(keys) > 1
    assert all(key >= pattern.key * (1 - 1e-8) for key in keys)
    for first in firsts(problem):
        levels = InnerLevels(LayerSearch(problem, Limits()), first, bounds)
        keys.append(levels.least_key())
        assert keys[-1] <= levels.others
    for key in keys_of_mappings(data, problem, enumerated):
        assert max(keys) <= key * (1 + 1e-12)


@settings(max_examples=effort(4))
@given(st.data())
def test_no_mapping_is_below_what_inner_levels_cost_together(data: st.DataObject) -> None:
    """All mappings written out, or random ones, cost at least what several levels together are bounded by."""
    _compare(data, 24, 300)


@settings(max_examples=effort(5))
@given(st.data())
def test_what_is_known_with_much_effort_is_what_parts_cost(data: st.DataObject) -> None:
    """Parts that little effort leaves open cost in the end what they cost where none was left open."""
    problem = data.draw(plain(24)).problem()
    assume(has_store_bounds(problem))
    search = LayerSearch(problem, Limits())
    exact = PatternBounds(search)
    expected = exact.take()
    assume(expected is not None)
    assert expected is not None
    assert not list(exact.deepened(search))
    with mock.patch.object(pattern_bounds, "_EFFORTS", (1, 2)):
        bounds = PatternBounds(search)
        with in_blocks_of(1):
            first = bounds.take()
        assert first is not None
        known = [first, *bounds.deepened(search)]
    keys = [pattern.key for pattern in known]
    assert keys == sorted(keys)
    assert keys[-1] == pytest.approx(expected.key, rel=1e-8)
    for key in keys_of_mappings(data, problem, 100):
        assert keys[-1] <= key * (1 + 1e-12)


def test_one_cut_for_several_counts_no_more_pieces_than_they_leave() -> None:
    """Ten rows in tiles of 5, 3 and 2 are six pieces, in tiles of 3 and 2 seven; six are cheapest."""
    sizes = [(5, 4), (3, 2), (2, 1)]  # rows and products of a sum, of two columns
    levels = [MemoryLevel("DRAM", None, Fraction(200), Fraction(200))]
    for index, ((rows, products), energy) in enumerate(zip(sizes, (20, 1, 1), strict=True)):
        room = {Role.INPUT: rows * products, Role.WEIGHT: 2 * products, Role.OUTPUT: 2 * rows}
        level = MemoryLevel(f"L{index + 1}", 0, Fraction(energy), Fraction(energy), partitions=room)
        levels.append(level)
    engine = Engine("cuts", "hierarchy", 16, Fraction(1), Fraction(1000), tuple(levels))
    problem = layer_problem(gemm(m=10, n=2, k=4), engine, parse_objective("energy"))
    search = LayerSearch(problem, Limits())
    bounds = PatternBounds(search)
    pattern = bounds.take()
    assert pattern is not None
    optimum = solve(problem, "branch").key
    assert optimum is not None
    (key,) = inner_keys(search, bounds, pattern)
    assert pattern.key < key <= optimum


def _plain_machine(objective: str, shared: Fraction | None) -> LayerProblem:
    """A matrix product on four levels that hold everything, with an array of 2 x 2."""
    array = Fanout((ArrayAxis("x", 2), ArrayAxis("y", 2)), Fraction(2))
    levels = tuple(
        MemoryLevel(
            f"L{index}",
            4096 if index else None,
            Fraction(80 >> index),
            Fraction(80 >> index),
            double_buffered=index > 0,
            read_bandwidth=Fraction(8),
            write_bandwidth=Fraction(8),
            shared_bandwidth=shared,
            fanout=array if index == 2 else None,
        )
        for index in range(4)
    )
    engine = Engine("plain", "hierarchy", 16, Fraction(1), Fraction(1000), levels)
    return layer_problem(gemm(m=16, n=16, k=16), engine, parse_objective(objective), factors="perfect")


@pytest.mark.parametrize("shared", [None, Fraction(32)])
@pytest.mark.parametrize("objective", ["edp", "ed2p"])
def test_the_bound_of_a_plain_machine_is_close_to_the_optimum(
    objective: str, shared: Fraction | None
) -> None:
    """Where levels hold everything, a bound that counted any cycle twice, or once a port, would exceed it."""
    problem = _plain_machine(objective, shared)
    search = LayerSearch(problem, Limits())
    bounds = PatternBounds(search)
    pattern = bounds.take()
    assert pattern is not None
    optimum = solve(problem, "branch").key
    assert optimum is not None
    keys = [pattern.key, *inner_keys(search, bounds, pattern)]
    assert 0.99 * float(optimum) <= max(keys) <= optimum


@settings(max_examples=effort(12))
@given(st.data())
def test_tiles_of_inner_levels_have_the_optimum(data: st.DataObject) -> None:
    """Those that cost no more than it, whether all are listed, a few of them, or what little effort finds."""
    problem = data.draw(plain(24)).problem()
    assume(has_store_bounds(problem) and firsts(problem))
    optimum, bounds = solve(problem, "branch").key, PatternBounds(LayerSearch(problem, Limits()))
    assume(optimum is not None)
    assert optimum is not None
    key = float(optimum) * (1 + 1e-9)
    for first in firsts(problem):
        whole = set()
        for most, nodes in ((5, 1 << 30), (20_000, 1 << 30), (20_000, 1), (20_000, 100)):
            effort_there = mock.patch.multiple(inner_bounds, _MOST=most, _TILES_EFFORT=nodes)
            with effort_there, in_blocks_of(min(nodes, 1 << 12)):
                levels = InnerLevels(LayerSearch(problem, Limits()), first, bounds)
                least = levels.least_key()
            assert least <= optimum * (1 + Fraction(1, 10**12))
            if nodes == 1 << 30:
                whole.add(least)
            if key < levels.others:
                assert solve(levels.below(key), "branch").key == optimum
        assert len(whole) == 1


@settings(max_examples=effort(4))
@given(st.data())
def test_a_search_of_the_tiles_of_inner_levels_has_the_optimum(data: st.DataObject) -> None:
    """Searched as a large problem, whether all tiles that may be better are listed or a few of them."""
    problem = data.draw(plain(24)).problem()
    assume(has_store_bounds(problem) and firsts(problem))
    expected = solve(problem, "branch").key
    most = data.draw(st.sampled_from([3, 20_000]))
    with mock.patch.object(problem_kinds, "LARGE", 0), mock.patch.object(inner_bounds, "_MOST", most):
        answer = solve(problem, "branch")
    assert answer.key == expected
    assert expected is None or answer.bound == expected


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_tiles_of_inner_levels_prove_the_optimum(objective: str) -> None:
    """They are named where they do; a search of them that ends early proves nothing of others."""
    problem = _plain_machine(objective, None)
    optimum = solve(problem, "branch").key
    assert optimum is not None
    search = LayerSearch(problem, Limits())
    bounds = PatternBounds(search)
    _search_tiles_of_inner_levels(search, _Stopped(), bounds, firsts(problem))
    assert search.bound is not None
    assert 0 < search.bound <= optimum
    assert search.key is None
    _search_tiles_of_inner_levels(search, Branch(), bounds, firsts(problem))
    assert search.key == search.bound == optimum
    trace = search.result("", "", exhausted=False).trace
    assert OF_INNER_LEVELS in {point.source for point in trace}


class _Stopped:
    """A method that ends before it has searched anything."""

    def solve(self, search: LayerSearch) -> Outcome:
        return Outcome()


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(st.data())
def test_many_mappings_are_not_below_what_inner_levels_cost_together(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare(data, 48, 1_000)
