"""The work of ``tilewright schedule``: load, compute costs, search, report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli.clock import call
from tilewright.cli.console import show, write
from tilewright.cli.exits import Exit
from tilewright.cli.progress import Task, make_progress
from tilewright.cli.signals import graceful_stop
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.search import ScheduleResult, ScheduleSearch
from tilewright.formulation.search import Limits
from tilewright.hardware.system import System
from tilewright.hardware.system_file import load_system
from tilewright.report.files import check_writable, json_text, write_atomic
from tilewright.report.schedule_document import (
    ScheduleDocument,
    ScheduleSettingsRecord,
    objective_name,
    schedule_document,
)
from tilewright.report.schedule_tables import schedule_views
from tilewright.solvers.scheduling.build import METRIC_OF, schedule_problem
from tilewright.solvers.scheduling.costs import OutOfTimeError
from tilewright.solvers.scheduling.registry import method
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.errors import InputError, did_you_mean
from tilewright.workloads.workload import Part, Workload
from tilewright.workloads.workload_file import is_workload, list_workloads, load_workload
from tilewright.workloads.yaml_file import read_yaml


@dataclass(frozen=True)
class ScheduleRequest:
    """The command line of ``schedule``, read."""

    workload: str
    system: str
    objective: str
    metric: str | None
    method: str
    time_limit: float | None
    gap: float
    threads: int
    seed: int
    require_optimal: bool
    form: str
    out: Path | None
    gantt: Path | None
    occupancy: Path | None
    log: Path | None
    quiet: bool
    verbose: bool


def resolve_workload(text: str) -> Workload:
    """A workload by name or file, or a model as a workload of its own.

    Raises ``InputError`` for anything else, with the nearest name.
    """
    if text in list_workloads():
        return load_workload(text)
    path = Path(text)
    if path.suffix.lower() in (".yaml", ".yml") and path.is_file() and is_workload(read_yaml(path)):
        return load_workload(text)
    try:
        network = resolve_model(text)
    except InputError as error:
        nearest = did_you_mean(text, list_workloads())
        if nearest:
            raise InputError(text, None, f"no such workload or model{nearest}") from None
        raise error
    return Workload(network.name, (Part(network.name, network),))


def run_schedule(request: ScheduleRequest) -> int:
    """Carry out a request; returns the exit code."""
    objective = ScheduleObjective(request.objective)
    metric = request.metric or METRIC_OF[objective]
    for path in (request.out, request.gantt, request.occupancy):
        if path is not None:
            check_writable(path)
    check_plots(request.gantt, request.occupancy)
    system = load_system(request.system)
    workload = resolve_workload(request.workload)
    settings = ScheduleSettingsRecord(
        method=request.method, metric=metric, time_limit_s=request.time_limit, gap=request.gap,
        threads=request.threads, seed=request.seed,
    )  # fmt: skip
    with graceful_stop() as stop, ExitStack() as stack:
        limits = Limits(request.time_limit, request.gap, request.threads, request.seed, stop=stop,
                        started=call.moment)  # fmt: skip
        progress = make_progress(
            parse_objective(objective_name(objective)), stack, quiet=request.quiet, verbose=request.verbose,
            log=request.log,
        )  # fmt: skip
        progress.head(
            f"{workload.name} on {system.name}, objective {objective}, {workload.layer_count()} layers"
        )
        progress.task(Task(1, 1, workload.name, "costs of layers"))
        problem: SchedulingProblem | None = None
        scheduler = method(request.method)
        try:
            problem = schedule_problem(workload, system, metric, limits)
        except OutOfTimeError:
            result = _without_costs(objective, limits, request.method)
        else:
            progress.phase(f"{request.method} on {len(problem.tasks)} layers")
            search = ScheduleSearch(problem, objective, limits, progress.point)
            message = scheduler.solve(search)
            result = search.result(
                request.method, scheduler.version, infeasible=bool(message), message=message
            )
    document = schedule_document(workload, system, problem, result, settings)
    text = json_text(document.to_data())
    if request.out is not None:
        write_atomic(request.out, text)
    _draw(request, problem, result, system)
    if request.form == "json":
        write(text)
    else:
        show(*schedule_views(document, call.elapsed))
    return exit_code(document, request.require_optimal)


def exit_code(document: ScheduleDocument, require_optimal: bool) -> Exit:
    """The exit code of one search."""
    if document.schedule is None:
        codes = {"infeasible": Exit.INFEASIBLE, "interrupted": Exit.INTERRUPTED, "error": Exit.ERROR}
        return codes.get(document.status, Exit.LIMIT)
    return Exit.NOT_OPTIMAL if require_optimal and document.status != "optimal" else Exit.OK


def check_plots(*paths: Path | None) -> None:
    """Raise ``InputError`` for a picture of an unknown kind, or without matplotlib."""
    for path in paths:
        if path is None:
            continue
        if path.suffix.lower() not in (".png", ".svg"):
            raise InputError(str(path), None, "expected a file that ends in .png or .svg")
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise InputError(str(path), None, "drawing needs matplotlib, install tilewright[plots]") from None


def _without_costs(objective: ScheduleObjective, limits: Limits, name: str) -> ScheduleResult:
    stopped = limits.stop.is_set()
    return ScheduleResult(
        status=Status.INTERRUPTED if stopped else Status.UNKNOWN, schedule=None, evaluation=None,
        objective=objective, value=None, bound=None, trace=(), method=name, version="", seed=limits.seed,
        wall_seconds=limits.elapsed, input_hash="",
        message="stopped while costs of layers were computed; those that are known are kept",
    )  # fmt: skip


def _draw(
    request: ScheduleRequest, problem: SchedulingProblem | None, result: ScheduleResult, system: System
) -> None:
    if problem is None or result.schedule is None or result.evaluation is None:
        return
    milliseconds = float(1 / (system.clock_mhz * 1000))
    if request.gantt is not None:
        from tilewright.report.plots.gantt import draw_gantt

        draw_gantt(problem, result.schedule, milliseconds, request.gantt)
    if request.occupancy is not None:
        from tilewright.report.plots.occupancy import draw_occupancy

        draw_occupancy(problem, result.evaluation, milliseconds, request.occupancy)
