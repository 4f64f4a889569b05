"""MIP through PuLP: agreement with enumeration, the process apart, limits, a dead worker, wrong releases."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from clocks import delay
from effort import effort
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerMethod, LayerResult, LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status
from tilewright.formulation.stopping import Running, Stop
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.exhaustive import Exhaustive
from tilewright.solvers.mapping.mip import Cbc, Highs, worker
from tilewright.solvers.mapping.mip.child import WORKER, Child, ChildError
from tilewright.solvers.mapping.mip.decision import evaluated
from tilewright.solvers.mapping.mip.envelope import Envelope
from tilewright.solvers.mapping.mip.forms import ONE, Monomials
from tilewright.solvers.mapping.mip.search import MipSearch
from tilewright.solvers.mapping.mip.subproblem_model import SubproblemModel
from tilewright.solvers.mapping.mip.subproblems import subproblems_of
from tilewright.solvers.mapping.presolve.intervals import whole_space
from tilewright.solvers.running import run_method
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operators import conv2d

EITHER = pytest.mark.parametrize(
    "solver", ["highs", pytest.param("cbc", marks=pytest.mark.slow)], indirect=True
)
"""For tests of what both share: how the worker process is run and stopped."""

LAYERS = {
    "conv5_1": ("conv:N=4,K=512,C=256,H=14,W=14,R=3,S=3,stride=2,pad=1", 1469657784),
    "conv5_2": ("conv:N=4,K=512,C=512,H=7,W=7,R=3,S=3,stride=1,pad=1", 2581195121),
}


def cbc_missing() -> str:
    """Why there is no CBC, or nothing: PuLP 3 brings it along, PuLP 4 does not."""
    with Child("cbc", lambda: False) as child:
        try:
            child.ready()
        except ChildError as failure:
            return str(failure)
    return ""


@pytest.fixture(scope="module", params=["highs", "cbc"])
def solver(request: pytest.FixtureRequest) -> LayerMethod:
    if request.param == "highs":
        return Highs()
    reason = cbc_missing()
    if reason:
        pytest.skip(reason)
    return Cbc()


@pytest.fixture(scope="module")
def highs() -> Highs:
    return Highs()


@pytest.fixture
def short_dive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The MIP begins early; how good its first cutoff is does not matter."""
    monkeypatch.setattr("tilewright.solvers.mapping.mip.search.DIVE", 0.3)


def run(engine: LayerMethod, problem: LayerProblem, limits: Limits | None = None) -> LayerResult:
    search = LayerSearch(problem, limits or Limits(seconds=120))
    return run_method(search, engine, engine.name)


def layer(name: str, objective: str = "energy") -> LayerProblem:
    operator = parse_layer(LAYERS[name][0])[1]
    return layer_problem(operator, load_engine("dmazerunner-256"), parse_objective(objective))


def agrees(engine: LayerMethod, instance: Instance) -> None:
    problem = instance.problem()
    expected, result = run(Exhaustive(), problem), run(engine, problem)
    assert (result.status, result.key) == (expected.status, expected.key), result.message
    assert expected.key is None or result.bound == expected.bound


@pytest.mark.parametrize("model", ["hierarchy", "dmazerunner"])
def test_agrees_with_enumeration(solver: LayerMethod, model: str) -> None:
    """Value, bound and status are those of the oracle, whatever the objective and the constraints."""

    @settings(max_examples=effort(4), deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(instances(model, most=16, largest=1_500, constrained=True))
    def check(instance: Instance) -> None:
        agrees(solver, instance)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["hierarchy", "dmazerunner"])
def test_agrees_with_enumeration_at_length(solver: LayerMethod, model: str) -> None:
    """The same on many and larger instances."""

    @settings(max_examples=effort(150), deadline=None, database=None, phases=[Phase.generate])
    @given(instances(model, largest=20_000, constrained=True))
    def check(instance: Instance) -> None:
        agrees(solver, instance)

    check()


@pytest.mark.parametrize(
    ("solver", "name"),
    [
        *(
            pytest.param(solver, name, marks=pytest.mark.slow)
            for solver, name in (
                ("highs", "conv5_1"),
                ("cbc", "conv5_1"),
                ("highs", "conv5_2"),
                ("cbc", "conv5_2"),
            )
        )
    ],
    indirect=["solver"],
)
def test_proves_published_layers(solver: LayerMethod, name: str) -> None:
    """The energy optimum of dMazeRunner's layers in exact numbers, with bounds that never fall."""
    result = run(solver, layer(name))
    assert result.status is Status.OPTIMAL
    assert isinstance(result.key, Fraction)
    assert result.key == LAYERS[name][1]
    assert result.evaluation is not None
    assert result.key == result.evaluation.energy
    bounds = [point.bound for point in result.trace if point.bound is not None]
    assert len(bounds) > 1
    assert bounds == sorted(bounds)


def test_begins_with_a_warm_start(highs: Highs) -> None:
    """A mapping that the search begins with is the first incumbent, and no worse one is offered."""
    operator = conv2d(n=1, k=4, c=8, p=4, q=2, r=3, s=1)
    problem = layer_problem(operator, load_engine("dmazerunner-256"), parse_objective("energy"))
    best = run(Branch(), problem)
    assert best.answer is not None
    search = LayerSearch(problem, Limits(seconds=60))
    search.offer(best.answer, "warm start", origin=Origin.HEURISTIC)
    again = run_method(search, highs, "highs")
    assert again.status is Status.OPTIMAL
    assert again.key == best.key
    assert [point.source for point in again.trace if point.improved] == ["warm start"]


@pytest.mark.usefixtures("short_dive")
@pytest.mark.parametrize("seconds", [1.0, pytest.param(3.0, marks=pytest.mark.slow)])
@EITHER
def test_keeps_the_time_limit(solver: LayerMethod, seconds: float) -> None:
    """The limit covers everything, and what was found and proven until then is kept."""
    problem = layer("conv5_2", "cycles")
    began = time.monotonic()
    result = run(solver, problem, Limits(seconds=seconds))
    assert time.monotonic() - began < seconds + delay()
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN, Status.OPTIMAL)
    if result.bound is not None and result.key is not None:
        assert result.bound <= result.key


@pytest.mark.usefixtures("short_dive")
@EITHER
def test_stops_within_a_second(solver: LayerMethod) -> None:
    """The stop event ends a running solve; the incumbent stays."""
    limits = Limits(seconds=60)
    timer = threading.Timer(1.0, limits.stop.set)
    timer.start()
    result = run(solver, layer("conv5_2", "cycles"), limits)
    assert result.wall_seconds < 1 + delay()
    assert result.status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert result.answer is not None


@pytest.mark.usefixtures("short_dive")
@EITHER
def test_ends_where_a_condition_looks_at_the_search(
    solver: LayerMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition on answers or bounds ends the search as time does: no model is solved after it holds."""
    asked = [0]
    honest = Child.solve

    def counted(child: Child, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        asked[0] += 1
        return honest(child, request)

    class Asked(Stop):
        def holds(self, elapsed: float, search: Running | None) -> bool:
            return search is not None and asked[0] >= 2

    monkeypatch.setattr(Child, "solve", counted)
    result = run(solver, layer("conv5_2", "cycles"), Limits(seconds=60).stopping(Asked()))
    assert asked[0] == 2
    assert result.status is Status.FEASIBLE


class Watched(Child):
    """A worker whose process is remembered."""

    started: ClassVar[list[int]] = []

    def __init__(
        self, solver: str, expired: Callable[[], bool], command: Sequence[str] | None = None
    ) -> None:
        super().__init__(solver, expired, command)
        self.started.append(self.pid)


class Doomed(Watched):
    """A worker that is killed at the first MIP."""

    def solve(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not request["relaxed"]:
            os.kill(self.pid, signal.SIGKILL)
        return super().solve(request)


def running(group: int) -> bool:
    """Whether some process of a group has not ended; one that waits to be reaped has."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, member, *_ = entry.read_text().rpartition(")")[2].split()
            if int(member) == group and state != "Z":
                return True
    return False


def gone(group: int) -> bool:
    """Whether no process of a group is left, after waiting for it."""
    end = time.monotonic() + 5 + delay()
    while running(group):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.usefixtures("short_dive")
@EITHER
def test_a_killed_worker_is_an_error_with_the_findings_kept(
    solver: LayerMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kill -9` of the child: status error, the incumbent and the bound found before, nothing left over."""
    Watched.started.clear()
    monkeypatch.setattr("tilewright.solvers.mapping.mip.solver.Child", Doomed)
    result = run(solver, layer("conv5_2", "cycles"))
    assert result.status is Status.ERROR
    assert "ended by signal 9" in result.message
    assert result.answer is not None
    assert result.bound is not None
    assert result.key is not None
    assert 0 < result.bound <= result.key
    assert gone(Watched.started[0])


@pytest.mark.usefixtures("short_dive")
@EITHER
def test_leaves_no_process_behind(solver: LayerMethod, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a limit the worker and what it started have ended."""
    Watched.started.clear()
    monkeypatch.setattr("tilewright.solvers.mapping.mip.solver.Child", Watched)
    run(solver, layer("conv5_2", "cycles"), Limits(seconds=1.5))
    assert gone(Watched.started[0])


ORPHAN = """
import sys, time
from tilewright.solvers.mapping.mip.child import Child
child = Child(sys.argv[1], lambda: False)
child.ready()
print(child.pid, flush=True)
time.sleep(100)
"""


def test_ends_with_its_parent(solver: LayerMethod) -> None:
    """A worker whose parent is killed ends too."""
    command = [sys.executable, "-c", ORPHAN, solver.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        parent.kill()
    assert gone(group)


@EITHER
def test_ctrl_c_returns_the_incumbent(solver: LayerMethod) -> None:
    """Ctrl-C during a MIP: the mapping found so far, exit code 0, no process left in the group."""
    command = [
        sys.executable,
        "-m",
        "tilewright",
        "map",
        LAYERS["conv5_2"][0],
        "--arch",
        "dmazerunner-256",
        "--objective",
        "cycles",
        "--solver",
        solver.name,
        "--format",
        "json",
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if solver.name in line and "bound" not in line:
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    (record,) = json.loads(output)["layers"]
    assert process.returncode == 0
    assert record["status"] in ("interrupted", "optimal")
    assert record["mapping"] is not None


def test_a_worker_that_hangs_is_left_behind(tmp_path: Path) -> None:
    """A child that answers nothing cannot hold up the search."""
    script = tmp_path / "fake.py"
    script.write_text("import time\ntime.sleep(100)\n")
    result = run(Highs((sys.executable, str(script))), layer("conv5_2"), Limits(seconds=2))
    assert result.wall_seconds < 15 + delay()
    assert result.status is Status.FEASIBLE
    assert result.bound is not None


def test_a_missing_solver_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PuLP was removed the message gives the one command that brings it back."""
    monkeypatch.setattr("tilewright.solvers.mapping.mip.solver.find_spec", lambda _name: None)
    result = run(Highs(), layer("conv5_1"))
    assert result.status is Status.ERROR
    assert result.message == "solver highs is not installed: pip install 'pulp>=3.3,<4' 'highspy>=1.15.1'"


def test_worker_loads_neither_ortools_nor_tilewright() -> None:
    """The worker is run by path, so that HiGHS and OR-Tools never meet in one process."""
    code = f"import runpy, sys; runpy.run_path({str(WORKER)!r}, run_name='worker'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"ortools", "tilewright"} & set(loaded.split())


@pytest.fixture
def child(highs: Highs) -> Iterator[Child]:
    with Child(highs.name, lambda: False) as child:
        yield child


def test_catches_releases_that_return_wrong_optima(child: Child) -> None:
    """min 2x + 3z with x + z >= 4.5 and z whole is 9; highspy 1.14.0 says 15."""
    model = {
        "lower": [0, 0],
        "upper": [50, 50],
        "integer": [1],
        "objective": [[0, 2.0], [1, 3.0]],
        "rows": [[[0, 1], [1.0, 1.0], 4.5, None]],
        "start": None,
    }
    *_, result = child.solve({"model": model, "seconds": 10.0, "threads": 1, "seed": 0})
    assert result["status"] == "optimal"
    assert result["bound"] == pytest.approx(9)


@pytest.mark.parametrize("model", ["hierarchy", "dmazerunner"])
def test_no_decision_is_cut_off(model: str) -> None:
    """Every legal decision satisfies all rows, with an objective that is not above its key.

    So it stays after lines through another decision were added, and, if it is better, after that one and
    all that is no better around it were excluded.
    """

    @settings(
        max_examples=effort(15), deadline=None, derandomize=True, database=None, phases=[Phase.generate]
    )
    @given(instances(model, most=16, largest=1_500, constrained=True), st.integers(0, 2**32 - 1))
    def check(instance: Instance, seed: int) -> None:
        problem = instance.problem()
        tables = MipSearch(LayerSearch(problem, Limits()), None, "test").tables  # type: ignore[arg-type]
        random = np.random.default_rng(seed)
        for subproblem in subproblems_of(problem, tables, whole_space(problem, tables), None, Limits())[:4]:
            model = SubproblemModel(problem, tables, subproblem, None)
            seen = []
            for _ in range(12):
                rows = tuple(int(random.choice(open_rows)) for open_rows in model.rows)
                choices = tuple(int(random.choice(values)) for values in model.options.values())
                seen.append(evaluated(problem, tables, rows, choices))
            for step in range(2):
                for decision in seen:
                    if not decision.legal or (step and decision.key >= seen[0].key):
                        continue
                    point = model.point(decision)
                    assert point is not None
                    data = model.relaxation.data(point)
                    assert worker.meets(data, data["start"])
                    cost = model.relaxation.objective_at(data["start"])
                    assert model.key_bound(cost - model.relaxation.objective.constant) <= decision.key
                model.touch(seen[0])
                model.exclude(seen[0], seen[0].key)

    check()


def test_a_known_solution_disproves_false_claims() -> None:
    """`infeasible`, or a bound above a solution that the solver was given, cannot pass."""
    model = {
        "lower": [0, 0],
        "upper": [50, 50],
        "integer": [1],
        "objective": [[0, 2.0], [1, 3.0]],
        "rows": [[[0, 1], [1.0, 1.0], 4.5, None]],
    }
    for start, status, bound, wrong in (
        ([4.5, 0.0], "infeasible", None, True),
        ([4.5, 0.0], "optimal", 15.0, True),
        ([4.5, 0.0], "optimal", 9.0, False),
        ([4.5, 0.0], "stopped", None, False),
        ([4.0, 0.0], "infeasible", None, False),
        (None, "infeasible", None, False),
    ):
        assert worker.contradicts(model, start, {"status": status, "bound": bound}) is wrong


@given(
    st.lists(
        st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 100]), min_size=2, max_size=6).filter(any),
        min_size=2,
        max_size=3,
    ),
    st.integers(1, 2000),
)
def test_lines_lie_below_all_products(tables: list[list[int]], cap: int) -> None:
    """No line cuts off a value that occurs, and the one asked for at a value reaches it."""
    factors = [np.array(table, dtype=np.float64) for table in tables]
    envelope = Envelope(factors, float(cap))
    lines = envelope.initial(8)
    for place in np.ndindex(*(len(factor) for factor in factors)):
        parts = [factor[i] for factor, i in zip(factors, place, strict=True)]
        value = float(np.prod(parts)) / envelope.scale
        log = sum(float(logs[i]) for logs, i in zip(envelope.logs, place, strict=True))
        here = envelope.at(log)
        for line in [*lines, here]:
            zeros = sum(w for w, part in zip(line.weights, parts, strict=True) if part == 0)
            height = line.slope * log + line.offset - zeros
            assert height <= value + 1e-9 * (1 + value)
            if line is here and all(parts) and value <= 1:
                assert height == pytest.approx(value, abs=1e-6)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=3, max_size=3),
        min_size=1,
        max_size=3,
    )
)
def test_differences_of_products_telescope(pairs: list[list[tuple[int, int]]]) -> None:
    """Where one product exceeds another factor by factor, their difference subtracts nothing."""
    monomials = Monomials([3] * len(pairs))
    above = {axis: np.array([float(p + q) for p, q in rows]) for axis, rows in enumerate(pairs)}
    below = {axis: np.array([float(q) for _, q in rows]) for axis, rows in enumerate(pairs)}
    forms = []
    for tables in (above, below):
        form = monomials.table(0, np.ones(3))
        for axis, values in tables.items():
            form = monomials.times(form, monomials.table(axis, values))
        forms.append(form)
    difference = monomials.telescoped(monomials.add([(1.0, forms[0]), (-1.0, forms[1])]))
    assert difference.positive
    for place in np.ndindex(*([3] * len(pairs))):
        value = difference.terms.get(ONE, 0.0)
        for monomial, coefficient in difference.terms.items():
            if monomial != ONE:
                parts = monomials.by_axis(monomial)
                value += coefficient * float(np.prod([values[place[axis]] for axis, values in parts.items()]))
        expected = np.prod([above[axis][i] for axis, i in enumerate(place)])
        expected -= np.prod([below[axis][i] for axis, i in enumerate(place)])
        assert value == pytest.approx(float(expected))
