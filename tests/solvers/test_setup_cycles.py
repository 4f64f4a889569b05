"""Set-up cycles, overlap and refetching: every solver against plain enumeration, counts against a walk."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from itertools import islice

import pytest
from brute import every_mapping
from effort import effort

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.timing import Timing
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, elementwise, gemm

HIERARCHY = cost_model("hierarchy")
CYCLES = parse_objective("cycles")
PROBLEMS = effort(18)
SOLVERS = ("branch", "exhaustive", "cpsat", *(("highs",) if find_spec("pulp") else ()))


def layer(choose: random.Random) -> Operator:
    """A product, a convolution or a sum of few iterations."""
    sizes = [choose.choice((1, 2, 3, 4)) for _ in range(3)]
    kind = choose.randrange(4)
    if kind == 0:
        return elementwise(shape=(sizes[0] * 2, sizes[1]), operands=choose.choice((1, 2)))
    if kind == 1:
        return conv2d(k=min(sizes[0], 2), c=1, p=sizes[1], q=1, r=min(sizes[2], 2), s=1, stride=2)
    return gemm(m=sizes[0], n=sizes[1], k=sizes[2])


def timing(choose: random.Random, inner: bool) -> Timing:
    """Some of the fields; the outermost level fetches nothing."""
    amounts = (Fraction(0), Fraction(0), Fraction(1, 2), Fraction(3), Fraction(20))
    return Timing(
        overlap=choose.choice((None, True, False)),
        tile=choose.choice(amounts),
        transfer=choose.choice(amounts),
        row=choose.choice(amounts),
        instruction=choose.choice(amounts),
        row_bits=choose.choice((None, 16, 24)),
        refetch=inner and choose.random() < 0.4,
    )


def machine(choose: random.Random) -> Engine:
    """Two or three levels with few PEs, all with set-up cycles."""
    rates = (None, Fraction(1), Fraction(1, 2), Fraction(3))
    fan = choose.choice((None, Fanout((ArrayAxis("x", choose.choice((2, 3))),), energy=Fraction(1, 5))))
    levels = [
        MemoryLevel("DRAM", None, Fraction(20), Fraction(30), read_bandwidth=choose.choice(rates)),
        MemoryLevel(
            "SPM",
            choose.choice((4, 6, 12)),
            Fraction(3),
            Fraction(5, 2),
            write_bandwidth=choose.choice(rates),
            double_buffered=choose.choice((False, True)),
            may_bypass=choose.choice((frozenset(), frozenset(), frozenset({Role.INPUT}), frozenset(Role))),
        ),
    ]
    if choose.random() < 0.5:
        keeps = choose.choice((frozenset(Role), frozenset({Role.WEIGHT}), frozenset({Role.OUTPUT})))
        levels.append(MemoryLevel("RF", 4, Fraction(1), Fraction(1), keeps=keeps))
    place = choose.randrange(len(levels) - 1)
    levels[place] = replace(levels[place], fanout=fan)
    levels = [replace(level, timing=timing(choose, inner=index > 0)) for index, level in enumerate(levels)]
    if any(level.may_bypass for level in levels):  # loops of a level that stores nothing have no place
        levels = [
            replace(level, timing=replace(level.timing, tile=Fraction(0), instruction=Fraction(0)))
            for level in levels
        ]
    return Engine("set-up", "hierarchy", 8, Fraction(1, 2), Fraction(500), tuple(levels))


def enumerated(seed: int, most: int) -> tuple[Operator, Engine, str, list[Mapping]]:
    """A problem that has so many mappings at most, and all of them."""
    choose = random.Random(seed)
    while True:
        operator, engine = layer(choose), machine(choose)
        factors = choose.choice(("perfect", "imperfect"))
        mappings = [*islice(every_mapping(operator, engine, factors == "perfect"), most + 1)]
        if len(mappings) <= most:
            return operator, engine, factors, mappings


def prove(seed: int, most: int) -> None:
    """The proven optimum is the least over all mappings, whatever takes set-up cycles."""
    operator, engine, factors, mappings = enumerated(seed, most)
    solver = SOLVERS[seed % len(SOLVERS)]
    points = [
        (each.energy, each.cycles)
        for each in (evaluate_mapping(operator, engine, HIERARCHY, mapping) for mapping in mappings)
        if not each.violations
    ]
    for text in ("cycles", "edp"):
        goal = parse_objective(text)
        problem = layer_problem(operator, engine, goal, factors=factors)
        result = solve(problem, solver)
        if not points:
            assert result.status is Status.INFEASIBLE
            continue
        least = min(goal.key(energy, cycles) for energy, cycles in points)
        assert (result.status, result.key, result.bound) == (Status.OPTIMAL, least, least), (solver, text)
        assert least_key(problem) <= least


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_optima_are_those_of_plain_enumeration(seed: int) -> None:
    """On small machines and layers with up to a thousand mappings."""
    prove(seed, 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_300))
def test_optima_are_those_of_plain_enumeration_at_length(seed: int) -> None:
    """The same on 300 more, with up to fifty thousand mappings."""
    prove(seed, 50_000)


def test_uneven_storage_is_refused() -> None:
    """Reductions of uneven storage are proven for traffic alone."""
    engine = machine(random.Random(0))
    with pytest.raises(InputError, match="set-up cycles"):
        layer_problem(gemm(m=2, n=2, k=2), engine, CYCLES, storage="uneven")
