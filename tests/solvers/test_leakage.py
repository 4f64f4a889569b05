"""Static power: a cost of every cycle in energy, EDP and bounds, against plain enumeration."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from itertools import count, islice

import pytest
from brute import every_mapping
from effort import effort
from machines_with_parts import decisions, drawn, having, least, past_a_loose_level
from uneven_oracle import DIVISORS, LEAST

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.parts.segment_parts import (
    around,
    has_parts,
    inner_arrangements,
    inside_part,
    knowing,
    leaks_outside,
    near_arrangements,
    outside_part,
    storages,
    stores_near,
    within,
)
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.explore.bounds import LayerBounds
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, elementwise, gemm

HIERARCHY = cost_model("hierarchy")
OBJECTIVES = ("energy", "edp", "cycles", "ed2p", "E^2*D")
LEAKS = (Fraction(1, 7), Fraction(3), Fraction(250), Fraction("0.00025508039081958506"))
SPACES = effort(16)
"""Enumerated spaces; each is searched for every objective and leakage, which makes 320 problems."""


def layer(choose: random.Random) -> Operator:
    """A product, a convolution or a sum of few iterations."""
    sizes = [choose.choice((1, 2, 2, 3)) for _ in range(3)]
    kind = choose.randrange(4)
    if kind == 0:
        return elementwise(shape=(sizes[0] * 2, sizes[1]), operands=choose.choice((1, 2)))
    if kind == 1:
        return conv2d(k=sizes[0], c=1, p=sizes[1], q=1, r=sizes[2], s=1)
    return gemm(m=sizes[0], n=sizes[1], k=sizes[2])


def machine(choose: random.Random) -> Engine:
    """Two or three levels with few PEs, whose transfers take time."""
    rates = (None, Fraction(1), Fraction(1, 2), Fraction(3))
    fan = choose.choice((None, Fanout((ArrayAxis("x", choose.choice((2, 3))),), energy=Fraction(1, 5))))
    levels = [
        MemoryLevel(
            "DRAM", None, Fraction(20), Fraction(30), read_bandwidth=choose.choice(rates), fanout=fan
        ),
        MemoryLevel(
            "SPM",
            choose.choice((4, 6, 12)),
            Fraction(3),
            Fraction(5, 2),
            write_bandwidth=choose.choice(rates),
            double_buffered=choose.choice((False, True)),
        ),
    ]
    return Engine("leaky", "hierarchy", 8, Fraction(1, 2), Fraction(500), tuple(levels))


def legal(operator: Operator, engine: Engine, *, perfect: bool = True) -> list[tuple[Fraction, int]]:
    """Energy and cycles of every legal mapping of a machine that does not leak."""
    evaluations = (
        evaluate_mapping(operator, engine, HIERARCHY, m) for m in every_mapping(operator, engine, perfect)
    )
    return sorted({(each.energy, each.cycles) for each in evaluations if not each.violations})


@pytest.mark.parametrize("seed", range(SPACES))
def test_optima_are_those_of_plain_enumeration(seed: int) -> None:
    """The proven optimum is the least of (energy + leakage x cycles)^a x cycles^b over all mappings."""
    choose = random.Random(seed)
    operator, plain = layer(choose), machine(choose)
    factors = choose.choice(("perfect", "imperfect"))
    points = legal(operator, plain, perfect=factors == "perfect")
    for leak in LEAKS:
        engine = replace(plain, leakage={"SPM": leak / 4, "PE": leak * 3 / 4})
        stated = layer_problem(operator, engine, parse_objective("energy"), factors=factors)
        for text in OBJECTIVES:
            goal = parse_objective(text)
            problem = replace(stated, objective=goal)
            result = solve(problem)
            if not points:
                assert result.status is Status.INFEASIBLE
                continue
            least = min(goal.key(energy + leak * cycles, cycles) for energy, cycles in points)
            assert (result.status, result.key, result.bound) == (Status.OPTIMAL, least, least), (leak, text)
            assert result.evaluation is not None
            assert result.evaluation.components["leakage"] == leak * result.evaluation.cycles
            assert result.evaluation.energy == sum(result.evaluation.components.values())
            assert least_key(problem) <= least


SOLVERS = ("exhaustive", "branch", "cpsat", *(("highs",) if find_spec("pulp") else ()))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("text", [pytest.param("energy", marks=pytest.mark.slow), "edp"])
def test_every_solver_counts_the_leakage(solver: str, text: str) -> None:
    """All exact solvers agree with enumeration on a machine whose cycles are dear."""
    choose = random.Random(5)
    operator, plain, goal = gemm(m=2, n=3, k=2), machine(choose), parse_objective(text)
    engine = replace(plain, leakage={"DRAM": Fraction(7, 2)})
    least = min(
        goal.key(energy + Fraction(7, 2) * cycles, cycles) for energy, cycles in legal(operator, plain)
    )
    result = solve(layer_problem(operator, engine, goal, factors="perfect"), solver)
    assert (result.status, result.key) == (Status.OPTIMAL, least)


@pytest.mark.parametrize("storage", ["even", "uneven"])
def test_a_leak_that_dwarfs_all_else_finds_the_least_cycles(storage: str) -> None:
    """Where nothing but cycles costs, least energy is least cycles, evenly stored or not."""
    engine = replace(machine(random.Random(2)), leakage={"PE": Fraction(10**6)})
    operator = gemm(m=4, n=3, k=4)
    energy, cycles = (
        solve(layer_problem(operator, engine, parse_objective(text), storage=storage))
        for text in ("energy", "cycles")
    )
    assert energy.status is cycles.status is Status.OPTIMAL
    assert energy.evaluation is not None
    assert cycles.evaluation is not None
    assert energy.evaluation.cycles == cycles.evaluation.cycles


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_parts_of_uneven_storage_count_the_leakage_once(kind: str) -> None:
    """Random mappings cost no less than both parts over their tiles, of which one has what leaks."""
    draw, compared = random.Random(17), Counter[bool]()
    for seed in count():
        problem = drawn(seed, 60, kind) if seed % 2 else past_a_loose_level(draw, kind)
        if not problem.engine.leak or not has_parts(problem):
            continue
        machine = draw.choice([machine for machine in storages(problem) if stores_near(machine)])
        near, inner = draw.choice([*near_arrangements(machine)]), draw.choice([*inner_arrangements(machine)])
        whole = machine.arranged((*near, *inner))
        inside, outside = inside_part(machine, inner), outside_part(machine, near)
        known = knowing(whole, 0).statement.energy
        for values in islice(decisions(whole, draw, 100), 10):
            energy = evaluate(whole.statement.energy, values)
            parts = [
                having(inside, within(inside.space), whole, within(whole.space), values),
                having(outside, around(near), whole, around(near), values),
            ]
            assert evaluate(known, values) == energy
            assert sum(least(part)[0] for part in parts) <= energy
            assert all(least(part)[1] <= evaluate(whole.statement.cycles, values) for part in parts)
            compared[leaks_outside(machine)] += 1
        if min(compared[True], compared[False]) >= effort(40):
            break


def test_bounds_of_explored_machines_count_the_leakage() -> None:
    """A bound proven on one machine holds on machines that leak more or less, and carries their leakage."""
    operator, plain = gemm(m=4, n=6, k=4), machine(random.Random(3))
    engines = [replace(plain, leakage={"PE": leak} if leak else {}) for leak in (Fraction(0), *LEAKS)]
    for text in ("energy", "edp"):
        goal = parse_objective(text)
        keys = [solve(layer_problem(operator, engine, goal)).key for engine in engines]
        for solved in range(len(engines)):
            bounds = LayerBounds(operator, engines, goal, "hierarchy", None, comparing=True)
            assert all(
                low <= float(key) for low, key in zip(bounds.low, keys, strict=True) if key is not None
            )
            bounds.learn(solved, keys[solved])
            assert all(
                low <= float(key) for low, key in zip(bounds.low, keys, strict=True) if key is not None
            )
