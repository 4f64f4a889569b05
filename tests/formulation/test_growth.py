"""Layers of growing sizes: what a mapping cut off costs, and what bounds all layers between two."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from brute import every_mapping
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.growth import cut_off, grows, spanning
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, elementwise, gemm, matmul

HIERARCHY = cost_model("hierarchy")


def layer(kind: int, sizes: tuple[int, ...]) -> Operator:
    """A product, products side by side, or a sum."""
    if kind == 0:
        return gemm(m=sizes[0], n=sizes[1], k=sizes[2])
    if kind == 1:
        return matmul(m=1, n=sizes[0], k=sizes[1], batch=max(2, sizes[2]))
    return elementwise(shape=sizes, operands=2)


@settings(max_examples=effort(25))
@given(st.data())
def test_a_mapping_cut_off_is_legal_and_costs_no_more(data: st.DataObject) -> None:
    """Any legal mapping, not the best alone, takes no more energy, cycles or capacity on fewer iterations."""
    kind = data.draw(st.integers(0, 2))
    sizes = tuple(data.draw(st.lists(st.integers(1, 13), min_size=3, max_size=3)))
    smaller = tuple(data.draw(st.integers(1, size)) for size in sizes)
    operator, less = layer(kind, sizes), layer(kind, smaller)
    engine = replace(data.draw(hierarchies()), leakage={"PE": Fraction(data.draw(st.integers(0, 3)))})
    mapping = data.draw(mappings(operator, engine, perfect=False))
    whole = evaluate_mapping(operator, engine, HIERARCHY, mapping)
    part = evaluate_mapping(less, engine, HIERARCHY, cut_off(mapping, less.bounds))
    if not whole.violations:
        assert not part.violations
    assert part.energy <= whole.energy
    assert part.cycles <= whole.cycles


def machine(choose: random.Random) -> Engine:
    """Two levels, few PEs that have to share remainders, transfers that take time."""
    rates = (None, Fraction(1), Fraction(1, 2), Fraction(3))
    fan = choose.choice((None, Fanout((ArrayAxis("x", choose.choice((2, 3, 4))),), energy=Fraction(1, 5))))
    inner = MemoryLevel(
        "SPM",
        choose.choice((4, 6, 12)),
        Fraction(3),
        Fraction(5, 2),
        write_bandwidth=choose.choice(rates),
        double_buffered=choose.choice((False, True)),
    )
    outer = MemoryLevel(
        "DRAM", None, Fraction(20), Fraction(30), read_bandwidth=choose.choice(rates), fanout=fan
    )
    leakage = {"SPM": choose.choice((Fraction(0), Fraction(2)))}
    return Engine("growing", "hierarchy", 8, Fraction(1, 2), Fraction(500), (outer, inner), leakage=leakage)


def optimum(operator: Operator, engine: Engine, text: str) -> Fraction | None:
    """The least key of the searched space, each of whose mappings is written out."""
    goal = parse_objective(text)
    evaluations = (
        evaluate_mapping(operator, engine, HIERARCHY, m)
        for m in every_mapping(operator, engine, perfect=False)
    )
    keys = [goal.key(each.energy, each.cycles) for each in evaluations if not each.violations]
    return min(keys, default=None)


@pytest.mark.parametrize("seed", range(effort(6)))
def test_no_layer_between_two_costs_less_than_what_spans_them(seed: int) -> None:
    """The proven optimum over the tiles of all sizes is at most each size's own, by plain enumeration."""
    choose = random.Random(seed)
    low = choose.randint(4, 9)
    high, other = choose.randint(low, min(2 * low, low + 4)), choose.choice((1, 2))
    place = choose.choice("mnk")
    text, engine = choose.choice(("energy", "cycles", "edp")), machine(choose)
    sized = {size: gemm(**{"m": other, "n": 1, "k": 1, place: size}) for size in range(low, high + 1)}
    between = spanning(sized[low], sized[high])
    assert between is not None
    problem = layer_problem(between, engine, parse_objective(text))
    result = solve(problem)
    least = [key for size in sized if (key := optimum(sized[size], engine, text)) is not None]
    if not least:
        return
    assert result.status is Status.OPTIMAL
    assert result.key is not None
    assert result.key <= min(least)
    assert result.answer is not None
    assert problem.outside(result.answer) is None
    assert solve(problem, "exhaustive").key == result.key


def test_layers_that_differ_in_more_than_sizes_span_nothing() -> None:
    """Other kinds, windows along what grows and more than twice the size are no pair."""
    assert spanning(gemm(m=4, n=2, k=2), matmul(m=4, n=2, k=2, batch=2)) is None
    assert spanning(gemm(m=4, n=2, k=2), gemm(m=9, n=2, k=2)) is None
    assert spanning(gemm(m=4, n=2, k=2), gemm(m=3, n=2, k=2)) is None
    window = [conv2d(k=2, c=2, p=p, q=1, r=3, s=1) for p in (4, 5)]
    channels = [conv2d(k=k, c=2, p=4, q=1, r=3, s=1) for k in (4, 5)]
    assert spanning(*window) is None
    assert spanning(*channels) is not None


def test_what_spans_two_sizes_is_another_question() -> None:
    """It has a hash of its own, and neither perfect tiles nor uneven storage."""
    between, engine = spanning(gemm(m=4, n=2, k=2), gemm(m=6, n=2, k=2)), machine(random.Random(1))
    assert between is not None
    goal = parse_objective("edp")
    hashes = {layer_problem(o, engine, goal).content_hash for o in (between, gemm(m=4, n=2, k=2))}
    assert len(hashes) == 2
    with pytest.raises(InputError, match="expected even storage"):
        layer_problem(between, engine, goal, storage="uneven")
    with pytest.raises(InputError, match="expected imperfect factors"):
        layer_problem(between, engine, goal, factors="perfect")


@pytest.mark.parametrize(
    ("machine_name", "factors", "constraints", "expected"),
    [
        ("tpu-v4i", None, (), True),
        ("simba", None, (), True),
        ("tpu-v4i", "perfect", (), False),
        ("tpu-v4i", None, ("cycles<=1000",), False),
        ("gemmini", None, (), False),
        ("dmazerunner-256", None, (), False),
    ],
)
def test_machines_of_which_growth_is_known(
    machine_name: str, factors: str | None, constraints: tuple[str, ...], expected: bool
) -> None:
    """Set-up cycles, demands, perfect factors and other cost models are left out."""
    engine = load_engine(machine_name)
    assert grows(engine, engine.cost_model, factors, constraints) is expected
