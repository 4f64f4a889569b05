"""Simulated annealing over options and priorities, decoded by list scheduling."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.formulation.scheduling.herald.timeline import in_start_order
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.scheduling.herald import compiled
from tilewright.solvers.scheduling.herald.prices import Prices, even_prices

_SLICE = 0.3  # seconds between looks at limits
_BLEND = 1.0
_HOT, _COLD = (1e-3, 3e-4), 1e-4  # as parts of the cost; rounds take turns
_STARTS = 6  # rounds from the LP's assignment before the best schedule is annealed on
_AGAIN = 5  # later every so manyeth round begins again
_STEPS = 220  # per task, in the first rounds
_GROWTH = 1.15
_PART = 1 / 8  # of the time that is left, for one round
_TRIAL = 50  # steps before the speed is known


class Pace:
    """Cuts rounds of annealing into slices, between which limits are looked at.

    Parameters
    ----------
    steps : of one round, unless its part of the time that is left is shorter
    seed : of all rounds

    Attributes
    ----------
    speed : steps per second in the latest slice; 0 before the first one
    """

    def __init__(self, steps: float, seed: int) -> None:
        self.steps, self.speed = steps, 0.0
        self._seed = seed

    def slices(
        self, search: ScheduleSearch, hot: float, cold: float, number: int
    ) -> Iterator[compiled.Cooling]:
        """The slices of one round; each is measured until the next one is asked for.

        Parameters
        ----------
        search : whose limits count
        hot, cold : first and last temperature of the round
        number : of the round
        """
        passed = 0.0
        while passed < 1 and not search.done:
            whole = self.steps
            left = search.limits.remaining
            if left is not None and self.speed:
                whole = min(whole, max(_TRIAL, _PART * left * self.speed))
            steps = max(_TRIAL, min(int(self.speed * _SLICE), int(whole * (1 - passed)) + 1))
            until = min(1.0, passed + steps / whole)
            first, last = (hot * (cold / hot) ** at for at in (passed, until))
            seed = (self._seed * 7919 + number * 104729 + int(passed * 1000)) % 2**31
            moment = time.monotonic()
            yield compiled.Cooling(steps, first, last, seed)
            self.speed = steps / max(1e-6, time.monotonic() - moment)
            passed = until


class ScheduleAnnealing:
    """Walks over a problem, one round from hot to cold after the other.

    Parameters
    ----------
    options : per task, the options to choose from
    prices : what engines and energy are worth: taken in turn by rounds that begin again, while others keep
        to those that led to the best schedule; by default all engines the same
    """

    def __init__(
        self,
        problem: SchedulingProblem,
        options: Sequence[tuple[Option, ...]],
        seed: int,
        prices: Sequence[Prices] = (),
    ) -> None:
        self._problem = problem
        self._options = options
        self._seed = seed
        self._all_prices = tuple(prices) or (even_prices(problem),)
        self._prices = self._all_prices[0]
        self._best: tuple[Fraction, Prices] | None = None  # value of an own schedule, and by which prices
        self._seeds: list[Schedule] = []
        self._number = 0
        self._pace = Pace(float(_STEPS * len(problem.tasks)), seed)
        self._graph = task_graph(problem, options)
        self._draws = compiled.Draws(
            energies(options),
            np.array([len(own) for own in options], np.int64),
            np.cumsum(np.sqrt(self._graph.cycles.max(axis=1).astype(np.float64))),
        )

    def decode(
        self, choice: Sequence[int], priority: Sequence[float], delay: Sequence[int] | None = None
    ) -> Schedule:
        """The schedule of options, priorities and delays."""
        tasks, engines = len(self._problem.tasks), len(self._problem.engines)
        chosen = np.array(choice, np.int64)
        state = compiled.State(
            chosen,
            np.array(priority, np.float64),
            np.array([0] * tasks if delay is None else delay, np.int64),
        )
        dispatch = compiled.Dispatch(np.zeros(tasks, np.int64), np.zeros(tasks, np.int64))
        times = compiled.timetable(tasks, engines)
        compiled.list_schedule(self._graph, state, self._compiled_prices, np.inf, 0, dispatch, times)
        begun = {task: int(start) for task, start in enumerate(times.starts)}
        options = {task: self._options[task][int(option)] for task, option in enumerate(chosen)}
        return in_start_order(self._problem, begun, options)  # which knows of the shared memory, too

    @property
    def _compiled_prices(self) -> compiled.EnginePrices:
        return compiled.EnginePrices(np.array(self._prices.engines, np.float64), _BLEND)

    def suggest(self, schedule: Schedule) -> None:
        """Begin the next round here, even where better schedules are known."""
        self._seeds.append(schedule)

    def run(self, search: ScheduleSearch, source: str = "annealing", rounds: int | None = None) -> None:
        """Anneal round by round until the search is done (or so many rounds)."""
        last = None if rounds is None else self._number + rounds
        while not search.done and self._number != last:
            self.round(search, source)

    def round(self, search: ScheduleSearch, source: str = "annealing") -> None:
        """One walk from hot to cold: from a suggestion, the LP's assignment, or the best schedule known."""
        by_energy = search.problem.objective is ScheduleObjective.EDP
        anew = bool(self._seeds) or search.answer is None or self._number < _STARTS
        anew = anew or self._number % _AGAIN == 0
        if anew:
            self._prices = self._all_prices[self._number % len(self._all_prices)]
        elif self._best is not None:
            self._prices = self._best[1]
        state = self._beginning(search, anew)
        if not self._pace.speed:
            self.walk(by_energy, state, compiled.Cooling(1, _COLD, _COLD, 0))  # compiles
        top = _HOT[self._number // len(self._all_prices) % len(_HOT)]
        for cooling in self._pace.slices(search, top, _COLD, self._number):
            _, choice, priority, delay = self.walk(by_energy, state, cooling)
            key = search.confirm(self.decode(choice, priority, delay), source, origin=Origin.HEURISTIC)
            if self._best is None or key < self._best[0]:
                self._best = key, self._prices
        self._number += 1
        if self._number > _STARTS:
            self._pace.steps *= _GROWTH

    def _beginning(self, search: ScheduleSearch, anew: bool) -> compiled.State:
        if self._seeds:
            return self._state_of(self._seeds.pop())
        if anew or search.answer is None:
            return self.cheapest()
        return self._state_of(search.answer)

    def walk(
        self, by_energy: bool, state: compiled.State, cooling: compiled.Cooling
    ) -> tuple[float, list[int], list[float], list[int]]:
        """Walk on from a state, in place; returns the best value's logarithm and the state it has."""
        value, (choice, priority, delay) = compiled.anneal(
            self._graph, self._draws, self._compiled_prices, by_energy, state, cooling
        )
        return value, choice.tolist(), priority.tolist(), delay.tolist()

    def cheapest(self) -> compiled.State:
        """Every task where it costs least by the prices, the longest chains first."""
        choice = [min(range(len(own)), key=lambda i: self._prices.of(own[i])) for own in self._options]
        chosen = [own[i] for own, i in zip(self._options, choice, strict=True)]
        return compiled.State(
            np.array(choice, np.int64),
            np.array(tails(self._problem, chosen)),
            np.zeros(len(choice), np.int64),
        )

    def _state_of(self, schedule: Schedule) -> compiled.State:
        """Options and priorities whose list schedule is close to a given one."""
        tasks = len(self._problem.tasks)
        choice, priority = np.zeros(tasks, np.int64), np.zeros(tasks)
        makespan = schedule.makespan
        for placement in schedule.placements:
            choice[placement.task] = self._options[placement.task].index(placement.option)
            priority[placement.task] = makespan - placement.start + 1.0  # what starts early goes first
        return compiled.State(choice, priority, np.zeros(tasks, np.int64))


def tails(problem: SchedulingProblem, chosen: Sequence[Option]) -> list[float]:
    """Cycles from a task's start to the end of its chain: the priority of list scheduling."""
    tail = [0.0] * len(problem.tasks)
    for task in reversed(problem.order):
        tail[task] = chosen[task].cycles + max((tail[other] for other in problem.after[task]), default=0.0)
    return tail


def task_graph(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> compiled.TaskGraph:
    """Tasks, their options and what depends on what, as arrays."""
    shape = len(options), max(len(own) for own in options)
    layouts = {name: i for i, name in enumerate(sorted({o.layout for own in options for o in own}))}
    engine, cycles, fetch, layout = (np.zeros(shape, np.int64) for _ in range(4))
    for task, own in enumerate(options):
        for i, option in enumerate(own):
            engine[task, i], cycles[task, i] = option.engine, option.cycles
            fetch[task, i], layout[task, i] = option.fetch, layouts[option.layout]
    edges = (*_rows(problem.before), *_rows(problem.after))
    return compiled.TaskGraph(engine, cycles, fetch, layout, problem.context_cycles, *edges)


def energies(options: Sequence[tuple[Option, ...]]) -> Floats:
    """The energy of every option, in pJ, shape (tasks, options)."""
    energy = np.zeros((len(options), max(len(own) for own in options)))
    for task, own in enumerate(options):
        energy[task, : len(own)] = [float(option.energy) for option in own]
    return energy


def _rows(lists: Sequence[Sequence[int]]) -> tuple[Int64s, Int64s]:
    """Lists as compressed rows."""
    at = np.zeros(len(lists) + 1, np.int64)
    at[1:] = np.cumsum([len(row) for row in lists])
    return at, np.array([x for row in lists for x in row], np.int64)
