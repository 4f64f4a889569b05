"""Layers of a network share the time of a call; what some leave goes to those that are open."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult, LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import two_orders
from tilewright.solvers.mapping.networks import network_search
from tilewright.solvers.mapping.networks.network_problem import NetworkProblem, network_problem
from tilewright.solvers.mapping.networks.network_search import LayerAnswer, search_network
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tables.shared_tables import SharedTables
from tilewright.solvers.mapping.tree.layout import LegalTables
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.selection import SelectedLayer


def network(*sizes: int) -> NetworkProblem:
    layers = []
    for index, size in enumerate(sizes):
        operator = parse_layer(f"gemm:M={size},N=2,K=2")[1]
        layers.append(SelectedLayer(operator, (f"layer{index}",)))
    return network_problem(layers, load_engine("eyeriss-168"), parse_objective("edp"))


@dataclass
class Clock:
    """Time that passes only where a search takes it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Slow:
    """A search that takes so many seconds per layer until its proof; it has half of its bound before."""

    clock: Clock
    needs: list[float]
    first: float = 0.0
    reported: list[tuple[int, float]] = field(default_factory=list)

    def __call__(
        self,
        state: Any,
        solver: str,
        limits: Limits,
        starts: Any,
        observer: Any,
        tracebacks: bool,
        earlier: Any,
    ) -> tuple[LayerResult, Any]:
        problem = state()
        index = problem.operator.bounds["M"] - 3
        share = limits.remaining
        assert share is not None
        spent = 0.0 if earlier is None else earlier.wall_seconds  # a search that goes on is no shorter
        need = max(self.needs[index] - spent, 0.0)
        self.reported.append((index, share))
        search = LayerSearch(problem, limits, observer.point)
        if earlier is not None:
            search.resume(earlier)
            assert search.bound == earlier.bound
        best = solve(problem)
        assert best.answer is not None
        assert best.key is not None
        if need > share:
            self.clock.now += share
            if self.needs[index] * self.first < spent + share:
                search.raise_bound(best.key / 2, "slow")
                search.offer(best.answer, "slow")
            return search.result(solver, "1"), problem
        self.clock.now += need
        search.offer(best.answer, "slow")
        search.raise_bound(best.key, "slow")
        return search.result(solver, "1"), problem


def searched(
    monkeypatch: pytest.MonkeyPatch, seconds: float, needs: list[float], first: float = 0.0
) -> tuple[list[LayerAnswer], Slow, Clock]:
    clock = Clock()
    slow = Slow(clock, needs, first)
    monkeypatch.setattr(network_search, "_search", slow)
    monkeypatch.setattr(network_search, "_prepare", lambda *_: None)
    limits = Limits(seconds=seconds, threads=1, clock=clock)
    problem = network(*range(3, 3 + len(needs)))
    return list(search_network(problem, limits=limits)), slow, clock


def last(answers: list[LayerAnswer]) -> dict[int, LayerAnswer]:
    return {answer.index: answer for answer in answers}


def test_time_that_others_leave_goes_to_the_open_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow first layer is proven with the time that quick ones have not used, from its bound on."""
    answers, slow, clock = searched(monkeypatch, 60, [30, 1, 1, 1])
    assert [answer.index for answer in answers] == [0, 1, 2, 3, 0]
    assert answers[0].result.status is Status.FEASIBLE
    assert answers[0].is_open
    assert slow.reported[0] == (0, 12)
    assert {index: answer.result.status for index, answer in last(answers).items()} == dict.fromkeys(
        range(4), Status.OPTIMAL
    )
    assert clock.now == 33
    trace = last(answers)[0].result.trace
    assert trace[: len(answers[0].result.trace)] == answers[0].result.trace
    assert [point.seconds for point in trace] == sorted(point.seconds for point in trace)


def test_open_layers_use_all_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be proven is searched until the limit, and no bound is lost on the way."""
    answers, slow, clock = searched(monkeypatch, 60, [1000, 1, 1000, 1])
    assert clock.now == pytest.approx(60, abs=0.1)
    answers_by_layer = last(answers)
    assert [answers_by_layer[index].result.status for index in range(4)] == [
        Status.FEASIBLE,
        Status.OPTIMAL,
        Status.FEASIBLE,
        Status.OPTIMAL,
    ]
    for index in (0, 2):
        bounds = [answer.result.bound for answer in answers if answer.index == index]
        assert all(bound is not None for bound in bounds)
    assert sum(share for index, share in slow.reported if index == 0) > 15


def test_every_layer_has_a_mapping_though_its_search_found_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer whose search has found nothing comes first in the time that is left, and has some mapping."""
    answers, slow, _ = searched(monkeypatch, 20, [1000, 1, 1000, 1], first=0.5)
    assert all(answer.result.answer is not None for answer in answers)
    sources = [answer.result.trace[0].source for answer in answers if answer.index == 0]
    assert set(sources) == {"greedy"}
    statuses = {index: answer.result.status for index, answer in last(answers).items()}
    assert statuses[0] is Status.FEASIBLE
    assert last(answers)[0].result.bound is None
    assert slow.reported[-1][0] in (0, 2)


def test_a_search_goes_on_only_from_one_of_its_own_problem() -> None:
    """An earlier result of another layer is refused."""
    stated = network(3, 4)
    first, other = (state() for state in stated.states)
    with pytest.raises(ValueError, match="same problem"):
        LayerSearch(first, Limits()).resume(solve(other))


@pytest.mark.parametrize("threads", [1, 2])
def test_layers_that_share_tables_are_searched_as_alone(threads: int) -> None:
    """Layers with dimensions as long as others' have the mappings, and the nodes, that they have alone."""
    texts = [
        "gemm:M=48,N=36,K=40",
        "gemm:M=48,N=40,K=40",
        "conv:K=36,C=40,P=7,Q=7,R=3,S=3",
        "gemm:M=7,N=36,K=40",
    ]
    layers = [SelectedLayer(parse_layer(text)[1], (text,)) for text in texts]
    stated = network_problem(layers, load_engine("nvdla-256"), parse_objective("edp"))
    limits = Limits(seconds=60, threads=threads)
    for answer, state in zip(search_network(stated, limits=limits), stated.states, strict=True):
        alone = solve(state(), limits=Limits(seconds=60, threads=1))
        together = answer.result
        assert (together.key, together.answer) == (alone.key, alone.answer)
        assert [method.nodes for method in together.effort.methods] == [
            method.nodes for method in alone.effort.methods
        ]


def test_rows_of_perfect_factors_are_shared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers share tables of perfect factors, and are searched as alone: with the same mappings and nodes."""
    texts = ["gemm:M=48,N=36,K=40", "gemm:M=48,N=40,K=40"]
    layers = [SelectedLayer(parse_layer(text)[1], (text,)) for text in texts]
    stated = network_problem(layers, load_engine("nvdla-256"), parse_objective("edp"))
    problems = [state() for state in stated.states]
    few = max(problem.with_perfect_factors().space.rows for problem in problems)
    assert all(problem.space.rows > few for problem in problems)
    monkeypatch.setattr(two_orders, "_SOON", few)
    monkeypatch.setattr(two_orders, "_SHORT", math.inf)
    asked: list[tuple[bool, object]] = []

    def legal_tables(problem: LayerProblem, limits: Limits, shared: SharedTables | None) -> LegalTables:
        asked.append((problem.space.rows <= few, shared))
        return LegalTables(problem, limits, shared)

    monkeypatch.setattr(two_orders, "LegalTables", legal_tables)
    together = list(search_network(stated, limits=Limits(seconds=60, threads=1)))
    assert [is_perfect for is_perfect, _ in asked] == [True, False] * 2
    assert len({id(shared) for _, shared in asked}) == 1
    assert asked[0][1] is not None
    for answer, problem in zip(together, problems, strict=True):
        alone = solve(problem, limits=Limits(seconds=60, threads=1))
        assert (answer.result.key, answer.result.answer) == (alone.key, alone.answer)
        assert [method.nodes for method in answer.result.effort.methods] == [
            method.nodes for method in alone.effort.methods
        ]


def test_a_single_layer_is_searched_once() -> None:
    """One layer has all of the time, and comes once."""
    answers = list(search_network(network(5), limits=Limits(seconds=20, threads=1)))
    assert [answer.index for answer in answers] == [0]
    assert answers[0].result.status is Status.OPTIMAL


def test_no_search_begins_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that come after the limit are not even stated, so a network of many ends with its limit."""
    begun: list[Any] = []
    monkeypatch.setattr(network_search, "layer_run", lambda *args: begun.append(args))
    ticks = itertools.count(10.0, 0.001)  # time goes on between two readings
    limits = Limits(seconds=1, threads=1, started=0.0, clock=lambda: next(ticks))
    answers = list(search_network(network(3, 4, 5), limits=limits))
    assert [answer.result.status for answer in answers] == [Status.UNKNOWN] * 3
    assert all("before the search began" in answer.result.message for answer in answers)
    assert not begun


@pytest.mark.parametrize(("seconds", "copies"), [(None, True), (60.0, True), (1.0, False)])
def test_short_shares_are_not_tried_in_copies(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None, copies: bool
) -> None:
    """A layer that a copy of the process gives up would have lost a part of a share as short as that."""
    asked = []

    def quick_answers(tasks: Sequence[Any], *_rest: Any) -> Iterator[Any]:
        asked.append(len(tasks))
        return iter(())

    monkeypatch.setattr(network_search, "quick_answers", quick_answers)
    problem = network(*range(3, 9))
    assert len(list(search_network(problem, limits=Limits(seconds=seconds, threads=2)))) >= 6
    assert asked == ([6] if copies else [])


def test_copies_wait_for_a_layer_of_middle_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the largest, which all others would wait for, nor for one that says nothing of the rest."""
    alone: list[int] = []

    def quick_answers(tasks: Sequence[Any], workers: int, stopped: Any, place: int) -> Iterator[Any]:
        alone.append(place)
        return iter(())

    monkeypatch.setattr(network_search, "quick_answers", quick_answers)
    list(search_network(network(30, 3, 9, 8, 20, 4, 5), limits=Limits(threads=2)))
    assert alone == [3]


@pytest.mark.parametrize(("solver", "seconds"), [("auto", 0.5), ("auto", 0.1), ("kapla", 0.5)])
def test_every_layer_has_a_mapping_before_any_is_searched(
    solver: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares are moments, and no search finds anything in them: exact methods have mappings all the same."""
    searched_layers: list[int] = []

    def finds_nothing(state: Any, solver: str, limits: Limits, *rest: Any) -> tuple[LayerResult, Any]:
        problem = state()
        searched_layers.append(problem.operator.bounds["M"])
        search = LayerSearch(problem, limits)
        if rest[-1] is not None:
            search.resume(rest[-1])
        clock.now += seconds
        return search.result(solver, "1"), problem

    monkeypatch.setattr(network_search, "_search", finds_nothing)
    clock = Clock()
    limits = Limits(seconds=seconds, threads=1, clock=clock)
    answers = [*search_network(network(12, 24, 30), solver, limits)]
    known = last(answers)
    assert len(known) == 3
    assert searched_layers[:1] == [12]
    found = [answer.result.key is not None for answer in known.values()]
    assert all(found) if solver == "auto" else not any(found[1:])
    if solver == "auto":
        assert [answer.index for answer in answers][:3] == [0, 1, 2]
        assert all(0 < (known[index].result.bound or 0) <= known[index].result.key for index in known)
