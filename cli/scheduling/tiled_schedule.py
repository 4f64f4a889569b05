"""``tilewright schedule`` on a tiled machine: load, search, report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tilewright.api.scheduling.tiled_search import DEFAULT
from tilewright.cli.scheduling.request import SearchOptions
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledResult
from tilewright.foundation.errors import InputError, OutputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.records.files import read_data
from tilewright.report.records.scheduling.tiled.document import PlanDocument, plan_document
from tilewright.report.records.scheduling.tiled.set_tree import check_tree_file, write_tree
from tilewright.report.records.scheduling.tiled.warm import warm_plan
from tilewright.report.text.scheduling.tiled.tables import plan_views
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import TiledRun, claimed_space, plan_run
from tilewright.workloads.catalog import resolve_model


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The command line of ``schedule`` on a tiled machine, read.

    Parameters
    ----------
    model, system : as on the command line
    method : ``None`` for the usual one
    warm_start : document of a plan to begin with
    gantt, occupancy, links : pictures to draw
    tree : file for the tree that the plan was made from
    """

    options: SearchOptions
    model: str
    system: str
    batch: int
    method: str | None
    warm_start: Path | None
    gantt: Path | None
    occupancy: Path | None
    links: Path | None
    tree: Path | None


def refuse(options: dict[str, bool], reason: str) -> None:
    """Raise ``InputError`` for an option that was given and says nothing of such a system."""
    for flag, given in options.items():
        if given:
            raise InputError(flag, None, reason)


def run_plan(request: PlanRequest) -> int:
    """Carry out a request; returns the exit code."""
    options, method = request.options, request.method or DEFAULT
    METHODS.make(method)
    options.check_files(request.gantt, request.occupancy, request.links)
    if request.tree is not None:
        check_tree_file(request.tree)
    warm = None if request.warm_start is None else (read_data(request.warm_start), str(request.warm_start))
    problem = TiledProblem(
        resolve_model(request.model, 1),
        load_tiled_machine(request.system),
        tiled_objective(options.objective),
        batch=request.batch,
    )
    given = None if warm is None else warm_plan(*warm, problem)
    settings = options.settings(method)
    with graceful_stop() as stop, ExitStack() as stack:
        limits = options.limits(stop)
        samples = "" if problem.batch == 1 else f", batch {problem.batch}"
        head = f"{problem.network.name} on {problem.machine.name}{samples}, {len(problem.units)} layers"
        progress = options.progress(stack, head, problem.network.name, method)

        def begin(reported: Callable[[TracePoint], None]) -> TiledRun:
            start = None if given is None else lambda stated: given
            return plan_run(lambda: problem, method, limits, reported, progress.phase, start)

        def document_of(run: TiledRun, result: TiledResult, complete: bool) -> PlanDocument:
            space = claimed_space(run)
            return plan_document(problem, options.objective, result, settings, space=space, complete=complete)

        done = options.carry_out(progress, begin, document_of, plan_views)
    _draw(request, done.document, done.failures)
    options.draw(done.failures, request.tree, lambda path: _write_tree(path, request, done.run.so_far()))
    if options.report is not None:
        from tilewright.report.html.scheduling.tiled.plan import write_plan_report

        options.draw(
            done.failures, options.report, lambda path: write_plan_report(path, done.document, command.text)
        )
    return options.exit_code(done.document, done.failures, solved=done.document.plan is not None)


def _write_tree(path: Path, request: PlanRequest, result: TiledResult) -> None:
    """The tree of the best plan as a file for ``evaluate``; raises ``OutputError`` where it has none."""
    plan = result.answer
    if plan is None or plan.tree is None:
        raise OutputError(path, ValueError("the best plan is not made from a tree"))
    objective = request.options.objective
    write_tree(path, plan.tree, request.model, request.system, request.batch, objective)


def _draw(request: PlanRequest, document: PlanDocument, failures: list[str]) -> None:
    if document.plan is None or not (request.gantt or request.occupancy or request.links):
        return
    from tilewright.report.plots.scheduling.tiled.gantt import draw_gantt
    from tilewright.report.plots.scheduling.tiled.mesh import draw_links
    from tilewright.report.plots.scheduling.tiled.occupancy import draw_occupancy
    from tilewright.report.records.scheduling.tiled.evaluation import judged_document

    plan = judged_document(document)
    assert plan is not None
    draw = request.options.draw
    draw(failures, request.gantt, lambda path: draw_gantt(plan, path))
    draw(failures, request.occupancy, lambda path: draw_occupancy(plan, path))
    draw(failures, request.links, lambda path: draw_links(plan, path))
