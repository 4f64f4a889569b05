"""The work of ``tilewright schedule``: load, compute costs, search, report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.cli.scheduling.request import SchedulingRequest
from tilewright.cli.terminal.saving import SavedFile, kept
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleResult
from tilewright.hardware.scheduling.herald.system import System
from tilewright.hardware.scheduling.herald.system_file import load_system
from tilewright.report.records.files import json_text
from tilewright.report.records.scheduling.herald.document import ScheduleDocument, schedule_document
from tilewright.report.text.scheduling.herald.tables import schedule_views
from tilewright.solvers.scheduling.herald.schedule import schedule_run
from tilewright.workloads.scheduling.workload_file import resolve_workload


@dataclass(frozen=True, kw_only=True)
class ScheduleRequest(SchedulingRequest):
    """The command line of ``schedule``, read."""

    system: str
    keep_activations: bool | None
    method: str
    gantt: Path | None
    occupancy: Path | None


def run_schedule(request: ScheduleRequest) -> int:
    """Carry out a request; returns the exit code."""
    objective = request.goal
    request.check_files(request.gantt, request.occupancy)
    system = load_system(request.system)
    if request.keep_activations is not None:
        system = replace(system, keep_activations=request.keep_activations)
    workload = resolve_workload(request.workload)
    settings = request.settings(request.method)
    with graceful_stop() as stop, ExitStack() as stack:
        limits = request.limits(stop)
        head = f"{workload.name} on {system.name}, objective {objective}, {workload.layer_count()} layers"
        progress = request.progress(stack, head, workload)

        def told(point: TracePoint) -> None:
            progress.point(point)
            saved.changed()

        run = schedule_run(
            workload, system, objective, settings.metric, request.method, limits, told, progress.phase
        )

        def document_of(result: ScheduleResult, *, complete: bool) -> ScheduleDocument:
            goal = None if run.search is None else run.search.problem
            problem = None if goal is None else goal.instance
            return schedule_document(
                workload, system, problem, objective, result, settings, complete=complete
            )

        saved = SavedFile(request.out, lambda: json_text(document_of(run.so_far(), complete=False).to_data()))
        result = run.run()
        document = document_of(result, complete=True)
        request.deliver(document, saved, schedule_views)
    failures = [] if saved.failure is None else [saved.failure]
    _draw(request, None if run.search is None else run.search.problem.instance, result, system, failures)
    if request.report is not None:
        from tilewright.report.html.scheduling.herald.schedule import write_schedule_report

        with kept(failures):
            write_schedule_report(request.report, document)
    return request.exit_code(document, failures, solved=document.schedule is not None)


def _draw(
    request: ScheduleRequest,
    problem: SchedulingProblem | None,
    result: ScheduleResult,
    system: System,
    failures: list[str],
) -> None:
    if problem is None or result.answer is None or result.evaluation is None:
        return
    milliseconds = float(1 / (system.clock_mhz * 1000))
    if request.gantt is not None:
        from tilewright.report.plots.scheduling.herald.gantt import draw_gantt

        with kept(failures):
            draw_gantt(problem, result.answer, milliseconds, request.gantt)
    if request.occupancy is not None:
        from tilewright.report.plots.scheduling.herald.occupancy import draw_occupancy

        with kept(failures):
            draw_occupancy(problem, result.evaluation, milliseconds, request.occupancy)
