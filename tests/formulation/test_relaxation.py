"""The root relaxation: a bound below every mapping, and rows that no mapping misses."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.mapping.parts.relaxation import (
    legal_sizes,
    problem_tables,
    root_bound,
    usable_rows,
    wanted_rows,
)
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Bools, Floats
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.exhaustive import minima
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer


@settings(max_examples=effort(40))
@given(st.data())
def test_bound_and_rows_on_random_problems(data: st.DataObject) -> None:
    """The bound is at most the optimum, and the best of every chunk of the space uses usable rows only."""
    model = data.draw(st.sampled_from(["hierarchy", "dmazerunner"]))
    factors = data.draw(st.sampled_from(["perfect", "imperfect"])) if model == "hierarchy" else None
    instance: Instance = data.draw(
        instances(model, most=16, largest=5000, constrained=data.draw(st.booleans()), factors=factors)
    )
    problem = instance.problem()
    tables = problem_tables(problem)
    usable = [set(rows.tolist()) for rows in usable_rows(problem, tables)]
    bound = root_bound(problem, tables)
    groups = problem.space.groups
    narrowed = [group.narrowed(legal_sizes(problem, group)) for group in groups if group.narrowed is not None]
    made = [set(map(tuple, group.rows.tolist())) for group in narrowed]
    for candidate in minima(problem):
        assert all(row in kept for row, kept in zip(candidate.rows, usable, strict=True))
        tiles = [tuple(group.rows[row].tolist()) for group, row in zip(groups, candidate.rows, strict=True)]
        assert all(row in kept for row, kept in zip(tiles, made, strict=True))
        assert bound is None or bound <= candidate.key


@settings(max_examples=effort(40))
@given(st.data())
def test_wanted_rows_on_random_problems(data: st.DataObject) -> None:
    """The best candidate of every chunk that is below a key uses rows that are wanted below that key."""
    factors = data.draw(st.sampled_from(["perfect", "imperfect"]))
    instance: Instance = data.draw(
        instances("hierarchy", most=16, largest=5000, constrained=data.draw(st.booleans()), factors=factors)
    )
    problem = instance.problem()
    tables = problem_tables(problem)
    candidates = list(minima(problem))
    if not candidates:
        return
    above = data.draw(st.sampled_from([1.0, 1.05, 1.5, 4.0]))
    cutoff = float(min(candidate.key for candidate in candidates) * problem.key_scale) * above

    def wanted(energy: Floats, cycles: Floats, keys: Floats) -> Bools:
        return keys <= cutoff

    rows = wanted_rows(problem, tables, wanted)
    assert all(len(kept) for kept in rows)
    for candidate in candidates:
        if candidate.key * problem.key_scale <= cutoff:
            assert all(row in kept for row, kept in zip(candidate.rows, rows, strict=True))


def test_most_rows_of_a_large_layer_are_unwanted() -> None:
    """Below the best mapping with perfect factors, few rows are left of those that are legal."""
    operator = parse_layer("gemm:M=2048,N=2048,K=2048")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"), factors="imperfect")
    tables = problem_tables(problem)
    key = solve(problem.with_perfect_factors(), "branch").key
    assert key is not None
    cutoff = float(key * problem.key_scale)
    kept = wanted_rows(problem, tables, lambda _energy, _cycles, keys: keys < cutoff)
    assert sum(map(len, kept)) < sum(tables.sizes) / 4


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_bound_of_a_layer(objective: str) -> None:
    """It is positive and below the optimum where the energy of DRAM alone says something."""
    operator = parse_layer("conv:N=2,K=32,C=16,P=14,Q=14,R=3,S=3,pad=1")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective(objective), factors="perfect")
    bound, proven = root_bound(problem, problem_tables(problem)), solve(problem, "branch").key
    assert bound is not None
    assert proven is not None
    assert proven / 4 <= bound <= proven


def test_rows_that_never_fit_are_left_out() -> None:
    """Tiles too large for the innermost memory on their own are no use to anyone."""
    operator = parse_layer("conv:N=2,K=32,C=16,P=14,Q=14,R=3,S=3,pad=1")[1]
    problem = layer_problem(operator, load_engine("eyeriss-168"), parse_objective("edp"), factors="perfect")
    tables = problem_tables(problem)
    kept = [len(rows) for rows in usable_rows(problem, tables)]
    assert all(0 < count <= len(table) for count, table in zip(kept, tables.tables, strict=True))
    assert sum(kept) < sum(len(table) for table in tables.tables)


def test_rows_with_a_tile_that_never_fits_are_not_even_made() -> None:
    """Words of a language model on a machine with a latch: most of 13 million rows overfill it."""
    operator = parse_layer("gemm:M=32,N=128256,K=4096")[1]
    problem = layer_problem(operator, load_engine("a100"), parse_objective("edp"))
    words = next(group for group in problem.space.groups if group.name == "N")
    assert words.narrowed is not None
    sizes = legal_sizes(problem, words)
    assert [set(sizes[variable]) for variable in words.variables[-1:]] == [{1}]
    assert words.most > 12_000_000 > 6 * words.narrowed(sizes).most > 0
