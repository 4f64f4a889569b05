"""The composition of problem, solver, limits and result."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import gemm


def problem() -> LayerProblem:
    return layer_problem(gemm(m=4, n=4, k=4), load_engine("dmazerunner-256"), parse_objective("edp"))


def test_solvers_by_name() -> None:
    """Every registered solver loads, is exact and tells its name and version."""
    assert {"branch", "cpsat", "exhaustive", "auto"} <= set(SOLVERS.names())
    for name in ("branch", "exhaustive"):
        solver = SOLVERS.make(name)
        assert solver.name == name
        assert solver.exact
        assert solver.version
    with pytest.raises(InputError, match="simplex"):
        SOLVERS.make("simplex")


def test_an_unknown_solver_is_one_line_with_a_hint() -> None:
    """A misspelt name is answered with the nearest one."""
    with pytest.raises(InputError, match="did you mean 'branch'") as caught:
        solve(problem(), "brunch")
    assert "\n" not in str(caught.value)


def test_a_wrong_proof_is_an_error_and_keeps_the_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that claims too high a bound is told so; its mapping stays, its bound does not."""

    def boast(self: Branch, search: LayerSearch) -> Outcome:
        outcome = honest(self, search)
        assert search.key is not None
        search.raise_bound(search.key + Fraction(1, 1000), "boast")
        return outcome

    honest = Branch.solve
    expected = solve(problem(), "branch")
    monkeypatch.setattr(Branch, "solve", boast)
    result = solve(problem(), "branch")
    assert result.status is Status.ERROR
    assert result.bound is None
    assert result.key == expected.key
    assert "claims the bound" in result.message


@pytest.mark.parametrize("failure", [MemoryError("full"), OverflowError("beyond 2**53")])
def test_a_solver_that_dies_is_an_error_with_what_was_found(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was offered before is kept, and the reason is told."""
    first = solve(problem(), "branch").answer
    assert first is not None

    def die(self: Branch, search: LayerSearch) -> Outcome:
        search.offer(first, "x")
        raise failure

    monkeypatch.setattr(Branch, "solve", die)
    result = solve(problem(), "branch")
    assert result.status is Status.ERROR
    assert result.answer == first
    assert result.message == f"{type(failure).__name__}: {failure}"


@pytest.mark.parametrize("name", ["auto", "branch", "exhaustive", "cpsat", "highs", "cbc"])
def test_nothing_is_claimed_where_the_evaluator_refuses_a_legal_mapping(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that passed over it would call the next best mapping optimal."""
    if name in ("highs", "cbc"):
        pytest.importorskip("pulp")
    stated = problem()
    best = solve(stated, "branch").key
    evaluate = LayerProblem.evaluate

    def refuse(self: LayerProblem, mapping: Mapping, where: str = "mapping") -> Evaluation:
        evaluation = evaluate(self, mapping, where)
        return replace(evaluation, violations=("refused",)) if self.key_of(evaluation) == best else evaluation

    monkeypatch.setattr(LayerProblem, "evaluate", refuse)
    result = solve(stated, name)
    assert result.status is Status.ERROR
    assert "rejects" in result.message


def test_every_step_is_heard() -> None:
    """The listener gets the trace as it grows."""
    heard: list[TracePoint] = []
    result = solve(problem(), "branch", listener=heard.append)
    assert tuple(heard) == result.trace
    assert heard[-1].key == heard[-1].bound == result.key


@pytest.mark.parametrize("name", ["auto", "branch", "cpsat", "exhaustive"])
def test_time_that_does_not_suffice_for_the_tables(name: str) -> None:
    """A limit that strikes before anything is known leaves nothing, and is no error."""
    result = solve(problem(), name, Limits(seconds=0.0))
    assert result.status is Status.UNKNOWN
    assert result.answer is None
    assert result.bound is None
    assert "limit" in result.message
