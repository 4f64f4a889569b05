"""Patterns that are searched together over inner tiles: no mapping that may be wanted has any others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from machines_with_bypass import deep, legal_mappings
from optional_levels import four_levels

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.solvers.mapping import problem_kinds
from tilewright.solvers.mapping.patterns import pattern_tiles, storage_patterns
from tilewright.solvers.mapping.patterns.pattern_bounds import BoundedPattern, PatternBounds
from tilewright.solvers.mapping.patterns.pattern_machines import Stores, on_own_machine, stores_of
from tilewright.solvers.mapping.patterns.pattern_tiles import Batch, PatternTiles
from tilewright.solvers.mapping.patterns.patterns_together import PatternsTogether
from tilewright.solvers.mapping.presolve.encode import tile_sizes
from tilewright.solvers.mapping.problem_kinds import has_patterns
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import gemm


@pytest.fixture(autouse=True)
def _few_patterns_are_enough() -> Iterator[None]:
    """Small machines have patterns, too."""
    with mock.patch.object(problem_kinds, "FEW", 0):
        yield


def _batches(search: LayerSearch, most: int, better: Collection[Stores]) -> Iterator[Batch]:
    """Some patterns in batches, the cheapest and better ones; those without tiles come in none.

    Parameters
    ----------
    most : patterns that are taken before, so that their parts are known
    better : patterns with better mappings
    """
    together = PatternsTogether(search, "test")
    with mock.patch.object(together, "_look_for_mappings"):  # the incumbent stays as bad as it is
        bounds = PatternBounds(search, together=together)
        for _ in range(most):
            if bounds.take() is None:
                break
    left = sorted(map(bounds.known, range(len(bounds._keys))), key=lambda pattern: pattern.key)
    left = [pattern for place, pattern in enumerate(left) if place < 12 or pattern.stores in better]
    tiles = PatternTiles(search.problem, bounds)
    while left:
        batch = tiles.batch(left)
        if batch is not None:
            yield batch
        done = {left[0].number} if batch is None else {pattern.number for pattern in batch.patterns}
        left = [pattern for pattern in left if pattern.number not in done]


def _has(problem: LayerProblem, mapping: Mapping) -> bool:
    """Whether a problem has the tiles of a mapping."""
    sizes = tile_sizes(problem, mapping)
    for group in problem.space.groups:
        kept = np.ones(len(group), dtype=np.bool_)
        for variable in group.variables:
            assert isinstance(variable, Variable)
            kept &= group.sizes(variable) == sizes[variable]
        if not kept.any():
            return False
    return True


def _check(batch: Batch, better: dict[Stores, list[Mapping]]) -> int:
    """Every better mapping of a batch's patterns is in its problem; returns how many there are."""
    wanted = {pattern.stores for pattern in batch.wanted}
    count = 0
    for pattern in batch.patterns:
        for mapping in better.get(pattern.stores, ()):
            assert pattern.stores in wanted
            assert batch.problem is not None
            assert _has(batch.problem, mapping)
            count += 1
    return count


def _compare(data: st.DataObject, most: int) -> None:
    """Random mappings that are better than the incumbent, and optima of random patterns, are kept."""
    problem = data.draw(deep(most)).problem()
    assume(has_patterns(problem))
    legal = data.draw(legal_mappings(problem))
    assume(legal)
    search = LayerSearch(problem, Limits())
    search.offer(max(legal, key=lambda mapping: problem.judge(mapping).key), "test")
    assert search.key is not None
    residency = problem.space.nest.residency
    for _ in range(3):
        alternatives = (residency[tensor.name].alternatives for tensor in problem.operator.tensors)
        stores = tuple(data.draw(st.sampled_from(own)) for own in alternatives)
        best = solve(on_own_machine(problem, stores), "branch").answer
        legal += [] if best is None else [best]
    better: dict[Stores, list[Mapping]] = {}
    for mapping in legal:
        if problem.judge(mapping).key < search.key:
            better.setdefault(stores_of(problem, mapping), []).append(mapping)
    with mock.patch.object(pattern_tiles, "_TOGETHER", data.draw(st.sampled_from([1, 4, 32]))):
        for batch in _batches(search, data.draw(st.sampled_from([0, 3, 30])), better):
            _check(batch, better)


@settings(max_examples=effort(12))
@given(st.data())
def test_no_mapping_that_may_be_wanted_has_other_tiles(data: st.DataObject) -> None:
    """Neither random mappings nor the optimum of a random pattern's own machine."""
    _compare(data, 48)


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(st.data())
def test_no_mapping_of_many_machines_that_may_be_wanted_has_other_tiles(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare(data, 96)


class _Knowing(LayerSearch):
    """A search that knows a key, and keeps no mapping."""

    known = Fraction(0)

    @property
    def key(self) -> Fraction | None:
        """What a mapping must be better than."""
        return self.known


@pytest.mark.parametrize(
    ("objective", "stores"),
    [("energy", ((0, 1, 3), (0, 3), (0, 1))), ("edp", ((0, 3), (0, 2, 3), (0, 1, 2)))],
)
def test_the_optimum_of_a_pattern_is_in_a_batch(objective: str, stores: Stores) -> None:
    """However little more the goal is."""
    machine = four_levels(bandwidth=None)
    problem = layer_problem(gemm(m=6, n=8, k=12), machine, parse_objective(objective), factors="perfect")
    best = solve(on_own_machine(problem, stores), "branch")
    assert best.key is not None
    assert best.answer is not None
    search = _Knowing(problem, Limits())
    search.known = best.key * Fraction(1001, 1000)
    better = {stores: [best.answer]}
    assert any(_check(batch, better) for batch in _batches(search, 10, better))


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "factors"), [("energy", "imperfect"), ("edp", "perfect")])
def test_patterns_in_batches_have_the_optimum(objective: str, factors: str) -> None:
    """Batches leave most tiles out, have the optimum's, and searches of all of them prove it."""
    layer = gemm(m=16, n=24, k=32)
    problem = layer_problem(layer, four_levels(), parse_objective(objective), factors=factors)
    whole = solve(problem, "branch")
    sizes: list[tuple[int, int]] = []
    made = PatternTiles.batch

    def noted(tiles: PatternTiles, left: list[BoundedPattern]) -> Batch | None:
        batch = made(tiles, left)
        if batch is not None and batch.problem is not None:
            every = problem.on(batch.problem.engine).space.rows
            sizes.append((batch.problem.space.rows, every))
        return batch

    with mock.patch.object(storage_patterns, "_SHARED", 0), mock.patch.object(PatternTiles, "batch", noted):
        together = solve(problem, "branch")
    assert together.status is whole.status is Status.OPTIMAL
    assert together.key == whole.key
    assert sizes
    assert sum(own for own, _ in sizes) < sum(every for _, every in sizes) / 2
