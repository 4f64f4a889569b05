"""``tilewright schedule`` on a tiled machine: load, search, report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli.exits import Exit
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.console import error_line, show, write
from tilewright.cli.terminal.lines import ProgressItem
from tilewright.cli.terminal.progress import Progress, make_progress
from tilewright.cli.terminal.saving import SavedFile
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledResult
from tilewright.hardware.description import names_a_file
from tilewright.hardware.scheduling.herald.system_file import list_systems
from tilewright.hardware.scheduling.tiled.load import list_tiled_machines, load_tiled_machine
from tilewright.report.records.files import json_text, output_format
from tilewright.report.records.scheduling.tiled.document import (
    PlanDocument,
    PlanSettingsRecord,
    plan_document,
)
from tilewright.report.text.scheduling.tiled.tables import plan_views
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.disk import check_writable
from tilewright.workloads.errors import InputError, did_you_mean
from tilewright.workloads.yaml_file import read_yaml

DEFAULT_METHOD = "atomic"


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The options of a command line, read.

    Parameters
    ----------
    model, system : as on the command line
    time_limit : seconds
    form : of the output
    """

    model: str
    system: str
    batch: int
    objective: str
    method: str
    time_limit: float | None
    gap: float
    threads: int
    seed: int
    require_optimal: bool
    form: str
    out: Path | None
    log: Path | None
    quiet: bool
    verbose: bool


def is_tiled(system: str) -> bool:
    """Whether a system's text means a tiled machine: a preset's name or nearly so, brackets, a file with a
    grid.
    """
    base, bracket, _ = system.strip().partition("[")
    if names_a_file(base) and Path(base).is_file():
        data = read_yaml(Path(base))
        return isinstance(data, dict) and "grid" in data
    if bracket or base in list_tiled_machines():
        return True
    nearest = did_you_mean(base, [*list_systems(), *list_tiled_machines()])
    return base not in list_systems() and any(f"{name!r}" in nearest for name in list_tiled_machines())


def refuse(options: dict[str, bool]) -> None:
    """Raise ``InputError`` for an option that was given and says nothing of tiled machines."""
    for flag, given in options.items():
        if given:
            raise InputError(flag, None, "is not for tiled machines")


def run_plan(request: PlanRequest) -> int:
    """Carry out a request; returns the exit code."""
    METHODS.make(request.method)
    if request.out is not None:
        output_format(request.out, request.form, ("json",))
        check_writable(request.out)
    problem = TiledProblem(
        resolve_model(request.model, 1),
        load_tiled_machine(request.system),
        tiled_objective(request.objective),
        batch=request.batch,
    )
    settings = PlanSettingsRecord(
        method=request.method,
        time_limit_s=request.time_limit,
        gap=request.gap,
        threads=request.threads,
        seed=request.seed,
    )
    with graceful_stop() as stop, ExitStack() as stack:
        started = call.limit_from(request.time_limit)
        limits = Limits(
            request.time_limit, request.gap, request.threads, request.seed, stop=stop, started=started
        )
        progress = _progress(request, problem, stack)

        def told(point: TracePoint) -> None:
            progress.point(point)
            saved.changed()

        run = plan_run(lambda: problem, request.method, limits, told, progress.phase)

        def document_of(result: TiledResult, *, complete: bool) -> PlanDocument:
            space = "" if run.search is None else run.search.problem.space
            return plan_document(problem, request.objective, result, settings, complete=complete, space=space)

        saved = SavedFile(request.out, lambda: json_text(document_of(run.so_far(), complete=False).to_data()))
        document = document_of(run.run(), complete=True)
        _deliver(request, document, saved)
    return _exit_code(request, document, saved.failure)


def _progress(request: PlanRequest, problem: TiledProblem, stack: ExitStack) -> Progress:
    progress = make_progress(
        problem.objective, stack, quiet=request.quiet, verbose=request.verbose, log=request.log
    )
    network, machine = problem.network, problem.machine
    samples = "" if problem.batch == 1 else f", batch {problem.batch}"
    progress.head(
        f"{network.name} on {machine.name}{samples}, objective {request.objective}, "
        f"{len(problem.units)} layers"
    )
    progress.task(ProgressItem(1, 1, network.name, request.method))
    return progress


def _deliver(request: PlanRequest, document: PlanDocument, saved: SavedFile) -> None:
    text = json_text(document.to_data())
    saved.end(text)
    if request.form == "json":
        write(text)
    else:
        show(*plan_views(document, call.elapsed))


def _exit_code(request: PlanRequest, document: PlanDocument, failure: str | None) -> Exit:
    if request.quiet and document.status == "error":
        error_line(document.message or "the search failed")
    if failure is not None:
        error_line(failure)
        return Exit.ERROR
    if document.plan is None:
        codes = {"interrupted": Exit.INTERRUPTED, "error": Exit.ERROR}
        return codes.get(document.status, Exit.LIMIT)
    return Exit.NOT_OPTIMAL if request.require_optimal and document.status != "optimal" else Exit.OK
