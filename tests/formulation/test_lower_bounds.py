"""What bounds are made of: parts of energy, compulsory transfers, loops that may be worth having."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian
from math import prod

import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import hierarchies, operators
from written_out import keys_of_mappings

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost.base import ByStore
from tilewright.formulation.mapping.nests.arrangements import Segment, useful_dims
from tilewright.formulation.mapping.parts.compulsory import least_accesses, least_cycles, least_key, splits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import conv2d, gemm

ZERO = Fraction(0)


@settings(max_examples=effort(25))
@given(st.data())
def test_energy_by_store_is_all_of_the_energy(data: st.DataObject) -> None:
    """What is moved into stores, and computed, adds up to the energy of every decision, networks included."""
    operator, engine = data.draw(operators(most=24)), data.draw(hierarchies(arrays=True))
    problem = layer_problem(operator, engine, parse_objective("energy"))
    space = problem.space
    assume(all(len(group) for group in space.groups))
    assert isinstance(problem.model, ByStore)
    parts = problem.model.energy_by_store(space.nest)
    rows = [data.draw(st.sampled_from(range(len(group)))) for group in space.groups]
    values = {
        variable: int(size)
        for group, row in zip(space.groups, rows, strict=True)
        for variable, size in zip(group.variables, group.rows[row], strict=True)
    }
    values |= {selector: data.draw(st.sampled_from(sorted(selector.domain))) for selector in space.selectors}
    assert sum(evaluate(part, values) for part in parts.values()) == evaluate(
        problem.statement.energy, values
    )


@pytest.mark.parametrize("shape", [(1, 1, 32), (8, 8, 1), (2, 16, 1)])
@pytest.mark.parametrize("port", ["read_bandwidth", "write_bandwidth"])
def test_compulsory_transfers_use_their_own_port(shape: tuple[int, int, int], port: str) -> None:
    """Results alone pass a slow write port, inputs and weights a slow read port, each element once at least;
    no mapping is faster.
    """
    m, n, k = shape
    outer = MemoryLevel("DRAM", None, ZERO, ZERO, double_buffered=False)
    slow = replace(outer, **{port: Fraction(1, 64)})  # type: ignore[arg-type]
    inner = MemoryLevel("L1", 10**4, ZERO, ZERO)
    engine = Engine("two", "hierarchy", 16, ZERO, Fraction(500), (slow, inner))
    operator = gemm(m=m, n=n, k=k)
    elements = m * n if port == "write_bandwidth" else m * k + k * n
    assert least_cycles(operator, engine) == 64 * elements
    best = solve(layer_problem(operator, engine, parse_objective("cycles")), "branch")
    assert best.key is not None
    assert best.key >= 64 * elements


@settings(max_examples=effort(12))
@given(st.data())
def test_no_mapping_is_faster_than_compulsory_transfers(data: st.DataObject) -> None:
    """All mappings of random machines written out, or random ones, with arrays and bypass."""
    sharing = data.draw(st.integers(0, 3)) == 0
    operator, engine = data.draw(operators(most=24)), data.draw(hierarchies(sharing=sharing))
    problem = layer_problem(operator, engine, parse_objective("cycles"))
    least = least_cycles(operator, engine)
    assert all(least <= cycles for cycles in keys_of_mappings(data, problem, 60))


@pytest.mark.parametrize(
    ("array", "bypassed", "least"), [(None, False, 512), (1, False, 384), (1, True, 8), (0, False, 8)]
)
def test_levels_that_must_store_move_all_through_their_ports(
    array: int | None, bypassed: bool, least: int
) -> None:
    """A port takes 192 elements, two cycles each, but not where it may be bypassed, or is one of 64."""
    port, roles = Fraction(1, 2), frozenset(Role)
    levels = [
        MemoryLevel("DRAM", None, Fraction(9), Fraction(9), double_buffered=False),
        MemoryLevel("L1", 512, Fraction(1), Fraction(1), read_bandwidth=port, write_bandwidth=port),
        MemoryLevel("L2", 16, ZERO, ZERO),
    ]
    if bypassed:
        levels[1] = replace(levels[1], may_bypass=roles)
    if array is not None:
        levels[array] = replace(levels[array], fanout=Fanout((ArrayAxis("x", 8), ArrayAxis("y", 8))))
    engine = Engine("three", "hierarchy", 16, ZERO, Fraction(500), tuple(levels))
    operator = gemm(m=8, n=8, k=8)
    for objective in ("cycles", "ed2p"):
        problem = layer_problem(operator, engine, parse_objective(objective))
        best = solve(problem, "branch").key
        assert best is not None
        assert least_key(problem) <= best
    assert least_cycles(operator, engine) == least


@pytest.mark.parametrize(
    ("carries", "accesses"),
    [(None, (128, 128, 128)), ("K", (128, 512, 512)), ("C", (512, 512, 128)), ("KC", (128, 512, 128))],
)
@pytest.mark.parametrize("connected", [True, False])
def test_pes_share_what_no_loop_along_their_axis_moves(
    carries: str | None, accesses: tuple[int, int, int], connected: bool
) -> None:
    """Of 512 products on four PEs inputs are shared along K, weights along neither, sums meet along C."""
    axis = ArrayAxis("x", 4, None if carries is None else frozenset(carries))
    fan = Fanout((axis,), multicast=connected, reduction=connected)
    levels = (MemoryLevel("DRAM", None, ZERO, ZERO, fanout=fan), MemoryLevel("RF", 9, ZERO, ZERO))
    engine = Engine("four", "hierarchy", 16, ZERO, Fraction(500), levels)
    operator = gemm(m=8, n=8, k=8)
    counted = tuple(least_accesses(operator, engine, tensor, 0) for tensor in operator.tensors)
    assert counted == (accesses if connected else (512, 512, 512))
    assert {least_accesses(operator, engine, tensor, 1) for tensor in operator.tensors} == {512}


@pytest.mark.parametrize("slider", [1, 2])
def test_loops_that_slide_a_window_in_any_level_are_kept(slider: int) -> None:
    """Of two levels one slides the inputs' window; a loop that moves the results plainly may do that, so it
    is worth having inside their store.
    """
    levels = [
        MemoryLevel(f"L{index}", None, ZERO, ZERO, sliding_window=index == slider) for index in range(3)
    ]
    levels[2] = replace(levels[2], keeps=frozenset({Role.INPUT, Role.OUTPUT}))
    engine = Engine("sliding", "hierarchy", 16, ZERO, Fraction(500), tuple(levels))
    operator = conv2d(k=2, c=1, p=4, q=1, r=3, s=1)
    dims = useful_dims(operator, engine, Segment(range(1, 3), False), (1, "O"), ())
    assert "P" in dims
    still = replace(engine, levels=tuple(replace(level, sliding_window=False) for level in levels))
    assert "P" not in useful_dims(operator, still, Segment(range(1, 3), False), (1, "O"), ())


@settings(max_examples=effort(25))
@given(st.data())
def test_every_use_of_arrays_is_within_one_of_their_divisions(data: st.DataObject) -> None:
    """All ways of giving each axis to dimensions, written out; no division is within another one."""
    operator, engine = data.draw(operators(most=24)), data.draw(hierarchies(arrays=True))
    tensor = data.draw(st.sampled_from(operator.tensors))
    dims = data.draw(st.lists(st.sampled_from(sorted(operator.bounds)), unique=True, max_size=3))
    options = splits(operator, tensor, engine.levels, dims)
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    uses = {(1,) * len(dims)}
    for fan in (level.fanout for level in engine.levels if level.fanout is not None):
        for axis in fan.axes if (fan.reduction if tensor.is_output else fan.multicast) else ():
            own = [
                use
                for use in cartesian(range(1, axis.size + 1), repeat=len(dims))
                if prod(use) <= axis.size
                and all(
                    n == 1 or axis.carries is None or like[dim] in axis.carries
                    for n, dim in zip(use, dims, strict=True)
                )
            ]
            uses = {tuple(a * b for a, b in zip(use, more, strict=True)) for use in uses for more in own}
    bounded = {tuple(min(n, operator.bounds[dim]) for n, dim in zip(use, dims, strict=True)) for use in uses}
    assert all(any(_is_within(use, tuple(option.values())) for option in options) for use in bounded)
    assert all(tuple(option.values()) in bounded for option in options)
    assert not any(
        first is not second and _is_within(tuple(first.values()), tuple(second.values()))
        for first, second in cartesian(options, repeat=2)
    )


def _is_within(use: tuple[int, ...], division: tuple[int, ...]) -> bool:
    return all(own <= other for own, other in zip(use, division, strict=True))
