"""Exact solvers on machines whose buffers share, against the exhaustive oracle."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.result import Status
from tilewright.solvers.solve import solve

FACTORS = ("perfect", "imperfect")


def agrees(instance: Instance, name: str) -> None:
    oracle, found = (solve(instance.problem(), solver) for solver in ("exhaustive", name))
    assert oracle.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert (found.status, found.value, found.bound) == (oracle.status, oracle.value, oracle.bound)


def small(factors: str, largest: int, most: int = 20) -> st.SearchStrategy[Instance]:
    return instances("hierarchy", most, largest, constrained=True, factors=factors, sharing=True)


@pytest.mark.parametrize("factors", FACTORS)
def test_branch_agrees_with_enumeration(factors: str) -> None:
    """Value, bound and status, though capacities may fall as more instances share a tile."""

    @settings(max_examples=60)
    @given(small(factors, 20_000))
    def check(instance: Instance) -> None:
        agrees(instance, "branch")

    check()


@pytest.mark.parametrize("factors", FACTORS)
def test_cpsat_agrees_with_enumeration(factors: str) -> None:
    """The same for CP-SAT, where a tile over a number of instances is a quotient of two variables."""

    @settings(max_examples=25)
    @given(small(factors, 5000))
    def check(instance: Instance) -> None:
        agrees(instance, "cpsat")

    check()


@pytest.mark.parametrize("factors", FACTORS)
def test_mip_agrees_with_enumeration(factors: str) -> None:
    """The same for the MIP, where such quotients are bounded and closed by splitting."""
    pytest.importorskip("pulp")

    @settings(max_examples=8, derandomize=True, database=None, phases=[Phase.generate])
    @given(small(factors, 800, most=12))
    def check(instance: Instance) -> None:
        agrees(instance, "highs")

    check()
