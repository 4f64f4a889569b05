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
from written_out import keys_of_mappings

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.inner_levels import firsts
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping import pattern_bounds
from tilewright.solvers.mapping.inner_bounds import inner_keys
from tilewright.solvers.mapping.pattern_bounds import PatternBounds, has_store_bounds
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.weighted_sums import least_keys
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


@pytest.mark.parametrize("shared", [None, Fraction(32)])
@pytest.mark.parametrize("objective", ["edp", "ed2p"])
def test_the_bound_of_a_plain_machine_is_close_to_the_optimum(
    objective: str, shared: Fraction | None
) -> None:
    """Where levels hold everything, a bound that counted any cycle twice, or once a port, would exceed it."""
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
    problem = layer_problem(gemm(m=16, n=16, k=16), engine, parse_objective(objective), factors="perfect")
    search = LayerSearch(problem, Limits())
    bounds = PatternBounds(search)
    pattern = bounds.take()
    assert pattern is not None
    optimum = solve(problem, "branch").key
    assert optimum is not None
    keys = [pattern.key, *inner_keys(search, bounds, pattern)]
    assert 0.99 * float(optimum) <= max(keys) <= optimum


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(st.data())
def test_many_mappings_are_not_below_what_inner_levels_cost_together(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare(data, 48, 1_000)
