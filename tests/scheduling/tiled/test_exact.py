"""Exact round plans: what is proven, the space, limits, interrupts and refusals."""

from __future__ import annotations

import json
import random
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from clocks import delay
from studies.tiled_graphs import SmallGraph, block, machine_of, rows_of_layers
from studies.tiled_proofs import proven
from tiled_plans import random_plan, random_problem

from tilewright.cli.main import run
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin, Status
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledResult, TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.heuristics.scheduling.tiled.movements import movements_of
from tilewright.solvers.scheduling.tiled.exact.annealing import annealed_together, changed
from tilewright.solvers.scheduling.tiled.exact.incumbent import coarse_sizes, quick_plans
from tilewright.solvers.scheduling.tiled.exact.order import OrderModel
from tilewright.solvers.scheduling.tiled.exact.proof import RoundProof
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, as_round_plan
from tilewright.solvers.scheduling.tiled.running import plan_run


def solved(problem: TiledProblem, method: str, limits: Limits) -> TiledResult:
    """What the method comes to when it is run as users run it."""
    return plan_run(lambda: problem, method, limits).run()


def graph(layers: int, width: int, *, free: bool) -> SmallGraph:
    return rows_of_layers(layers, width, machine_of("atomic-2x2", free=free))


@pytest.mark.parametrize(("layers", "width", "free"), [(10, 4, True), (10, 4, False), (4, 6, True)])
def test_layers_of_equal_width_are_proven(layers: int, width: int, free: bool) -> None:
    """40 atoms at width 4, with hops and links too, and 24 at width 6: the bound meets the evaluated plan."""
    case = graph(layers, width, free=free)
    search = proven(case, 60, threads=1)
    assert search.proven
    assert search.answer is not None
    assert search.key == case.problem.evaluate(case.dag, search.answer.plan).cycles
    assert RoundSpace(case.problem, case.dag).outside(search.answer) is None


@pytest.mark.parametrize(
    ("name", "cycles"),
    [pytest.param("residual block", 21_611, marks=pytest.mark.slow), ("bottleneck", 34_090)],
)
def test_blocks_are_proven_with_hops_and_links(name: str, cycles: int) -> None:
    """Blocks of ResNet on the machine as it is; the whole statement alone comes to the same cycles."""
    search = proven(block(name, machine_of("atomic-2x2", free=False), 24), 60, threads=1)
    assert search.proven
    assert search.key == cycles


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inception 3a", "inception 4a"])
def test_inception_cells_are_proven(name: str) -> None:
    """Cells of GoogLeNet of 21 atoms, on a network that costs nothing."""
    assert proven(block(name, machine_of("atomic-2x2", free=True), 21), 60).proven


def test_round_plans_of_heuristic_ones_are_legal_and_inside() -> None:
    """Whatever completion makes becomes a round plan that the evaluator accepts; other plans lie outside."""
    seen: set[str] = set()
    for seed in range(12):
        problem, dag = random_problem(random.Random(seed), "atomic-8x8[engines=3x2]")
        plan = random_plan(random.Random(seed), problem, dag)
        space = RoundSpace(problem, dag, plan.steps)
        moved = as_round_plan(dag, plan, problem.machine.engines)
        problem.evaluate(dag, moved)
        assert space.outside(AtomicPlan(dag, moved)) is None
        seen.add(str(space.outside(AtomicPlan(dag, plan))))
        assert space.judge(AtomicPlan(dag, plan)).outside == space.outside(AtomicPlan(dag, plan))
    assert "a transfer takes several steps" in seen


def test_other_atoms_lie_outside() -> None:
    """A plan of other atoms is kept beside the claim and never touches it."""
    case = graph(2, 3, free=True)
    other = case.problem.dag([AtomSize(6, 16, 64, 64)] * 2)
    space = RoundSpace(case.problem, case.dag)
    plan = random_plan(random.Random(0), case.problem, other)
    search: TiledSearch = TiledSearch(space, Limits())
    assert search.offer(AtomicPlan(other, plan), "test") is None
    assert search.key is None
    assert search.out_of_space is not None
    assert search.out_of_space.reason == "it has other atoms"


def test_buffers_too_small_are_proven_infeasible() -> None:
    """Where a result stands in the way of the next atom and no step may be idle, there is no round plan."""
    case = graph(2, 2, free=True)
    engine = case.problem.machine.engine
    small = case.problem.machine.changed(
        width=1,
        height=1,
        dram_ports=((0, 0),),
        engine=replace(engine, buffer_bytes=int(case.dag.needs.max())),
    )
    problem = TiledProblem(case.problem.network, small, tiled_objective("makespan"))
    dag = problem.dag(list(case.dag.tilings))
    for idle, status in ((0, Status.INFEASIBLE), (2, Status.OPTIMAL)):
        space = RoundSpace(problem, dag, idle)
        search: TiledSearch = TiledSearch(space, Limits(30, threads=1))
        outcome = RoundProof(search, space).run()
        result = search.result("exact", "", outcome.exhausted, outcome.message, outcome.error)
        assert result.status is status
        if status is Status.INFEASIBLE:
            assert "buffers are too small" in result.message


@pytest.mark.parametrize("seconds", [0.01, 0.5])
def test_a_limit_in_the_middle_keeps_what_was_found(seconds: float) -> None:
    """Whenever the limit strikes, the run ends in time, without an error and with a valid bound."""
    case = graph(6, 6, free=False)
    begun = time.monotonic()
    result = solved(case.problem, "exact[sizes=coarse]", Limits(seconds, threads=1))
    assert time.monotonic() - begun < seconds + delay()
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN, Status.OPTIMAL), result.message
    if result.key is not None and result.bound is not None:
        assert result.bound <= result.key


def test_an_interrupt_returns_the_plan() -> None:
    """Set while it searches, the stop ends it within two seconds with its plan."""
    case = graph(5, 6, free=False)
    search: TiledSearch = TiledSearch(RoundSpace(case.problem, case.dag), Limits(60, threads=1))
    threading.Timer(1.0, search.limits.stop.set).start()
    space = search.problem
    assert isinstance(space, RoundSpace)
    plan = random_plan(random.Random(0), case.problem, case.dag)
    search.offer(AtomicPlan(case.dag, as_round_plan(case.dag, plan, 4)), "test")
    begun = time.monotonic()
    RoundProof(search, space).run()
    assert time.monotonic() - begun < 1.0 + delay()
    assert search.result("exact", "").status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert search.answer is not None


def test_a_stop_while_a_model_is_stated_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found and proven before stands, and the space is named."""
    case = graph(5, 6, free=False)
    space = RoundSpace(case.problem, case.dag)
    search: TiledSearch = TiledSearch(space, Limits(60, threads=1))
    plan = random_plan(random.Random(0), case.problem, case.dag)
    search.offer(AtomicPlan(case.dag, as_round_plan(case.dag, plan, 4)), "test")
    starts = OrderModel._starts

    def stopped(model: OrderModel) -> None:
        search.limits.stop.set()
        starts(model)

    monkeypatch.setattr(OrderModel, "_starts", stopped)
    outcome = RoundProof(search, space).run()
    assert outcome.message == space.space
    result = search.result("exact", "", outcome.exhausted, outcome.message, outcome.error)
    assert result.status is Status.INTERRUPTED
    assert result.key is not None
    assert result.bound is not None


def test_the_same_seed_gives_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reproducible runs agree in value, bound and the steps of all atoms."""
    monkeypatch.setattr("tilewright.solvers.scheduling.tiled.exact.effort.TRIALS", 40)
    case = graph(2, 6, free=True)
    answers = []
    for _ in range(2):
        space = RoundSpace(case.problem, case.dag)
        search: TiledSearch = TiledSearch(space, Limits(60, threads=1, seed=3, deterministic=True))
        RoundProof(search, space).run()
        assert search.answer is not None
        plan = search.answer.plan
        answers.append((search.key, search.bound, plan.engine.tolist(), plan.first.tolist()))
    assert answers[0] == answers[1]
    assert answers[0][0] == answers[0][1]


def test_what_is_not_stated_is_refused_by_name() -> None:
    """Too many atoms and other objectives are named; both keep a plan and a valid bound."""
    case = graph(3, 4, free=False)
    many = solved(case.problem, "exact[atoms=2]", Limits(90, threads=1))
    assert many.status is Status.FEASIBLE
    assert "exact states up to 2 atoms" in many.message
    assert many.bound is not None
    other = replace(case.problem, objective=tiled_objective("ed2p"))
    squared = solved(other, "exact", Limits(20))
    assert squared.status is Status.FEASIBLE
    assert "exact states makespan, energy and EDP alone" in squared.message
    assert squared.bound is not None


def test_coarse_sizes_keep_to_the_number_of_atoms() -> None:
    """Sizes get coarser until the atoms are few enough; every atom fits its buffer."""
    case = graph(4, 6, free=False)
    for most in (40, 16, 4):
        dag = case.problem.dag(coarse_sizes(case.problem, most))
        assert dag.tasks <= most
        assert dag.needs.max() <= case.problem.machine.engine.buffer_bytes


def test_a_document_names_its_space_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The document of a proven plan says over what; checking it fails where the space is another."""
    monkeypatch.chdir(tmp_path)
    Path("model.yaml").write_text("- conv:N=1,K=32,C=16,P=8,Q=8,R=3,S=3,name=first\n")
    call = ["schedule", "model.yaml", "--system", "atomic-2x2", "--method", "exact[sizes=coarse]"]
    assert run([*call, "--time-limit", "30", "--require-optimal", "-q", "--out", "plan.json"]) == 0
    assert run(["check", "plan.json"]) == 0
    data = json.loads(Path("plan.json").read_text())
    assert data["status"] == "optimal"
    assert data["space"].startswith("round plans of")
    Path("wrong.json").write_text(json.dumps({**data, "space": "all plans"}))
    assert run(["check", "wrong.json"]) == 5
    assert "space" in capsys.readouterr().out


def test_a_plan_to_begin_with_gives_its_atoms() -> None:
    """A round plan that is given is proven in its own atoms; any other is kept, and nothing is claimed."""
    case = graph(2, 3, free=True)
    plan = random_plan(random.Random(1), case.problem, case.dag)
    for given, proved in ((as_round_plan(case.dag, plan, 4), True), (plan, False)):
        answer = AtomicPlan(case.dag, given)
        if not proved and RoundSpace(case.problem, case.dag, plan.steps).outside(answer) is None:
            continue
        limits = Limits(30, threads=1)
        result = plan_run(lambda: case.problem, "exact", limits, warm=answer).run()
        assert (result.status is Status.OPTIMAL) == proved, result.message
        assert result.answer is not None
        assert result.answer.dag.tilings == case.dag.tilings


def test_annealing_judges_round_plans_and_finds_better_ones() -> None:
    """Changes of order, places and transfers keep a legal plan in the space, and some are faster."""
    case, chance = graph(3, 5, free=False), random.Random(0)
    space = RoundSpace(case.problem, case.dag)
    plans = [*quick_plans(case.dag, case.problem.machine)]
    first = max(plans, key=lambda plan: case.problem.evaluate(case.dag, plan).cycles)
    movements = movements_of(case.dag, case.problem.machine, first, 1)
    assert movements is not None
    orders, begun = set(), case.problem.evaluate(case.dag, first).cycles
    for _ in range(100):
        other = changed(movements, chance, space.key)
        plan = None if other is None else other.plan()
        if other is None or plan is None:
            continue
        with suppress(IllegalPlanError):
            case.problem.evaluate(case.dag, plan)
            assert space.outside(AtomicPlan(case.dag, plan)) is None
            orders.add((plan.engine.tobytes(), plan.first.tobytes()))
            movements = other
    assert len(orders) > 20
    search: TiledSearch = TiledSearch(space, Limits(60, threads=1, deterministic=True))
    given = AtomicPlan(case.dag, first)
    search.offer(given, "heuristics", Origin.HEURISTIC)
    annealed_together(search, given, 1.0, 0, trials=10)
    assert search.key is not None
    assert search.key < begun
    assert {point.source for point in search.trace} == {"heuristics", "annealing"}
