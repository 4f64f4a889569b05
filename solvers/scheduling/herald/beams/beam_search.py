"""Schedules by beam searches over what engines take next, each improved by a short cold walk.

Runs of networks are chains that compete for engines.  How far each of them is says nearly all about what a
schedule can still become, so that thousands of partial schedules with the same time behind them can be
compared, by what they have lost: cycles idle, and tasks on engines that are not the cheapest.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.herald.beams import beam_kernel, beam_pool_kernel
from tilewright.solvers.scheduling.herald.beams.beam_attempts import Attempts
from tilewright.solvers.scheduling.herald.beams.beam_chains import ALL, Chaining, Telling
from tilewright.solvers.scheduling.herald.walks.annealing import Pace, ScheduleAnnealing, energies
from tilewright.solvers.scheduling.herald.walks.list_kernel import TaskGraph
from tilewright.solvers.scheduling.herald.walks.prices import Prices
from tilewright.solvers.scheduling.herald.walks.sequence_times_kernel import Sequences

_HEAVIEST = (0.7, 0.8, 0.9, 0.95)  # parts of the work, of tasks that tell states apart
_PATHS = (0.0,), (0.0, 0.3, 1.0)  # what a cycle of the longest path counts; with few chains
_SPREADS = ((0.15, 0.4), (0.05, 0.15, 0.4))  # relative changes of an engine's price
_WIDTHS, _POOLS = (10, 20, 40, 80, 160, 320, 640), (300, 1000, 3000, 10_000)
_GUIDES = (3e-4, 0.1), (3e-3, 3.0)  # of the horizon, drawn evenly by their logarithms; with few chains
_AIMS = (1.0, 1.25, 1.5, 2.0), (0.7, 0.85, 1.0, 1.25, 1.5)  # of the gap of the incumbent; with few chains
_TELLING = (ALL,), (ALL, Telling(0.9, chains=True), *(Telling(part, chains=False) for part in _HEAVIEST))
_ANEW = 4.0  # the same, where an attempt begins
_PARTS = (0.005, 0.01, 0.02), (0.002, 0.005, 0.01, 0.02)  # of the time left, for a search of all, of a part
_TURN = 0.04  # of the time left, for searches one after the other
_NARROW = 10  # the least width that this may leave
_WHOLE, _MOST = 0.15, 10.0  # of the time left, and seconds at most, in which all is searched
_RARELY = 0.1  # part of the searches after that which search all
_DEPTH = 3.5  # expansions per task and state of a pool, beside one per pool
_AGAIN = 0.5  # part of the searches that are like the latest that paid
_NEAR = (0.5, 2.0)  # their guide, over its own
_FEW, _MOST_WORK = 12, Telling(0.9, chains=True)  # chains, at most, and the work that they must be to be few
_KEPT = 0.05, 0.95  # of the makespan, drawn evenly
_STATES, _FIELDS = 40, 4_000_000  # at the same time: states, times the width, and their fields
_NODES, _NOTED = 2**23, 4  # entries that can be noted; times the states that the pools hold
_FADING = 0.9  # of the seconds per state, which those that end early do not tell
_SLICE = 0.1  # seconds between looks at limits
_TRIAL = 2000  # expansions before the speed is known
_BELOW = 1e-6  # relative, by which a schedule is to cost less


class Shape(NamedTuple):
    """How a search is made.

    Parameters
    ----------
    width, pools : states of a pool, and pools over the horizon
    guide : what long chains count, as a part of the horizon
    aim : the gap that is looked for, over that of the incumbent
    telling : which tasks tell states apart
    path : what a cycle counts by which the chain that ends last ends at the earliest
    """

    width: int
    pools: int
    guide: float
    aim: float
    telling: Telling
    path: float = 0.0


_FIRST = Shape(_NARROW, 1000, 0.003, 1.0, ALL)  # of the first search


class Part(NamedTuple):
    """Where a search begins.

    Parameters
    ----------
    schedule : that is to become better
    kept : what begins before this part of its makespan stays as it is
    mirrored : whether time runs backward: the search keeps the end, and begins there
    """

    schedule: Schedule
    kept: float = 0.0
    mirrored: bool = False


class _Placed(NamedTuple):
    """A task with the index of its option, its begin and its end, in cycles from where a search begins."""

    task: int
    option: int
    start: int
    end: int


class BeamSearch:
    """One beam search after the other, of widths, guides and aims drawn at random.

    Parameters
    ----------
    options : of every task
    prices : what engines and energy are worth, taken in turn
    annealing : what improves their schedules
    again : whether searches that gain nothing start over
    """

    def __init__(
        self,
        problem: SchedulingProblem,
        options: Sequence[tuple[Option, ...]],
        seed: int,
        prices: Sequence[Prices],
        annealing: ScheduleAnnealing,
        again: bool = False,
    ) -> None:
        self._problem, self._options = problem, options
        self._prices, self._annealing = tuple(prices), annealing
        self._random = random.Random(seed)
        self._number = 0
        self._paid = _FIRST
        self._speed = 0.0  # expansions per second
        self._unit = 0.0  # seconds per state of a search that does not end early
        self._chaining = Chaining(problem, options)
        weights = [min(map(prices[0].of, own)) for own in options]
        heaviest = self._chaining.heaviest(weights, _MOST_WORK)
        self._few = len({self._chaining.chain[task] for task in heaviest}) <= _FEW
        self._attempts = Attempts(again)
        self._heaviest: dict[tuple[Prices, Telling], frozenset[int]] = {}
        self.count = self._chaining.count
        """Chains of tasks."""

    def turn(self, search: ScheduleSearch) -> None:
        """Searches for a part of the time that is left: what a single one gains says little.

        Parameters
        ----------
        search : is offered what is better
        """
        left = Pace.seconds(search)
        end = search.limits.elapsed + (_TURN * left if left < math.inf else 0.0)
        self.round(search)
        while not search.done and search.limits.elapsed < end:
            self.round(search)

    def round(self, search: ScheduleSearch, source: str = "beam", until: float = math.inf) -> None:
        """One search, and a walk of as much time from what it finds.

        Parameters
        ----------
        search : is offered what is better
        source : by which its trace names this
        until : when the round ends at the latest, in seconds of the search
        """
        begun = search.limits.elapsed
        left = Pace.seconds(search, until)
        shape, part = _FIRST, Part(self._attempts.base(search))
        if self._number:
            draw = self._random.choice
            guide = math.exp(self._random.uniform(*map(math.log, _GUIDES[self._few])))
            shape = Shape(
                draw(_WIDTHS),
                draw(_POOLS),
                guide,
                draw(_AIMS[self._few]),
                draw(_TELLING[self._few]),
                draw(_PATHS[self._few]),
            )
            kept = 0.0 if self._is_whole(search, until) else self._random.uniform(*_KEPT)
            part = Part(part.schedule, kept, draw((False, True)))
            if self._random.random() < _AGAIN:
                guide = self._paid.guide * self._random.uniform(*_NEAR)
                shape = shape._replace(guide=guide, telling=self._paid.telling, path=self._paid.path)
            if self._attempts.anew:
                shape = shape._replace(aim=_ANEW)
            shape = shape._replace(width=self._affordable(search, shape, part, until))
        prices = self._prices[self._number % len(self._prices)]
        spreads = self._random.choice(_SPREADS)
        self._number += 1
        lines = self.find(search, prices, spreads, shape, part, until)
        seconds = search.limits.elapsed - begun
        self._unit = max(self._unit * _FADING, seconds / self._size(shape, part))
        self._attempts.spent += seconds * (not part.kept)
        if lines is not None and not search.done:
            before = search.key
            search.confirm(self._annealing.schedule_of(lines), source, origin=Origin.HEURISTIC)
            end = min(until, 2 * search.limits.elapsed - begun)
            value, better = self._annealing.polish(search, lines, source, end)
            self._attempts.note(value, self._annealing.schedule_of(better))
            if search.key != before:
                self._paid = shape
        self._attempts.searched(search, search.limits.elapsed - begun, left)

    def _is_whole(self, search: ScheduleSearch, until: float) -> bool:
        """Whether all is searched next: at first, and now and then."""
        most = min(_MOST, _WHOLE * Pace.seconds(search, until))
        return self._attempts.anew or self._attempts.spent < most or self._random.random() < _RARELY

    def _affordable(self, search: ScheduleSearch, shape: Shape, part: Part, until: float) -> int:
        """The width of a search that takes a part of the time that is left."""
        seconds = self._random.choice(_PARTS[part.kept > 0]) * Pace.seconds(search, until)
        if not self._unit or seconds == math.inf:
            return shape.width
        width = int(seconds / (self._unit * self._size(shape._replace(width=1), part)))
        return max(min(shape.width, _NARROW), min(shape.width, width))

    def _size(self, shape: Shape, part: Part) -> float:
        """About how many states a search expands."""
        return shape.width * (1 - part.kept) * (shape.pools + _DEPTH * len(self._options))

    def find(
        self,
        search: ScheduleSearch,
        prices: Prices,
        spreads: Sequence[float],
        shape: Shape,
        part: Part,
        until: float = math.inf,
    ) -> Sequences | None:
        """The sequences of a schedule whose gap is below a part of the given one's; none if none is found.

        Parameters
        ----------
        search : whose limits count
        prices : what engines and energy are worth
        spreads : relative changes of an engine's price
        shape : how it is made
        part : where it begins
        until : when the search ends at the latest, in seconds of the search
        """
        width, pools, guide, aimed, telling, path = shape
        worth = worth_of(self._options, self._annealing.graph, price_sets(prices, spreads), prices.energy)
        length = part.schedule.makespan
        own = length + prices.energy * sum(float(placed.option.energy) for placed in part.schedule.placements)
        order = self._in_turn(part.schedule, part.mirrored)
        placed = [before for before in order if before.start < part.kept * length]
        rest = [after.task for after in order[len(placed) :]]
        if not rest:
            return None
        chains, behind = self._behind(placed, rest, prices, telling)
        least = float(np.dot(prices.engines, behind.free) + worth.least[0, rest].sum()) + behind.spent
        cost = (least + aimed * (own - least)) * (1 - _BELOW)
        horizon = math.ceil(cost - behind.spent - float(worth.spent[rest].min(1).sum())) + 1
        if horizon <= 1:
            return None
        tasks, engines = len(self._options), len(self._problem.engines)
        aim = beam_pool_kernel.Aim(cost, horizon, guide * horizon, path)
        fields = 2 + 2 * engines + 2 * len(behind.ready)
        states = max(2 * width, min(_STATES * width, _FIELDS // fields))
        nodes = min(_NODES, _NOTED * width * (pools + 2 * tasks))
        beam = beam_pool_kernel.room(states, width, pools, fields, len(worth.price), nodes)
        beam_kernel.begin(chains, worth, aim, beam, behind)
        while not search.done and search.limits.elapsed < until:
            begun = search.limits.elapsed
            wanted = int(max(_TRIAL, self._speed * _SLICE))
            expanded = beam_kernel.advance(self._annealing.graph, chains, worth, aim, beam, wanted)
            if expanded == 0:
                break
            self._speed = expanded / max(1e-6, search.limits.elapsed - begun)
        if beam.best[1] < 0:
            return None
        most = worth.spent.shape[1]
        row = np.zeros(len(rest), np.int64)
        beam_kernel.taken(beam, tasks * most, row)
        taken = [(before.task, before.option) for before in placed]
        taken += [divmod(int(entry), most) for entry in row[::-1]]
        return self._annealing.lines_in_turn(reversed(taken) if part.mirrored else taken)

    def _in_turn(self, schedule: Schedule, mirrored: bool) -> list[_Placed]:
        """All tasks, in the order in which they begin, or end where time runs backward."""
        rank = {task: number for number, task in enumerate(self._problem.order)}
        length, sign = schedule.makespan, -1 if mirrored else 1
        placed = []
        for own in schedule.placements:
            start = length - own.end if mirrored else own.start
            option = self._options[own.task].index(own.option)
            placed.append(_Placed(own.task, option, start, start + own.option.cycles))
        return sorted(placed, key=lambda own: (own.start, own.end, sign * rank[own.task]))

    def _behind(
        self, placed: Sequence[_Placed], rest: Sequence[int], prices: Prices, telling: Telling
    ) -> tuple[beam_pool_kernel.Chains, beam_pool_kernel.Begin]:
        """The chains of what is left, and what is behind them.

        Parameters
        ----------
        placed : what is placed already, in turn
        rest : the other tasks, in turn
        prices : what engines and energy are worth
        telling : which tasks tell states apart
        """
        free, last = np.zeros((2, len(self._problem.engines)), np.int64)
        ready = [0] * self.count
        spent = 0.0
        for task, number, start, end in placed:
            option = self._options[task][number]
            free[option.engine], last[option.engine] = end, start
            ready[self._chaining.chain[task]] = max(ready[self._chaining.chain[task]], end)
            spent += prices.energy * float(option.energy)
        if (prices, telling) not in self._heaviest:
            weights = [min(map(prices.of, own)) for own in self._options]
            self._heaviest[prices, telling] = self._chaining.heaviest(weights, telling)
        chains, begins = self._chaining.chains(rest, ready, self._heaviest[prices, telling])
        return chains, beam_pool_kernel.Begin(free, last, begins, spent)


def price_sets(prices: Prices, spreads: Sequence[float]) -> Floats:
    """Prices of engines, shape (prices, engines): those given, and with one engine dearer or cheaper.

    Whatever the prices, tasks at their cheapest options bound the cost; several of them keep the rest of a
    schedule from being work for one engine alone.
    """
    own = np.array(prices.engines)
    rows = [own]
    for spread in spreads:
        for engine in range(len(own)):
            for factor in (1 + spread, 1 / (1 + spread)):
                row = own.copy()
                row[engine] *= factor
                rows.append(row / row.sum())
    return np.array(rows)


def worth_of(
    options: Sequence[tuple[Option, ...]], graph: TaskGraph, rows: Floats, energy: float
) -> beam_pool_kernel.Worth:
    """What tasks and options cost by each row of prices, in cycles.

    Parameters
    ----------
    options : of every task
    graph : the same as arrays
    rows : shape (prices, engines)
    energy : what a pJ is worth
    """
    counts = np.array([len(own) for own in options])
    spent = energy * energies(options)
    spent[np.arange(spent.shape[1]) >= counts[:, None]] = np.inf
    least = (rows[:, graph.engine] * graph.cycles + spent).min(2)
    return beam_pool_kernel.Worth(rows, least, spent)
