"""Limits of searches for plans strike inside long passes and decide how fine atoms are; what searches need is
compiled before."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clocks import delay
from tiled_plans import random_network, random_plan, random_problem

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.foundation.compiled import CompiledFunction
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import baselines, coarsening
from tilewright.heuristics.scheduling.tiled.coarsening import (
    ATOMS_PER_SECOND,
    FEWEST,
    MOST_ATOMS,
    affordable,
    workable,
)
from tilewright.heuristics.scheduling.tiled.layouts import method as layouts_method
from tilewright.heuristics.scheduling.tiled.layouts.elimination import least_choice
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.rounds import RoundOrder
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.heuristics.scheduling.tiled.smoothing import smoothed
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.streams import shares
from tilewright.solvers.compiling import Kernels
from tilewright.solvers.scheduling.tiled import auto, running
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.solvers.scheduling.tiled.plan_kernels import ATOMS, PLANS
from tilewright.solvers.scheduling.tiled.running import ALL_SIZES, plan_run
from tilewright.solvers.scheduling.tiled.tree_kernels import TREES
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Network

PAPER = "atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]"


def test_a_limit_strikes_inside_every_stage() -> None:
    """What is of no use in part raises; smoothing stops where it is, with a legal plan."""
    problem, dag = random_problem(random.Random(1), "atomic-2x2")
    machine, over = problem.machine, Limits(0.0)
    engine, step = layer_sequential(dag, machine)
    for stage in (
        lambda: balanced_sizes(problem, limits=over),
        lambda: problem.dag(dag.tilings, over),
        lambda: list_order(dag, machine, limits=over),
        lambda: place(dag, machine, step, "matching", over),
        lambda: RoundOrder(dag, machine.engines).steps(over),
        lambda: complete(dag, machine, engine, step, limits=over),
    ):
        with pytest.raises(LimitReachedError):
            stage()
    reads = np.bincount(dag.unit, np.diff(dag.read_starts)).astype(int)
    most = (
        rf"{len(dag.unit):,} atoms in buffers of .* read {len(dag.reads):,} blocks, {reads.max():,} of them"
    )
    with pytest.raises(LimitReachedError, match=f"{most} for {dag.units[reads.argmax()].name}"):
        complete(dag, machine, engine, step, limits=over)
    plan = random_plan(random.Random(2), problem, dag)
    assert (
        problem.evaluate(dag, smoothed(dag, machine, plan, limits=over)).cycles
        == problem.evaluate(dag, plan).cycles
    )


def test_atoms_are_as_many_as_the_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit and with a long one, all that fit the memory; a short one leaves coarser atoms, and
    where those in their part of a buffer are too many for a single plan, atoms fill it."""
    assert affordable(None) == affordable(Limits(None)) == affordable(Limits(3600.0)) == MOST_ATOMS
    assert affordable(Limits(0.0)) == FEWEST
    assert FEWEST < affordable(Limits(3.0)) <= 3 * ATOMS_PER_SECOND
    problem = TiledProblem(
        resolve_model("resnet18", 1), load_tiled_machine("atomic-8x8"), tiled_objective("makespan"), batch=8
    )
    given = balanced_sizes(problem)
    fine, coarse = (workable(problem, given, limits=Limits(seconds))[1] for seconds in (600.0, 1.0))
    assert coarse.tasks <= ATOMS_PER_SECOND < fine.tasks
    rough, filling = (workable(problem, given, room=room, most=1)[1].tasks for room in (0.1, 1.0))
    monkeypatch.setattr(coarsening, "ATOMS_PER_SECOND", 1)
    assert workable(problem, given, room=0.1, most=1, limits=Limits(60.0))[1].tasks == filling < rough


def test_a_limit_amid_the_second_plan_leaves_the_first_to_go_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time for atoms is up, `auto` visits neighbourhoods of the best that was planned."""
    honest, plans = Stages.planned, list[Judged]()

    def planned(self: Stages, *given: Any) -> Judged:
        if plans:
            raise LimitReachedError("amid the second plan")
        plans.append(honest(self, *given))
        return plans[0]

    monkeypatch.setattr(Stages, "planned", planned)
    monkeypatch.setattr(auto, "TREES", ())
    monkeypatch.setattr(auto, "LAYOUTS", auto._Part(0.0, 0.0, -1.0))
    machine = load_tiled_machine("atomic-2x2")
    problem = TiledProblem(resolve_model("alexnet", 1), machine, tiled_objective("edp"))
    result = plan_run(lambda: problem, "auto[steps=1]", Limits(60.0, threads=1)).run()
    assert len(plans) == 1
    assert result.key is not None
    assert result.key < plans[0][0]
    assert {point.source for point in result.trace if point.improved} >= {"auto atoms smoothing"}


def test_a_limit_amid_the_second_layouts_leaves_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layouts that have a plan stay where time is up amid the next plan; without any the limit is told."""
    honest, plans, cut = layouts_method.planned, list[Judged](), list[str]()

    def planned(stages: Stages, layouts: layouts_method.Layouts, source: str, **given: Any) -> Judged | None:
        if plans:
            cut.append(source)
            raise LimitReachedError("amid the second plan")
        judged = honest(stages, layouts, source, **given)
        assert judged is not None
        plans.append(judged)
        return judged

    monkeypatch.setattr(layouts_method, "planned", planned)
    machine = load_tiled_machine("atomic-2x2")
    problem = TiledProblem(resolve_model("alexnet", 1), machine, tiled_objective("edp"))
    search: TiledSearch = TiledSearch(TiledGoal(problem), Limits(60.0, threads=1))
    starts = layouts_method.started(search, Stages(search, "layouts"), 0.5)
    assert [start.judged for start in starts] == plans
    assert len(cut) == 1
    with pytest.raises(LimitReachedError):
        layouts_method.started(search, Stages(search, "layouts"), 0.5)


def test_bounds_follow_the_first_plan() -> None:
    """No plan waits for a bound; what listens to a view of the search is told of plans beside it."""
    machine = load_tiled_machine("atomic-2x2")
    problem = TiledProblem(resolve_model("alexnet", 1), machine, tiled_objective("edp"))
    result = plan_run(lambda: problem, "ls", Limits(60.0, threads=1)).run()
    first, *rest = result.trace
    assert first.improved
    assert first.bound is None
    assert {point.source for point in rest if not point.improved} == {ALL_SIZES}
    assert result.answer is not None
    heard: list[str] = []
    search: TiledSearch = TiledSearch(TiledGoal(problem), Limits(60.0))
    outer = search.telling(lambda key, answer: heard.append("outer"))
    outer.telling(lambda key, answer: heard.append("inner")).confirm(result.answer, "test")
    assert heard == ["outer", "inner"]


@pytest.mark.parametrize("method", ["ls", "set[shakes=5]"])
def test_a_limit_before_the_first_plan_leaves_a_bound(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that never had a plan says what none undercuts, and why there is none."""

    def struck(*given: Any, **named: Any) -> Any:
        raise LimitReachedError("amid the first plan")

    problem = TiledProblem(
        resolve_model("alexnet", 1), load_tiled_machine("atomic-2x2"), tiled_objective("edp")
    )
    planned = plan_run(lambda: problem, "ls", Limits(60.0, threads=1)).run()
    monkeypatch.setattr(running, "PER_LAYER", 1e9)
    monkeypatch.setattr(baselines, "shared_dag", struck)
    result = plan_run(lambda: problem, method, Limits(60.0, threads=1)).run()
    assert result.status is Status.UNKNOWN
    assert "amid the first plan" in result.message
    assert result.key is None
    assert planned.key is not None
    assert result.bound is not None
    assert 0 < result.bound <= planned.key


PLANNERS = ("ls", "rammer", "cnn-p", "il-pipe", PAPER, "atomic[moves=3]", "lns[steps=4,proof=0.5]")
ON_TREES = (
    "set[shakes=5]",
    "set-sa[steps=20]",
    "set-ls",
    "kapla[bands=2]",
    "chains",
    "tangram",
    "set[figures=program,rules=program,shakes=5]",
)


@pytest.mark.parametrize(
    ("kernels", "methods"),
    [((PLANS,), ("ls",)), ((PLANS, ATOMS), PLANNERS), ((PLANS, ATOMS, TREES), ON_TREES)],
    ids=["first", "plans", "trees"],
)
def test_everything_is_compiled_beforehand(
    kernels: Sequence[Kernels], methods: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls that compile meet every function, and no method needs another one or other types."""
    for kernel in kernels:
        kernel.calls()
        for entry in kernel.entries:
            assert entry.versions, entry.source.name
    new = list[str]()
    honest = CompiledFunction._version

    def noted(self: CompiledFunction, types: Any) -> Any:
        new.append(self.source.name)
        return honest(self, types)

    monkeypatch.setattr(CompiledFunction, "_version", noted)
    machine = load_tiled_machine("atomic-8x8[engines=3x2,link=8]")
    problem = TiledProblem(random_network(random.Random(3)), machine, tiled_objective("makespan"), batch=2)
    for method in methods:
        assert plan_run(lambda: problem, method, Limits(20.0)).run().answer is not None
    assert new == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["ls", "rammer", "cnn-p", "il-pipe", PAPER, "atomic", "sizes", "lns", "windows"]
)
def test_every_method_plans_pnasnet_at_batch_20(method: str) -> None:
    """A legal plan within 60 s of the processor and 8 GiB, though even the coarsest atoms are 200,000."""
    machine = load_tiled_machine("atomic-8x8[link=16]")
    problem = TiledProblem(
        resolve_model("pnasnet-5-large", 1), machine, tiled_objective("makespan"), batch=20
    )
    limits = Limits(60.0, clock=time.process_time)
    result = plan_run(lambda: problem, method, limits).run()
    assert result.status is Status.FEASIBLE, result.message
    assert limits.elapsed <= 60 + delay()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < 8 * 2**30


@pytest.mark.parametrize("method", ["set[shakes=0,longest=2]", "kapla", "set-ls"])
def test_trees_that_fit_no_buffer_leave_a_plan_of_atoms(method: str) -> None:
    """Where no tree fits, the plan is one of atoms, and the message says what does not fit."""
    machine = load_tiled_machine("atomic-2x2[buffer=64]")
    problem = TiledProblem(resolve_model("alexnet", 1), machine, tiled_objective("edp"))
    result = plan_run(lambda: problem, method, Limits(seconds=60, threads=1)).run()
    assert result.answer is not None
    assert problem.evaluate(result.answer.dag, result.answer.plan).cycles > 0
    assert "fits" in result.message
    assert not result.answer.closed_form


def test_closer_bounds_and_choices_of_layouts_end_with_the_limit() -> None:
    """Without time there is no bound that asks who reads what, and no choice of least cost."""
    problem = random_problem(random.Random(2), "atomic-2x2")[0]
    assert not [*least_keys(problem, Limits(0.0))]
    with pytest.raises(LimitReachedError):
        least_choice([np.zeros(2)], {}, limits=Limits(0.0))


def dilated() -> TiledProblem:
    """A layer whose window is dilated, for which trees have no boxes."""
    layer = Layer("dilated", conv2d(k=16, c=16, r=3, s=3, h=12, w=12, dilation=2), "test")
    machine = load_tiled_machine("atomic-2x2")
    return TiledProblem(Network("one", [layer], []), machine, tiled_objective("edp"))


@pytest.mark.parametrize(
    ("method", "why"),
    [
        *(
            (name, "its window is dilated, which trees have no boxes for")
            for name in ("set", "kapla", "cover")
        ),
        ("streams", "atoms of streams: too many for a plan in the time that is left"),
    ],
)
def test_a_method_that_is_not_for_a_network_leaves_a_plan_of_atoms(
    method: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says why; a proof of the method's own space is not claimed."""
    monkeypatch.setattr(shares, "affordable", lambda limits: 0)
    problem = dilated()
    result = plan_run(lambda: problem, method, Limits(20.0, threads=1)).run()
    assert result.answer is not None
    assert problem.evaluate(result.answer.dag, result.answer.plan).cycles > 0
    assert result.status is Status.FEASIBLE
    assert result.message.startswith("the plan is of atoms, layer by layer; ")
    assert why in result.message


def test_what_fits_no_buffer_is_refused_by_every_method() -> None:
    """No plan of atoms either: the layer, its bytes and those of the buffer are told."""
    problem = dilated()
    engine = replace(problem.machine.engine, buffer_bytes=16)
    problem = replace(problem, machine=problem.machine.changed(engine=engine))
    for method in ("set", "streams", "ls", "exact"):
        with pytest.raises(InputError, match=r"dilated: its smallest atom needs \d+ bytes, a buffer has 16"):
            plan_run(lambda: problem, method, Limits(20.0, threads=1)).run()


def test_loading_a_method_loads_no_solver() -> None:
    """What takes long to load comes when it is needed: a search under a short limit begins without."""
    code = (
        "import sys, tilewright.cli.scheduling.tiled\n"
        "from tilewright.solvers.scheduling.tiled.registry import METHODS\n"
        "METHODS.ready('auto'), METHODS.ready('set'), METHODS.ready('sizes')\n"
        "heavy = {'networkx', 'pandas', 'onnx', 'ortools.sat.python.cp_model', 'matplotlib'}\n"
        "print(*heavy & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert not run.stdout.split()
