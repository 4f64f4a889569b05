"""Improving schedules on one thread by whichever method pays most: dispatching, annealing, neighbourhoods."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.scheduling.herald.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.dispatching import Dispatching
from tilewright.solvers.scheduling.herald.prices import Prices
from tilewright.solvers.scheduling.herald.windows import WindowSearch

_SURE = ("dispatching", "annealing")  # turns before all time goes to a long walk, where there is enough
_FIRST = (*_SURE, "windows")  # turns before gains decide
_MEMORY = 0.7  # weight of the earlier gains in a mean
_CURIOUS = 0.15  # part of the turns that a method which has paid less gets


class Improver:
    """Shares time between methods by what each of them gained per second lately.

    Parameters
    ----------
    problem : to be scheduled
    options : of every task
    seed : of all random choices
    prices : of engines and energy; dispatching and neighbourhoods use the first ones
    """

    def __init__(
        self,
        problem: SchedulingProblem,
        options: Sequence[tuple[Option, ...]],
        seed: int,
        prices: Sequence[Prices],
    ) -> None:
        self.annealing = ScheduleAnnealing(problem, options, seed, prices)
        self.windows = WindowSearch(problem, options, seed, prices[0])
        self._random = random.Random(seed)
        self._dispatching = Dispatching(problem, options, seed, prices[0])
        self._rounds: dict[str, Callable[[ScheduleSearch, float], None]] = {
            "annealing": lambda search, until: self.annealing.round(search, until=until),
            "dispatching": lambda search, _: self._dispatching.round(search),
            "windows": lambda search, _: self.windows.round(search),
        }
        self._gain = dict.fromkeys(self._rounds, 0.0)
        self._turns = 0

    def run(self, search: ScheduleSearch, until: float = math.inf) -> None:
        """Take turns until the search is done, or has lasted so many seconds."""
        while not search.done and search.limits.elapsed < until:
            self.turn(search, until)

    def turn(self, search: ScheduleSearch, until: float = math.inf) -> None:
        """One round of one method."""
        name = self._next(search, until)
        value, begun = search.key, time.monotonic()
        self._rounds[name](search, until)
        seconds = max(1e-3, time.monotonic() - begun)
        gained = 0.0
        if value is not None and search.key is not None and value > 0:
            gained = float(1 - search.key / value) / seconds
        self._gain[name] = _MEMORY * self._gain[name] + (1 - _MEMORY) * gained
        self._turns += 1

    def _next(self, search: ScheduleSearch, until: float) -> str:
        if self._turns >= len(_SURE) and self.annealing.affords(search, until):
            return "annealing"
        if self._turns < len(_FIRST):
            return _FIRST[self._turns]
        first, *behind = sorted(self._gain, key=lambda name: -self._gain[name])
        return self._random.choice(behind) if self._random.random() < _CURIOUS else first
