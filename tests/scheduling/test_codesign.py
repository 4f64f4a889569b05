"""Co-design as a search: what is known of partitions becomes the value and the bound of the grid."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from graphs import problem_of

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin, Status, TracePoint
from tilewright.formulation.scheduling.herald.codesign import (
    Candidate,
    CodesignGoal,
    CodesignSearch,
    Division,
)
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass, make_system
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.workloads.scheduling.workload_file import load_workload

SMALL = AcceleratorClass("small", 16, 8, 1 << 14, 4, 2)
PARTS = [Division(((n, Fraction(4)), (16 - n, Fraction(4)))) for n in (4, 8, 12)]


def begun(
    reported: list[TracePoint], objective: ScheduleObjective = ScheduleObjective.MAKESPAN
) -> CodesignSearch:
    """A search over three partitions, on which one task takes 4, 8 and 12 cycles."""
    flows = ("nvdla", "shidiannao")
    systems = {at: make_system(str(at.parts[0][0]), SMALL, flows, at.parts) for at in PARTS}

    def state(division: Division) -> SchedulingProblem:
        return problem_of([[(Option(0, systems[division].subs[0].pes, Fraction(1), 0, 0),)]], engines=1)

    goal = CodesignGoal(load_workload("ar-vr-a"), systems, "cycles", objective, state)
    return CodesignSearch(goal, Limits(), reported.append)


def candidate(search: CodesignSearch, division: Division, bound: int) -> Candidate:
    """A partition with its schedule and a bound."""
    problem = search.problem.instance(division)
    inner = ScheduleSearch(ScheduleGoal(problem, search.problem.objective), Limits())
    inner.confirm(greedy(problem), "greedy", Origin.HEURISTIC)
    inner.raise_bound(bound, "test")
    result = inner.result("test", "1")
    system = search.problem.systems[division]
    return Candidate(division, system, problem, result, (division.parts[0][0], Fraction(1)))


def test_the_least_bound_holds_once_each_partition_has_one() -> None:
    """No bound while a partition is missing; then the least, which rises with it until the proof."""
    reported: list[TracePoint] = []
    search = begun(reported)
    search.learn(candidate(search, PARTS[1], 6))
    search.learn(candidate(search, PARTS[0], 2))
    early = search.result("test", "1")
    assert (early.key, early.bound, len(early.candidates)) == (4, None, 2)
    assert "2 of 3 partitions" in early.message
    search.rule_out(PARTS[2])
    assert (search.bound, search.gap) == (2, 0.5)
    search.learn(candidate(search, PARTS[0], 4))
    result = search.result("test", "1")
    assert (result.status, result.unfit, result.discarded, result.scheduled) == (Status.OPTIMAL, 1, 2, 0)
    assert result.best is not None
    assert result.best.division == PARTS[0]
    assert [(p.key, p.bound) for p in reported] == [(8, None), (4, None), (4, 2), (4, 4)]


def test_what_is_told_late_takes_nothing_back() -> None:
    """A thread left behind that knows a smaller bound of a partition does not lower the newer one."""
    search = begun([])
    kept = replace(candidate(search, PARTS[0], 3), visits=1)
    assert search.learn(kept) is kept
    assert search.learn(candidate(search, PARTS[0], 2)) is kept
    assert search.candidates == (kept,)


def test_equal_questions_hash_equally() -> None:
    """The hash is that of networks, systems, metric and objective."""
    first, same = begun([]).problem, begun([]).problem
    other = begun([], ScheduleObjective.ENERGY).problem
    assert first.content_hash == same.content_hash != other.content_hash
