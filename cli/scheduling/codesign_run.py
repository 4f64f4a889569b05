"""The work of ``tilewright codesign``."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli.scheduling.request import SchedulingRequest
from tilewright.cli.terminal.saving import SavedFile, kept
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.codesign import CodesignResult
from tilewright.hardware.mapping.styles import CLOCK_MHZ, dataflow
from tilewright.hardware.scheduling.herald.classes import accelerator_class, with_steps
from tilewright.report.records.files import json_text
from tilewright.report.records.scheduling.herald.codesign import codesign_document
from tilewright.report.records.scheduling.herald.document import CodesignDocument
from tilewright.report.text.scheduling.herald.tables import codesign_views
from tilewright.solvers.scheduling.herald.codesign import codesign_run
from tilewright.workloads.scheduling.workload_file import resolve_workload


@dataclass(frozen=True, kw_only=True)
class CodesignRequest(SchedulingRequest):
    """The command line of ``codesign``, read."""

    accelerator_class: str
    dataflows: tuple[str, ...]
    search: str
    pe_step: int | None
    bandwidth_step: int | None
    scatter: Path | None


def run_codesign(request: CodesignRequest) -> int:
    """Carry out a request; returns the exit code."""
    objective = request.goal
    request.check_files(request.scatter)
    resources = with_steps(
        accelerator_class(request.accelerator_class), request.pe_step, request.bandwidth_step
    )
    flows = [dataflow(name).name for name in request.dataflows]
    workload = resolve_workload(request.workload)
    settings = request.settings("cpsat")
    with graceful_stop() as stop, ExitStack() as stack:
        limits = request.limits(stop)
        head = f"{workload.name}, class {resources.name}, {' + '.join(flows)}, objective {objective}"
        progress = request.progress(stack, head, workload)

        def told(point: TracePoint) -> None:
            progress.point(point)
            saved.changed()

        run = codesign_run(
            workload,
            resources,
            flows,
            objective,
            limits,
            request.search,
            request.metric,
            told=told,
            note=progress.phase,
        )

        def document_of(result: CodesignResult, *, complete: bool) -> CodesignDocument:
            return codesign_document(
                workload, resources, flows, request.search, objective, result, settings, complete=complete
            )

        saved = SavedFile(request.out, lambda: json_text(document_of(run.so_far(), complete=False).to_data()))
        document = document_of(run.run(), complete=True)
        request.deliver(document, saved, codesign_views)
    failures = [] if saved.failure is None else [saved.failure]
    if request.scatter is not None and document.points:
        from tilewright.report.plots.scheduling.herald.partitions import draw_partitions

        with kept(failures):
            draw_partitions(document, float(1 / (CLOCK_MHZ * 1000)), request.scatter)
    if request.report is not None:
        from tilewright.report.html.scheduling.herald.schedule import write_codesign_report

        with kept(failures):
            write_codesign_report(request.report, document)
    return request.exit_code(document, failures, solved=document.best is not None)
