"""Exact solvers on machines whose buffers share, against the exhaustive oracle."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from instances import OBJECTIVES, Instance, instances, sizes

from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import conv2d, gemm

FACTORS = ("perfect", "imperfect")


@st.composite
def tight(draw: st.DrawFn, factors: str, most: int) -> Instance:
    """Nodes with so little room that sharing decides what fits."""
    m, n, k = draw(sizes(3, most, (1, 2, 3, 4, 6, 8)))
    operator = gemm(m=m, n=n, k=k)
    if draw(st.booleans()):
        k, c, p, r = draw(sizes(4, most, (1, 2, 3, 4, 5)))
        operator = conv2d(k=k, c=c, p=p, q=1, r=r, s=1)
    hop, far = Fraction(draw(st.integers(0, 3))), Fraction(100)
    multicast = draw(st.booleans())
    nodes = (ArrayAxis("x", draw(st.integers(2, 4))), ArrayAxis("y", draw(st.integers(1, 2))))
    fan = Fanout(nodes, Fraction(1), multicast, True, sharing=True, hop_energy=hop)
    bank = draw(st.sampled_from([None, None, 2]))
    node = MemoryLevel("GBUF", draw(st.integers(4, 16)), Fraction(6), Fraction(6), bank=bank)
    if draw(st.booleans()):
        node = replace(node, double_buffered=True, read_bandwidth=Fraction(1), write_bandwidth=Fraction(1, 2))
    levels = (MemoryLevel("DRAM", None, far, far, read_bandwidth=Fraction(1, 2), fanout=fan), node)
    engine = Engine("nodes", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    return Instance(operator, engine, draw(st.sampled_from(OBJECTIVES)), (), factors)


def some(factors: str, largest: int, most: int = 24) -> st.SearchStrategy[Instance]:
    """Tight nodes, or any machine with some array whose buffers share."""
    wide = instances("hierarchy", most, largest, constrained=True, factors=factors, sharing=True)
    narrow = tight(factors, most).filter(lambda instance: instance.problem().space.size <= largest)
    return st.one_of(narrow, wide)


def agrees(instance: Instance, name: str) -> None:
    oracle, result = (solve(instance.problem(), solver) for solver in ("exhaustive", name))
    assert oracle.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert (result.status, result.key, result.bound) == (oracle.status, oracle.key, oracle.bound)


@pytest.mark.parametrize("factors", FACTORS)
def test_branch_agrees_with_enumeration(factors: str) -> None:
    """Value, bound and status, though capacities may fall as more instances share a tile."""

    @settings(max_examples=effort(25))
    @given(some(factors, 20_000))
    def check(instance: Instance) -> None:
        agrees(instance, "branch")

    check()


@pytest.mark.parametrize("factors", FACTORS)
def test_cpsat_agrees_with_enumeration(factors: str) -> None:
    """The same for CP-SAT, where a tile over a number of instances is a quotient of two variables."""

    @settings(max_examples=effort(10))
    @given(some(factors, 5000))
    def check(instance: Instance) -> None:
        agrees(instance, "cpsat")

    check()


@pytest.mark.parametrize("factors", FACTORS)
def test_mip_agrees_with_enumeration(factors: str) -> None:
    """The same for the MIP, where such quotients are bounded and closed by splitting."""
    pytest.importorskip("pulp")

    @settings(max_examples=effort(10), derandomize=True, database=None, phases=[Phase.generate])
    @given(some(factors, 800, most=12))
    def check(instance: Instance) -> None:
        agrees(instance, "highs")

    check()
