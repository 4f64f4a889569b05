"""Two trees that take turns: the optimum of either, whichever closes first."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from effort import effort
from hypothesis import assume, given, settings
from instances import Instance, instances

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import two_orders
from tilewright.solvers.mapping.compiled import bound_program
from tilewright.solvers.mapping.levels.outside_first import ways_of_deciding
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tables import table_bank
from tilewright.solvers.mapping.tree import layout, tree
from tilewright.solvers.mapping.tree.division import divided
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.layout import Deciding, LegalTables, laid_out, orders_of_decisions
from tilewright.solvers.mapping.tree.tree import Tree
from tilewright.workloads.mapping.operators import gemm


def tree_of(search: LayerSearch, deciding: Deciding, stated: LayerProblem | None = None) -> Tree:
    """The tree of one order of decisions, of the search's problem or what knows more of it."""
    goal, problem = Minimum(search, "test"), stated or search.problem
    return Tree(search, goal, layout=laid_out(problem, search.limits, goal=goal, deciding=deciding))


def bytes_of_orders(problem: LayerProblem) -> list[int]:
    """What the trees of all orders read, in bytes, the smallest first."""
    search = LayerSearch(problem, Limits())
    trees = [tree_of(search, deciding) for deciding in orders_of_decisions(problem)]
    return sorted(tree.layout.bound_program.bytes for tree in trees)


@settings(max_examples=effort(20))
@given(instances("hierarchy", most=24, largest=50_000))
def test_turns_of_any_length_end_in_the_optimum(instance: Instance) -> None:
    """With turns of one node each, and with every order of decisions alone, the answer is enumeration's."""
    for objective in ("energy", "edp"):
        _compare_turns(instance.problem().minimising(parse_objective(objective)))


def _compare_turns(problem: LayerProblem) -> None:
    oracle = solve(problem, "exhaustive")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(two_orders, "_TURN", 1)
        patched.setattr(two_orders, "_GROWTH", 1.0)
        result = solve(problem, "branch")
    assert (result.status, result.key) == (oracle.status, oracle.key)
    for stated, deciding in ways_of_deciding(problem):
        search = LayerSearch(problem, Limits())
        alone = tree_of(search, deciding, stated)
        assume(not alone.empty)
        assert alone.run() is None
        assert search.key == oracle.key


@pytest.mark.parametrize(("fitting", "status"), [(1, Status.OPTIMAL), (0, Status.FEASIBLE)])
def test_tables_that_are_too_large(fitting: int, status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order whose tables do not fit is passed by; with none left, a mapping is annealed and not proven."""
    problem = layer_problem(gemm(m=24, n=24, k=24), load_engine("eyeriss-168"), parse_objective("edp"))
    sizes = bytes_of_orders(problem)
    assert sizes[0] < sizes[1]
    monkeypatch.setattr(bound_program, "MOST_BYTES", sizes[0] if fitting else 1)
    result = solve(problem, "branch", Limits(seconds=20))
    assert result.status is status
    assert result.answer is not None
    assert ("memory" in result.message) == (not fitting)


@pytest.mark.parametrize("missing", [0, 1])
def test_orders_that_fit_alone(missing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second tree is laid out where both together fit; without it the first one proves the optimum."""
    problem = layer_problem(gemm(m=24, n=24, k=24), load_engine("eyeriss-168"), parse_objective("edp"))
    expected = solve(problem, "branch").key
    monkeypatch.setattr(two_orders, "_TURN", 100)
    monkeypatch.setattr(two_orders, "_FEW_PARTS", -1)
    monkeypatch.setattr(bound_program, "MOST_BYTES", sum(bytes_of_orders(problem)) - missing)
    search = LayerSearch(problem, Limits())
    turns = two_orders.TwoOrders(search, "test")
    assert turns.run() is None
    assert len(turns._trees) == 2 - missing
    assert search.key == expected


def test_a_second_tree_of_which_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows are many, a tree reads those that may be better than the best mapping, and all is done where
    these need too many PEs together.

    On 3 PEs 4 x 4 iterations take less than 8 cycles only if both dimensions are spread, which takes 4.
    """
    dram = MemoryLevel("DRAM", None, Fraction(9), Fraction(9), fanout=Fanout((ArrayAxis("x", 3),)))
    levels = (dram, MemoryLevel("RF", 64, Fraction(1), Fraction(1)))
    engine = Engine("three", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    problem = layer_problem(gemm(m=4, n=1, k=4), engine, parse_objective("cycles"))
    best = solve(problem, "branch")
    assert best.answer is not None
    search = LayerSearch(problem, Limits())
    turns = two_orders.TwoOrders(search, "test")

    def left_open(*_: object) -> bool:
        """As if the first tree had more to search when the best mapping is found beside it."""
        search.offer(best.answer, "beside")
        return False

    monkeypatch.setattr(turns, "_ended", left_open)
    monkeypatch.setattr(layout, "_MANY", 0)
    assert turns.run() is None
    assert [tree.empty for tree in turns._trees] == [False, True]


def test_a_division_computes_few_tables_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A divided energy reads most of what the energy itself did, from where it is."""
    problem = layer_problem(gemm(m=48, n=36, k=40), load_engine("eyeriss-168"), parse_objective("energy"))
    monkeypatch.setattr(table_bank, "_SMALL", 0)
    search = LayerSearch(problem, Limits())
    whole = tree_of(search, orders_of_decisions(problem)[0]).layout
    before = whole.bound_program.table_bytes
    division = divided(whole)
    assert division.parts
    again = whole.dividing(division.energy, division.parts).bound_program
    assert again.table_bytes < 0.5 * before
    assert again.bytes > 0.5 * whole.bound_program.bytes


@pytest.mark.parametrize(("objective", "engine"), [("edp", "eyeriss-168"), ("energy", "eyeriss-256")])
def test_dropped_values_change_nothing(objective: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that drops the values of rows once programs have them bounds the same nodes."""
    problem = layer_problem(gemm(m=48, n=36, k=40), load_engine(engine), parse_objective(objective))
    # Energies are divided at once, and read the values again.
    monkeypatch.setattr(tree, "_PLAIN", 0)
    monkeypatch.setattr(tree, "_PLAIN_PRODUCT", 0)
    ended: list[tuple[object, ...]] = []
    for most in (math.inf, -1):
        monkeypatch.setattr(layout, "_MOST_HELD", most)
        search = LayerSearch(problem, Limits())
        turns = two_orders.TwoOrders(search, "test")
        assert turns.run() is None
        ended.append((search.key, search.tally.nodes))
    assert ended[0] == ended[1]


def test_a_mapping_comes_before_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that strikes while tables of many rows are filled leaves a mapping and a bound."""
    problem = layer_problem(gemm(m=95, n=97, k=96), load_engine("nvdla-256"), parse_objective("edp"))
    monkeypatch.setattr(two_orders, "_SOON", problem.with_perfect_factors().space.rows)
    monkeypatch.setattr(two_orders, "_SHORT", math.inf)
    assert problem.space.rows > two_orders._SOON
    optimal = solve(problem, "branch")

    def strike(stated: LayerProblem, *others: Any) -> LegalTables:
        if stated.space.rows == problem.space.rows:
            raise LimitReachedError
        return LegalTables(stated, *others)

    monkeypatch.setattr(two_orders, "LegalTables", strike)
    assert solve(problem, "branch").status is Status.UNKNOWN  # without a limit nothing comes before tables
    result = solve(problem, "branch", Limits(seconds=60))
    assert result.status is Status.FEASIBLE
    assert result.key is not None
    assert optimal.key is not None
    assert result.bound is not None
    assert result.key >= optimal.key >= result.bound > 0
    assert next(point.source for point in result.trace if point.key is not None) == "perfect factors"


def test_a_tree_with_few_parts_left_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second tree is laid out where the first one has few parts left after its turn; both are proofs."""
    problem = layer_problem(gemm(m=48, n=36, k=40), load_engine("eyeriss-168"), parse_objective("edp"))
    monkeypatch.setattr(two_orders, "_TURN", -1)  # it ends at once
    for later in ("_LONGER", "_GROWTH"):
        monkeypatch.setattr(two_orders, later, -10_000_000)
    ended: list[tuple[object, int]] = []
    for few in (1_000_000, -1):
        monkeypatch.setattr(two_orders, "_FEW_PARTS", few)
        result = solve(problem, "branch")
        ended.append((result.key, sum(method.trees for method in result.effort.methods)))
    assert [trees for _, trees in ended] == [1, 2]
    assert ended[0][0] == ended[1][0] is not None
