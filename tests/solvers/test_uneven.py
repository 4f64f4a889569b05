"""Uneven storage and every integer tile, searched and proven, against plain enumeration."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from uneven_oracle import DIVISORS, EVERY, LEAST, Oracle

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import gemm, matmul

KINDS = {
    DIVISORS: {"factors": "perfect"},
    LEAST: {"factors": "imperfect"},
    EVERY: {"factors": "imperfect", "tiles": "every"},
}
POWERS = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1)}


def random_operator(draw: random.Random, most: int) -> Operator:
    """A product of small matrices, or a nest like one."""
    sizes = [1, 1, 1]
    while True:
        place = draw.randrange(3)
        grown = sizes.copy()
        grown[place] += draw.choice([1, 1, 2, 3])
        if grown[0] * grown[1] * grown[2] > most:
            break
        sizes = grown
    a, b, c = sizes
    kind = draw.choice(["gemm", "gemm", "matmul", "nest"])
    if kind == "matmul":
        return matmul(batch=2, m=a, n=1, k=min(b, 3)) if a > 1 else gemm(m=a, n=b, k=c)
    if kind == "nest":
        return nest(
            "O[i] += A[i,j] * B[j,k]", bounds={"i": a, "j": b, "k": c}, like={"i": "K", "j": "C", "k": "P"}
        )
    return gemm(m=a, n=b, k=c)


def random_machine(draw: random.Random) -> Engine:
    """Two or three levels, with or without an array, tight buffers, some levels kept from some tensors."""

    def energy() -> Fraction:
        return Fraction(draw.randint(0, 20), draw.choice([1, 2]))

    def bandwidth() -> Fraction | None:
        return draw.choice([None, Fraction(1, 2), Fraction(1), Fraction(3)])

    def level(name: str, most: int, **fields: object) -> MemoryLevel:
        return MemoryLevel(
            name,
            draw.randint(3, most),
            energy(),
            energy(),
            read_bandwidth=bandwidth(),
            write_bandwidth=bandwidth(),
            double_buffered=draw.random() < 0.5,
            **fields,  # type: ignore[arg-type]
        )

    fan = Fanout(
        (ArrayAxis("x", draw.choice([2, 3, 4])),),
        multicast=draw.random() < 0.7,
        reduction=draw.random() < 0.7,
    )
    dram = MemoryLevel(
        "DRAM", None, Fraction(100), Fraction(100), read_bandwidth=bandwidth(), write_bandwidth=bandwidth()
    )
    keeps = draw.choice(
        [frozenset(Role), frozenset(Role), frozenset({Role.WEIGHT}), frozenset({Role.OUTPUT, Role.INPUT})]
    )
    loose = (
        draw.choice([frozenset[Role](), frozenset({Role.INPUT}) & keeps])
        if len(keeps) > 1
        else frozenset[Role]()
    )
    shape = draw.choice(["one", "array", "array", "two", "split", "spread"])
    if shape == "one":
        levels = (dram, level("BUF", 12))
    elif shape == "array":
        levels = (dram, level("BUF", 12, fanout=fan), level("RF", 6, keeps=keeps, may_bypass=loose))
    elif shape == "split":  # outputs past the buffer of the others
        own = frozenset({Role.OUTPUT})
        levels = (dram, level("BUF", 8, keeps=frozenset(Role) - own), level("ACC", 6, keeps=own, fanout=fan))
        levels = (*levels, level("RF", 3, keeps=frozenset({Role.WEIGHT})))
    elif shape == "spread":
        levels = (replace(dram, fanout=fan), level("BUF", 8))
    else:
        levels = (dram, level("BUF", 12), level("RF", 6, keeps=keeps, may_bypass=loose))
    return Engine("random", "hierarchy", 16, energy(), Fraction(500), levels)


def random_problem(seed: int, kind: str, most: int) -> LayerProblem:
    """An instance of uneven storage."""
    draw = random.Random(seed)
    objective = parse_objective(draw.choice(sorted(POWERS)))
    return layer_problem(
        random_operator(draw, most), random_machine(draw), objective, storage="uneven", **KINDS[kind]
    )  # type: ignore[arg-type]


def agrees(seed: int, kind: str, most: int, solver: str = "branch") -> bool:
    """Whether a random instance has a mapping; its claim is that of enumeration."""
    problem = random_problem(seed, kind, most)
    oracle = Oracle(problem.operator, problem.engine, kind)
    wanted = oracle.least(POWERS[problem.objective.name])
    found = solve(problem, solver, Limits(seconds=60))
    assert found.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL), (seed, found.message)
    assert (found.key, found.bound) == (wanted, wanted), (seed, problem.operator.bounds)
    return wanted is not None


@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_those_of_enumeration(kind: str) -> None:
    """Least energy, cycles and EDP over all loop sequences, tiles and points of storage."""
    count = int(os.environ.get("TEST_UNEVEN", "20"))
    assert sum(agrees(seed, kind, 8) for seed in range(count)) > count // 2
