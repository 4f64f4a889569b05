"""The one way to run CP-SAT: its parameters, its self-test, and what a release that fails it may claim."""

from __future__ import annotations

import ast
import os
import signal
import threading
from collections.abc import Callable
from importlib.metadata import version
from itertools import product
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
from tilewright.solvers.cpsat_probe import SHOWING, Probe, fault, products, wide_rows
from tilewright.solvers.cpsat_run import CpSatRun, integer_bound, release_fault
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
    makers = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            makers.append(ast.unparse(node.func).rpartition(".")[2])
        elif isinstance(node, ast.Import | ast.ImportFrom):
            makers += [alias.name.rpartition(".")[2] for alias in node.names]
        elif isinstance(node, ast.Assign | ast.keyword) and node.value is not None:
            makers.append(ast.unparse(node.value).rpartition(".")[2])
    return [name for name in makers if name in MAKERS]


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
        run = CpSatRun(products(0).model, Limits(), lambda: False, brief=brief, effort=1.0)
        parameters = run.solver.parameters
        assert parameters.presolve_inclusion_work_limit == 0
        assert not parameters.auto_detect_greater_than_at_least_one_of
        assert not parameters.catch_sigint_signal
        assert parameters.relative_gap_limit == parameters.absolute_gap_limit == 0


def test_a_run_leaves_the_handling_of_signals_alone() -> None:
    """After a solve Ctrl-C still belongs to whoever handled it before."""
    before = signal.getsignal(signal.SIGINT)
    CpSatRun(products(0).model, Limits(), lambda: False).solve()
    caught = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: caught.set())
    try:
        os.kill(os.getpid(), signal.SIGINT)
        assert caught.wait(5)
    finally:
        signal.signal(signal.SIGINT, before)


def wrong_by_default(asked: Probe) -> bool:
    """Whether a solver as it is made by default says anything but the truth."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return not asked.is_right(solver, solver.solve(asked.model))


@pytest.mark.skipif(version("ortools") != WRONG, reason="another release")
def test_the_self_test_shows_what_is_wrong() -> None:
    """By default this release is wrong on each model of the self-test, which it therefore fails."""
    for make, seeds in SHOWING:
        assert all(wrong_by_default(make(seed)) for seed in seeds)
    assert sum(wrong_by_default(wide_rows(seed)) for seed in range(200)) > 10
    assert fault(cp_model.CpSolver).startswith(f"OR-Tools {WRONG} fails its self-test")


def half_mended(**parameters: object) -> cp_model.CpSolver:
    """A solver with some parameters."""
    solver = cp_model.CpSolver()
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    return solver


@pytest.mark.skipif(version("ortools") != WRONG, reason="another release")
def test_the_self_test_needs_both_parameters() -> None:
    """With either parameter alone the release fails."""
    assert fault(lambda: half_mended(presolve_inclusion_work_limit=0))
    assert fault(lambda: half_mended(auto_detect_greater_than_at_least_one_of=False))


def test_the_self_test_passes() -> None:
    """With the parameters of all runs the installed release is right."""
    assert release_fault() == ""


@pytest.mark.parametrize("make", [wide_rows, products])
def test_runs_are_right_on_models_of_that_kind(make: Callable[[int], Probe]) -> None:
    """Optimum and bound of many such models are the least of all assignments, and less is infeasible."""
    check_models(make, range(100, 100 + effort(80)), (1,))
    check_models(make, range(2000, 2000 + effort(15)), (2,))


@pytest.mark.slow
@pytest.mark.parametrize("make", [wide_rows, products])
def test_many_runs_are_right_on_models_of_that_kind(make: Callable[[int], Probe]) -> None:
    """The same over thousands of models, some on eight workers."""
    check_models(make, range(10_000, 10_000 + effort(3_000)), (1,))
    check_models(make, range(20_000, 20_000 + effort(200)), (2, 8))


def check_models(make: Callable[[int], Probe], seeds: range, workers: tuple[int, ...]) -> None:
    """Solve, and ask for as little and for less as a question without an objective."""
    for seed, threads in product(seeds, workers):
        asked, reported = make(seed), list[int]()
        run = CpSatRun(asked.model, Limits(threads=threads), lambda: False, None, reported.append)
        status = run.solve()
        assert asked.is_right(run.solver, status), (seed, threads)
        if asked.least is None:
            continue
        assert run.bound == asked.least, (seed, threads)
        assert max(reported, default=asked.least) <= asked.least, (seed, threads)
        for bound, answer in ((asked.least, cp_model.OPTIMAL), (asked.least - 1, cp_model.INFEASIBLE)):
            again = make(seed)
            again.model.clear_objective()
            again.model.add(again.objective <= bound)
            limits = Limits(threads=threads)
            assert CpSatRun(again.model, limits, lambda: False).solve() == answer, (seed, threads)


@pytest.mark.parametrize(
    ("bound", "largest", "least"),
    [
        (-7.0000002, 2**31, -7),
        (7.2, 2**40, 7),
        (6.9, 2**40, 7),
        (710340893064.0, 2**50, 710340893000),
        (3e18, 2**70, 3 * 10**18 - 4096),
    ],
)
def test_bounds_given_as_floats_are_lowered(bound: float, largest: int, least: int) -> None:
    """As far as the numbers of the model may have taken the float off; not at all where they are small."""
    assert integer_bound(bound, largest) == least


def test_a_run_without_time_has_the_bound_of_its_domains() -> None:
    """CP-SAT says 0 where it has none, which is no bound of what may be negative."""
    model = cp_model.CpModel()
    x = [model.new_int_var(0, 1000, "") for _ in range(3)]
    model.add_multiplication_equality(x[0], x[1:])
    model.minimize(5 - sum(x))
    run = CpSatRun(model, Limits(threads=1), lambda: False, effort=0.0)
    assert run.solve() == cp_model.UNKNOWN
    assert run.solver.best_objective_bound == 0
    assert run.bound == 5 - 3000


FAULT = "OR-Tools 0.0 fails its self-test: its answers do not count as proofs"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that fails its self-test."""
    monkeypatch.setattr(cpsat_run, "release_fault", lambda: FAULT)


@pytest.mark.usefixtures("failing")
def test_a_failing_release_proves_nothing() -> None:
    """The mapping that CP-SAT finds stays feasible, with a bound of others, and the message says why."""
    operator = parse_layer("gemm:M=8,N=16,K=8")[1]
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    result = solve(problem, "cpsat", Limits(20, threads=1))
    assert (result.status, result.message) == ("feasible", FAULT)
    assert result.answer is not None
    assert result.bound is None or (result.key is not None and result.bound < result.key)


@pytest.mark.usefixtures("failing")
def test_doctor_tells_of_a_failing_release() -> None:
    """The solvers need attention, and the reason is told."""
    assert doctor._solvers() == (False, FAULT)
