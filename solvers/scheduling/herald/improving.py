"""Improving schedules on one thread by what pays most: beams, dispatching, walks, neighbourhoods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.scheduling.herald.beams.beam_search import BeamSearch
from tilewright.solvers.scheduling.herald.merged_search import MergedSearch
from tilewright.solvers.scheduling.herald.merging import merged
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.dispatching import Dispatching
from tilewright.solvers.scheduling.herald.walks.prices import Prices
from tilewright.solvers.scheduling.herald.windows import WindowSearch

_SURE = ("dispatching", "annealing")  # turns before all time goes to a long walk, where there is enough
_FIRST = (*_SURE, "windows")  # turns before gains decide
_MANY = 2  # chains per engine, from which on there are beams
_FIRST_OF_MANY = ("dispatching", "beam", "annealing", "beam", "windows")
_FEWER = 0.6  # of the tasks, at most, that merging must leave
_MEMORY = 0.5  # weight of the earlier gains in a mean
_NOTABLE = 0.005  # part of the gap per second; methods that gain less share the time
_SHARES = {"annealing": 2.0, "beam": 12.0, "dispatching": 1.0, "merged tasks": 12.0, "windows": 1.0}


class Improver:
    """Time goes to the method that lately gained most per second, and is divided where none gains.

    Parameters
    ----------
    problem : to be scheduled
    options : of every task
    seed : of all random choices
    prices : of engines and energy; dispatching and neighbourhoods use the first ones
    walks : whether a walk comes before beams, and these start over where they gain nothing
    """

    def __init__(
        self,
        problem: SchedulingProblem,
        options: Sequence[tuple[Option, ...]],
        seed: int,
        prices: Sequence[Prices],
        walks: bool = False,
    ) -> None:
        self.annealing = ScheduleAnnealing(problem, options, seed, prices)
        self.windows = WindowSearch(problem, options, seed, prices[0])
        self._dispatching = Dispatching(problem, options, seed, prices[0])
        beams = BeamSearch(problem, options, seed, prices, self.annealing, again=walks)
        many = beams.count >= _MANY * len(problem.engines)
        self._walks = not many
        self._first = _FIRST_OF_MANY if many and not walks else _FIRST
        beam = {"beam": lambda search, _: beams.turn(search)} if many else {}
        merging = {}
        if many:
            part = merged(problem, options, prices[-1 if walks else 0])
            if len(part.stretches) <= _FEWER * len(options):
                whole = MergedSearch(problem, part, seed, prices, walks)
                merging = {"merged tasks": lambda search, _: whole.round(search)}
                self._first = ("dispatching", "merged tasks", *self._first[1:])
        self._rounds: dict[str, Callable[[ScheduleSearch, float], None]] = {
            "annealing": lambda search, until: self.annealing.round(search, until=until),
            **beam,
            **merging,
            "dispatching": lambda search, _: self._dispatching.round(search),
            "windows": lambda search, _: self.windows.round(search),
        }
        self._gain = dict.fromkeys(self._rounds, 0.0)
        self._spent = dict.fromkeys(self._rounds, 0.0)
        self._turns = 0

    def run(self, search: ScheduleSearch, until: float = math.inf) -> None:
        """Take turns until the search is done, or has lasted so many seconds.

        Beams go on for a while beyond that: cut to what is left until then, they would be too narrow to gain.
        """
        while not search.done and search.limits.elapsed < until:
            self.turn(search, until)

    def turn(self, search: ScheduleSearch, until: float = math.inf) -> None:
        """One round of one method."""
        if self._walks and self._turns >= len(_SURE) and self.annealing.affords(search, until):
            self.annealing.round(search, until=until, part=1.0)
            return
        name = self._next()
        value, begun, points = search.key, search.limits.elapsed, len(search.trace)
        self._rounds[name](search, until)
        seconds = max(1e-3, search.limits.elapsed - begun)
        gained = 0.0
        if value is not None and value > (search.bound or 0):
            gap = value - (search.bound or 0)
            gained = float(gain_of(value, search.trace[points:], name) / gap) / seconds
        if self._turns:  # the first one's schedules are far better than those that were there
            self._gain[name] = _MEMORY * self._gain[name] + (1 - _MEMORY) * gained
        self._spent[name] += seconds
        self._turns += 1

    def _next(self) -> str:
        if self._turns < len(self._first):
            return self._first[self._turns]
        best = max(self._gain, key=self._gain.__getitem__)
        if self._gain[best] >= _NOTABLE:
            return best
        return min(self._spent, key=lambda name: self._spent[name] / _SHARES[name])


def gain_of(value: Fraction, points: Iterable[TracePoint], source: str) -> Fraction:
    """How much a value has fallen by schedules of one source; other threads find schedules, too.

    Parameters
    ----------
    value : before the first point
    points : of a trace, one after the other
    source : the method's name there
    """
    gained = Fraction(0)
    for point in points:
        if point.improved and point.key is not None:
            gained += value - point.key if point.source == source else 0
            value = point.key
    return gained
