"""Beam searches start over where they gain nothing any more: where cuts end depends on where they began."""

from __future__ import annotations

import math

from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch

_STALE, _STALE_PART = 40, 0.4  # searches without gain after which an attempt ends, also as a part of its own
_LEFT = 3.0  # times what the attempt has lasted must be left for another one, which ends by then
_WORSE = 0.05  # part of the gap by which a schedule may be worse than the best, to be cut


class Attempts:
    """The schedules that searches begin with, from one start to the next.

    Once no time is left to start over, whatever is the best schedule known is improved.

    Parameters
    ----------
    again : whether they start over at all

    Attributes
    ----------
    anew : whether the attempt has no schedule of its own yet
    spent : seconds that it has searched all of a schedule
    """

    def __init__(self, again: bool) -> None:
        self._again = again
        self._start(0.0, math.inf, adopts=True)

    def _start(self, begun: float, until: float, adopts: bool) -> None:
        self._until = until
        self._adopts = adopts  # whether it goes on with what others find
        self._best = self._latest = math.inf
        self._schedules: dict[float, Schedule] = {}  # by the logarithms of their values
        self._searches = self._gained = 0
        self._begun, self.spent = begun, 0.0

    @property
    def anew(self) -> bool:
        return not self._adopts and not self._schedules

    def base(self, search: ScheduleSearch) -> Schedule:
        """The schedule that is cut next: the latest if it is nearly as good as the attempt's best one."""
        assert search.answer is not None
        assert search.key is not None
        key = math.log(search.key)
        if self._adopts and key < self._best:
            self._best, self._schedules[key] = key, search.answer
        if not self._schedules:
            return search.answer
        gap = self._best - math.log(search.bound) if search.bound else 0.0
        near = self._latest <= self._best + _WORSE * gap
        return self._schedules[self._latest if near else self._best]

    def searched(self, search: ScheduleSearch, left: float) -> None:
        """A search has ended; after many that gained nothing, another attempt begins.

        Parameters
        ----------
        search : of which it was
        left : seconds
        """
        self._searches += 1
        now = search.limits.elapsed
        stale = self._searches - self._gained >= max(_STALE, _STALE_PART * self._searches)
        if not self._again or not (stale or now > self._until):
            return
        again = (now - self._begun) * _LEFT < left < math.inf
        if again or not self._adopts:
            self._start(now, now + left / _LEFT, adopts=not again)

    def note(self, value: float, schedule: Schedule) -> None:
        """A schedule that was found, by the logarithm of its value."""
        if value < self._best:
            self._best, self._gained = value, self._searches + 1
        self._latest = value
        self._schedules[value] = schedule
        self._schedules = {key: self._schedules[key] for key in (self._best, self._latest)}
