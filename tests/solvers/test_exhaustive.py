"""The oracle itself: it visits every point, and compares exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as cartesian

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import exhaustive
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import conv2d, gemm


@settings(max_examples=effort(40))
@given(st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(lambda m: instances(m, most=8, largest=60)))
def test_the_oracle_is_the_least_over_all_decoded_points(instance: Instance) -> None:
    """Decoding and evaluating every point one by one gives the same status and value."""
    problem = instance.problem()
    variables = [variable for group in problem.space.groups for variable in group.variables]
    best = None
    for parts in cartesian(*(group.rows.tolist() for group in problem.space.groups)):
        for chosen in cartesian(*(selector.domain for selector in problem.space.selectors)):
            tiles = (value for part in parts for value in part)
            assignment = dict(zip((*variables, *problem.space.selectors), (*tiles, *chosen), strict=True))
            evaluation = problem.evaluate(problem.decode(assignment))
            if not evaluation.violations:
                key = problem.key_of(evaluation)
                best = key if best is None else min(best, key)
    result = solve(problem, "exhaustive")
    assert result.key == best
    assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)


@pytest.mark.parametrize("chunk", [5, 100])
def test_chunks_make_no_difference(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerated one by one or many at once, the optimum is the same."""
    engine = load_engine("dmazerunner-256")
    problem = layer_problem(gemm(m=4, n=2, k=2), engine, parse_objective("edp"))
    whole = solve(problem, "exhaustive")
    monkeypatch.setattr(exhaustive, "CHUNK", chunk)
    assert solve(problem, "exhaustive").key == whole.key
    assert whole.status is Status.OPTIMAL


def test_values_that_floating_point_cannot_tell_apart_are_compared_exactly() -> None:
    """Energy and cycles near 2**53 whose products differ in the last digits: the least one is chosen."""
    levels = (
        MemoryLevel("DRAM", None, Fraction(10**9 + 7, 10**6), Fraction(10**9 + 9, 10**6)),
        MemoryLevel("RF", 1000, Fraction(1, 10**6), Fraction(1, 10**6), read_bandwidth=Fraction(1, 999_983)),
    )
    engine = Engine("e", "hierarchy", 16, Fraction(1), Fraction(1), levels)
    problem = layer_problem(gemm(m=6, n=4, k=2), engine, parse_objective("E^3*D^3"))
    result = solve(problem, "exhaustive")
    variables = [variable for group in problem.space.groups for variable in group.variables]
    keys = []
    for parts in cartesian(*(group.rows.tolist() for group in problem.space.groups)):
        for chosen in cartesian(*(selector.domain for selector in problem.space.selectors)):
            tiles = (value for part in parts for value in part)
            point = dict(zip((*variables, *problem.space.selectors), (*tiles, *chosen), strict=True))
            keys.append(problem.key_of(problem.evaluate(problem.decode(point))))
    assert result.key == min(keys)
    assert float(result.key) > 2.0**53


def test_large_spaces_are_refused() -> None:
    """What would take days is an error that says how many mappings there are."""
    problem = layer_problem(
        conv2d(n=4, k=64, c=64, p=56, q=56, r=3, s=3), load_engine("dmazerunner-256"), parse_objective("edp")
    )
    result = solve(problem, "exhaustive")
    assert result.status is Status.ERROR
    assert "more than exhaustive search takes" in result.message


def test_a_stopped_enumeration_has_a_valid_bound() -> None:
    """Where the time does not suffice, nothing is claimed but what intervals prove of the whole space."""
    problem = layer_problem(
        conv2d(n=4, k=64, c=64, p=56, q=56, r=3, s=3), load_engine("dmazerunner-256"), parse_objective("edp")
    )
    result = solve(problem, "exhaustive", Limits(seconds=1.0))
    best = solve(problem, "branch").key
    assert result.status is Status.FEASIBLE
    assert result.bound is not None
    assert best is not None
    assert 0 < result.bound < best
    assert result.key is not None
    assert result.key >= best
