"""``tilewright schedule`` on sub-accelerators: the question, and what is drawn of its schedule."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tilewright.api.catalog import ready_method
from tilewright.api.scheduling.herald_question import WorkloadOnSystem
from tilewright.api.scheduling.plan import Plan
from tilewright.api.scheduling.system import System, system
from tilewright.api.scheduling.workload import Workload
from tilewright.cli.exits import Exit
from tilewright.cli.searching import Printed, SearchFlags, failed
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.console import note_line
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.scheduling.workload_file import resolve_workload


def run_schedule(
    flags: SearchFlags,
    what: tuple[str, int | None, OnnxOptions],
    where: str,
    objective: str,
    metric: str | None,
    keep_activations: bool | None,
    method: str | None,
    pictures: dict[str, Path | None],
) -> int:
    """Schedule a workload on a system; returns the exit code.

    Parameters
    ----------
    what : text of the workload; samples of a run, and what the user says of an ONNX file, where it is a model
    where : text of the system
    pictures : files to draw, by kind
    """
    method = method or WorkloadOnSystem.method
    ready_method(method, "scheduling")
    files = flags.saved(("json",), *pictures.values())
    place = system(where)
    if keep_activations is not None:
        place = System(replace(place.hardware, keep_activations=keep_activations))
    question = WorkloadOnSystem(loaded_workload(*what, quiet=flags.quiet), place, objective, metric=metric)
    drawings = [(path, partial(_draw, kind)) for kind, path in pictures.items()]
    pages = flags.drawn(*drawings, (flags.report, _write_page))
    listeners = [*files, Printed(flags.form), *pages]
    plan, _ = flags.ask(question.answer, question.shown_objective, method, listeners)
    code = flags.exit_code(plan.record, solved=plan.record.schedule is not None)
    return Exit.ERROR if failed([*files, *pages]) else code


def loaded_workload(text: str, batch: int | None, options: OnnxOptions, *, quiet: bool = False) -> Workload:
    """The workload that a WORKLOAD or MODEL text stands for.

    Parameters
    ----------
    batch : samples of a run of a model; a workload states its own
    options : what the user says of an ONNX file
    quiet : do not list on stderr what is left out
    """
    work = resolve_workload(text, batch, options)
    if not quiet:
        for part in work.parts:
            for reason in part.network.left_out:
                note_line(f"left out of {part.name}: {reason}")
    return Workload(work)


def _draw(kind: str, path: Path, plan: Plan) -> None:
    """One of the pictures of a schedule, where there is one."""
    document = plan.record
    if document.schedule is None or document.problem is None:
        return
    from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
    from tilewright.report.checks.scheduling.herald.schedule import schedule_of
    from tilewright.report.plots.scheduling.herald.gantt import draw_gantt
    from tilewright.report.plots.scheduling.herald.occupancy import draw_occupancy

    problem = document.problem.build("problem")
    schedule = schedule_of(problem, document.schedule)
    seconds = float(1 / (document.system.build().clock_mhz * 1_000_000))
    if kind == "gantt":
        draw_gantt(problem, schedule, seconds, path)
    else:
        draw_occupancy(problem, evaluate_schedule(problem, schedule), seconds, path)


def _write_page(path: Path, plan: Plan) -> None:
    from tilewright.report.html.scheduling.herald.schedule import write_schedule_report

    write_schedule_report(path, plan.record, command.text)
