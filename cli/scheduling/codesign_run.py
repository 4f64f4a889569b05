"""The work of ``tilewright codesign``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli.scheduling.request import SearchOptions
from tilewright.cli.scheduling.schedule_run import herald_settings
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.codesign import CodesignResult
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.hardware.mapping.styles import CLOCK_MHZ, dataflow
from tilewright.hardware.scheduling.herald.classes import accelerator_class, with_steps
from tilewright.report.records.scheduling.herald.codesign import codesign_document
from tilewright.report.records.scheduling.herald.document import CodesignDocument
from tilewright.report.text.scheduling.herald.tables import codesign_views
from tilewright.solvers.scheduling.herald.codesign import CodesignRun, codesign_run
from tilewright.workloads.scheduling.workload_file import resolve_workload


@dataclass(frozen=True, kw_only=True)
class CodesignRequest:
    """The command line of ``codesign``, read.

    Parameters
    ----------
    metric : by which mappings of layers are chosen; ``None`` for that of the objective
    """

    options: SearchOptions
    workload: str
    metric: str | None
    accelerator_class: str
    dataflows: tuple[str, ...]
    search: str
    pe_step: int | None
    bandwidth_step: int | None
    scatter: Path | None


def run_codesign(request: CodesignRequest) -> int:
    """Carry out a request; returns the exit code."""
    options = request.options
    objective = ScheduleObjective(options.objective)
    options.check_files(request.scatter)
    resources = with_steps(
        accelerator_class(request.accelerator_class), request.pe_step, request.bandwidth_step
    )
    flows = [dataflow(name).name for name in request.dataflows]
    workload = resolve_workload(request.workload)
    settings = herald_settings(options, "cpsat", request.metric)
    with graceful_stop() as stop, ExitStack() as stack:
        limits = options.limits(stop)
        head = f"{workload.name}, class {resources.name}, {' + '.join(flows)}"
        progress = options.progress(stack, head, workload.name, "costs of layers")

        def begin(reported: Callable[[TracePoint], None]) -> CodesignRun:
            return codesign_run(
                workload,
                resources,
                flows,
                objective,
                limits,
                request.search,
                request.metric,
                reported=reported,
                note=progress.phase,
            )

        def document_of(run: CodesignRun, result: CodesignResult, complete: bool) -> CodesignDocument:
            return codesign_document(
                workload, resources, flows, request.search, objective, result, settings, complete=complete
            )

        done = options.carry_out(progress, begin, document_of, codesign_views)
    document = done.document
    if request.scatter is not None and document.points:
        from tilewright.report.plots.scheduling.herald.partitions import draw_partitions

        seconds = float(1 / (CLOCK_MHZ * 1_000_000))
        options.draw(done.failures, request.scatter, lambda path: draw_partitions(document, seconds, path))
    if options.report is not None:
        from tilewright.report.html.scheduling.herald.schedule import write_codesign_report

        options.draw(
            done.failures, options.report, lambda path: write_codesign_report(path, document, command.text)
        )
    return options.exit_code(document, done.failures, solved=document.best is not None)
