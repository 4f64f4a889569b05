"""What is known of large problems before their tables are filled."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import LimitReachedError, Limits, TablesTooLargeError
from tilewright.formulation.mapping.parts.relaxation import legal_sizes
from tilewright.formulation.mapping.parts.uneven_parts import has_uneven_parts
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles import axis_groups, chains
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import large_problems, problem_kinds
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.large_problems import SPARSE, offer_initial_solution
from tilewright.solvers.mapping.patterns.pattern_bounds import has_store_bounds
from tilewright.solvers.mapping.problem_kinds import PERFECT, has_patterns, is_large
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Role

MACHINES = Path(__file__).parents[2] / "studies" / "machines"
INSTANCES = st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(
    lambda model: instances(model, most=24, largest=20_000)
)


@settings(max_examples=effort(40))
@given(INSTANCES)
def test_initial_solution_is_on_both_sides_of_the_optimum(instance: Instance) -> None:
    """Its bound is none above, its mapping is none below what enumeration finds."""
    problem = instance.problem()
    best = solve(problem, "exhaustive")
    search = LayerSearch(problem, Limits())
    offer_initial_solution(search, Branch())
    if best.key is None:
        assert search.key is None
        return
    assert search.bound is None or search.bound <= best.key
    assert search.key is None or search.key >= best.key


@settings(max_examples=effort(20))
@given(INSTANCES)
def test_answers_are_the_same_with_an_opening(instance: Instance) -> None:
    """Branch and bound proves the same optimum after it."""
    plain = solve(instance.problem(), "branch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem_kinds, "LARGE", 0)
        opened = solve(instance.problem(), "branch")
    assert (opened.status, opened.key, opened.bound) == (plain.status, plain.key, plain.bound)


@pytest.mark.parametrize("objective", ["energy", "edp", "ed2p"])
def test_a_level_that_one_tensor_may_bypass(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few storage patterns, in one tree, are bounded before its tables: the optimum is that without them."""
    engine = load_engine("tpu-edge")
    free = replace(engine.level("GBUF"), may_bypass=frozenset({Role.INPUT}))
    levels = tuple(free if level.name == free.name else level for level in engine.levels)
    operator = parse_layer("gemm:M=37,N=23,K=11")[1]
    problem = layer_problem(operator, replace(engine, levels=levels), parse_objective(objective))
    assert has_store_bounds(problem)
    assert not has_patterns(problem)
    assert len(problem.space.nest.residency["A"].alternatives) == 2
    plain = solve(problem, "branch")
    monkeypatch.setattr(problem_kinds, "LARGE", 0)
    opened = solve(problem, "branch")
    assert "stores" in {point.source for point in opened.trace}
    assert (opened.status, opened.key) == (Status.OPTIMAL, plain.key)


def test_a_limit_that_strikes_before_the_tables_are_filled_leaves_mapping_and_bound() -> None:
    """The last product of a language model has over a million chains of tile sizes."""
    operator = parse_layer("gemm:M=1024,N=50257,K=768")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    assert is_large(problem)
    limits = Limits()

    def stop_at_the_mapping(point: TracePoint) -> None:
        if point.improved:
            limits.stop.set()

    result = solve(problem, "branch", limits, stop_at_the_mapping)
    assert result.status is Status.INTERRUPTED
    assert result.answer is not None
    assert result.key is not None
    assert result.bound is not None
    assert 0 < result.bound < result.key
    assert [point.source for point in result.trace] == ["intervals", "compulsory traffic", "greedy"]


@pytest.mark.parametrize("opened", [False, True])
def test_parts_whose_tables_are_too_large_as_well_end_the_search(
    opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of halved tiles is not searched by halving its tiles again."""
    operator = parse_layer("conv:K=2,C=1,P=3,Q=1,R=3,S=1")[1]
    monkeypatch.setattr(chains, "MOST_TILES", 20)
    monkeypatch.setattr(chains, "MANY_ROWS", 4)
    monkeypatch.setattr(axis_groups, "MANY_ROWS", 4)
    problem = layer_problem(operator, load_engine("tpu-edge"), parse_objective("energy"))
    assert not problem.space.nest.perfect
    if opened:
        monkeypatch.setattr(problem_kinds, "LARGE", 0)
        monkeypatch.setattr(large_problems, "HUGE", 0)
    result = solve(problem, "branch")
    assert result.status is Status.UNKNOWN
    assert "too many for memory" in result.message


def test_a_limit_strikes_while_tiles_that_fit_are_looked_for() -> None:
    """On eight levels that takes half a minute for some dimensions."""
    operator = parse_layer("gemm:M=1024,N=50257,K=768")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    limits = Limits()
    limits.stop.set()
    with pytest.raises(LimitReachedError):
        legal_sizes(problem, problem.space.groups[0], limits)


def test_few_tiles_are_searched_where_halved_ones_are_too_many_for_memory() -> None:
    """On eight levels a layer like any other; what the search begins with costs a tenth more."""
    fans = {
        place: Fanout(tuple(ArrayAxis(name, 16) for name in names)) for place, names in ((2, "xy"), (4, "uv"))
    }
    levels = [MemoryLevel("L0", None, Fraction(200), Fraction(200))]
    for place, (size, energy) in enumerate(
        [(26, 90), (24, 60), (22, 40), (18, 20), (16, 10), (14, 5), (9, 1)]
    ):
        fan = fans.get(place)
        levels.append(MemoryLevel(f"L{place + 1}", 1 << size, Fraction(energy), Fraction(energy), fanout=fan))
    engine = Engine("deep", "hierarchy", 8, Fraction(1), Fraction(1000), tuple(levels))
    operator = parse_layer("conv:K=64,C=64,P=112,Q=112,R=3,S=3")[1]
    limits, keys = Limits(), dict[str, Fraction]()

    def stop_at_sparse_tiles(point: TracePoint) -> None:
        if point.key is not None:
            keys[point.source] = point.key
        if point.source == SPARSE and keys[SPARSE] < Fraction(9, 10) * keys["greedy"]:
            limits.stop.set()

    problem = layer_problem(operator, engine, parse_objective("energy"))
    with pytest.raises(TablesTooLargeError):
        _ = [group.rows for group in problem.with_halved_tiles().space.groups]
    result = solve(problem, "branch", limits, stop_at_sparse_tiles)
    assert result.status is Status.INTERRUPTED
    assert result.key == keys[SPARSE]


@pytest.mark.parametrize(("name", "first"), [("branch", "even"), ("cpsat", PERFECT), ("highs", PERFECT)])
def test_all_exact_solvers_begin_with_a_mapping_over_uneven_storage(
    name: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Branch and bound finds it among even ones by itself, others are given it."""
    operator = parse_layer("gemm:M=7,N=5,K=6")[1]
    engine = load_engine(str(MACHINES / "free-4-levels.yaml"))
    problem = layer_problem(operator, engine, parse_objective("edp"), storage="uneven")
    assert has_uneven_parts(problem)
    monkeypatch.setattr(problem_kinds, "LARGE", 0)
    limits = Limits()

    def stop_at_the_mapping(point: TracePoint) -> None:
        if point.improved:
            limits.stop.set()

    result = solve(problem, name, limits, stop_at_the_mapping)
    assert next(point.source for point in result.trace if point.improved) == first
