"""A second opinion on the bounds of ``schedule`` and ``codesign``, by ways that did not make them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tilewright.cli.mapping.proof import Proof, Verdict
from tilewright.cli.scheduling.proof_costs import costs_opinion
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.hardware.scheduling.herald.classes import accelerator_class, make_system
from tilewright.heuristics.scheduling.herald.scheduler import (
    HeraldSettings,
    Ordering,
    greedy,
    herald,
    metric_of,
)
from tilewright.report.checks.scheduling.herald.codesign import CodesignCheck
from tilewright.report.checks.scheduling.herald.schedule import ScheduleCheck
from tilewright.report.text.quantities import gap_text
from tilewright.solvers.scheduling.herald.multipliers import multiplier_bound
from tilewright.solvers.scheduling.herald.recost import problem_on
from tilewright.solvers.scheduling.herald.refuter import Finding, schedule_below

_PAIRS = 60
"""Tasks up to which the orders of all pairs are stated."""
_CORES = (24, 96)
"""How many of the longest tasks are put in order before that."""

SUMS, PAIRS, HERALD, SURVEYS = "multipliers", "orders of pairs", "herald", "surveys"


def prove_schedule(check: ScheduleCheck, limits: Limits) -> Proof:
    """Ask whether the claimed bound holds."""
    document, problem = check.document, check.problem
    before = limits.elapsed
    if problem is None:
        return Proof(Verdict.UNDECIDED, "-", "the problem cannot be stated")
    if document.status == "infeasible":
        if problem.obstacle is None:
            return Proof(Verdict.REFUTED, "evaluator", "tasks can run one after the other")
        return Proof(Verdict.CONFIRMED, "evaluator", problem.obstacle)
    if document.bound_key is None:
        return Proof(Verdict.NOTHING, "-", "no bound is claimed")
    verdict, by, text = _ask(problem, ScheduleObjective(document.objective), document.bound_key, limits)
    if verdict is Verdict.CONFIRMED:
        least, told = costs_opinion(check, limits)
        if least is False:
            verdict, by, text = Verdict.REFUTED, SURVEYS, told
        else:
            text = f"{text}; {told}"
    return Proof(verdict, by, text, limits.elapsed - before)


def prove_codesign(check: CodesignCheck, limits: Limits) -> Proof:
    """Ask whether the claimed bound holds on every partition; computes the costs of layers that it needs."""
    document, best, before = check.document, check.best, limits.elapsed

    def answer(verdict: Verdict, by: str, text: str) -> Proof:
        return Proof(verdict, by, text, limits.elapsed - before)

    if document.bound_key is None:
        return answer(Verdict.NOTHING, "-", "no bound is claimed")
    if best is None or best.problem is None or document.best is None or document.best.problem is None:
        return answer(Verdict.UNDECIDED, "-", "the problem cannot be stated")
    resources = accelerator_class(document.accelerator_class)
    systems = [make_system("", resources, document.dataflows, point.parts) for point in document.points]
    operators = document.best.problem.operators("best: problem")
    objective, asked = ScheduleObjective(document.objective), dict.fromkeys([SUMS])
    try:
        problems = problem_on(best.problem, operators, systems, document.settings.metric, limits)
    except LimitReachedError:
        return answer(Verdict.UNDECIDED, "-", "no time left to compute the costs of layers")
    for index, problem in enumerate(problems):
        if limits.expired:
            return answer(
                Verdict.UNDECIDED,
                ", ".join(asked),
                f"no time left after {index} of {len(systems)} partitions",
            )
        verdict, by, text = _ask(problem, objective, document.bound_key, limits)
        asked[by] = None
        if verdict is not Verdict.CONFIRMED:
            return answer(verdict, by, f"points[{index}]: {text}")
    text = f"each of {len(systems)} partitions has a bound at least as high"
    return answer(Verdict.CONFIRMED, ", ".join(asked), text)


def _ask(
    problem: SchedulingProblem, objective: ScheduleObjective, claimed: Fraction, limits: Limits
) -> tuple[Verdict, str, str]:
    """Sums first, then schedules that are quickly made, then orders of pairs where they are not too many."""
    bound = multiplier_bound(problem, objective)
    if bound >= claimed:
        return Verdict.CONFIRMED, SUMS, "an exact sum gives a bound at least as high"
    for schedule in _quick(problem, objective):
        found = evaluate_schedule(problem, schedule)
        value = objective.of(found.makespan, found.energy)
        if not found.violations and value < claimed:
            return Verdict.REFUTED, HERALD, f"found a schedule of value {_shown(value)}"
    away = f"an exact sum gives a bound {gap_text(float((claimed - bound) / claimed))} lower"
    sizes = [size for size in _CORES if size < len(problem.tasks)]
    for core in [*sizes, None] if len(problem.tasks) <= _PAIRS else sizes:
        below = schedule_below(problem, objective, claimed, limits, core)
        if below.answer is Finding.NONE:
            ordered = f"the {core} longest tasks" if core else "tasks"
            return Verdict.CONFIRMED, PAIRS, f"no order of {ordered} is below the bound"
        if limits.expired:
            break
    if below.value is not None:
        return Verdict.REFUTED, PAIRS, f"found a schedule of value {_shown(below.value)}"
    reason = "interrupted" if limits.stop.is_set() else "time limit, or too many or large numbers"
    return Verdict.UNDECIDED, PAIRS, f"{away}, and orders of tasks were not decided ({reason})"


def _quick(problem: SchedulingProblem, objective: ScheduleObjective) -> Iterator[Schedule]:
    metric = metric_of(objective)
    for ordering in Ordering:
        yield herald(problem, HeraldSettings(metric, ordering, patience=0))
    yield greedy(problem, metric)


def _shown(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.9g}"
