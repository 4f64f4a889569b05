"""Storage patterns: their bounds, the machines that a machine with optional levels holds, and their trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import count
from itertools import product as cartesian

import pytest
from brute import every_mapping
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, hierarchies, leaking, mappings, operators
from optional_levels import four_levels
from written_out import keys_of_mappings

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.solvers.mapping import problem_kinds
from tilewright.solvers.mapping.patterns import pattern_descent, storage_patterns
from tilewright.solvers.mapping.patterns.pattern_bounds import BoundedPattern, PatternBounds, has_store_bounds
from tilewright.solvers.mapping.patterns.pattern_descent import Descent
from tilewright.solvers.mapping.patterns.pattern_machines import (
    Stores,
    levels_of,
    machine_of,
    on_own_machine,
    stores_of,
    storing,
)
from tilewright.solvers.mapping.patterns.pattern_tiles import PatternTiles
from tilewright.solvers.mapping.patterns.storage_patterns import PatternTrees
from tilewright.solvers.mapping.problem_kinds import has_patterns
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree.layout import Deciding, orders_of_decisions
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operators import gemm


def problem_on_four_levels(objective: str, constraints: tuple[str, ...] = ()) -> LayerProblem:
    """A product of 4 x 8 x 6, perfect factors."""
    engine = four_levels()
    return layer_problem(
        gemm(m=4, n=8, k=6), engine, parse_objective(objective), constraints=constraints, factors="perfect"
    )


@cache
def proven_on_four_levels(objective: str) -> Fraction:
    """The optimum of that problem."""
    result = solve(problem_on_four_levels(objective), "branch")
    assert result.status is Status.OPTIMAL
    assert result.key is not None
    return result.key


@pytest.fixture(autouse=True)
def _few_patterns_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines of two levels have patterns, too."""
    monkeypatch.setattr(problem_kinds, "FEW", 0)


@st.composite
def loose(draw: st.DrawFn, most: int, levels: int = 3) -> Instance:
    """A problem on a machine with one array, all of whose inner levels may be passed by."""
    drawn = draw(hierarchies(levels=draw(st.integers(2, levels)), roomy=draw(st.booleans())))
    array = draw(st.integers(0, len(drawn.levels) - 1))
    machine = tuple(
        replace(
            level,
            may_bypass=level.keeps if index else level.may_bypass,
            sliding_window=False,
            fanout=level.fanout if index == array else None,
        )
        for index, level in enumerate(drawn.levels)
    )
    engine = leaking(draw, replace(drawn, levels=machine))
    objective = draw(st.sampled_from(["energy", "edp", "ed2p"]))
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    return Instance(draw(operators(most=most)), engine, objective, factors=factors)


@st.composite
def settled(draw: st.DrawFn, most: int) -> Instance:
    """A problem on a machine none of whose levels can be idle; some keep certain tensors alone."""
    drawn = draw(hierarchies(levels=draw(st.integers(2, 4)), roomy=draw(st.booleans())))
    levels = [replace(level, may_bypass=frozenset(), sliding_window=False) for level in drawn.levels]
    engine = leaking(draw, replace(drawn, levels=tuple(levels)))
    objective = draw(st.sampled_from(["energy", "edp", "ed2p"]))
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    return Instance(draw(operators(most=most)), engine, objective, factors=factors)


def search_from(problem: LayerProblem, known: Mapping | None) -> LayerSearch:
    """A search with an incumbent, which says how much is asked of parts; or with none."""
    search = LayerSearch(problem, Limits())
    if known is not None:
        search.offer(known, "test")
    return search


def bounds_of(problem: LayerProblem, known: Mapping | None = None) -> Iterator[tuple[Stores, float]]:
    """All patterns of a problem with their bounds."""
    bounds = PatternBounds(search_from(problem, known))
    while (pattern := bounds.take()) is not None:
        yield pattern.stores, pattern.key


@settings(max_examples=effort(40))
@given(st.data())
def test_a_mapping_of_a_pattern_costs_the_same_on_the_whole_machine(data: st.DataObject) -> None:
    """Whatever a pattern's machine says of a mapping, the machine with all levels says, too."""
    instance = data.draw(loose(32, levels=4))
    whole = instance.problem()
    assume(has_patterns(whole))
    residency = whole.space.nest.residency
    stores = tuple(
        data.draw(st.sampled_from(residency[tensor.name].alternatives)) for tensor in whole.operator.tensors
    )
    stored = {level for own in stores for level in own}
    smaller = machine_of(storing(whole, stores), stored)
    mapping = data.draw(mappings(whole.operator, smaller, data.draw(st.booleans())))
    alone, within = whole.on(smaller).judge(mapping), whole.judge(mapping)
    assert alone.key == within.key
    assert bool(alone.violations) == bool(within.violations)
    assert (alone.outside is None) == (within.outside is None)


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_bounds_of_patterns_count_the_leakage_once(objective: str) -> None:
    """Where a machine takes far more for itself than for all else, they come close to the optimum."""
    engine = replace(four_levels(), leakage={"": Fraction(10_000)})
    problem = layer_problem(gemm(m=4, n=8, k=6), engine, parse_objective(objective), factors="perfect")
    optimum = solve(problem, "branch").key
    assert optimum is not None
    assert 0.7 * float(optimum) <= min(key for _, key in bounds_of(problem)) <= optimum


def looked_up(problem: LayerProblem, most: int, known: Mapping | None = None) -> PatternBounds:
    """The bounds of all patterns, of which so many have been taken."""
    bounds = PatternBounds(search_from(problem, known))
    for _ in range(most):
        bounds.take()
    return bounds


def _compare_bounds(instance: Instance, most: int) -> None:
    problem = instance.problem()
    assume(problem.space.size <= most and has_patterns(problem))
    every = every_mapping(problem.operator, problem.engine, problem.space.nest.perfect)
    legal = [mapping for mapping in every if not problem.judge(mapping).violations]
    incumbent = legal[len(legal) // 2] if legal else None
    bounds = dict(bounds_of(problem))
    stages = [looked_up(problem, taken) for taken in (0, 1, 5, len(bounds))]
    stages.append(looked_up(problem, len(bounds), incumbent))
    patterns = cartesian(*(r.alternatives for r in problem.space.nest.residency.values()))
    assert bounds.keys() <= {*patterns}
    for mapping in legal:
        judgement = problem.judge(mapping)
        assert judgement.outside is None
        stores, most_of_bound = stores_of(problem, mapping), float(judgement.key) * (1 + 1e-12)
        assert bounds[stores] <= most_of_bound
        for known in stages:
            assert known.key_within(levels_of(stores)) <= known.key_of(stores) <= most_of_bound


@settings(max_examples=effort(8))
@given(loose(6))
def test_no_mapping_is_below_the_bound_of_its_pattern(instance: Instance) -> None:
    """Every legal mapping written out, in every order, costs at least what its pattern is bounded by."""
    _compare_bounds(instance, 400)


@pytest.mark.slow
@settings(max_examples=effort(200))
@given(loose(12))
def test_many_mappings_are_not_below_the_bounds_of_their_patterns(instance: Instance) -> None:
    """The same, for many machines."""
    _compare_bounds(instance, 2_000)


def _compare_random_mappings(data: st.DataObject, most: int) -> None:
    instance = data.draw(loose(most, levels=4))
    problem = instance.problem()
    assume(has_patterns(problem))
    drawn = mappings(problem.operator, problem.engine, False, problem.space.nest.perfect)
    incumbent = data.draw(drawn) if data.draw(st.booleans()) else None
    if incumbent is not None and (problem.judge(incumbent).violations or problem.outside(incumbent)):
        incumbent = None
    bounds = dict(bounds_of(problem, incumbent))
    known = looked_up(problem, data.draw(st.integers(0, len(bounds))), incumbent)
    for _ in range(10):
        mapping = data.draw(drawn)
        judgement = problem.judge(mapping)
        if not judgement.violations and judgement.outside is None:
            stores = stores_of(problem, mapping)
            assert bounds[stores] <= float(judgement.key) * (1 + 1e-12)
            assert known.key_within(levels_of(stores)) <= known.key_of(stores)
            assert known.key_of(stores) <= float(judgement.key) * (1 + 1e-12)


@settings(max_examples=effort(6))
@given(st.data())
def test_random_mappings_are_not_below_the_bounds_of_their_patterns(data: st.DataObject) -> None:
    """Mappings of larger layers, good and bad, cost at least what their patterns are bounded by."""
    _compare_random_mappings(data, 64)


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(st.data())
def test_many_random_mappings_are_not_below_the_bounds_of_their_patterns(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare_random_mappings(data, 200)


def _compare_store_bounds(data: st.DataObject, most: int, enumerated: int) -> None:
    """The bound of the one pattern that there is against mappings written out, all of them or random ones."""
    problem = data.draw(settled(most)).problem()
    assume(has_store_bounds(problem))
    pattern = PatternBounds(LayerSearch(problem, Limits())).take()
    for key in keys_of_mappings(data, problem, enumerated):
        assert pattern is not None
        assert pattern.key <= key * (1 + 1e-12)


@settings(max_examples=effort(8))
@given(st.data())
def test_no_mapping_is_below_what_its_stores_cost_at_least(data: st.DataObject) -> None:
    """Where nothing may be bypassed, all mappings written out, or random ones, cost at least the bound."""
    _compare_store_bounds(data, 24, 300)


@pytest.mark.slow
@settings(max_examples=effort(150))
@given(st.data())
def test_many_mappings_are_not_below_what_their_stores_cost_at_least(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare_store_bounds(data, 36, 1_000)


def _compare_optima(instance: Instance, most: int) -> None:
    """Trees of patterns, one for the patterns of some levels and one for each, against plain enumeration."""
    problem = instance.problem()
    assume(problem.space.size <= most and has_patterns(problem))
    wanted = solve(problem, "exhaustive")
    result = solve(problem, "branch")
    assert (result.status, result.key, result.bound) == (wanted.status, wanted.key, wanted.bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_patterns, "_SHARED", 0)
        alone = solve(problem, "branch")
    assert (alone.status, alone.key, alone.bound) == (wanted.status, wanted.key, wanted.bound)


@settings(max_examples=effort(10))
@given(loose(8))
def test_patterns_hold_the_optimum_of_the_whole_machine(instance: Instance) -> None:
    """The least of all patterns is what enumeration of the machine with all levels finds."""
    _compare_optima(instance, 3_000)


@pytest.mark.slow
@settings(max_examples=effort(200))
@given(loose(18))
def test_patterns_of_many_machines_hold_their_optima(instance: Instance) -> None:
    """The same, for many machines."""
    _compare_optima(instance, 20_000)


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_no_worse_than_machines_with_fewer_levels(objective: str) -> None:
    """The optimum is at most that of every machine that keeps one optional level alone."""
    problem = problem_on_four_levels(objective)
    for index in range(1, 4):
        alone = solve(problem.on(machine_of(problem.engine, (0, index))), "branch", Limits())
        assert alone.status is Status.OPTIMAL
        assert alone.key is not None
        assert proven_on_four_levels(objective) <= alone.key


def test_every_element_counts_once_in_the_bound_of_a_pattern() -> None:
    """Without stores inside, operands that a full array shares still come from DRAM once each."""
    engine = four_levels()
    operator = parse_layer("depthwise:C=16,P=6,Q=6,R=3,S=3,stride=2")[1]
    problem = layer_problem(operator, engine, parse_objective("energy"))
    moved = sum(touched(operator, tensor) for tensor in operator.tensors)
    bounds = dict(bounds_of(problem))
    assert bounds[((0,), (0,), (0,))] >= (200 * moved + operator.iterations) * (1 - 1e-9)


@settings(max_examples=effort(6))
@given(loose(12, levels=4))
def test_a_walk_over_patterns_offers_mappings_of_the_space(instance: Instance) -> None:
    """What it finds is legal, in the space and not below the optimum."""
    problem = instance.problem()
    assume(problem.space.size <= 20_000 and has_patterns(problem))
    search = LayerSearch(problem, Limits())
    descent = Descent(search, "branch")
    descent.begin()
    for _ in descent.steps():
        pass
    optimum = solve(problem, "exhaustive").key
    if search.key is not None:
        assert optimum is not None
        assert search.key >= optimum
        judgement = problem.judge(search.answer)
        assert not judgement.violations
        assert judgement.outside is None


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_a_walk_over_patterns_ends_where_no_level_more_or_less_is_better(objective: str) -> None:
    """It is deterministic, and reaches what the machine with any single optional level has."""
    problem = problem_on_four_levels(objective)
    keys = []
    for _ in range(2):
        search = LayerSearch(problem, Limits(deterministic=True))
        descent = Descent(search, "branch")
        descent.begin()
        for _ in descent.steps():
            pass
        keys.append(search.key)
    assert keys[0] is not None
    assert keys[0] == keys[1]
    best = proven_on_four_levels(objective)
    assert best <= keys[0] <= 1.2 * best


def test_a_walk_tries_no_pattern_twice_and_none_that_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it goes on; the first patterns are tried whatever is known of them."""
    problem = problem_on_four_levels("edp")
    tried: list[Stores] = []

    def note(whole: LayerProblem, stores: Stores) -> LayerProblem:
        tried.append(stores)
        return on_own_machine(whole, stores)

    monkeypatch.setattr(pattern_descent, "on_own_machine", note)
    asked: list[Stores] = []

    def is_short(stores: Stores) -> bool:
        asked.append(stores)
        return max(map(len, stores)) <= 2

    descent = Descent(LayerSearch(problem, Limits(deterministic=True)), "branch", is_short)
    descent.begin()
    begun = len(tried)
    for _ in range(3):
        for _ in descent.steps():
            pass
    assert len({*tried}) == len(tried) > begun
    assert all(max(map(len, stores)) <= 2 for stores in tried)
    assert any(max(map(len, stores)) > 2 for stores in asked)


@pytest.mark.parametrize("shared", [storage_patterns._SHARED, 0])
def test_a_search_that_is_stopped_bounds_what_it_left_open(
    shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a search ends, its bound is below the optimum and never falls."""
    monkeypatch.setattr(storage_patterns, "_SHARED", shared)
    problem = problem_on_four_levels("edp")
    optimum = proven_on_four_levels("edp")
    scale = float(problem.key_scale)
    for steps in (2, 5, 20, 100, 500, 3000):
        ticks = count()
        limits = Limits(seconds=float(steps), started=0.0, clock=lambda ticks=ticks: float(next(ticks)))
        search = LayerSearch(problem, limits)
        reported: list[float] = []
        least = PatternTrees(search, "branch").run(reported.append)
        if least is not None:
            assert least <= float(optimum) * scale * (1 + 1e-12)
            assert all(bound <= float(optimum) * scale * (1 + 1e-12) for bound in reported)
        else:
            assert search.key == optimum


def test_patterns_of_large_tables_are_bounded_alone() -> None:
    """What is not searched stays in the bound, and nothing is called proven."""
    problem = problem_on_four_levels("energy")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_SHARED", "_MANY"):
            patch.setattr(storage_patterns, name, 5)
        patch.setattr(PatternTiles, "batch", lambda *_: None)
        patch.setattr(pattern_descent, "_MOST", 5)
        result = solve(problem, "branch")
    optimum = proven_on_four_levels("energy")
    assert result.status is Status.FEASIBLE
    assert result.bound is not None
    assert result.key is not None
    assert 0 < result.bound <= optimum <= result.key


def test_the_order_that_took_fewer_nodes_is_taken() -> None:
    """Every order is tried once, then that whose trees took the fewest nodes on average."""
    first, second = orders_of_decisions(problem_on_four_levels("edp"))
    efforts, taken = storage_patterns._Efforts(), list[Deciding]()
    for bounded in (10, 30, 70, 0, 0):
        taken.append(efforts.best([first, second]))
        efforts.note(taken[-1], bounded)
    assert taken == [first, second, first, second, second]


@pytest.mark.parametrize("place", [0, 1])
def test_trees_of_single_patterns_have_the_optimum_in_any_order(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of decisions in them, they prove the same."""
    problem, counted = problem_on_four_levels("edp"), list[Deciding]()
    order = orders_of_decisions(problem)[place]
    monkeypatch.setattr(storage_patterns, "_SHARED", 0)
    monkeypatch.setattr(PatternTiles, "batch", lambda *_: None)
    monkeypatch.setattr(storage_patterns._Efforts, "best", lambda _efforts, orders: orders[place])
    monkeypatch.setattr(
        storage_patterns._Efforts, "note", lambda _efforts, deciding, _bounded: counted.append(deciding)
    )
    result = solve(problem, "branch")
    assert (result.status, result.key) == (Status.OPTIMAL, proven_on_four_levels("edp"))
    assert {*counted} == {order}


def test_tables_make_room_for_patterns_of_many_rows() -> None:
    """What closed patterns read is forgotten then; forgotten all the time, the optimum is the same."""
    problem, made = problem_on_four_levels("edp"), list[int]()
    state, make_room = PatternTrees._state, PatternTrees._make_room

    def noted(trees: PatternTrees) -> None:
        make_room(trees)
        made.append(trees._bank.bytes)

    def forgetful(
        trees: PatternTrees, pattern: BoundedPattern, most: int, on_bound: Callable[[float], None]
    ) -> bool:
        is_opened = state(trees, pattern, most, on_bound)
        before = trees._bank.bytes
        make_room(trees)
        assert trees._bank.bytes == 0 < before
        assert not any(trees._shared.values())
        return is_opened

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PatternTrees, "_state", forgetful)
        result = solve(problem, "branch")
    assert (result.status, result.key) == (Status.OPTIMAL, proven_on_four_levels("edp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_patterns, "_SHARED", 0)
        patch.setattr(PatternTrees, "_make_room", noted)
        assert solve(problem, "branch").key == result.key
    assert made == [0]


def test_two_searches_with_one_seed_agree() -> None:
    """The same mapping, bound and trace, without a clock."""
    problem = problem_on_four_levels("energy")
    runs = [solve(problem, "branch", Limits(deterministic=True)) for _ in range(2)]
    assert runs[0].answer == runs[1].answer
    assert [point.key for point in runs[0].trace] == [point.key for point in runs[1].trace]


def test_a_demand_on_the_places_of_loops_is_left_to_one_tree() -> None:
    """Where a demand may ask for loops at a level that stores nothing, no pattern is searched alone."""
    problem = problem_on_four_levels("energy", ("tile(M@L2)<=2",))
    assert not has_patterns(problem)
    assert has_patterns(problem_on_four_levels("energy", ("spatial(M)<=2",)))
