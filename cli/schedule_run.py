"""The work of ``tilewright schedule``: load, compute costs, search, report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli.clock import call
from tilewright.cli.console import error_line, show, write
from tilewright.cli.exits import Exit
from tilewright.cli.progress import make_progress
from tilewright.cli.progress_lines import Task
from tilewright.cli.saving import SavedFile
from tilewright.cli.schedule_search import ScheduleRun
from tilewright.cli.signals import graceful_stop
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.search import ScheduleResult
from tilewright.formulation.search import Limits
from tilewright.hardware.system import System
from tilewright.hardware.system_file import load_system
from tilewright.report.files import check_writable, json_text
from tilewright.report.schedule_document import (
    ScheduleDocument,
    ScheduleSettingsRecord,
    objective_name,
    schedule_document,
)
from tilewright.report.schedule_tables import schedule_views
from tilewright.solvers.scheduling.build import METRIC_OF
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
    report: Path | None
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
    check_files(request.out, request.report)
    check_plots(request.gantt, request.occupancy)
    system = load_system(request.system)
    workload = resolve_workload(request.workload)
    settings = ScheduleSettingsRecord(
        method=request.method, metric=metric, time_limit_s=request.time_limit, gap=request.gap,
        threads=request.threads, seed=request.seed,
    )  # fmt: skip
    with graceful_stop() as stop, ExitStack() as stack:
        limits = Limits(request.time_limit, request.gap, request.threads, request.seed, stop=stop,
                        started=call.limit_from(request.time_limit))  # fmt: skip
        progress = make_progress(
            parse_objective(objective_name(objective)), stack, quiet=request.quiet, verbose=request.verbose,
            log=request.log,
        )  # fmt: skip
        progress.head(
            f"{workload.name} on {system.name}, objective {objective}, {workload.layer_count()} layers"
        )
        progress.task(Task(1, 1, workload.name, "costs of layers"))

        def told(point: TracePoint) -> None:
            progress.point(point)
            saved.changed()

        scheduler = method(request.method)
        run = ScheduleRun(workload, system, objective, metric, scheduler, limits, told, progress.phase)

        def document_of(result: ScheduleResult, *, complete: bool) -> ScheduleDocument:
            return schedule_document(workload, system, run.problem, result, settings, complete=complete)

        saved = SavedFile(request.out, lambda: json_text(document_of(run.so_far(), complete=False).to_data()))
        result = run.run()
        document = document_of(result, complete=True)
        saved.end(json_text(document.to_data()))
        if request.form == "json":
            write(json_text(document.to_data()))
        else:
            show(*schedule_views(document, call.elapsed))
    _draw(request, run.problem, result, system)
    if request.report is not None:
        from tilewright.report.html.schedule import write_schedule_report

        write_schedule_report(request.report, document)
    if saved.failure is not None:
        error_line(saved.failure)
        return Exit.ERROR
    return exit_code(document.status, document.schedule is not None, request.require_optimal)


def exit_code(status: str, solved: bool, require_optimal: bool) -> Exit:
    """The exit code of a search with that status, which has a schedule or none."""
    if not solved:
        codes = {"infeasible": Exit.INFEASIBLE, "interrupted": Exit.INTERRUPTED, "error": Exit.ERROR}
        return codes.get(status, Exit.LIMIT)
    return Exit.NOT_OPTIMAL if require_optimal and status != "optimal" else Exit.OK


def check_files(out: Path | None, report: Path | None) -> None:
    """Raise ``InputError`` for a document or a report that could not be written."""
    if out is not None:
        check_writable(out)
    if report is not None:
        from tilewright.report.html.page import check_report

        check_report(report)


def check_plots(*paths: Path | None) -> None:
    """Raise ``InputError`` for a picture of an unknown kind or one that could not be drawn or written."""
    for path in paths:
        if path is None:
            continue
        check_writable(path)
        if path.suffix.lower() not in (".png", ".svg"):
            raise InputError(str(path), None, "expected a file that ends in .png or .svg")
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise InputError(str(path), None, "drawing needs matplotlib, install tilewright[plots]") from None


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
