"""``tilewright evaluate`` for schedules and plans: what an edited one costs, and what it breaks."""

from __future__ import annotations

import json
from typing import Any

from tilewright.cli import options
from tilewright.cli.exits import Exit
from tilewright.cli.scheduling.flags import OBJECTIVES
from tilewright.cli.terminal.console import show, write
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation, evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.tiled.problem import tiled_objective
from tilewright.report.records.claims import number
from tilewright.report.records.files import parse_record
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.scheduling.herald.document import (
    ScheduleMetricsRecord,
    objective_name,
    placements,
    schedule_metrics,
)
from tilewright.report.records.scheduling.herald.files import edited_schedule
from tilewright.report.records.scheduling.herald.system import SystemRecord
from tilewright.report.records.scheduling.tiled.evaluation import evaluation_data, judged
from tilewright.report.records.scheduling.tiled.files import edited_plan
from tilewright.report.text.quantities import objective_text
from tilewright.report.text.scheduling.herald.tables import add_schedule_figures, engines_table
from tilewright.report.text.scheduling.tiled.listing import evaluation_views
from tilewright.report.text.tables import head_text, plain_table

SCHEMA = "tilewright.evaluation/1"


def evaluate_edited(
    data: dict[str, Any], where: str, objective: str | None, form: str, *, in_order: bool
) -> int:
    """Evaluate the schedule of a document; returns the exit code.

    Parameters
    ----------
    data : the document, its schedule edited by the user or not
    where : its file, for errors
    objective : instead of the document's
    form : ``table`` or ``json``
    in_order : whether only the order of tasks counts, and they start as early as they can
    """
    document, problem, schedule = edited_schedule(data, where, in_order=in_order)
    goal = ScheduleObjective(
        options.parse_choice(objective or str(document.get("objective")), "--objective", OBJECTIVES)
    )
    system = parse_record(document.get("system"), SystemRecord, f"{where}: system").build()
    evaluation = evaluate_schedule(problem, schedule)
    metrics = schedule_metrics(problem, system, evaluation)
    rows = placements(problem, schedule)
    if form == "json":
        value = goal.of(evaluation.makespan, evaluation.energy)
        reported = {
            "schema": SCHEMA,
            "command": "evaluate",
            "workload": document.get("workload"),
            "system": system.name,
            "objective": goal.value,
            "legal": not evaluation.violations,
            "violations": [*evaluation.violations],
            "value": number(value),
            "value_exact": str(value),
            "metrics": metrics.model_dump(),
            "schedule": [row.model_dump() for row in rows],
            "input_hash": problem.content_hash,
            "versions": versions(),
        }
        write(json.dumps(reported, indent=2, ensure_ascii=False) + "\n")
    else:
        _print_table(problem, goal, metrics, evaluation, {row.task: row.engine for row in rows})
    return Exit.CHECK_FAILED if evaluation.violations else Exit.OK


def evaluate_edited_plan(data: dict[str, Any], where: str, objective: str | None, form: str) -> int:
    """Evaluate the plan of a document on a tiled machine; returns the exit code.

    Parameters
    ----------
    data : the document, its plan edited by the user or not
    where : its file, for errors
    objective : instead of the document's
    form : ``table`` or ``json``
    """
    if objective is not None:
        tiled_objective(objective)
    judged_plan = judged(edited_plan(data, where, objective))
    if form == "json":
        write(json.dumps(evaluation_data(judged_plan), indent=2, ensure_ascii=False) + "\n")
    else:
        show(*evaluation_views(judged_plan))
    return Exit.OK if judged_plan.violation is None else Exit.CHECK_FAILED


def _print_table(
    problem: SchedulingProblem,
    goal: ScheduleObjective,
    metrics: ScheduleMetricsRecord,
    evaluation: ScheduleEvaluation,
    places: dict[str, str],
) -> None:
    from rich.text import Text

    figures = plain_table([("", "left"), ("", "right")])
    figures.show_header = False
    value = number(goal.of(evaluation.makespan, evaluation.energy))
    figures.add_row("value", objective_text(parse_objective(objective_name(goal)), value))
    add_schedule_figures(figures, metrics)
    verdict = [Text("legal", style="green")]
    if evaluation.violations:
        verdict = [Text(f"illegal: {violation}", style="red") for violation in evaluation.violations]
    title = head_text(problem.name, f"{len(problem.tasks)} layers")
    show(title, "", figures, "", engines_table(metrics, [*places.values()]), "", *verdict)
