"""The work of ``tilewright codesign``."""

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
from tilewright.cli.schedule_run import check_files, check_plots, exit_code, resolve_workload
from tilewright.cli.schedule_search import GRACE, LEFT_BEHIND, WITHOUT_COSTS
from tilewright.cli.signals import graceful_stop
from tilewright.cli.watched import Watched
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.problem import ScheduleObjective
from tilewright.formulation.search import Limits
from tilewright.hardware.classes import accelerator_class
from tilewright.hardware.dataflows import CLOCK_MHZ, dataflow
from tilewright.report.files import json_text
from tilewright.report.schedule_document import (
    CodesignDocument,
    ScheduleSettingsRecord,
    codesign_document,
    objective_name,
)
from tilewright.report.schedule_tables import codesign_views
from tilewright.solvers.scheduling.build import METRIC_OF
from tilewright.solvers.scheduling.costs import OutOfTimeError
from tilewright.solvers.scheduling.partition import PartitionOutcome, PartitionSearch


@dataclass(frozen=True)
class CodesignRequest:
    """The command line of ``codesign``, read."""

    workload: str
    accelerator_class: str
    dataflows: tuple[str, ...]
    objective: str
    metric: str | None
    search: str
    time_limit: float | None
    gap: float
    threads: int
    seed: int
    require_optimal: bool
    form: str
    out: Path | None
    scatter: Path | None
    report: Path | None
    log: Path | None
    quiet: bool
    verbose: bool


def run_codesign(request: CodesignRequest) -> int:
    """Carry out a request; returns the exit code."""
    objective = ScheduleObjective(request.objective)
    check_files(request.out, request.report)
    check_plots(request.scatter)
    resources = accelerator_class(request.accelerator_class)
    flows = [dataflow(name).name for name in request.dataflows]
    workload = resolve_workload(request.workload)
    settings = ScheduleSettingsRecord(
        method="cpsat", metric=request.metric or METRIC_OF[objective], time_limit_s=request.time_limit,
        gap=request.gap, threads=request.threads, seed=request.seed,
    )  # fmt: skip
    with graceful_stop() as stop, ExitStack() as stack:
        limits = Limits(request.time_limit, request.gap, request.threads, request.seed, stop=stop,
                        started=call.limit_from(request.time_limit))  # fmt: skip
        progress = make_progress(
            parse_objective(objective_name(objective)), stack, quiet=request.quiet, verbose=request.verbose,
            log=request.log,
        )  # fmt: skip
        progress.head(f"{workload.name}, class {resources.name}, {' + '.join(flows)}, objective {objective}")
        progress.task(Task(1, 1, workload.name, "costs of layers"))

        def told(point: TracePoint) -> None:
            if not watched.abandoned:
                progress.point(point)
                saved.changed()

        search = PartitionSearch(
            workload, resources, flows, objective, limits, request.search, request.metric,
            told=told, note=progress.phase,
        )  # fmt: skip

        def document_of(outcome: PartitionOutcome, *, complete: bool) -> CodesignDocument:
            return codesign_document(
                workload, resources.name, flows, request.search, outcome, settings, complete=complete
            )

        saved = SavedFile(
            request.out, lambda: json_text(document_of(search.outcome(), complete=False).to_data())
        )
        watched = Watched(search.run, limits, grace=GRACE)
        watched.run()
        if watched.failure is not None and not isinstance(watched.failure, OutOfTimeError):
            raise watched.failure
        message = LEFT_BEHIND if watched.abandoned and not stop.is_set() else ""
        outcome = search.outcome(WITHOUT_COSTS if isinstance(watched.failure, OutOfTimeError) else message)
        document = document_of(outcome, complete=True)
        saved.end(json_text(document.to_data()))
        if request.form == "json":
            write(json_text(document.to_data()))
        else:
            show(*codesign_views(document, call.elapsed))
    if request.scatter is not None and document.points:
        from tilewright.report.plots.partitions import draw_partitions

        draw_partitions(document, float(1 / (CLOCK_MHZ * 1000)), request.scatter)
    if request.report is not None:
        from tilewright.report.html.schedule import write_codesign_report

        write_codesign_report(request.report, document)
    if saved.failure is not None:
        error_line(saved.failure)
        return Exit.ERROR
    return exit_code(document.status, document.best is not None, request.require_optimal)
