"""The work of ``tilewright schedule`` on sub-accelerators: load, compute costs, search, report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.cli.scheduling.request import SearchOptions
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.formulation.scheduling.herald.search import ScheduleResult
from tilewright.hardware.scheduling.herald.system_file import load_system
from tilewright.report.records.scheduling.herald.document import (
    ScheduleDocument,
    ScheduleSettingsRecord,
    schedule_document,
)
from tilewright.report.text.scheduling.herald.tables import schedule_views
from tilewright.solvers.scheduling.herald.build import METRIC_OF
from tilewright.solvers.scheduling.herald.schedule import ScheduleRun, schedule_run
from tilewright.workloads.scheduling.workload_file import resolve_workload


@dataclass(frozen=True, kw_only=True)
class ScheduleRequest:
    """The command line of ``schedule`` on sub-accelerators, read.

    Parameters
    ----------
    metric : by which mappings of layers are chosen; ``None`` for that of the objective
    """

    options: SearchOptions
    workload: str
    system: str
    metric: str | None
    keep_activations: bool | None
    method: str
    gantt: Path | None
    occupancy: Path | None


def herald_settings(options: SearchOptions, method: str, metric: str | None) -> ScheduleSettingsRecord:
    """What a document says of the search, the metric included."""
    chosen = metric or METRIC_OF[ScheduleObjective(options.objective)]
    return ScheduleSettingsRecord(**options.settings(method).model_dump(), metric=chosen)


def run_schedule(request: ScheduleRequest) -> int:
    """Carry out a request; returns the exit code."""
    options = request.options
    objective = ScheduleObjective(options.objective)
    options.check_files(request.gantt, request.occupancy)
    system = load_system(request.system)
    if request.keep_activations is not None:
        system = replace(system, keep_activations=request.keep_activations)
    workload = resolve_workload(request.workload)
    settings = herald_settings(options, request.method, request.metric)
    with graceful_stop() as stop, ExitStack() as stack:
        limits = options.limits(stop)
        head = f"{workload.name} on {system.name}, {workload.layer_count()} layers"
        progress = options.progress(stack, head, workload.name, "costs of layers")

        def begin(reported: Callable[[TracePoint], None]) -> ScheduleRun:
            return schedule_run(
                workload, system, objective, settings.metric, request.method, limits, reported, progress.phase
            )

        def document_of(run: ScheduleRun, result: ScheduleResult, complete: bool) -> ScheduleDocument:
            problem = None if run.search is None else run.search.problem.instance
            return schedule_document(
                workload, system, problem, objective, result, settings, complete=complete
            )

        done = options.carry_out(progress, begin, document_of, schedule_views)
    _draw(request, done.document, done.failures)
    if options.report is not None:
        from tilewright.report.html.scheduling.herald.schedule import write_schedule_report

        options.draw(
            done.failures,
            options.report,
            lambda path: write_schedule_report(path, done.document, command.text),
        )
    return options.exit_code(done.document, done.failures, solved=done.document.schedule is not None)


def _draw(request: ScheduleRequest, document: ScheduleDocument, failures: list[str]) -> None:
    if document.schedule is None or document.problem is None or not (request.gantt or request.occupancy):
        return
    from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
    from tilewright.report.checks.scheduling.herald.schedule import schedule_of
    from tilewright.report.plots.scheduling.herald.gantt import draw_gantt
    from tilewright.report.plots.scheduling.herald.occupancy import draw_occupancy

    problem = document.problem.build("problem")
    schedule = schedule_of(problem, document.schedule)
    evaluation = evaluate_schedule(problem, schedule)
    seconds = float(1 / (document.system.build().clock_mhz * 1_000_000))
    draw = request.options.draw
    draw(failures, request.gantt, lambda path: draw_gantt(problem, schedule, seconds, path))
    draw(failures, request.occupancy, lambda path: draw_occupancy(problem, evaluation, seconds, path))
