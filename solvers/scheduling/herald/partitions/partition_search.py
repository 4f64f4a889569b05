"""The search for a partition: the one of least bound is scheduled for a while, again and again.

The problem falls apart into one scheduling problem per partition.  Every partition gets a cheap bound;
scheduling the one with the least raises its bound and may lower the incumbent.  A partition whose bound
reaches the incumbent is discarded.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import count

from tilewright import __version__
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin, TracePoint
from tilewright.formulation.scheduling.herald.codesign import (
    Candidate,
    CodesignGoal,
    CodesignSearch,
    Design,
    Division,
)
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem, feasible_options
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleResult, ScheduleSearch
from tilewright.formulation.search import Listener, Search
from tilewright.formulation.stopping import BoundReaches
from tilewright.foundation.caches import cache_folder
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.herald.scheduler import HeraldSettings, Ordering, herald, metric_of
from tilewright.solvers.scheduling.herald.cpsat import CpSatScheduler
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds, first_bounds
from tilewright.solvers.scheduling.herald.partitions.partition import most_even

_SLICE = 4.0  # seconds that a partition is scheduled for at first; doubled at every further visit
_HERALD = "herald"


class LeastBoundFirst:
    """Exact: branch and bound over partitions, with the exact scheduler for each.  One object per call.

    Parameters
    ----------
    recount : states the problem on a division from costs that are counted again
    costs : where costs are cached, for messages; by default the user's cache folder
    note : called with a line on the progress of the search
    """

    name = "least-bound-first"
    exact = True

    def __init__(
        self,
        recount: Callable[[Division, Limits], SchedulingProblem],
        costs: str | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._recount, self._costs, self._note = recount, costs, note
        self._questioned: set[Division] = set()

    @property
    def version(self) -> str:
        return CpSatScheduler().version

    def solve(self, search: Search[CodesignGoal, Design, ScheduleEvaluation]) -> Outcome:
        """Search until proven or until the limits strike.

        Raises
        ------
        InputError : where costs that the answer rests on were wrong in their file
        """
        assert isinstance(search, CodesignSearch), "the results of each partition are required"
        even = most_even(search.problem.systems)  # its costs are known first
        order = (even, *(division for division in search.problem.systems if division != even))
        for division in (*order, *order):  # where costs take longer than their share, once more
            if search.limits.expired:
                break
            if search.knows(division):
                continue
            try:
                self._look(search, division)
            except LimitReachedError:
                if not search.candidates and search.limits.expired:
                    raise
        candidates = search.candidates
        if not candidates:
            return Outcome(search.complete, "no partition runs every layer" if search.complete else "")
        self._note(f"{len(candidates)} partitions bounded after {search.limits.elapsed:.1f} s")
        for candidate in sorted(candidates, key=lambda candidate: candidate.bound):
            if not search.limits.expired:
                self._refine(search, candidate)
        self._branch(search)
        best = next(
            candidate
            for candidate in search.candidates
            if search.answer and candidate.division == search.answer.division
        )
        self._question(search, best)
        return Outcome()

    def _look(self, search: CodesignSearch, division: Division) -> None:
        """What is known at once: Herald's breadth-first schedule and the bound in closed form."""
        problem = search.problem.instance(division)
        if problem.obstacle is not None:
            search.rule_out(division)
            return
        probe = _begun(search, problem, replace(search.limits))
        _offer_herald(probe, Ordering.BREADTH_FIRST)
        first_bounds(probe, feasible_options(problem))
        result = probe.result(_HERALD, __version__)
        system = search.problem.systems[division]
        search.learn(Candidate(division, system, problem, result, _figures(result)))

    def _refine(self, search: CodesignSearch, candidate: Candidate) -> None:
        """The better of Herald's two schedules, and the LP's bound."""
        probe = _resumed(search, candidate, replace(search.limits))
        _offer_herald(probe, Ordering.DEPTH_FIRST)
        basic_bounds(probe, feasible_options(candidate.problem))
        result = probe.result(_HERALD, __version__)
        search.learn(replace(candidate, result=result, herald=_figures(result)))

    def _branch(self, search: CodesignSearch) -> None:
        """Schedule the partition of least bound, again and again."""
        number = count()
        open_ = [(candidate.bound, next(number), candidate) for candidate in search.candidates]
        heapq.heapify(open_)
        while open_ and not search.enough(open_[0][0]) and not search.limits.expired:
            _, _, candidate = heapq.heappop(open_)
            self._question(search, candidate)
            candidate = _scheduled(search, candidate)
            if not search.enough(candidate.bound):
                heapq.heappush(open_, (candidate.bound, next(number), candidate))

    def _question(self, search: CodesignSearch, candidate: Candidate) -> None:
        """Count the costs of one partition again, once, before its schedule is reported.

        The file of costs is sealed against damage; whoever forges seals too is found out here.

        Raises
        ------
        InputError : where the file was wrong; what is known to be wrong is mended by then
        """
        if candidate.division in self._questioned or search.limits.expired:
            return
        self._questioned.add(candidate.division)
        try:
            problem = self._recount(candidate.division, search.limits)
        except LimitReachedError:
            return
        if problem.content_hash != candidate.problem.content_hash:
            raise InputError(
                self._costs or str(cache_folder()),
                None,
                "cached cost tables disagree with their mappings; call again or remove them",
            )


def _begun(
    search: CodesignSearch, problem: SchedulingProblem, limits: Limits, listener: Listener | None = None
) -> ScheduleSearch:
    return ScheduleSearch(ScheduleGoal(problem, search.problem.objective), limits, listener)


def _resumed(
    search: CodesignSearch, candidate: Candidate, limits: Limits, listener: Listener | None = None
) -> ScheduleSearch:
    """A further search for a schedule on a partition, with what is known of it."""
    view = _begun(search, candidate.problem, limits, listener)
    origin = Origin.EXACT if candidate.visits else Origin.HEURISTIC
    view.confirm(candidate.schedule, "earlier visit" if candidate.visits else _HERALD, origin=origin)
    view.raise_bound(candidate.bound, "earlier visit")
    return view


def _offer_herald(probe: ScheduleSearch, ordering: Ordering) -> None:
    """One of Herald's schedules, balanced by loads."""
    problem = probe.problem.instance
    settings = HeraldSettings(metric_of(probe.problem.objective), ordering, patience=0)
    probe.offer(herald(problem, settings, lambda: probe.limits.expired), _HERALD, origin=Origin.HEURISTIC)


def _scheduled(search: CodesignSearch, candidate: Candidate) -> Candidate:
    """What is known of a partition after a slice of exact scheduling; what that finds counts at once."""
    assert search.key is not None
    longest = _SLICE * 2**candidate.visits
    limits = search.limits.share(longest=longest).stopping(BoundReaches(search.goal(search.key)))
    inner: ScheduleSearch | None = None

    def learn(inner: ScheduleSearch) -> Candidate:
        result = inner.result(CpSatScheduler.name, CpSatScheduler().version)
        return search.learn(replace(candidate, result=result, visits=candidate.visits + 1))

    def notify(point: TracePoint) -> None:
        if point.key is not None and point.bound is not None and inner is not None:
            learn(inner)

    inner = _resumed(search, candidate, limits, notify)
    CpSatScheduler().solve(inner)
    return learn(inner)


def _figures(result: ScheduleResult) -> tuple[int, Fraction]:
    """Cycles and energy."""
    assert result.evaluation is not None
    return result.evaluation.makespan, result.evaluation.energy
