"""The work of ``tilewright codesign``."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli.clock import call
from tilewright.cli.console import error_line, show, write
from tilewright.cli.exits import Exit
from tilewright.cli.progress import Task, make_progress
from tilewright.cli.schedule_run import check_plots, resolve_workload
from tilewright.cli.signals import graceful_stop
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.problem import ScheduleObjective
from tilewright.formulation.search import Limits
from tilewright.hardware.classes import accelerator_class
from tilewright.hardware.dataflows import CLOCK_MHZ, dataflow
from tilewright.report.files import check_writable, json_text, write_atomic
from tilewright.report.schedule_document import ScheduleSettingsRecord, codesign_document, objective_name
from tilewright.report.schedule_tables import codesign_views
from tilewright.solvers.scheduling.build import METRIC_OF
from tilewright.solvers.scheduling.costs import OutOfTimeError
from tilewright.solvers.scheduling.partition import PartitionSearch


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
    log: Path | None
    quiet: bool
    verbose: bool


def run_codesign(request: CodesignRequest) -> int:
    """Carry out a request; returns the exit code."""
    objective = ScheduleObjective(request.objective)
    for path in (request.out, request.scatter):
        if path is not None:
            check_writable(path)
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
                        started=call.moment)  # fmt: skip
        progress = make_progress(
            parse_objective(objective_name(objective)), stack, quiet=request.quiet, verbose=request.verbose,
            log=request.log,
        )  # fmt: skip
        progress.head(f"{workload.name}, class {resources.name}, {' + '.join(flows)}, objective {objective}")
        progress.task(Task(1, 1, workload.name, "costs of layers"))
        search = PartitionSearch(
            workload, resources, flows, objective, limits, request.search, request.metric,
            told=progress.point, note=progress.phase,
        )  # fmt: skip
        try:
            outcome = search.run()
        except OutOfTimeError:
            error_line("stopped while costs of layers were computed; those that are known are kept")
            return Exit.INTERRUPTED if stop.is_set() else Exit.LIMIT
    document = codesign_document(workload, resources.name, flows, request.search, outcome, settings)
    text = json_text(document.to_data())
    if request.out is not None:
        write_atomic(request.out, text)
    if request.scatter is not None and document.points:
        from tilewright.report.plots.partitions import draw_partitions

        draw_partitions(document, float(1 / (CLOCK_MHZ * 1000)), request.scatter)
    if request.form == "json":
        write(text)
    else:
        show(*codesign_views(document, call.elapsed))
    if outcome.best is None:
        return Exit.INFEASIBLE if outcome.status == "infeasible" else Exit.LIMIT
    return Exit.NOT_OPTIMAL if request.require_optimal and outcome.status != "optimal" else Exit.OK
