"""Methods on spaces whose tables take too much memory or time: parts of them, and bounds of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import Limits, TablesTooLargeError
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.candidates import Arena
from tilewright.solvers.mapping import large_problems, narrowed, two_orders
from tilewright.solvers.mapping.arrangements import open_trees
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.first_mapping import offer_one_mapping
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tables import table_bank
from tilewright.solvers.mapping.tables.shared_tables import tables_beside
from tilewright.workloads.mapping.layer_text import parse_layer

INSTANCES = instances("hierarchy", most=24, largest=20_000)
FREE = Path(__file__).parents[2] / "studies" / "machines" / "free-4-levels.yaml"
HEAD = "gemm:M=64,N=128256,K=4096"


def problem_of(layer: str, machine: str, objective: str = "edp", **spaces: str) -> LayerProblem:
    return layer_problem(parse_layer(layer)[1], load_engine(machine), parse_objective(objective), **spaces)


def random_keys(problem: LayerProblem, count: int, seed: int) -> list[Fraction]:
    """Keys of random legal mappings of a problem, judged by its evaluator."""
    arena = Arena(problem)
    if arena.empty:
        return []
    drawn = arena.draw(count, np.random.default_rng(seed))
    legal = np.flatnonzero(arena.score(drawn).legal)
    return [problem.judge(arena.mapping(drawn, int(place))).key for place in legal[:20]]


def refuse_tables(whole: LayerProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no tree be laid out over as many rows of the same tiles as a problem has."""
    for module in (two_orders, open_trees):

        def refused(
            problem: LayerProblem,
            *rest: object,
            real: Callable[..., object] = module.laid_out,
            **named: object,
        ) -> object:
            if problem.space.tiles == whole.space.tiles and problem.space.rows >= whole.space.rows:
                raise TablesTooLargeError("the tables are too large")
            return real(problem, *rest, **named)

        monkeypatch.setattr(module, "laid_out", refused)


@pytest.mark.parametrize("solver", ["cpsat", "exhaustive", "annealing", "genetic", "kapla"])
@settings(max_examples=effort(8), deadline=None)
@given(INSTANCES, st.integers(0, 100))
def test_narrowed_searches_agree_with_enumeration(solver: str, instance: Instance, seed: int) -> None:
    """No value is below the optimum and no bound above it, nor above random legal mappings."""
    problem = instance.problem()
    best = solve(problem, "exhaustive")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrowed, "MOST_STATED", 0)
        patch.setattr(narrowed, "MOST_TABLED", 0)
        result = solve(problem, solver, Limits(threads=1))
    if best.key is None:
        assert result.key is None
        return
    assert result.key is None or result.key >= best.key
    assert result.bound is None or result.bound <= best.key
    for key in random_keys(problem, 200, seed):
        assert result.bound is None or result.bound <= key


@settings(max_examples=effort(10), deadline=None)
@given(INSTANCES)
def test_rows_that_cannot_be_better_are_left_out_of_models(instance: Instance) -> None:
    """CP-SAT proves over the rows that are wanted what enumeration finds over all."""
    problem = instance.problem()
    best = solve(problem, "exhaustive")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrowed, "MOST_STATED", max(1, problem.space.rows - 1))
        result = solve(problem, "cpsat", Limits(threads=1))
    assert result.key == best.key or result.status not in (Status.OPTIMAL, Status.INFEASIBLE)
    assert result.bound is None or best.key is None or result.bound <= best.key


@pytest.mark.parametrize("solver", ["random", "annealing[steps=5]", "genetic[generations=3]", "kapla", "ws1"])
def test_a_heuristic_finds_a_mapping_of_a_space_that_memory_does_not_hold(solver: str) -> None:
    """Rows of all tiles would take gigabytes; those of halved tiles are few.  Its bound is that of all."""
    problem = problem_of(HEAD, "tpu-v4i")
    assert problem.space.rows > narrowed.MOST_TABLED
    result = solve(problem, solver, Limits(20))
    assert result.status is Status.FEASIBLE
    assert result.answer is not None
    assert problem.outside(result.answer) is None
    assert result.bound is not None
    assert result.key is not None
    assert 0 < result.bound < result.key
    for key in random_keys(problem.with_halved_tiles(), 2000, 1):
        assert result.bound <= key


@pytest.mark.parametrize("stating", [True, False])
def test_a_method_says_itself_whether_it_states_models(
    stating: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new solver is narrowed like those that ship, whatever its name."""
    rows: list[int] = []

    class New:
        name, exact, version, states_models = "new", True, "1", stating

        def solve(self, search: LayerSearch) -> Outcome:
            rows.append(search.problem.space.rows)
            return Outcome()

    monkeypatch.setattr(narrowed, "MOST_STATED", 10)
    problem = problem_of("gemm:M=16,N=12,K=8", "eyeriss-256")
    narrowed.solve_narrowed(LayerSearch(problem, Limits()), New())
    assert (rows == [problem.space.rows]) is not stating


def test_demands_that_leave_no_halved_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a heuristic sees the whole."""
    problem = layer_problem(
        parse_layer("gemm:M=12,N=15,K=7")[1],
        load_engine("eyeriss-256"),
        parse_objective("edp"),
        constraints=["tile(N@GLB)=5"],
    )
    monkeypatch.setattr(narrowed, "MOST_TABLED", 0)
    assert not all(len(group) for group in problem.with_halved_tiles().space.groups)
    assert solve(problem, "annealing").key is not None


@pytest.mark.parametrize(
    ("tiles", "storage"),
    [
        ("trip-counts", "even"),
        ("trip-counts", "uneven"),
        ("every", "even"),
        pytest.param("every", "uneven", marks=pytest.mark.slow),
    ],
)
def test_branch_and_bound_goes_on_where_tables_are_too_large(
    storage: str, tiles: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a mapping of a part, and no bound above the optimum."""
    spaces = {"storage": storage, "tiles": tiles, "factors": "imperfect"}
    problem = problem_of("gemm:M=5,N=6,K=4", "eyeriss-256", **spaces)
    best = solve(problem, "branch")
    assert best.status is Status.OPTIMAL
    assert best.key is not None
    refuse_tables(problem, monkeypatch)
    result = solve(problem, "branch", Limits(10))
    assert "too large" in result.message
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.key is not None
    assert best.key <= result.key <= 1.2 * best.key
    assert result.bound is None or result.bound <= best.key


@pytest.mark.parametrize(("storage", "fails_at"), [("even", 0), ("even", 2), ("uneven", 1)])
def test_a_search_that_runs_out_of_memory_goes_on_with_parts(
    storage: str, fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with a mapping and a bound of before, whichever tables the memory did not hold."""
    problem = problem_of("gemm:M=5,N=6,K=4", "eyeriss-256", storage=storage)
    best = solve(problem, "branch")
    assert best.key is not None
    calls: list[None] = []
    real = two_orders.laid_out

    def short(*arguments: Any, **named: Any) -> object:
        calls.append(None)
        if len(calls) > fails_at:
            raise MemoryError
        return real(*arguments, **named)

    monkeypatch.setattr(two_orders, "laid_out", short)
    monkeypatch.setattr(open_trees, "laid_out", short)
    result = solve(problem, "branch", Limits(30))
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.key is not None
    assert best.key <= result.key
    assert result.bound is None or result.bound <= best.key
    if result.status is Status.FEASIBLE:
        assert "memory" in result.message


@pytest.mark.parametrize("layer", ["gemm:M=10,N=6,K=3", "gemm:M=7,N=9,K=5"])
def test_tiles_nearby_are_better_and_never_better_than_all(layer: str) -> None:
    """Some integers away from any mapping are better ones; none of them is better than the best of all."""
    problem = problem_of(layer, "eyeriss-168", tiles="every")
    best = solve(problem, "branch")
    search = LayerSearch(problem, Limits(20))
    offer_one_mapping(search)
    key = search.key
    large_problems._offer_tiles_nearby(search, Branch())
    assert best.key is not None
    assert key is not None
    assert search.key is not None
    assert best.key <= search.key < key
    assert search.bound is None


def test_bounds_rise_with_time_where_tables_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What inner levels cost together is asked for with more effort than at the beginning."""
    problem = problem_of("gemm:M=37,N=47,K=53", str(FREE))
    efforts: list[int] = []

    def asked(search: object, bounds: object, pattern: object, effort: int = 0) -> list[float]:
        efforts.append(effort)
        return []

    monkeypatch.setattr(large_problems, "inner_keys", asked)
    refuse_tables(problem, monkeypatch)
    solve(problem, "branch", Limits(20))
    assert efforts
    assert efforts[-1] > large_problems.EFFORT


def test_tables_of_very_many_rows_are_kept_for_no_other_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum is the same; later problems find the tables of fewer rows alone."""
    keys = []
    for most in (10**6, 0):
        monkeypatch.setattr(two_orders, "MOST_SHARED_ROWS", most)
        layer, engine = parse_layer("gemm:M=37,N=47,K=53")[1], load_engine("eyeriss-256")
        problem = layer_problem(layer, engine, parse_objective("edp"), alike=Alike(spaces=None))
        shared = tables_beside(problem)
        assert shared is not None
        keys.append(solve(problem, "branch").key)
        monkeypatch.setattr(two_orders, "_look_at_perfect_factors", lambda search: None)
        assert (shared.bytes > 0) is (most > 0)
    assert keys[0] == keys[1]


def test_sparse_tiles_are_tiles_of_the_space_on_machines_of_fewer_levels_too() -> None:
    """They are few, and mappings of them are mappings of the whole; so they are where a level is left out."""
    problem = problem_of("gemm:M=64,N=50257,K=768", "eyeriss-168")
    sparse = problem.with_sparse_tiles(4)
    assert 0 < sparse.space.rows < problem.space.rows / 5
    fewer = sparse.on(replace(problem.engine, levels=(problem.engine.levels[0], *problem.engine.levels[2:])))
    assert fewer.space.tiles == sparse.space.tiles
    arena, random = Arena(sparse), np.random.default_rng(1)
    drawn = arena.draw(2000, random)
    legal = np.flatnonzero(arena.score(drawn).legal)[:20]
    assert len(legal)
    for place in legal:
        assert problem.outside(arena.mapping(drawn, int(place))) is None


def test_a_bank_takes_what_it_needs_where_addresses_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for more than a program reads is only reserved while there are addresses for it."""
    real = np.empty

    def limited(size: int, *rest: object) -> object:
        if size > 1000:
            raise MemoryError
        return real(size, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(table_bank.np, "empty", limited)
    owner = np.bool_
    values, starts = table_bank.TableBank().placed(
        [(owner, "values", 3, lambda out: out.fill(2.0))], lambda: None
    )
    assert values[starts[0] : starts[0] + 3].tolist() == [2.0, 2.0, 2.0]
