"""Documents of ``schedule`` and ``codesign`` from files, and schedules that a user has edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.residency import with_results_kept
from tilewright.formulation.scheduling.herald.schedule import MEMORY, Schedule, make_schedule
from tilewright.formulation.scheduling.herald.timeline import Timeline
from tilewright.foundation.errors import InputError, did_you_mean, unknown_name
from tilewright.report.records.files import parse_kind, parse_record
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.scheduling.herald.problem import ProblemRecord

_KINDS: Final[tuple[type[ScheduleDocument | CodesignDocument], ...]] = (ScheduleDocument, CodesignDocument)


def is_schedule(data: object) -> bool:
    """Whether data look like a document of ``schedule`` or ``codesign``."""
    return any(kind.is_kind_of(data) for kind in _KINDS)


def parse_schedule(data: dict[str, Any], where: str) -> ScheduleDocument | CodesignDocument:
    """The document that plain data hold; raises ``InputError``."""
    return parse_kind(data, where, *_KINDS)


def edited_schedule(
    data: dict[str, Any], where: str, *, in_order: bool
) -> tuple[dict[str, Any], SchedulingProblem, Schedule]:
    """The document, the problem and the schedule of a file whose rows may have been edited.

    Of a row only ``task``, ``engine``, ``layout`` (where the engine has several), ``start`` and the results
    that ``sources`` has in the shared memory count; where no row has any there, results are kept as far as
    there is room.

    Parameters
    ----------
    in_order : start every task as early as its place in the list allows, whatever its row says; so it is
        where no row has a start

    Raises
    ------
    InputError : for a missing problem or schedule, an unknown task or engine, or starts in some rows only
    """
    if CodesignDocument.is_kind_of(data):
        best = data.get("best")
        data, where = best if isinstance(best, dict) else {}, f"{where}: best"
    for field in ("problem", "schedule"):
        if not data.get(field):
            raise InputError(where, field, "missing, there is nothing to evaluate")
    problem = parse_record(data["problem"], ProblemRecord, f"{where}: problem").build(f"{where}: problem")
    rows = data["schedule"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(where, "schedule", "expected a list with a row per task")
    names = {task.name: index for index, task in enumerate(problem.tasks)}
    chosen: list[tuple[int, Option]] = []
    for index, row in enumerate(rows):
        place = f"{where}: schedule[{index}]"
        task = str(row.get("task"))
        if task not in names:
            raise InputError(place, "task", f"no task {task!r}{did_you_mean(task, names)}")
        chosen.append(
            (names[task], option_of(problem, names[task], row.get("engine"), row.get("layout"), place))
        )
    starts = [row.get("start") for row in rows]
    if in_order or all(start is None for start in starts):
        placed = _in_order(problem, chosen, f"{where}: schedule")
        return data, problem, with_results_kept(problem, placed)
    if not all(isinstance(start, int) and not isinstance(start, bool) for start in starts):
        raise InputError(where, "schedule", "expected a start, in whole cycles, in every row or in none")
    if len({task for task, _ in chosen}) < len(chosen):
        raise InputError(where, "schedule", "expected every task once")
    begun = {task: int(start) for (task, _), start in zip(chosen, starts, strict=True)}
    kept = {
        (names[first], task)
        for (task, _), row in zip(chosen, rows, strict=True)
        if isinstance(row.get("sources"), dict)
        for first, place in row["sources"].items()
        if place == MEMORY and first in names
    }
    schedule = make_schedule(problem, begun, dict(chosen), kept)
    return data, problem, with_results_kept(problem, schedule)


def option_of(problem: SchedulingProblem, task: int, engine: object, layout: object, where: str) -> Option:
    """The option of a task on an engine; raises ``InputError`` where there is none.

    Parameters
    ----------
    problem : has the tasks with their options
    task : index of the task
    engine : name of a sub-accelerator, as a file gives it
    layout : how the mapping lays out data, as a file gives it; needed only where several options fit
    where : file and place, for errors
    """
    if engine not in problem.engines:
        raise InputError(where, "engine", unknown_name(str(engine), problem.engines))
    own = problem.tasks[task].options
    fitting = [option for option in own if problem.engines[option.engine] == engine]
    if not fitting:
        raise InputError(where, "engine", f"{problem.tasks[task].name} does not fit on {engine}")
    exact = [option for option in fitting if option.layout == layout]
    if not exact and len(fitting) > 1:
        layouts = ", ".join(sorted(option.layout for option in fitting))
        raise InputError(where, "layout", f"expected one of {layouts}, got {layout!r}")
    return (exact or fitting)[0]


def _in_order(problem: SchedulingProblem, chosen: Sequence[tuple[int, Option]], where: str) -> Schedule:
    timeline = Timeline(problem)
    for task, option in chosen:
        if task in timeline.starts:
            raise InputError(where, problem.tasks[task].name, "expected every task once")
        for before in problem.before[task]:
            if before not in timeline.ends:
                names = problem.tasks[task].name, problem.tasks[before].name
                raise InputError(where, names[0], f"listed before {names[1]}, whose result it reads")
        if problem.memory is not None and option.memory_need > problem.memory:
            raise InputError(
                where,
                problem.tasks[task].name,
                f"needs {option.memory_need} bytes of the shared memory, which has {problem.memory}",
            )
        timeline.append(task, option)
    return timeline.schedule()
