"""A second opinion on the bounds of schedules and co-designs, by ways that did not make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.hardware.scheduling.herald.system import System
from tilewright.heuristics.scheduling.herald.scheduler import (
    HeraldSettings,
    Ordering,
    greedy,
    herald,
    metric_of,
)
from tilewright.solvers.scheduling.herald.cost_tables.recost import problem_on
from tilewright.solvers.scheduling.herald.lower_bounds.multipliers import multiplier_bound
from tilewright.solvers.scheduling.herald.second_opinions.infeasibility import Finding, schedule_below
from tilewright.solvers.scheduling.herald.second_opinions.second_opinion_costs import costs_opinion
from tilewright.solvers.scheduling.herald.second_opinions.second_opinion_points import (
    PointClaim,
    point_opinion,
)
from tilewright.solvers.second_opinion import Proof, Verdict
from tilewright.workloads.mapping.operator import Operator

_PAIRS = 60
"""Tasks up to which the orders of all pairs are stated."""
_CORES = (24, 96)
"""How many of the longest tasks are put in order before that."""

SUMS, PAIRS, HERALD, SURVEYS = "multipliers", "orders of pairs", "herald", "surveys"


@dataclass(frozen=True, slots=True)
class ScheduleClaim:
    """What a document claims of schedules.

    Parameters
    ----------
    bound : no schedule (on any of the systems) has a smaller key; ``None`` where none is claimed
    metric : by which the mapping of a layer on a sub-accelerator is chosen
    problem : ``None`` where none can be stated
    """

    status: Status
    objective: ScheduleObjective
    bound: Fraction | None
    metric: str
    problem: SchedulingProblem | None


def prove_schedule(
    claim: ScheduleClaim, layers: Callable[[], tuple[Sequence[Operator], System]], limits: Limits
) -> Proof:
    """Ask whether the claimed bound holds.

    Parameters
    ----------
    layers : the operator of every task, and the system; may raise ``InputError``
    """
    problem, before = claim.problem, limits.elapsed
    if problem is None:
        return Proof(Verdict.UNDECIDED, "-", "the problem cannot be stated")
    if claim.status is Status.INFEASIBLE:
        if problem.obstacle is None:
            return Proof(Verdict.REFUTED, "evaluator", "tasks can run one after the other")
        return Proof(Verdict.CONFIRMED, "evaluator", problem.obstacle)
    if claim.bound is None:
        return Proof(Verdict.NOTHING, "-", "no bound is claimed")
    verdict, by, text = ask_for_better(problem, claim.objective, claim.bound, limits)
    if verdict is Verdict.CONFIRMED:
        least, reported = costs_opinion(problem, layers, claim.metric, limits)
        if least is False:
            verdict, by, text = Verdict.REFUTED, SURVEYS, reported
        else:
            text = f"{text}; {reported}"
    return Proof(verdict, by, text, limits.elapsed - before)


def prove_codesign(
    claim: ScheduleClaim,
    systems: Sequence[System],
    points: Sequence[PointClaim],
    operators: Sequence[Operator],
    limits: Limits,
) -> Proof:
    """Ask whether the claimed bound and the figures of every partition hold; computes the costs it needs.

    Parameters
    ----------
    systems, points : one per partition, and what is reported of it
    operators : of every task
    """
    before = limits.elapsed

    def answer(verdict: Verdict, by: str, text: str) -> Proof:
        return Proof(verdict, by, text, limits.elapsed - before)

    if claim.bound is None:
        return answer(Verdict.NOTHING, "-", "no bound is claimed")
    if claim.problem is None:
        return answer(Verdict.UNDECIDED, "-", "the problem cannot be stated")
    asked = dict.fromkeys([SUMS])
    try:
        problems = problem_on(claim.problem, operators, systems, claim.metric, limits)
    except LimitReachedError:
        return answer(Verdict.UNDECIDED, "-", "no time left to compute the costs of layers")
    undecided: list[str] = []
    for index, (problem, point) in enumerate(zip(problems, points, strict=True)):
        if limits.expired:
            return answer(
                Verdict.UNDECIDED,
                ", ".join(asked),
                f"no time left after {index} of {len(systems)} partitions",
            )
        verdict, by, text = ask_for_better(problem, claim.objective, claim.bound, limits)
        asked[by] = None
        if verdict is not Verdict.CONFIRMED:
            return answer(verdict, by, f"points[{index}]: {text}")
        share = limits.share(1 / (len(systems) - index))
        verdict, reported = point_opinion(problem, claim.objective, point, share)
        if verdict is Verdict.REFUTED:
            return answer(verdict, HERALD, f"points[{index}]: {reported}")
        if verdict is Verdict.UNDECIDED:
            undecided.append(f"points[{index}]: {reported}")
    if undecided:
        more = f", and {len(undecided) - 1} more" if len(undecided) > 1 else ""
        return answer(Verdict.UNDECIDED, ", ".join(asked), f"{undecided[0]}{more}")
    text = f"each of {len(systems)} partitions has a bound at least as high"
    return answer(Verdict.CONFIRMED, ", ".join(asked), text)


def ask_for_better(
    problem: SchedulingProblem, objective: ScheduleObjective, claimed: Fraction, limits: Limits
) -> tuple[Verdict, str, str]:
    """Sums first, then schedules that are quickly made, then orders of pairs where they are not too many.

    Parameters
    ----------
    problem : to be scheduled
    objective : of which the bound is claimed
    claimed : a bound on its value
    limits : of all questions together
    """
    bound = multiplier_bound(problem, objective)
    if bound >= claimed:
        return Verdict.CONFIRMED, SUMS, "an exact sum gives a bound at least as high"
    for schedule in _quick(problem, objective):
        evaluation = evaluate_schedule(problem, schedule)
        value = objective.of(evaluation.makespan, evaluation.energy)
        if not evaluation.violations and value < claimed:
            return Verdict.REFUTED, HERALD, f"found a schedule of value {_shown(value)}"
    away = f"an exact sum gives a bound {float((claimed - bound) / claimed):.2%} lower"
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
