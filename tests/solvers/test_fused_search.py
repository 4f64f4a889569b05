"""The fused search against plain enumeration of everything, and on cases of known value."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import pytest
from effort import effort
from fused_brute import least_fused

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.solvers.mapping.fused.search import search_fused
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, elementwise, gemm

HIERARCHY = cost_model("hierarchy")


def tiny_engine(rng: Random, three: bool = False) -> Engine:
    """Two or three levels without arrays, often too small for all."""
    energy = lambda: Fraction(rng.randint(1, 30), rng.choice([1, 2]))  # noqa: E731
    levels = [MemoryLevel("L0", None, energy() * 5, energy() * 5)]
    for index in range(1, 3 if three else 2):
        keeps = frozenset(Role)
        if index == 2 and rng.random() < 0.5:
            keeps = frozenset(rng.sample(sorted(Role), 2))
        bypass = frozenset(role for role in sorted(keeps) if rng.random() < 0.2)
        capacity = rng.choice([4, 6, 8, 12, 20])
        bank = rng.choice([None, None, None, 2])
        levels.append(
            MemoryLevel(
                f"L{index}",
                capacity,
                energy(),
                energy(),
                bank=bank,
                keeps=keeps,
                may_bypass=bypass,
                sliding_window=rng.random() < 0.3,
            )
        )
    return Engine("tiny", "hierarchy", 16, energy(), Fraction(500), tuple(levels))


def tiny_group(rng: Random) -> FusedGroup:
    """Two or three layers with few iterations, residual sums and windows among them."""
    two = lambda: rng.choice([1, 2, 2])  # noqa: E731
    kind = rng.choice(["pair", "pair", "pair", "chain", "residual", "windows"])
    layers: list[tuple[str, Operator]]
    if kind == "pair":
        m, n = rng.choice([2, 3, 4]), 2
        layers = [("a", gemm(m=m, n=n, k=two())), ("b", gemm(m=m, n=two(), k=n))]
        readings = [Reading("b", "A", "a", (0, 1), (0, 0))]
    elif kind == "chain":
        m, n, p = two(), two(), two()
        layers = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=p, k=n)), ("c", gemm(m=m, n=1, k=p))]
        readings = [Reading("b", "A", "a", (0, 1), (0, 0)), Reading("c", "A", "b", (0, 1), (0, 0))]
    elif kind == "residual":
        m, n = rng.choice([2, 3]), 2
        layers = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=n, k=n)), ("c", elementwise(shape=(m, n)))]
        readings = [
            Reading("b", "A", "a", (0, 1), (0, 0)),
            Reading("c", "I0", "a", (0, 1), (0, 0)),
            Reading("c", "I1", "b", (0, 1), (0, 0)),
        ]
    else:
        p, r = rng.choice([2, 3, 4]), rng.choice([2, 3])
        pad = rng.choice([0, 1])
        rows = p + r - 1 - 2 * pad
        if rows < 1:
            pad, rows = 0, p + r - 1
        layers = [
            ("a", conv2d(k=1, c=1, p=rows, q=1, r=1, s=1)),
            ("b", conv2d(k=two(), c=1, p=p, q=1, r=r, s=1, pad=(pad, 0))),
        ]
        readings = [Reading("b", "I", "a", (0, 1, 2, 3), (0, 0, pad, 0))]
    last = layers[-1][0]
    return FusedGroup(tuple(layers), tuple(readings), frozenset({last}))


def compare(seed: str, count: int) -> None:
    """The search's optimum is the least of everything that can be listed."""
    outcomes: Counter[str] = Counter()
    for number in range(count):
        rng = Random(f"{seed}-{number}")
        group, engine = tiny_group(rng), tiny_engine(rng)
        least, trees = least_fused(group, engine)
        answer = search_fused(group, engine, HIERARCHY, Limits())
        assert answer.complete
        assert answer.value == least, (seed, number, answer.value, least)
        if least is not None:
            assert answer.bound == least
            assert answer.evaluation is not None
            assert not answer.evaluation.violations
        outcomes[f"{len(group.names)} layers"] += 1
        outcomes["none fits" if least is None else "solved"] += 1
        outcomes["trees"] += trees
    print(dict(outcomes))
    assert outcomes["solved"] >= count // 2
    assert outcomes["3 layers"]


def test_the_optimum_is_that_of_plain_enumeration() -> None:
    """Random tiny groups on tiny machines, every tree tried."""
    compare("brute", effort(8))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_optimum_is_that_of_plain_enumeration_for_many_groups() -> None:
    """The same for 1,000 groups."""
    compare("much", 1000)


def attention(tokens: int, width: int) -> FusedGroup:
    layers = (("qk", gemm(m=tokens, n=tokens, k=width)), ("av", gemm(m=tokens, n=width, k=tokens)))
    return FusedGroup(layers, (Reading("av", "A", "qk", (0, 1), (0, 0)),), frozenset({"av"}))
