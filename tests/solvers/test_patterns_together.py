"""What the innermost stores of storage patterns cost together: no mapping of any pattern is below."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product as cartesian
from unittest import mock

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from machines_with_bypass import deep, legal_mappings
from optional_levels import four_levels
from scratchpad_machines import LAYERS, STRIDED, with_buffer
from stops import in_blocks_of

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.inner_levels import InnerStores, stores_problem
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.solvers.mapping import problem_kinds
from tilewright.solvers.mapping.patterns import inner_fronts, pattern_bounds, patterns_together
from tilewright.solvers.mapping.patterns.inner_fronts import InnerFront, InnerFronts
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds
from tilewright.solvers.mapping.patterns.pattern_machines import levels_of, on_own_machine, stores_of
from tilewright.solvers.mapping.patterns.patterns_together import PatternsTogether, are_bounded_together
from tilewright.solvers.mapping.problem_kinds import has_patterns
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import LeastEnergy
from tilewright.solvers.mapping.tree.layout import laid_out
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operators import gemm


@pytest.fixture(autouse=True)
def _always_together() -> Iterator[None]:
    """Few patterns are enough."""
    with (
        mock.patch.object(problem_kinds, "FEW", 0),
        mock.patch.object(pattern_bounds, "_MANY", 1),
        mock.patch.object(patterns_together, "_SHARED", 1),
    ):
        yield


def _asked(problem: LayerProblem, known: Mapping, most: int) -> tuple[PatternBounds, list[int]]:
    """Bounds of patterns with an incumbent, so many of them taken; and how often keys have risen together."""
    search = LayerSearch(problem, Limits())
    search.offer(known, "test")
    together, risen = PatternsTogether(search, "test"), []
    raise_keys = together.raise_keys

    def noted(*arguments: object) -> bool:
        risen.append(raise_keys(*arguments))  # type: ignore[arg-type]
        return bool(risen[-1])

    with (
        mock.patch.object(together, "raise_keys", noted),
        mock.patch.object(together, "_look_for_mappings"),  # the incumbent stays as bad as it is
    ):
        bounds = PatternBounds(search, together=together)
        for _ in range(most):
            if bounds.take() is None:
                break
    return bounds, [number for number, rose in enumerate(risen) if rose]


def _compare(data: st.DataObject, most: int) -> None:
    """Random mappings, and the optima of random patterns' machines, are not below the patterns' bounds."""
    problem = data.draw(deep(most)).problem()
    assume(has_patterns(problem))
    legal = data.draw(legal_mappings(problem))
    assume(legal)
    worst = max(legal, key=lambda mapping: problem.judge(mapping).key)
    bounds, _ = _asked(problem, worst, data.draw(st.sampled_from([0, 3, 30])))
    for mapping in legal:
        assert bounds.key_of(stores_of(problem, mapping)) <= float(problem.judge(mapping).key) * (1 + 1e-12)
    residency = problem.space.nest.residency
    for _ in range(2):
        alternatives = (residency[tensor.name].alternatives for tensor in problem.operator.tensors)
        stores = tuple(data.draw(st.sampled_from(own)) for own in alternatives)
        best = solve(on_own_machine(problem, stores), "branch")
        assert best.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if best.key is not None:
            assert bounds.key_of(stores) <= float(best.key) * (1 + 1e-12)


@settings(max_examples=effort(12))
@given(st.data())
def test_no_mapping_is_below_what_inner_stores_cost_together(data: st.DataObject) -> None:
    """Neither random mappings nor the optimum of a random pattern's own machine."""
    _compare(data, 48)


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(st.data())
def test_many_mappings_are_not_below_what_inner_stores_cost_together(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare(data, 96)


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_levels_together_bound_more_than_each_by_itself(objective: str) -> None:
    """Keys rise above sums of parts, mappings come from their tiles, and the optimum is the same."""
    layer = gemm(m=16, n=24, k=32)
    problem = layer_problem(layer, four_levels(bandwidth=None), parse_objective(objective), factors="perfect")
    with mock.patch.object(pattern_bounds, "_MANY", 1 << 30):
        apart = solve(problem, "branch")
    together = solve(problem, "branch")
    assert apart.status is together.status is Status.OPTIMAL
    assert apart.key == together.key
    assert apart.answer is not None
    _, risen = _asked(problem, apart.answer, 30)
    assert risen


@settings(max_examples=effort(20))
@given(st.data())
def test_fronts_that_little_effort_finds_bound_no_more_than_whole_ones(data: st.DataObject) -> None:
    """What a search leaves open may cost less than all that it found, if anything, whatever is outside.

    Whole ones have the least key for every cost of what is outside, as a search for this alone finds it.
    """
    draw = data.draw
    m, n, k = (draw(st.sampled_from([5, 6, 7, 9, 11, 12])) for _ in range(3))
    layer, machine = gemm(m=m, n=n, k=k), four_levels(axes=draw(st.sampled_from([(4, 4), (2, 8)])))
    objective = parse_objective(draw(st.sampled_from(["edp", "ed2p"])))
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    problem = layer_problem(layer, machine, objective, factors=factors)
    residency = problem.space.nest.residency
    stores = tuple(draw(st.sampled_from(residency[tensor.name].alternatives)) for tensor in layer.tensors)
    levels = levels_of(stores)[-2:]
    assume(len(levels) == 2 and levels[0] > 0)
    inner = InnerStores.of(stores, levels)
    outside = draw(st.integers(0, 10**6))

    def front(nodes: int) -> InnerFront:
        block = min(nodes, draw(st.sampled_from([1, 50])))
        with mock.patch.object(inner_fronts, "_EFFORT", nodes), in_blocks_of(block):
            fronts = InnerFronts(LayerSearch(problem, Limits()), "test")
            return fronts.found(inner, dict.fromkeys(levels, 0.0), outside, 1e30)

    costs = outside * np.array([1.0, 2.0, 50.0]) + 1.0
    whole = front(1 << 30).least_keys(costs, problem.objective.key_powers)
    for cost, key in zip(costs.tolist(), whole.tolist(), strict=True):
        part = stores_problem(problem, inner, dict.fromkeys(levels, 0.0), cost, fills=False)
        search, least = LayerSearch(problem, Limits()), LeastEnergy()
        assert BestFirst(search, least, laid_out(part, search.limits)).run() is None
        assert key == pytest.approx(least.best / problem.key_scale, rel=1e-8)
    for nodes in (1, 1000):
        early = front(nodes).least_keys(costs, problem.objective.key_powers)
        assert (early <= whole * (1 + 1e-12)).all()


class _Knowing(LayerSearch):
    """A search that knows a key, and keeps no mapping."""

    known = Fraction(0)

    @property
    def key(self) -> Fraction | None:
        """What a mapping must be better than."""
        return self.known


def _compare_optima(data: st.DataObject, patterns: int, extents: list[int]) -> None:
    """Patterns whose keys rise have no better mapping on their own machines than their keys say."""
    draw = data.draw
    m, n, k = (draw(st.sampled_from(extents)) for _ in range(3))
    sizes = draw(st.sampled_from([256, 512])), draw(st.integers(24, 128)), draw(st.integers(3, 20))
    machine = four_levels(sizes, draw(st.sampled_from([(4, 4), (2, 8)])), bandwidth=None)
    objective = parse_objective(draw(st.sampled_from(["energy", "edp"])))
    factors = draw(st.sampled_from(["perfect", "perfect", "imperfect"]))
    problem = layer_problem(gemm(m=m, n=n, k=k), machine, objective, factors=factors)
    best = solve(problem, "branch").key
    assert best is not None
    search = _Knowing(problem, Limits())
    search.known = best * draw(st.sampled_from([Fraction(11, 10), Fraction(4, 3)]))
    together = PatternsTogether(search, "test")
    with mock.patch.object(together, "_look_for_mappings"):
        bounds, plain = PatternBounds(search, together=together), PatternBounds(search)
        while bounds.take() is not None:
            pass
    while plain.take() is not None:
        pass
    residency = problem.space.nest.residency
    every = cartesian(*(residency[tensor.name].alternatives for tensor in problem.operator.tensors))
    risen = [own for own in every if plain.key_of(own) < bounds.key_of(own) < float(search.known)]
    risen.sort(key=lambda own: plain.key_of(own) / bounds.key_of(own))
    for stores in risen[:patterns]:
        result = solve(on_own_machine(problem, stores), "branch")
        assert result.status is Status.OPTIMAL
        assert result.key is not None
        assert bounds.key_of(stores) <= float(result.key) * (1 + 1e-12)


@settings(max_examples=effort(1))
@given(st.data())
def test_optima_of_patterns_are_not_below_what_has_risen(data: st.DataObject) -> None:
    """The patterns whose keys rise most."""
    _compare_optima(data, 6, [6, 9, 12])


@pytest.mark.slow
@settings(max_examples=effort(40))
@given(st.data())
def test_many_optima_of_patterns_are_not_below_what_has_risen(data: st.DataObject) -> None:
    """The same, for more of them."""
    _compare_optima(data, 30, [6, 9, 12, 16, 20, 24])


def _compare_scratchpads(seed: int) -> int:
    """Optima of all patterns are not below their keys, and the least is the whole's; how many keys rise."""
    draw = random.Random(seed)
    machine, layer = with_buffer(draw), parse_layer(draw.choice([*LAYERS, "gemm:M=12,N=7,K=9", *STRIDED]))[1]
    factors = draw.choice(["perfect", "imperfect"])
    objective = parse_objective(draw.choice(["energy", "energy", "edp"]))
    problem = layer_problem(layer, machine, objective, factors=factors)
    if not has_patterns(problem):
        return 0
    assert are_bounded_together(problem)
    residency = problem.space.nest.residency
    every = cartesian(*(residency[tensor.name].alternatives for tensor in layer.tensors))
    results = {stores: solve(on_own_machine(problem, stores), "branch") for stores in every}
    optima = {stores: own.key for stores, own in results.items() if own.key is not None}
    best = solve(problem, "branch")
    assert best.key == min(optima.values(), default=None)
    if best.key is None:
        return 0
    search, nodes = _Knowing(problem, Limits()), draw.choice([100, 1 << 20])
    search.known = best.key * draw.choice([Fraction(11, 10), Fraction(2), Fraction(10)])
    together = PatternsTogether(search, "test")
    with (
        mock.patch.object(together, "_look_for_mappings"),
        mock.patch.object(inner_fronts, "_EFFORT", nodes),
        in_blocks_of(min(nodes, 50)),
    ):
        bounds, plain = PatternBounds(search, together=together), PatternBounds(search)
        for own in (bounds, plain):
            while own.take() is not None:
                pass
    for stores, key in optima.items():
        assert bounds.key_of(stores) <= float(key) * (1 + 1e-12)
    return sum(plain.key_of(own) * (1 + 1e-9) < bounds.key_of(own) for own in optima)


def test_scratchpads_together_are_no_dearer_than_any_pattern() -> None:
    """Random machines with a buffer that all tensors may bypass, and three scratchpads behind an array."""
    assert sum(map(_compare_scratchpads, range(6, 6 + effort(12)))) > 4


@pytest.mark.slow
def test_scratchpads_together_are_no_dearer_than_any_pattern_of_many_machines() -> None:
    """More of them."""
    assert sum(map(_compare_scratchpads, range(1000, 1000 + effort(300)))) > 100
