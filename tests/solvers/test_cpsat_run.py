"""The one way to run CP-SAT: its parameters, its self-test, and what a release that fails it may claim."""

from __future__ import annotations

import ast
import os
import signal
import threading
from importlib.metadata import version
from pathlib import Path

import pytest
from effort import effort
from ortools.sat.python import cp_model

import tilewright
from tilewright.cli import doctor
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers import cpsat_run
from tilewright.solvers.cpsat_probe import SHOWING, fault, probe
from tilewright.solvers.cpsat_run import CpSatRun, release_fault
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

ROOT = Path(tilewright.__file__).parent
WRONG = "9.15.6755"
"""A release that certifies wrong optima with its parameters as they are by default."""


MAKERS = ("CpSolver", "SolveWrapper", "cp_model_helper")


def makers(text: str) -> list[str]:
    """Names of solvers that a source makes or takes by another name."""
    if not any(name in text for name in MAKERS):
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            found.append(ast.unparse(node.func).rpartition(".")[2])
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += [alias.name.rpartition(".")[2] for alias in node.names]
        elif isinstance(node, ast.Assign | ast.keyword) and node.value is not None:
            found.append(ast.unparse(node.value).rpartition(".")[2])
    return [name for name in found if name in MAKERS]


def test_one_module_makes_solvers() -> None:
    """No source of the package but `cpsat_run` makes a `CpSolver`, imports one by name or keeps its class."""
    sources = sources_of(ROOT)
    assert len(sources) > 400
    making = {path.relative_to(ROOT).as_posix() for path in sources if makers(path.read_text())}
    assert making == {"solvers/cpsat_run.py"}


def sources_of(root: Path) -> list[Path]:
    """All Python files, those behind linked folders too."""
    return [
        Path(folder, name)
        for folder, _, names in os.walk(root, followlinks=True)
        for name in names
        if name.endswith(".py")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "solver = cp_model.CpSolver()",
        "from ortools.sat.python.cp_model import CpSolver",
        "Solver = cp_model.CpSolver",
        "field(default_factory=cp_model.CpSolver)",
        "import ortools.sat.python.cp_model_helper",
    ],
)
def test_reading_sees_who_makes_solvers(text: str) -> None:
    """Each way to come by a solver is seen; a type in a signature is none."""
    assert makers(text)
    assert not makers("def placed(solver: cp_model.CpSolver) -> None: ...")


def test_every_run_has_the_parameters_that_make_it_right() -> None:
    """Presolve leaves inclusions out, signals are not caught, gaps are closed; whatever the run is asked."""
    for brief in (False, True):
        run = CpSatRun(probe(0).model, Limits(), lambda: False, brief=brief, effort=1.0)
        parameters = run.solver.parameters
        assert parameters.presolve_inclusion_work_limit == 0
        assert not parameters.catch_sigint_signal
        assert parameters.relative_gap_limit == parameters.absolute_gap_limit == 0


def test_a_run_leaves_the_handling_of_signals_alone() -> None:
    """After a solve Ctrl-C still belongs to whoever handled it before."""
    before = signal.getsignal(signal.SIGINT)
    CpSatRun(probe(0).model, Limits(), lambda: False).solve()
    caught = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: caught.set())
    try:
        os.kill(os.getpid(), signal.SIGINT)
        assert caught.wait(5)
    finally:
        signal.signal(signal.SIGINT, before)


def wrong_by_default(seed: int) -> bool:
    """Whether a solver as it is made by default certifies another optimum than there is."""
    asked, solver = probe(seed), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(asked.model)
    return bool(status != cp_model.OPTIMAL or solver.value(asked.objective) != asked.least)


@pytest.mark.skipif(version("ortools") != WRONG, reason="another release")
def test_the_self_test_shows_what_is_wrong() -> None:
    """By default this release is wrong on each model of the self-test, which it therefore fails."""
    assert all(map(wrong_by_default, SHOWING))
    assert fault(cp_model.CpSolver).startswith(f"OR-Tools {WRONG} fails its self-test")
    assert sum(map(wrong_by_default, range(effort(200)))) > 10


def test_the_self_test_passes() -> None:
    """With the parameters of all runs the installed release is right."""
    assert release_fault() == ""


def test_runs_are_right_on_models_of_that_kind() -> None:
    """The optimum of many such models is the least of all assignments, and less is found infeasible."""
    for seed in range(100, 100 + effort(60)):
        for workers in (1, 2):
            asked = probe(seed)
            run = CpSatRun(asked.model, Limits(), lambda: False, workers=workers)
            assert run.solve() == cp_model.OPTIMAL
            assert run.solver.value(asked.objective) == asked.least == run.bound
        for bound, status in ((asked.least, cp_model.OPTIMAL), (asked.least - 1, cp_model.INFEASIBLE)):
            again = probe(seed)
            again.model.clear_objective()
            again.model.add(again.objective <= bound)
            assert CpSatRun(again.model, Limits(threads=1), lambda: False).solve() == status


FAULT = "OR-Tools 0.0 fails its self-test: what it says is taken for no proof"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that fails its self-test."""
    monkeypatch.setattr(cpsat_run, "release_fault", lambda: FAULT)


@pytest.mark.usefixtures("failing")
def test_a_failing_release_proves_nothing() -> None:
    """The mapping that CP-SAT finds stays feasible, with a bound of others, and the message says why."""
    operator = parse_layer("gemm:M=16,N=16,K=16")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    result = solve(problem, "cpsat", Limits(20, threads=1))
    assert (result.status, result.message) == ("feasible", FAULT)
    assert result.answer is not None
    assert result.bound is None or result.key is not None and result.bound < result.key


@pytest.mark.usefixtures("failing")
def test_doctor_tells_of_a_failing_release() -> None:
    """The solvers need attention, and the reason is told."""
    assert doctor._solvers() == (False, FAULT)
