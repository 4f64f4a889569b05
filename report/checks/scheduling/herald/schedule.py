"""Whether a document of ``schedule`` is correct: all claims are computed again from it alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation, evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Placement, Schedule
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.scheduling.herald.system import System
from tilewright.report.checks.mapping.document import claim_faults, metric_faults
from tilewright.report.checks.scheduling.herald.costs import cost_faults
from tilewright.report.checks.scheduling.settings import proves, settings_faults
from tilewright.report.checks.trace import trace_faults
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PlacementRecord,
    ScheduleDocument,
    inputs_hash,
    objective_name,
    placements,
    schedule_metrics,
)
from tilewright.report.records.scheduling.herald.files import option_of
from tilewright.report.records.scheduling.herald.system import SystemRecord
from tilewright.solvers.mapping.machine_sizes import METRICS
from tilewright.solvers.scheduling.herald.registry import METHODS


@dataclass(frozen=True)
class ScheduleCheck:
    """A document with the problem that it answers.

    Parameters
    ----------
    problem : ``None`` where the document does not state one that can be built
    evaluation : of its schedule, where it has one
    faults : what is wrong, each in one line; empty where every claim holds
    """

    document: ScheduleDocument
    problem: SchedulingProblem | None
    evaluation: ScheduleEvaluation | None
    faults: tuple[str, ...]


def check_schedule(document: ScheduleDocument, where: str) -> ScheduleCheck:
    """Evaluate the schedule again and compare all that the document claims."""
    objective = ScheduleObjective(document.objective)
    shown = parse_objective(objective_name(objective))
    exact = proves(document.settings.method, METHODS)
    solved = document.schedule is not None
    faults = [*claim_faults(document, shown, solved=solved, noun="schedule", exact=exact)]
    faults += trace_faults(document, document.trace, shown, document.wall_s)
    faults += schedule_settings_faults(document)
    if document.problem is None:
        if document.schedule is not None or document.bound is not None:
            faults.append("problem: missing, expected one with a schedule or a bound")
        return ScheduleCheck(document, None, None, tuple(faults))
    try:
        system = document.system.build()
        problem = document.problem.build(f"{where}: problem")
    except InputError as error:
        return ScheduleCheck(document, None, None, (*faults, str(error)))
    fresh = inputs_hash(
        document.workload, document.system, document.problem, document.objective, document.settings.metric
    )
    if document.input_hash != fresh:
        faults.append("input_hash: workload, system, tasks, costs, objective or metric are not those solved")
    problem_faults = [*_problem_faults(document, problem, system)]
    faults += problem_faults or cost_faults(document.problem, system)
    evaluation = None
    if document.schedule is not None:
        try:
            schedule = schedule_of(problem, document.schedule)
        except InputError as error:
            return ScheduleCheck(document, problem, None, (*faults, str(error)))
        faults += _placement_faults(problem, schedule, document.schedule)
        evaluation = evaluate_schedule(problem, schedule)
        faults += [f"illegal schedule: {violation}" for violation in evaluation.violations]
        faults += _value_faults(document, objective, evaluation)
        if document.metrics is None:
            faults.append("metrics: missing")
        else:
            faults += metric_faults(document.metrics, schedule_metrics(problem, system, evaluation))
    return ScheduleCheck(document, problem, evaluation, tuple(faults))


def _problem_faults(document: ScheduleDocument, problem: SchedulingProblem, system: System) -> Iterator[str]:
    """The problem must be of the system, and a missing schedule must have its reason."""
    engines = tuple(sub.name for sub in system.subs)
    if problem.engines != engines:
        yield f"problem.engines: {', '.join(problem.engines)}, the system has {', '.join(engines)}"
        return
    machine = (system.memory_bytes, system.context_cycles, system.context_energy)
    if (problem.memory, problem.context_cycles, problem.context_energy) != machine:
        yield "problem: shared memory or context change are not those of the system"
    if problem.keeps_results and not system.keep_activations:
        yield "problem: results stay in the shared memory, but the system sends them to DRAM"
    flows = [{flow.name for flow in sub.dataflows} for sub in system.subs]
    odd = {
        (problem.engines[option.engine], option.layout)
        for task in problem.tasks
        for option in task.options
        if option.layout not in flows[option.engine]
    }
    for engine, layout in sorted(odd):
        yield f"problem: an option on {engine} runs under {layout}, which it does not have"
    if document.tasks != len(problem.tasks):
        yield f"tasks: {document.tasks}, the problem has {len(problem.tasks)}"
    if SystemRecord.of(system) != document.system:
        yield "system: not as a system is written down: a number unreduced, or unknown to it"
    for sub in system.subs:
        if len(set(sub.dataflows)) < len(sub.dataflows):
            yield f"system.sub_accelerators: {sub.name} has a dataflow twice"
    if document.status == "infeasible" and problem.obstacle is None:
        yield "status: infeasible, but every layer fits somewhere, so tasks can run one after the other"
    if document.schedule is not None and problem.obstacle is not None:
        yield f"schedule: expected none, {problem.obstacle}"


def schedule_of(problem: SchedulingProblem, rows: list[PlacementRecord]) -> Schedule:
    """The schedule that the rows write down; raises ``InputError`` for what the problem does not have."""
    names = {task.name: index for index, task in enumerate(problem.tasks)}
    placements: list[Placement] = []
    for index, row in enumerate(rows):
        where = f"schedule[{index}]"
        unknown = next((name for name in (row.task, *row.sources) if name not in names), None)
        if unknown is not None:
            raise InputError(where, "task", f"no task {unknown!r}")
        option = option_of(problem, names[row.task], row.engine, row.layout, where)
        sources = {names[name]: place for name, place in row.sources.items()}
        placements.append(Placement(names[row.task], option, row.start, sources))
    return Schedule(tuple(placements))


def schedule_settings_faults(document: ScheduleDocument | CodesignDocument) -> Iterator[str]:
    """What no search can have been asked for, and a metric that there is not."""
    settings = document.settings
    if settings.metric not in METRICS:
        yield f"settings.metric: {unknown_name(settings.metric, METRICS)}"
    yield from settings_faults(settings, METHODS, document.versions)


def _placement_faults(
    problem: SchedulingProblem, schedule: Schedule, rows: list[PlacementRecord]
) -> Iterator[str]:
    """Figures of a row that are not those of its option and start, and rows out of order."""
    starts = [row.start for row in rows]
    if starts != sorted(starts):
        yield "schedule: expected the rows in the order of their starts"
    for row, fresh in zip(rows, placements(problem, schedule), strict=True):
        stored, computed = row.model_dump(), fresh.model_dump()
        for field, value in computed.items():
            if stored[field] != value:
                yield f"schedule, {row.task}: {field} {stored[field]}, expected {value}"


def _value_faults(
    document: ScheduleDocument, objective: ScheduleObjective, evaluation: ScheduleEvaluation
) -> Iterator[str]:
    value = objective.of(evaluation.makespan, evaluation.energy)
    if document.value_key != value:
        yield f"value_exact: {document.value_exact}, the evaluator finds {value}"
    if document.value != number(value):
        yield f"value: {document.value}, the evaluator finds {number(value)}"
