"""Computing one run of a contest.  Runs in worker processes, here or on a cluster."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache

from tilewright.api.scheduling.stated import prepare_planning, searched_plan
from tilewright.benchmarks.arena.contest import Clock, ContestProblem
from tilewright.benchmarks.arena.document import kept_run
from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer
from tilewright.benchmarks.work import answering, failed, reported
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.pool import Work
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.tiled.document import inputs_hash, plan_metrics
from tilewright.report.records.scheduling.tiled.plan import PlanRecord
from tilewright.workloads.catalog import resolve_model

_SMALL = "conv:K=64,C=64,P=14,Q=14,R=3,S=3,pad=1"
_LOADING = 120.0
"""Seconds that loading may take."""


@answering
def answer(task: BenchmarkTask) -> CellAnswer:
    """Search for a plan, and report it as plain data."""
    stated = ContestProblem.model_validate_json(task.problem)
    if stated.hashed != task.input_hash:
        return failed("the worker states another problem than the plan")
    problem = stated.problem.build(stated.objective, "cell")
    prepare(task.method)
    clock = time.monotonic if stated.clock == "wall" else time.process_time
    limits = Limits(task.seconds, threads=task.threads, seed=task.seed, clock=clock)
    return _reported(task, stated, problem, limits)


_BUSY = 900.0
"""Seconds beyond twice its limit after which a run is ended that counts its processor's seconds."""

RUNS: dict[Clock, Work[BenchmarkTask, CellAnswer]] = {
    "wall": Work(answer, failed, names=lambda task: (task.method,)),
    "cpu": Work(answer, failed, _BUSY, names=lambda task: (task.method,)),
}
"""How workers compute the runs of a contest, by its clock."""


@cache
def prepare(method: str) -> None:
    """Compile and load what the method needs before the clock starts, with a search for a first plan."""
    prepare_planning(method)
    machine = load_tiled_machine("atomic-2x2")
    small = TiledProblem(resolve_model(_SMALL, 1), machine, tiled_objective("makespan"))
    searched_plan(small, method, Limits(seconds=_LOADING, gap=1.0))


def _reported(
    task: BenchmarkTask, stated: ContestProblem, problem: TiledProblem, limits: Limits
) -> CellAnswer:
    result, space = searched_plan(problem, task.method, limits)
    metrics = plan = None
    if result.answer is not None and result.evaluation is not None:
        metrics = plan_metrics(problem, result.answer, result.evaluation).model_dump()
        closed = result.answer.closed_form
        metrics["closed_form"] = None if closed is None else number(closed)
        metrics["space"] = space
        plan = PlanRecord.of(result.answer)
    answer = reported(result, tiled_objective(stated.objective), metrics)
    asked = inputs_hash(stated.problem, stated.objective)
    return replace(answer, evidence=kept_run(task, answer, asked, stated.clock, plan).model_dump_json())
