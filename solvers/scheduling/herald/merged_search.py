"""Searching a problem of merged tasks on behalf of the whole one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.result import Origin, TracePoint
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.formulation.scheduling.herald.timeline import in_start_order
from tilewright.formulation.stopping import Running, Stop
from tilewright.solvers.scheduling.herald.beams.beam_search import BeamSearch
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds
from tilewright.solvers.scheduling.herald.merging import Merged
from tilewright.solvers.scheduling.herald.walks.annealing import Pace, ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_SOURCE = "merged tasks"
_PART, _SECONDS = 0.05, 2.0  # of the time that is left, for a round; without a limit


@dataclass(frozen=True, slots=True)
class _Ended(Stop):
    """The search of the whole problem is done."""

    whole: ScheduleSearch

    def holds(self, elapsed: float, search: Running | None) -> bool:
        return self.whole.done


class MergedSearch:
    """Beams over merged tasks; each schedule that is better than those before it is offered as a whole.

    Parameters
    ----------
    problem : the whole one
    part : the same in stretches
    seed : of all random choices
    prices : what engines and energy are worth
    again : whether searches that gain nothing start over
    """

    def __init__(
        self,
        problem: SchedulingProblem,
        part: Merged,
        seed: int,
        prices: Sequence[Prices],
        again: bool = False,
    ) -> None:
        self._problem, self._part = problem, part
        self._options = [task.options for task in part.problem.tasks]
        self._annealing = ScheduleAnnealing(part.problem, self._options, seed, prices)
        self._beams = BeamSearch(part.problem, self._options, seed, prices, self._annealing, again)
        self._search: ScheduleSearch | None = None

    def round(self, search: ScheduleSearch) -> None:
        """Beams for a part of the time that is left.

        Parameters
        ----------
        search : of the whole problem
        """
        if self._search is None:
            self._search = self._begun(search)
        left = Pace.seconds(search)
        end = search.limits.elapsed + (_PART * left if left < math.inf else _SECONDS)
        while not self._search.done and search.limits.elapsed < end:
            self._beams.round(self._search, until=end)

    def _begun(self, whole: ScheduleSearch) -> ScheduleSearch:
        """A search of stretches, with a bound and a first schedule."""

        def offer(point: TracePoint) -> None:
            if point.improved and search.answer is not None:
                schedule = in_start_order(self._problem, *self._part.placed(search.answer))
                whole.confirm(schedule, _SOURCE, origin=Origin.HEURISTIC)

        goal = ScheduleGoal(self._part.problem, whole.problem.objective)
        search = ScheduleSearch(goal, whole.limits.stopping(_Ended(whole)), offer, exact=False)
        basic_bounds(search, self._options)
        search.confirm(self._annealing.cheapest(), "cheapest options", origin=Origin.HEURISTIC)
        return search
