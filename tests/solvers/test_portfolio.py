"""The portfolio: CP-SAT beside branch and bound shares what both find, and never outlives the call."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult, LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.cpsat import CpSat
from tilewright.solvers.mapping.portfolio import Portfolio
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

LARGE = "conv:N=1,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3"


def problem(text: str = "gemm:M=6,N=8,K=6", constraints: tuple[str, ...] = ()) -> LayerProblem:
    objective = parse_objective("edp")
    return layer_problem(parse_layer(text)[1], load_engine("nvdla-256"), objective, constraints=constraints)


def together(
    monkeypatch: pytest.MonkeyPatch, stated: LayerProblem, limits: Limits | None = None, head: float = 0.0
) -> LayerResult:
    """The portfolio's answer where CP-SAT joins after ``head`` seconds."""
    monkeypatch.setattr("tilewright.solvers.mapping.solve.method", lambda _name: Portfolio(head))
    return solve(stated, "auto", limits or Limits())


def wait(_self: Branch, search: LayerSearch) -> Outcome:
    """In place of branch and bound: do nothing until somebody else is done."""
    while not search.done:
        time.sleep(0.01)
    return Outcome(False)


def test_cpsat_proves_what_branch_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its incumbent and its bound are the portfolio's, and its proof ends the search."""
    expected = solve(problem(), "branch")
    monkeypatch.setattr(Branch, "solve", wait)
    result = together(monkeypatch, problem(), Limits(seconds=120))
    assert result.status is Status.OPTIMAL
    assert result.key == expected.key
    assert "cpsat" in {point.source for point in result.trace}


def test_cpsat_proves_that_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof of infeasibility by one of them ends the other one."""
    monkeypatch.setattr(Branch, "solve", wait)
    result = together(monkeypatch, problem(constraints=("cycles<=3",)), Limits(seconds=120))
    assert result.status is Status.INFEASIBLE


def test_cpsat_sees_what_branch_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT begins with the other one's incumbent, and ends when that one has the proof."""
    seen: list[object] = []
    honest = Branch.solve

    def first(self: Branch, search: LayerSearch) -> Outcome:
        outcome = honest(self, search)
        joined.wait(60)
        return outcome

    def look(_self: CpSat, search: LayerSearch) -> Outcome:
        while search.key is None:
            time.sleep(0.01)
        seen.append(search.key)
        joined.set()
        return Outcome(False)

    joined = threading.Event()
    monkeypatch.setattr(Branch, "solve", first)
    monkeypatch.setattr(CpSat, "solve", look)
    result = together(monkeypatch, problem())
    assert result.status is Status.OPTIMAL
    assert len(seen) == 1


def test_failure_of_one_does_not_lose_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that do not fit CP-SAT are told, beside branch and bound's proof."""
    failed = threading.Event()
    honest = Branch.solve

    def fail(_self: CpSat, _search: LayerSearch) -> Outcome:
        failed.set()
        raise OverflowError("too large")

    def later(self: Branch, search: LayerSearch) -> Outcome:
        failed.wait(60)
        time.sleep(0.1)
        return honest(self, search)

    monkeypatch.setattr(Branch, "solve", later)
    monkeypatch.setattr(CpSat, "solve", fail)
    result = together(monkeypatch, problem())
    assert result.status is Status.OPTIMAL
    assert "CP-SAT: OverflowError: too large" in result.message


@pytest.mark.parametrize("limits", [Limits(deterministic=True), Limits(threads=1)])
def test_one_worker_is_branch_alone(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    """Where one thread or a reproducible trace is asked for, CP-SAT does not join."""
    monkeypatch.setattr(CpSat, "solve", lambda *_args: pytest.fail("joined"))
    result = together(monkeypatch, problem(), limits)
    assert result.status is Status.OPTIMAL


def test_nothing_runs_on_after_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CP-SAT at work on a large layer, a limit ends both; the bound is valid."""
    operator = parse_layer("conv:N=8,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3")[1]
    stated = layer_problem(operator, load_engine("eyeriss-168"), parse_objective("edp"))
    result = together(monkeypatch, stated, Limits(seconds=0.8))
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert result.key is None or result.bound is None or result.bound < result.key
    for thread in threading.enumerate():
        if thread.name in ("cpsat", "cp-sat"):
            thread.join(30)
            assert not thread.is_alive()


def test_program_ends_cleanly_with_cpsat_at_work() -> None:
    """An interpreter that ends right after the call does not crash over native code."""
    code = (
        "import time\n"
        "from tilewright.formulation.objective import parse_objective\n"
        "from tilewright.formulation.mapping.problem import layer_problem\n"
        "from tilewright.formulation.limits import Limits\n"
        "from tilewright.formulation.mapping.search import LayerSearch\n"
        "from tilewright.hardware.mapping.load import load_engine\n"
        "from tilewright.formulation.method import Outcome\n"
        "from tilewright.solvers.mapping.branch import Branch\n"
        "from tilewright.solvers.mapping.portfolio import Portfolio\n"
        "from tilewright.workloads.mapping.layer_text import parse_layer\n"
        f"layer = parse_layer({LARGE!r})[1]\n"
        "problem = layer_problem(layer, load_engine('dmazerunner-256'), parse_objective('cycles'))\n"
        "Branch.solve = lambda self, search: time.sleep(2) or Outcome(False)\n"
        "Portfolio(0.0).solve(LayerSearch(problem, Limits()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
