"""Limits that strike, and failures that happen, at any moment of any method, beside it or in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from clocks import delay
from effort import effort

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts.relaxation import problem_tables
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult, LayerSearch
from tilewright.formulation.mapping.tiles import columns
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.formulation.stopping import Running, Stop
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping import branch, large_problems
from tilewright.solvers.mapping.arrangements.by_arrangement import ByArrangement
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.methods import method
from tilewright.solvers.mapping.portfolio import Portfolio
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

SLOW = {"highs", "cbc"}
"""Methods that start a process for every search."""
METHODS = [name for name in (*SOLVERS.names(), *HEURISTICS.names()) if name not in SLOW]
NEVER = 10**9


class BoomError(Exception):
    """A failure that no method foresees."""


@dataclass(frozen=True, slots=True)
class Counted(Limits):
    """Limits that strike at the n-th look at them, in whatever thread that is.

    Parameters
    ----------
    looks : so many so far, and up to which nothing happens
    victim : name of a thread whose look fails instead
    """

    looks: list[int] = field(default_factory=lambda: [0, NEVER])
    victim: str = ""

    def ends(self, search: object) -> bool:
        self.looks[0] += 1
        if self.looks[0] > self.looks[1]:
            if self.victim and threading.current_thread().name == self.victim:
                raise BoomError("boom")
            if not self.victim:
                self.stop.set()
        return Limits.ends(self, search)


@cache
def problem() -> LayerProblem:
    objective = parse_objective("edp")
    return layer_problem(parse_layer("gemm:M=12,N=8,K=6")[1], load_engine("eyeriss-168"), objective)


@cache
def proven() -> LayerResult:
    return solve(problem(), "branch")


@pytest.fixture
def loud(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What would have been printed of exceptions that leave a thread's function."""
    printed: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda reported: printed.append(repr(reported.exc_value)))
    yield printed
    await_partner()
    assert not printed


def moments(count: int) -> Iterator[int]:
    """Numbers of looks after which something happens, ever further apart."""
    moment = 0
    for _ in range(count):
        yield moment
        moment = max(moment + 1, int(moment * 1.4))


@pytest.mark.parametrize("name", METHODS)
def test_a_limit_may_strike_at_any_look(name: str, monkeypatch: pytest.MonkeyPatch, loud: list[str]) -> None:
    """Whenever it strikes, the answer is valid: nothing raised, no error, no claim that does not hold."""
    if name == "auto":
        monkeypatch.setattr("tilewright.solvers.mapping.solve.method", lambda _name: Portfolio(0.0))
    best = proven().key
    assert best is not None
    for moment in moments(effort(20)):
        limits = Counted(looks=[0, moment])
        result = solve(problem(), name, limits)
        assert result.status not in (Status.ERROR, Status.INFEASIBLE), (moment, result.message)
        assert result.key is None or result.key >= best, moment
        assert result.bound is None or result.bound <= best, moment
        assert (result.status is Status.OPTIMAL) == (result.key == result.bound == best), moment
        if limits.looks[0] <= moment:
            return


class Answered(Stop):
    """There is an answer."""

    def holds(self, elapsed: float, search: Running | None) -> bool:
        return search is not None and search.improved_at is not None


def test_a_condition_on_answers_ends_an_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is the last one, and the bound is what intervals prove."""
    monkeypatch.setattr("tilewright.solvers.mapping.exhaustive.CHUNK", 50)
    result = solve(problem(), "exhaustive", Limits().stopping(Answered()))
    best = proven().key
    assert best is not None
    assert result.status is Status.FEASIBLE
    assert result.effort.nodes < problem().space.size / 10
    assert result.bound is not None
    assert result.bound <= best


@pytest.mark.parametrize("name", ["exhaustive", "cpsat"])
def test_a_condition_on_answers_ends_a_search_of_many_parts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uneven storage, one arrangement after the other: none is begun after the condition holds."""
    begun = [0]
    honest = ByArrangement._part_solved

    def counted(self: ByArrangement, inner: LayerSearch) -> Outcome:
        begun[0] += 1
        return honest(self, inner)

    monkeypatch.setattr(ByArrangement, "_part_solved", counted)
    layer = parse_layer("gemm:M=4,N=4,K=2")[1]
    machine = load_engine("eyeriss-168")
    stated = layer_problem(layer, machine, parse_objective("energy"), storage="uneven")
    result = solve(stated, name, Limits(seconds=60).stopping(Answered()))
    assert begun[0] == 1
    assert result.status is Status.FEASIBLE


def await_partner() -> None:
    """Wait until CP-SAT's thread has ended."""
    for thread in threading.enumerate():
        if thread.name == "cpsat":
            thread.join(20)


def test_a_partner_may_fail_at_any_look(monkeypatch: pytest.MonkeyPatch, loud: list[str]) -> None:
    """Where CP-SAT's thread dies, branch and bound's proof stands and the message tells of it."""
    monkeypatch.setattr("tilewright.solvers.mapping.solve.method", lambda _name: Portfolio(0.0))
    honest = Branch.solve

    def later(self: Branch, search: LayerSearch) -> Outcome:
        await_partner()
        return honest(self, search)

    monkeypatch.setattr(Branch, "solve", later)
    reported = 0
    for moment in moments(effort(12)):
        result = solve(problem(), "auto", Counted(looks=[0, moment], victim="cpsat"))
        assert (result.status, result.key) == (Status.OPTIMAL, proven().key)
        reported += "CP-SAT: BoomError: boom" in result.message
    assert reported >= 2 * effort(12) // 3


def test_a_dead_partner_is_an_error_where_nothing_is_proven(
    monkeypatch: pytest.MonkeyPatch, loud: list[str]
) -> None:
    """Without a proof of the other one's, the status says that a solver died; the incumbent is kept."""
    monkeypatch.setattr("tilewright.solvers.mapping.solve.method", lambda _name: Portfolio(0.0))
    mapping = proven().answer
    assert mapping is not None

    def idle(_self: Branch, _search: LayerSearch) -> Outcome:
        await_partner()
        return Outcome(False, "idle")

    monkeypatch.setattr(Branch, "solve", idle)
    limits = Counted(looks=[0, 3], victim="cpsat")
    result = solve(problem(), "auto", limits, warm_starts=[mapping])
    assert (result.status, result.key) == (Status.ERROR, proven().key)
    assert result.message == "idle; CP-SAT: BoomError: boom"


def test_the_share_of_an_opening_ends_the_opening_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time for perfect factors is over before their tables are filled, the search goes on."""
    monkeypatch.setattr(large_problems, "SHARE", 1e-9)
    monkeypatch.setattr(branch, "is_large", lambda stated: not stated.space.nest.perfect)
    monkeypatch.setattr("tilewright.solvers.mapping.solve.is_large", lambda stated: True)
    result = solve(problem(), "branch", Limits(seconds=60))
    assert (result.status, result.key) == (Status.OPTIMAL, proven().key)


def test_tables_are_filled_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks give the values of all rows at once, and a limit is looked at before every node of each."""
    whole = problem_tables(problem())
    monkeypatch.setattr(columns, "BLOCK", 5)
    limits = Counted()
    parts = problem_tables(problem(), limits)
    for whole_table, other in zip(whole.tables, parts.tables, strict=True):
        assert whole_table.values.keys() == other.values.keys()
        assert all(
            np.array_equal(whole_table.values[node], other.values[node]) for node in whole_table.values
        )
    blocks = sum(-(-len(table) // 5) * len(table.values) for table in whole.tables)
    assert limits.looks[0] >= blocks > 100


@pytest.mark.parametrize("name", ["exhaustive", "dmazerunner", "kapla", "annealing", "branch", "cpsat"])
def test_a_short_limit_on_a_large_layer(name: str) -> None:
    """With tens of thousands of tile sizes per dimension, a limit strikes in the tables and is kept."""
    layer = parse_layer("conv:N=1,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3")[1]
    stated = layer_problem(layer, load_engine("eyeriss-168"), parse_objective("edp"))
    method(name)  # loading a solver's library takes seconds on a busy machine
    limits = Limits(seconds=0.3)
    result = solve(stated, name, limits)
    assert limits.elapsed < 0.3 + delay()
    assert result.status in (Status.UNKNOWN, Status.FEASIBLE)
