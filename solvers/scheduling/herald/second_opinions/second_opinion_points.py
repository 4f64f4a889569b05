"""A second opinion on the partitions of a co-design, of which all but the best have no schedule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from threading import Event

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.formulation.stopping import WhenSet
from tilewright.heuristics.scheduling.herald.scheduler import HeraldSettings, Ordering, herald, metric_of
from tilewright.solvers.scheduling.herald.cpsat import CpSatScheduler
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds
from tilewright.solvers.scheduling.herald.lower_bounds.multipliers import multiplier_bound
from tilewright.solvers.second_opinion import Verdict

LONGEST = 20.0
"""Seconds of a search for a schedule of a value that is reported, at most."""


@dataclass(frozen=True, slots=True)
class PointClaim:
    """What a document states of one partition.

    Parameters
    ----------
    cycles, energy, key : of its best schedule
    bound : no schedule on it has a smaller key
    herald : cycles and energy of Herald's schedule
    scheduled : whether more than Herald has looked for one
    reported : whether its schedule is in the document
    """

    cycles: int
    energy: Fraction
    key: Fraction
    bound: Fraction
    herald: tuple[int, float]
    scheduled: bool
    reported: bool


def point_opinion(
    problem: SchedulingProblem, objective: ScheduleObjective, claim: PointClaim, limits: Limits
) -> tuple[Verdict, str]:
    """Whether the figures of one partition hold: Herald's are made again, others searched for.

    Parameters
    ----------
    problem : on the partition, its costs computed again
    """
    made = [*_herald(problem, objective)]
    least = min(objective.of(cycles, energy) for cycles, energy in made)
    if least < claim.bound:
        return Verdict.REFUTED, f"herald's schedule of {float(least):.9g} lies below its bound"
    if claim.herald not in [(cycles, float(energy)) for cycles, energy in made]:
        return Verdict.REFUTED, f"herald makes schedules of other figures than {claim.herald}"
    if not claim.scheduled and (claim.cycles, claim.energy) not in made:
        return Verdict.REFUTED, "herald makes schedules of other figures than the point's"
    reaches = claim.reported or not claim.scheduled or least <= claim.key
    bounded = multiplier_bound(problem, objective) >= claim.bound
    if reaches and bounded:
        return Verdict.CONFIRMED, ""
    return _searched(problem, objective, claim, limits, reached=reaches)


def _herald(problem: SchedulingProblem, objective: ScheduleObjective) -> list[tuple[int, Fraction]]:
    """Cycles and energy of Herald's schedules."""
    points = []
    for ordering in (Ordering.BREADTH_FIRST, Ordering.DEPTH_FIRST):
        schedule = herald(problem, HeraldSettings(metric_of(objective), ordering, patience=0))
        evaluation = evaluate_schedule(problem, schedule)
        points.append((evaluation.makespan, evaluation.energy))
    return points


def _searched(
    problem: SchedulingProblem,
    objective: ScheduleObjective,
    claim: PointClaim,
    limits: Limits,
    *,
    reached: bool,
) -> tuple[Verdict, str]:
    """What a new search on the partition says, which ends as soon as it decides."""
    decided = Event()

    def notify(point: TracePoint) -> None:
        below = point.key is not None and point.key <= claim.key
        bounded = point.bound is not None and point.bound >= claim.bound
        if (reached or below) and bounded:
            decided.set()

    mine = limits.share(longest=LONGEST).stopping(WhenSet(decided))
    search = ScheduleSearch(ScheduleGoal(problem, objective), mine, notify)
    basic_bounds(search, feasible_options(problem))
    if not decided.is_set():
        CpSatScheduler().solve(search)
    result = search.result(CpSatScheduler.name, CpSatScheduler().version)
    if result.key is not None and result.key < claim.bound:
        return Verdict.REFUTED, f"a schedule of {float(result.key):.9g} lies below its bound"
    if result.status is Status.OPTIMAL and result.key is not None and result.key > claim.key:
        return Verdict.REFUTED, f"no schedule has less than {float(result.key):.9g}"
    known = result.key is not None and result.key <= claim.key
    if (reached or known) and result.bound is not None and result.bound >= claim.bound:
        return Verdict.CONFIRMED, ""
    return (
        Verdict.UNDECIDED,
        "no schedule of its value was found again" if not reached else "its bound was not",
    )
