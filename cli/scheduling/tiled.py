"""``tilewright schedule`` on a tiled machine: the question, and what is drawn of its plan."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tilewright.api.catalog import ready_method
from tilewright.api.scheduling.tiled_machine import tiled_machine
from tilewright.api.scheduling.tiled_plan import TiledPlan
from tilewright.api.scheduling.tiled_question import NetworkOnTiles
from tilewright.api.scheduling.workload import only_network
from tilewright.cli import models
from tilewright.cli.exits import Exit
from tilewright.cli.searching import Printed, SearchFlags, failed
from tilewright.cli.terminal.command import command
from tilewright.foundation.errors import OutputError
from tilewright.workloads.onnx.options import OnnxOptions


def run_plan(
    flags: SearchFlags,
    model: str,
    where: str,
    batch: int,
    objective: str,
    method: str | None,
    warm_start: Path | None,
    pictures: dict[str, Path | None],
    tree: Path | None,
    asked_onnx: OnnxOptions,
) -> int:
    """Plan a network on a tiled machine; returns the exit code.

    Parameters
    ----------
    model, where : texts of the network and of the machine
    warm_start : document of a plan to begin with
    pictures : files to draw, by kind
    tree : file for the tree that the plan was made from
    asked_onnx : what the user says of an ONNX file
    """
    method = method or NetworkOnTiles.method
    ready_method(method, "tiled")
    files = flags.saved(("json",), *pictures.values())
    if tree is not None:
        from tilewright.report.records.scheduling.tiled.set_tree import check_tree_file

        check_tree_file(tree)
    network = only_network(models.loaded(model, 1, asked_onnx, quiet=flags.quiet).graph)
    question = NetworkOnTiles(network, tiled_machine(where), objective, batch=batch)
    start = question.start(() if warm_start is None else warm_start)

    def write_tree(path: Path, plan: TiledPlan) -> None:
        from tilewright.report.records.scheduling.tiled.set_tree import write_tree

        if plan.tree is None:
            raise OutputError(path, ValueError("the best plan is not made from a tree"))
        write_tree(path, plan.tree, model, where, batch, objective)

    drawings = [(path, partial(_draw, kind)) for kind, path in pictures.items()]
    pages = flags.drawn(*drawings, (tree, write_tree), (flags.report, _write_page))
    listeners = [*files, Printed(flags.form), *pages]
    plan, _ = flags.ask(question.answer, question.shown_objective, method, listeners, start or ())
    code = flags.exit_code(plan.record, solved=plan.record.plan is not None)
    return Exit.ERROR if failed([*files, *pages]) else code


def _draw(kind: str, path: Path, plan: TiledPlan) -> None:
    """One of the pictures of a plan, where there is one."""
    from tilewright.report.plots.scheduling.tiled.gantt import draw_gantt
    from tilewright.report.plots.scheduling.tiled.mesh import draw_links
    from tilewright.report.plots.scheduling.tiled.occupancy import draw_occupancy

    if plan.record.plan is not None:
        draw = {"gantt": draw_gantt, "occupancy": draw_occupancy, "links": draw_links}[kind]
        draw(plan.evaluate().plan, path)


def _write_page(path: Path, plan: TiledPlan) -> None:
    from tilewright.report.html.scheduling.tiled.plan import write_plan_report

    write_plan_report(path, plan.record, command.text)
