"""Attempts of beam searches: searches that gain nothing any more start over, since where cuts end depends on
where they began.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch

_STALE, _STALE_PART = 40, 0.4  # searches without gain after which an attempt ends, also as a part of its own
_LEFT = 3.0  # times what the attempt has lasted must be left for another one, which ends by then
_WORSE = 0.05  # part of the gap by which a schedule may be worse than the best, to be cut


class _Valued(NamedTuple):
    """A schedule and the logarithm of its value."""

    value: float
    schedule: Schedule


class Attempts:
    """The schedules that searches begin with, from one start to the next.

    Once no time is left to start over, whatever is the best schedule known is improved.

    Parameters
    ----------
    again : whether they start over

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
        self._best: _Valued | None = None  # of the attempt's own
        self._latest: _Valued | None = None
        self._searches = self._gained = 0
        self._begun, self._lasted, self.spent = begun, 0.0, 0.0

    @property
    def anew(self) -> bool:
        return not self._adopts and self._best is None

    def base(self, search: ScheduleSearch) -> Schedule:
        """The schedule that is cut next: the latest if it is nearly as good as the attempt's best one."""
        assert search.answer is not None
        assert search.key is not None
        key = math.log(search.key)
        if self._adopts and (self._best is None or key < self._best.value):
            self._best = _Valued(key, search.answer)
        if self._best is None:
            return search.answer
        gap = self._best.value - math.log(search.bound) if search.bound else 0.0
        if self._latest is not None and self._latest.value <= self._best.value + _WORSE * gap:
            return self._latest.schedule
        return self._best.schedule

    def searched(self, search: ScheduleSearch, seconds: float, left: float) -> None:
        """A search has ended; many searches that gained nothing end the attempt.

        Parameters
        ----------
        search : of which it was
        seconds : that it took
        left : seconds
        """
        self._searches += 1
        self._lasted += seconds
        now = search.limits.elapsed
        stale = self._searches - self._gained >= max(_STALE, _STALE_PART * self._searches)
        if not self._again or not (stale or now > self._until):
            return
        again = (now - self._begun) * _LEFT < left < math.inf
        if again or not self._adopts:
            self._start(now, now + left / _LEFT, adopts=not again)

    def note(self, value: float, schedule: Schedule) -> None:
        """A schedule that was found, by the logarithm of its value."""
        self._latest = _Valued(value, schedule)
        if self._best is None or value < self._best.value:
            self._best, self._gained = self._latest, self._searches + 1
