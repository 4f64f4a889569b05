"""Imperfect factors: smaller last tiles, counted exactly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from effort import effort
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.tiles import piece_arrays
from tilewright.formulation.mapping.tiles.chains import balanced_chains, perfect_chains
from tilewright.formulation.mapping.tiles.pieces import covered, cut, distinct_sums, number
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d

ENGINE = Engine(
    "test",
    "hierarchy",
    16,
    Fraction(1),
    Fraction(500),
    (
        MemoryLevel("DRAM", None, Fraction(200), Fraction(200)),
        MemoryLevel(
            "SPM",
            None,
            Fraction(4),
            Fraction(4),
            fanout=Fanout((ArrayAxis("x", 3), ArrayAxis("y", 4)), Fraction(1)),
        ),
        MemoryLevel("RF", None, Fraction(1), Fraction(1)),
    ),
)


@st.composite
def chains(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    sizes = [draw(st.integers(1, 40))]
    for _ in range(draw(st.integers(0, 4))):
        sizes.append(draw(st.integers(1, sizes[-1])))
    return tuple(sizes), tuple(draw(st.booleans()) for _ in sizes[1:])


def literal(sizes: Sequence[int], counted: Sequence[bool]) -> list[int]:
    """Pieces by walking through every loop."""
    pieces = [sizes[0]]
    for tile, all_matter in zip(sizes[1:], counted, strict=True):
        inner: list[int] = []
        for size in pieces:
            parts = [min(tile, size - start) for start in range(0, size, tile)]
            inner += parts if all_matter else parts[:1]
        pieces = inner
    return pieces


@given(chains())
def test_cut_walks_through_every_loop(chain: tuple[tuple[int, ...], tuple[bool, ...]]) -> None:
    """Number and coverage of pieces equal those of the loops run one by one."""
    pieces = literal(*chain)
    assert number(cut(*chain)) == len(pieces)
    assert covered(cut(*chain)) == sum(pieces)


@given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 12), st.integers(1, 9))
def test_distinct_sums_counts_values(m: int, a: int, n: int, b: int) -> None:
    """The closed form equals the number of different values."""
    assert distinct_sums(m, a, n, b) == len({i * a + j * b for i in range(m) for j in range(n)})


@given(st.integers(1, 60), st.integers(0, 3))
def test_balanced_chains_hold_the_divisor_chains(bound: int, length: int) -> None:
    """Imperfect chains are a superset of perfect ones and never grow inwards."""
    balanced = {tuple(row) for row in balanced_chains(bound, length).tolist()}
    assert {tuple(row) for row in perfect_chains(bound, length).tolist()} <= balanced
    assert len(balanced) == len(balanced_chains(bound, length))
    assert all(outer >= inner for row in balanced for outer, inner in zip((bound, *row), row, strict=False))


def random_decision(problem: LayerProblem, rng: random.Random) -> dict[object, int]:
    assignment: dict[object, int] = {}
    for group in problem.space.groups:
        row = group.rows[rng.randrange(len(group.rows))]
        assignment |= {v: int(value) for v, value in zip(group.variables, row, strict=True)}
    return assignment | {s: rng.choice(s.domain) for s in problem.space.selectors}


class Walk:
    """Runs a mapping loop by loop and counts what every store fetches.

    A tile is fetched once for every combination of the loops outside its leading run, at every instance.
    """

    def __init__(self, operator: Operator, mapping: Mapping) -> None:
        self.operator = operator
        self.nodes = mapping.nodes
        self.iterations = 0
        self.fetched: dict[tuple[str, str], int] = {}
        self.first: dict[tuple[str, str], int] = {}
        self._held: set[object] = set()
        self._touched: set[object] = set()
        zero = dict.fromkeys(operator.bounds, 0)
        self._run(0, zero, dict(operator.bounds), (), ())

    def _run(
        self,
        index: int,
        base: dict[str, int],
        size: dict[str, int],
        place: tuple[tuple[int, int], ...],
        time: tuple[tuple[int, int], ...],
    ) -> None:
        if index == len(self.nodes):
            self.iterations += 1
            return
        node = self.nodes[index]
        if isinstance(node, Storage):
            self._store(index, node, base, size, place, time)
            self._run(index + 1, base, size, place, time)
            return
        for count, start in enumerate(range(0, size[node.dim], node.tile)):
            inner_base = base | {node.dim: base[node.dim] + start}
            inner_size = size | {node.dim: min(node.tile, size[node.dim] - start)}
            step = ((index, count),)
            if isinstance(node, Spatial):
                self._run(index + 1, inner_base, inner_size, place + step, time)
            else:
                self._run(index + 1, inner_base, inner_size, place, time + step)

    def _store(self, index, node, base, size, place, time) -> None:  # type: ignore[no-untyped-def]
        tensor = self.operator.tensor(node.tensor)
        run: set[int] = set()
        for outer in range(index - 1, -1, -1):
            loop = self.nodes[outer]
            if isinstance(loop, Temporal):
                if loop.dim in tensor.dims:
                    break
                run.add(outer)
        key = (node.tensor, node.level)
        visit = (key, place, tuple(step for step in time if step[0] not in run))
        if visit in self._held:
            return
        self._held.add(visit)
        box = [
            (low := sum(t.stride * base[t.dim] for t in axis.terms), low + axis.extent(size))
            for axis in tensor.axes
        ]
        self.fetched[key] = self.fetched.get(key, 0) + prod(high - low for low, high in box)
        if tensor.is_output:
            corner = (key, place, tuple(box))
            if corner not in self._touched:
                self._touched.add(corner)
                self.first[key] = self.first.get(key, 0) + prod(high - low for low, high in box)


@settings(max_examples=effort(72))
@given(st.integers(0, 10**9))
def test_counts_equal_a_walk_through_the_loops(seed: int) -> None:
    """Fills, reads and updates of random imperfect mappings equal those of running them loop by loop."""
    rng = random.Random(seed)
    draw = rng.randint
    operator = conv2d(
        n=draw(1, 2),
        k=draw(1, 5),
        c=draw(1, 5),
        p=draw(1, 5),
        q=draw(1, 3),
        r=draw(1, 3),
        s=draw(1, 2),
        stride=draw(1, 2),
    )
    problem = layer_problem(operator, ENGINE, parse_objective("energy"), factors="imperfect")
    assignment = random_decision(problem, rng)
    mapping = problem.decode(assignment)  # type: ignore[arg-type]
    evaluation = problem.evaluate(mapping)
    stated = evaluate(problem.statement.energy, assignment)  # type: ignore[arg-type]
    assert stated >= evaluation.energy * problem.statement.energy_scale
    walk = Walk(operator, mapping)
    assert walk.iterations == operator.iterations
    for access in evaluation.accesses:
        key = (access.tensor, access.level)
        if access.level != "DRAM":
            assert access.fills == walk.fetched[key] - walk.first.get(key, 0)
        if access.level == "RF":
            assert access.reads == operator.iterations - walk.first.get(key, 0)
            assert access.updates == (operator.iterations if access.tensor == "O" else 0)


def test_cycles_of_a_prime_dimension() -> None:
    """Seven iterations over four PEs take two steps, the last of them on three PEs."""
    operator = conv2d(k=7, c=1, p=1, q=1, r=1, s=1)
    nodes = [Storage(t.name, "DRAM") for t in operator.tensors]
    nodes += [Storage(t.name, "SPM") for t in operator.tensors]
    loops = [Temporal("K", 4), Spatial("K", 1, "y")]
    nodes = [*nodes, *loops, *(Storage(t.name, "RF") for t in operator.tensors)]  # type: ignore[list-item]
    problem = layer_problem(operator, ENGINE, parse_objective("cycles"), factors="imperfect")
    evaluation = problem.evaluate(Mapping(tuple(nodes)))
    assert evaluation.cycles == 2
    assert evaluation.utilization == pytest.approx(7 / 24)


def test_dmazerunner_refuses_imperfect_factors() -> None:
    """The published model knows divisors only and says so."""
    with pytest.raises(InputError, match="perfect factors only"):
        layer_problem(
            conv2d(k=7, c=1, p=1, q=1, r=1, s=1), _dmazerunner(), parse_objective("edp"), factors="imperfect"
        )


def _dmazerunner() -> Engine:
    from tilewright.hardware.mapping.load import load_engine

    return load_engine("dmazerunner-256")


@given(chains())
def test_cuts_of_many_chains_at_once(chain: tuple[tuple[int, ...], tuple[bool, ...]]) -> None:
    """Arrays of chains are cut into as many pieces of the same sizes as each chain alone."""
    sizes, counted = chain
    columns = [np.array([float(size)]) for size in sizes]
    shared: piece_arrays.Shared = {}
    for kinds in (counted, tuple(not each for each in counted)):
        for length in range(len(counted) + 1):
            counts: dict[int, int] = {}
            for size, many in piece_arrays.cut(columns[: length + 1], kinds[:length], shared):
                if many[0]:
                    counts[int(size[0])] = counts.get(int(size[0]), 0) + int(many[0])
            assert tuple(sorted(counts.items(), reverse=True)) == cut(sizes[: length + 1], kinds[:length])


@given(st.integers(1, 2**52 - 1), st.integers(1, 2**52 - 1))
@example(2**52 - 1, 3)
@example(3 * (2**50 // 3) - 1, 3)
def test_floats_are_divided_as_integers(now: int, by: int) -> None:
    """Quotients of integers below 2**52 are rounded down exactly, those just below a whole number too."""
    for largest in (now, now // by * by, max(1, now // by * by - 1)):
        whole, rest = piece_arrays.divided(np.array([float(largest)]), np.array([float(by)]))
        assert (int(whole[0]), int(rest[0])) == divmod(largest, by)
