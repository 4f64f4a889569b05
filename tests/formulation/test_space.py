"""The map space: what is in it, and that each of its points is the mapping that it claims to be."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product as cartesian
from math import comb, prod
from pathlib import Path

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances
from reference import convolution, load

from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.mapping import Spatial
from tilewright.formulation.mapping.parts.relaxation import legal_groups
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.mapping.tiles import axis_groups
from tilewright.formulation.mapping.tiles import chains as chains_of_tiles
from tilewright.formulation.mapping.tiles.axis_groups import perfect_rows
from tilewright.formulation.mapping.tiles.chains import (
    MANY_ROWS,
    SparseChains,
    axis_group_dims,
    balanced_chains,
    balanced_tiles,
    count_chains,
    divisors,
    halved_chains,
    perfect_chains,
)
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Int64s
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import conv2d, gemm, transposed_conv2d


def assignments(problem: LayerProblem) -> list[dict]:  # type: ignore[type-arg]
    """Every point of a space."""
    variables = [v for group in problem.space.groups for v in group.variables]
    rows = cartesian(*(group.rows.tolist() for group in problem.space.groups))
    tiles = [dict(zip(variables, (v for row in parts for v in row), strict=True)) for parts in rows]
    selectors = problem.space.selectors
    choices = [dict(zip(selectors, c, strict=True)) for c in cartesian(*(s.domain for s in selectors))]
    return [tile | choice for tile in tiles for choice in choices]


@given(st.integers(1, 400), st.integers(0, 5))
def test_perfect_chains_are_counted_by_the_product_formula(bound: int, length: int) -> None:
    """One way per distribution of every prime's exponent over the tiles; no chain appears twice."""
    rows = perfect_chains(bound, length)
    exponents: Counter[int] = Counter()
    rest, prime = bound, 2
    while rest > 1:
        if rest % prime:
            prime += 1
        else:
            exponents[prime] += 1
            rest //= prime
    assert rows.shape == (prod(comb(e + length, length) for e in exponents.values()), length)
    assert len(np.unique(rows, axis=0)) == len(rows)
    outer = np.column_stack([np.full(len(rows), bound), rows])
    assert not (outer[:, :-1] % outer[:, 1:]).any()


@given(st.integers(1, 300), st.integers(1, 4))
def test_one_step_of_a_chain_has_all_tile_sizes(bound: int, length: int) -> None:
    """Tiles of tiles are tiles: longer chains have no other sizes, so that domains need no chains."""
    for chains in (perfect_chains, balanced_chains):
        assert np.array_equal(np.unique(chains(bound, length)), np.unique(chains(bound, 1)))


@given(st.integers(1, 3000))
def test_balanced_tiles_are_those_of_all_trips(size: int) -> None:
    """Found from small tiles and few trips alone, they are what every number of trips leaves."""
    assert balanced_tiles(size) == tuple(sorted({-(-size // trips) for trips in range(1, size + 1)}))


def test_balanced_tiles_of_billions_need_no_table_of_all_trips() -> None:
    """The longest dimension that a layer may have: a table of its trips would take 16 GB."""
    tiles = balanced_tiles(2**31 - 1)
    assert len(tiles) == 92_681
    assert (tiles[0], tiles[-2:]) == (1, (2**30, 2**31 - 1))


@given(st.integers(1, 60), st.integers(0, 3))
def test_balanced_chains_have_every_trip_count_once(bound: int, length: int) -> None:
    """Tiles are the smallest for their trip count, and perfect chains are among them."""
    rows = {tuple(row) for row in balanced_chains(bound, length).tolist()}
    assert len(rows) == len(balanced_chains(bound, length))
    assert rows >= {tuple(row) for row in perfect_chains(bound, length).tolist()}
    for row in rows:
        outer = bound
        for tile in row:
            trips = -(-outer // tile)
            assert tile == -(-outer // trips)
            outer = tile


@given(st.integers(1, 90), st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_chains_of_few_trips_are_those_of_all_chains(bound: int, trips: list[int]) -> None:
    """What is made with trips at most is what is left of all chains, in sequence and number."""
    for chains in (perfect_chains, balanced_chains):
        rows = chains(bound, len(trips))
        outer = np.column_stack([np.full(len(rows), bound), rows])[:, :-1]
        allowed = np.all((np.array(trips) == 0) | (-(-outer // rows) <= np.array(trips)), axis=1)
        assert np.array_equal(chains(bound, len(trips), tuple(trips)), rows[allowed])
        assert count_chains(bound, len(trips), chains, tuple(trips)) == allowed.sum()


@given(st.integers(1, 90), st.lists(st.integers(0, 6), min_size=1, max_size=3), st.data())
def test_chains_of_some_sizes_are_those_of_all_chains(
    bound: int, trips: list[int], data: st.DataObject
) -> None:
    """What is made of some sizes is what is left of all chains, in sequence and number."""
    for chains in (perfect_chains, balanced_chains):
        rows = chains(bound, len(trips), tuple(trips))
        sizes = st.frozensets(st.sampled_from(chains(bound, 1)[:, 0].tolist()))
        among = tuple(data.draw(sizes) for _ in trips)
        allowed = np.all([np.isin(rows[:, i], [*own]) for i, own in enumerate(among)], axis=0)
        assert np.array_equal(chains(bound, len(trips), tuple(trips), among), rows[allowed])
        assert count_chains(bound, len(trips), chains, tuple(trips), among) == allowed.sum()


@given(st.integers(1, 5000))
def test_divisors(number: int) -> None:
    """All of them, increasing."""
    assert list(divisors(number)) == [d for d in range(1, number + 1) if number % d == 0]


def test_dimensions_that_share_an_axis_are_one_group() -> None:
    """P with R and Q with S where both iterate; dimensions of one iteration belong to no group."""
    assert axis_group_dims(conv2d(k=2, c=1, p=3, q=3, r=3, s=1)) == [("K",), ("P", "R"), ("Q",)]
    assert axis_group_dims(gemm(m=2, n=3, k=4)) == [("M",), ("N",), ("K",)]
    scattered = transposed_conv2d(k=1, c=1, p=2, q=2, r=2, s=2)
    assert axis_group_dims(scattered) == [("P", "R"), ("Q", "S")]


def test_axes_carry_what_they_may_and_fit() -> None:
    """A dimension that an axis does not carry has no loop on it; spatial trips stay within the axis."""
    fan = Fanout((ArrayAxis("x", 3, frozenset("K")), ArrayAxis("y", 4)))
    levels = (
        MemoryLevel("A", None, Fraction(1), Fraction(1), fanout=fan),
        MemoryLevel("B", 100, Fraction(1), Fraction(1)),
    )
    engine = Engine("e", "hierarchy", 8, Fraction(1), Fraction(1), levels)
    problem = layer_problem(conv2d(k=6, c=4, p=1, q=1, r=1, s=1), engine, parse_objective("edp"))
    spread: dict[str, set[tuple[str, int]]] = {"x": set(), "y": set()}
    for assignment in assignments(problem):
        mapping = problem.decode(assignment)
        for step in mapping.loops(problem.operator):
            if isinstance(step.node, Spatial):
                spread[step.node.axis].add((step.node.dim, step.trip))
    assert spread["x"] == {("K", 2), ("K", 3)}
    assert spread["y"] == {("K", 2), ("K", 3), ("C", 2), ("C", 4)}


def test_residencies_are_all_sets_of_optional_stores() -> None:
    """A role that may bypass two levels has four residencies; one that is not kept has none there."""
    both = frozenset({Role.INPUT})
    levels = (
        MemoryLevel("A", None, Fraction(1), Fraction(1)),
        MemoryLevel("B", 100, Fraction(1), Fraction(1), may_bypass=both),
        MemoryLevel("C", 100, Fraction(1), Fraction(1), keeps=both | {Role.OUTPUT}, may_bypass=both),
    )
    engine = Engine("e", "hierarchy", 8, Fraction(1), Fraction(1), levels)
    space = layer_problem(gemm(m=2, n=2, k=2), engine, parse_objective("edp")).space
    assert set(space.nest.residency["A"].alternatives) == {(0, 1, 2), (0, 1), (0, 2), (0,)}
    assert space.nest.residency["B"].alternatives == ((0, 1),)
    assert space.nest.residency["C"].alternatives == ((0, 1, 2),)
    assert space.size == 3**3 * 4 * prod(len(s.domain) for s in space.selectors if s.name[:5] == "order")


@settings(max_examples=effort(30))
@given(st.booleans().flatmap(lambda shared: instances("hierarchy", most=8, largest=60, sharing=shared)))
def test_points_of_the_hierarchy_space_are_the_mappings_that_they_claim(instance: Instance) -> None:
    """Every point decodes to a mapping that costs at most what the statement says, equally at the minimum.

    Limits are the evaluator's: a point is legal exactly where its mapping is.
    """
    problem = instance.problem()
    _check_points(problem, exact=False)


@settings(max_examples=effort(30))
@given(instances("dmazerunner", most=12, largest=80))
def test_points_of_the_dmazerunner_space_are_the_mappings_that_they_claim(instance: Instance) -> None:
    """Wherever an order names a run that does run, statement and evaluator agree to the last digit."""
    problem = instance.problem()
    _check_points(problem, exact=True)


@settings(max_examples=effort(24))
@given(
    st.booleans().flatmap(
        lambda shared: instances("hierarchy", most=8, largest=60, factors="imperfect", sharing=shared)
    )
)
def test_points_of_the_imperfect_space_are_the_mappings_that_they_claim(instance: Instance) -> None:
    """The same with last tiles that are smaller."""
    problem = instance.problem()
    _check_points(problem, exact=False)


def _check_points(problem: LayerProblem, exact: bool) -> None:
    stated: list[Fraction] = []
    evaluated: list[Fraction] = []
    own = [limit for limit in problem.limits if limit.name.startswith(("order", "no loops"))]
    for assignment in assignments(problem):
        reader = ExactReader(assignment)
        if any(reader.read(limit.expr) > limit.bound for limit in own):
            continue
        energy = Fraction(reader.read(problem.statement.energy), problem.statement.energy_scale)
        cycles = reader.read(problem.statement.cycles)
        mapping = problem.decode(assignment)
        evaluation = problem.evaluate(mapping)
        legal = all(reader.read(limit.expr) <= limit.bound for limit in problem.limits)
        assert legal is not bool(evaluation.violations)
        if exact:
            assert (evaluation.energy, evaluation.cycles) == (energy, cycles)
        assert evaluation.energy <= energy
        assert evaluation.cycles <= cycles
        if legal:
            stated.append(problem.objective.key(energy, cycles))
            evaluated.append(problem.key_of(evaluation))
    assert min(stated, default=None) == min(evaluated, default=None)


def legal_tilings(layer: dict) -> int:  # type: ignore[type-arg]
    """Tilings of a layer that fit the dMazeRunner machine, counted without any cost model."""
    operator, engine = convolution(layer), load_engine("dmazerunner-256")
    space = layer_problem(operator, engine, parse_objective("edp")).space
    names = [variable.name for group in space.groups for variable in group.variables]
    groups = sorted(space.groups, key=len)
    head, tail = groups[-1], groups[:-1]
    count = 0
    for start in range(0, len(head), 5):
        rows = head.rows[start : start + 5]
        columns = dict(zip((v.name for v in head.variables), rows.T, strict=True))
        for group in [*reversed(tail)]:
            left = np.repeat(np.arange(len(next(iter(columns.values())))), len(group))
            right = np.tile(np.arange(len(group)), len(next(iter(columns.values()))))
            columns = {name: column[left] for name, column in columns.items()}
            columns |= {v.name: group.rows[right, i] for i, v in enumerate(group.variables)}
            keep = _fits(columns, layer["stride"])
            columns = {name: column[keep] for name, column in columns.items()}
        assert set(columns) == set(names)
        count += len(columns[names[0]])
    return count


def _fits(columns: dict[str, np.ndarray], stride: int) -> np.ndarray:  # type: ignore[type-arg]
    """Whether what is decided so far fits 256 PEs, 256 registers and 32 banks of 1024 elements."""
    ones = np.ones_like(next(iter(columns.values())))
    spread = ones.copy()
    for dim in "NKCPQRS":
        if f"{dim}@SPM:pe" in columns:
            spread = spread * (columns[f"{dim}@SPM:pe"] // columns[f"{dim}@RF"])

    def tiles(site: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        n, k, c, p, q, r, s = (columns.get(f"{dim}@{site}", ones) for dim in "NKCPQRS")
        rows, cols = (p - 1) * stride + r, (q - 1) * stride + s
        return n * c * rows * cols, k * c * r * s, n * k * p * q

    banks = sum(-(-tile // 1024) for tile in tiles("SPM"))
    return (spread <= 256) & (sum(tiles("RF")) <= 256) & (banks <= 32)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tilings"), [("conv5_1", 14295643), ("conv5_2", 17545176)])
def test_number_of_valid_tilings_is_the_published_one(name: str, tilings: int) -> None:
    """The tile sizes of the space that fit the machine are as many as the authors' program visits."""
    layer = load("dmazerunner_optima.json", "layers")[name]
    assert legal_tilings(layer) == layer["tilings"] == tilings


@pytest.mark.parametrize("octave", [2, 8])
@pytest.mark.parametrize(("bound", "length"), [(1, 2), (12, 1), (60, 3), (97, 2), (130, 3), (1500, 2)])
def test_sparse_chains_are_those_of_few_sizes(octave: int, bound: int, length: int) -> None:
    """Of all chains they are those whose tiles have sizes that are kept, and so are the counted ones."""
    chains = SparseChains(octave)
    kept = {*chains.menu(bound)(bound)}
    assert {1, bound} <= kept
    assert len(kept) <= octave * bound.bit_length() + 1
    every = [row for row in balanced_chains(bound, length).tolist() if {*row} <= kept]
    assert chains(bound, length).tolist() == every
    assert count_chains(bound, length, chains) == len(every)


@settings(max_examples=effort(20), deadline=None)
@given(st.data())
def test_rows_of_some_sizes_are_those_among_all(data: st.DataObject) -> None:
    """Whatever tiles a space has, what is narrowed to some sizes has the rows with these."""
    kind = data.draw(st.sampled_from([{"factors": "perfect"}, {}, {"tiles": "every"}]))
    bounds = [data.draw(st.integers(1, 9)) for _ in "MNK"]
    layer = parse_layer("gemm:M={},N={},K={}".format(*bounds))[1]
    problem = layer_problem(layer, load_engine("eyeriss-168"), parse_objective("edp"), **kind)
    for group in problem.space.groups:
        sizes = {
            variable: data.draw(st.frozensets(st.sampled_from([*variable.domain]), min_size=1))
            for variable in group.variables
            if data.draw(st.booleans())
        }
        assert group.narrowed is not None
        narrowed = group.narrowed(sizes)
        wanted = [
            row
            for row in group.rows.tolist()
            if all(
                size in sizes.get(variable, (size,))
                for variable, size in zip(group.variables, row, strict=True)
            )
        ]
        assert narrowed.rows.tolist() == wanted
        assert narrowed.most >= len(wanted)


def test_rows_of_very_many_tiles_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fewer bits, with every axis full, with demands, and under a check that may end the call."""
    layer, engine = parse_layer("gemm:M=24,N=60,K=36")[1], load_engine("eyeriss-256")
    for demands in ((), ("tile(N@GLB)=5",)):
        usual = layer_problem(layer, engine, parse_objective("edp"), constraints=demands)
        with monkeypatch.context() as patch:
            patch.setattr(chains_of_tiles, "VERY_MANY_ROWS", 0)
            patch.setattr(chains_of_tiles, "MANY_ROWS", 0)
            patch.setattr(axis_groups, "MANY_ROWS", 0)
            narrow = layer_problem(layer, engine, parse_objective("edp"), constraints=demands)
            for group, same in zip(narrow.space.groups, usual.space.groups, strict=True):
                assert "rows" not in group.__dict__
                group.make(lambda: None)
                assert np.array_equal(group.rows, same.rows)
                assert (group.rows.dtype == np.int32) == (not demands)
            for group in layer_problem(layer, engine, parse_objective("edp")).space.groups:
                with pytest.raises(LimitReachedError):
                    group.make(Limits(0.0).check)


@pytest.mark.parametrize("chains", [perfect_chains, balanced_chains, halved_chains])
@pytest.mark.parametrize(("bound", "length"), [(1, 2), (12, 0), (12, 1), (60, 3), (97, 2), (130, 3)])
def test_chains_are_counted_without_listing(
    chains: Callable[[int, int], Int64s], bound: int, length: int
) -> None:
    """The count is at least that of the list, and the same where chains are made step by step."""
    listed = len(chains(bound, length))
    counted = count_chains(bound, length, chains)
    assert counted >= listed
    assert chains is halved_chains or counted == listed


@settings(max_examples=effort(30))
@given(instances("hierarchy", most=40, largest=20_000, factors="imperfect"))
def test_rows_of_perfect_factors_are_those_of_the_perfect_space(instance: Instance) -> None:
    """Among imperfect rows those whose tiles divide each other are all that there are of divisors."""
    problem = instance.problem()
    perfect = problem.with_perfect_factors().space
    assert [group.name for group in perfect.groups] == [group.name for group in problem.space.groups]
    for group, other in zip(problem.space.groups, perfect.groups, strict=True):
        rows = group.rows[perfect_rows(problem.space.nest.boundaries, group)]
        assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, other.rows.tolist()))


@settings(max_examples=effort(20))
@given(st.data())
def test_layers_that_share_tiles_have_the_rows_that_they_have_alone(data: st.DataObject) -> None:
    """Layers of any sizes, kinds and strides on one machine: names of tiles, rows and hashes are the same."""
    engine, alike, groups = load_engine("nvdla-256"), Alike(spaces=None), 0
    for _ in range(4):
        size = data.draw(st.sampled_from([6, 7, 12]))
        filters, stride = data.draw(st.sampled_from([1, 3])), data.draw(st.sampled_from([1, 2]))
        text = f"conv:K=8,C={size},P={size},Q=4,R={filters},S={filters},stride={stride}"
        operator = parse_layer(data.draw(st.sampled_from([text, f"gemm:M={size},N=8,K=4"])))[1]
        factors = data.draw(st.sampled_from(["perfect", "imperfect"]))
        stated = [
            layer_problem(operator, engine, parse_objective("edp"), factors=factors, alike=shared)
            for shared in (None, alike)
        ]
        alone, beside = (problem.space for problem in stated)
        assert stated[0].content_hash == stated[1].content_hash
        groups += len(alone.groups)
        for group, other in zip(alone.groups, beside.groups, strict=True):
            assert [str(variable) for variable in group.variables] == [str(tile) for tile in other.variables]
            assert [tile.domain for tile in group.variables] == [tile.domain for tile in other.variables]
            assert np.array_equal(group.rows, other.rows)
    assert 0 < len(alike.groups) <= groups


def test_rows_of_large_dimensions_are_not_made_in_order_to_state_a_problem() -> None:
    """Tiles that never fit are left out before rows are made of them."""
    operator = parse_layer("gemm:M=20000,N=20000,K=20000")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    large = [group for group in problem.space.groups if group.most > MANY_ROWS]
    assert large
    assert not any("rows" in vars(group) for group in large)
    legal = {group.name: len(group) for group in legal_groups(problem)}
    assert all(legal[group.name] < group.most / 4 for group in large)
    assert not any("rows" in vars(group) for group in large)


def test_rows_that_do_not_fit_into_memory_are_refused_when_read() -> None:
    """A problem with 38 million rows is stated at once; its search has a mapping and a bound."""
    machine = str(Path(__file__).parents[2] / "studies" / "machines" / "free-6-levels-bypass.yaml")
    _, operator = parse_layer("nest:O[k,p] += I[c,2*p+r] * W[k,c,r] : k=4,c=4,p=1500,r=3")
    problem = layer_problem(operator, load_engine(machine), parse_objective("energy"))
    assert max(group.size_at_most for group in problem.space.groups) > MANY_ROWS
    with pytest.raises(LimitReachedError, match="too many for memory"):
        _ = [group.rows for group in problem.space.groups]
    result = solve(problem, "auto", Limits(1.0, threads=1, clock=time.process_time))
    assert result.key is not None
    assert result.bound is not None
    assert 0 < result.bound <= result.key
