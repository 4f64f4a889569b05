"""Simulated annealing over options and engines' sequences, and list scheduling of options and priorities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.formulation.scheduling.herald.timeline import in_start_order
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.scheduling.herald.walks import list_kernel, sequence_kernel, sequence_times_kernel
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices

_SLICE = 0.3  # seconds between looks at limits
_HOT, _COLD = 1.0, 0.03  # of the part of the makespan that a task takes, were all of them equal
_STEPS, _MOST = 1000.0, 20_000.0  # per task, of the first round without a limit, and of any
_ENOUGH = 3000.0  # per task; a round of fewer begins colder
_GROWTH = 2.0
_WARM, _FROZEN = 0.1, 0.02  # of the same, where a schedule is improved, not replaced
_ENDLESS = 1e12  # steps
_PART = 0.15  # of the time that is left, for a round that is not the last one
_TRIAL = 200  # steps before the speed is known


class Pace:
    """Cuts rounds of annealing into slices, between which limits are looked at.

    Parameters
    ----------
    seed : of all rounds
    steps : of one round, unless its part of the time that is left is shorter
    part : of the time that is left, at most, for one round

    Attributes
    ----------
    speed : steps per second in the latest slice; 0 before the first one
    """

    def __init__(self, seed: int, steps: float = 1.0, part: float = 1.0) -> None:
        self.steps, self.part, self.speed = steps, part, 0.0
        self._seed = seed

    def slices(
        self, search: ScheduleSearch, hot: float, cold: float, number: int, until: float = math.inf
    ) -> Iterator[list_kernel.Cooling]:
        """The slices of one round; each is measured until the next one is asked for.

        Parameters
        ----------
        search : whose limits count
        hot, cold : first and last temperature of the round
        number : of the round
        until : when the round ends at the latest, in seconds of the search
        """
        limits, passed = search.limits, 0.0
        end = min(until, limits.elapsed + self.part * self.seconds(search, until))
        while passed < 1 and not search.done:
            left = (1 - passed) * self.steps
            if self.speed:
                left = min(left, max(_TRIAL, (end - limits.elapsed) * self.speed))
            steps = max(_TRIAL, min(int(self.speed * _SLICE), int(left) + 1))
            after = passed + (1 - passed) * min(1.0, steps / left)
            first, last = (hot * (cold / hot) ** at for at in (passed, after))
            seed = (self._seed * 7919 + number * 104729 + int(passed * 1000)) % 2**31
            begun = limits.elapsed
            yield list_kernel.Cooling(steps, first, last, seed)
            self.speed = steps / max(1e-6, limits.elapsed - begun)
            passed = after

    @staticmethod
    def seconds(search: ScheduleSearch, until: float = math.inf) -> float:
        """How long the search may go on, at most ``until`` it has lasted so many seconds."""
        left = search.limits.remaining
        return min(math.inf if left is None else left, until - search.limits.elapsed)


class ScheduleAnnealing:
    """Walks over a problem, one round from hot to cold after the other.

    Parameters
    ----------
    options : per task, the options to choose from
    prices : what engines and energy are worth, taken in turn; by default all engines the same
    """

    def __init__(
        self,
        problem: SchedulingProblem,
        options: Sequence[tuple[Option, ...]],
        seed: int,
        prices: Sequence[Prices] = (),
    ) -> None:
        self._problem, self._options = problem, options
        self._prices = tuple(prices) or (even_prices(problem),)
        self._number = 0
        self._pace = Pace(seed)
        self._polishing = Pace(seed, _ENDLESS)
        self._polished = 0
        self.graph = task_graph(problem, options)
        """Tasks and options as arrays."""
        self._energy = energies(options)
        self._count = np.array([len(own) for own in options], np.int64)

    def decode(self, choice: Sequence[int], priority: Sequence[float]) -> Schedule:
        """The list schedule of options and priorities."""
        starts = list_kernel.list_schedule(
            self.graph, np.array(choice, np.int64), np.array(priority, np.float64), len(self._problem.engines)
        )
        return self._schedule(starts, choice)

    def run(self, search: ScheduleSearch, source: str = "annealing", rounds: int | None = None) -> None:
        """Anneal round by round until the search is done (or so many rounds)."""
        last = None if rounds is None else self._number + rounds
        while not search.done and self._number != last:
            self.round(search, source, part=1.0 if self._number and self.affords(search) else _PART)

    def round(
        self, search: ScheduleSearch, source: str = "annealing", until: float = math.inf, part: float = _PART
    ) -> None:
        """One walk from hot to cold, from the best schedule known.

        A walk of few steps per task begins colder: it would not find back to where it began.

        Parameters
        ----------
        search : is offered what is better
        source : by which its trace names this
        until : when the round ends at the latest, in seconds of the search
        part : of the time until then, at most, for the round
        """
        by_energy = search.problem.objective is ScheduleObjective.EDP
        lines = self.lines_of(self.cheapest() if search.answer is None else search.answer)
        unit = len(self._problem.engines) / len(self._options)
        if not self._pace.speed:
            begun = search.limits.elapsed
            self.walk(by_energy, lines, list_kernel.Cooling(_TRIAL, _COLD * unit, _COLD * unit, 0))
            self._pace.speed = _TRIAL / max(1e-6, search.limits.elapsed - begun)
        seconds = self._pace.seconds(search, until)
        self._pace.part = part
        self._pace.steps = len(self._options) * (
            _MOST if seconds < math.inf else min(_MOST, _STEPS * _GROWTH**self._number)
        )
        steps = min(self._pace.steps, self._pace.speed * self._pace.part * seconds)
        hot = max(_HOT * min(1.0, steps / len(self._options) / _ENOUGH), 2 * _COLD)
        slices = self._pace.slices(search, hot * unit, _COLD * unit, self._number, until)
        self._offer_best(search, by_energy, lines, slices, source)
        self._number += 1

    def _offer_best(
        self,
        search: ScheduleSearch,
        by_energy: bool,
        lines: sequence_times_kernel.Sequences,
        slices: Iterator[list_kernel.Cooling],
        source: str,
    ) -> tuple[float, sequence_times_kernel.Sequences]:
        """Walk through slices, offer whatever is the best of all, and return its value's logarithm and it."""
        best, best_lines = math.inf, lines
        for cooling in slices:
            value, better = self.walk(by_energy, lines, cooling)
            if value < best:
                best, best_lines = value, better
                search.confirm(self.schedule_of(better), source, origin=Origin.HEURISTIC)
        return best, best_lines

    def polish(
        self, search: ScheduleSearch, lines: sequence_times_kernel.Sequences, source: str, until: float
    ) -> tuple[float, sequence_times_kernel.Sequences]:
        """A cold walk, which keeps most of what the sequences are; its best value's logarithm, and where.

        Parameters
        ----------
        search : is offered what is better
        lines : to begin with; changed
        source : by which the trace names this
        until : when the walk ends, in seconds of the search
        """
        by_energy = search.problem.objective is ScheduleObjective.EDP
        unit = len(self._problem.engines) / len(self._options)
        slices = self._polishing.slices(search, _WARM * unit, _FROZEN * unit, self._polished, until)
        self._polished += 1
        return self._offer_best(search, by_energy, lines, slices, source)

    def affords(self, search: ScheduleSearch, until: float = math.inf) -> bool:
        """Whether a walk through all the time that is left has steps enough."""
        seconds = self._pace.seconds(search, until)
        return seconds < math.inf and self._pace.speed * seconds >= _ENOUGH * len(self._options)

    def walk(
        self, by_energy: bool, lines: sequence_times_kernel.Sequences, cooling: list_kernel.Cooling
    ) -> tuple[float, sequence_times_kernel.Sequences]:
        """Walk on from sequences, in place; returns the best value's logarithm and the sequences it has."""
        prices = self._prices[self._number % len(self._prices)]
        per_cycle = np.array(prices.engines, np.float64)
        work = sequence_kernel.Work(
            self.graph.cycles * per_cycle[self.graph.engine], self._energy, self._count
        )
        return sequence_kernel.anneal_sequences(self.graph, work, by_energy, lines, cooling)

    def cheapest(self) -> Schedule:
        """Every task where it costs least by the prices, the longest chains first."""
        prices = self._prices[self._number % len(self._prices)]
        choice = [min(range(len(own)), key=lambda i: prices.of(own[i])) for own in self._options]
        chosen = [own[i] for own, i in zip(self._options, choice, strict=True)]
        return self.decode(choice, tails(self._problem, chosen))

    def lines_of(self, schedule: Schedule) -> sequence_times_kernel.Sequences:
        """The sequences of a schedule."""
        placed = sorted(schedule.placements, key=lambda placement: placement.start)
        return self.lines_in_turn((own.task, self._options[own.task].index(own.option)) for own in placed)

    def lines_in_turn(self, taken: Iterable[tuple[int, int]]) -> sequence_times_kernel.Sequences:
        """The sequences of tasks and the indices of their options, in the order in which they begin."""
        tasks, engines = len(self._options), len(self._problem.engines)
        lines = sequence_times_kernel.Sequences(
            np.zeros(tasks, np.int64),
            np.zeros((engines, tasks), np.int64),
            np.zeros(engines, np.int64),
            np.zeros(tasks, np.int64),
        )
        for task, option in taken:
            engine = self._options[task][option].engine
            lines.choice[task] = option
            lines.place[task] = lines.held[engine]
            lines.line[engine, lines.held[engine]] = task
            lines.held[engine] += 1
        return lines

    def schedule_of(self, lines: sequence_times_kernel.Sequences) -> Schedule:
        """Every task as early as its sequence allows."""
        return self._schedule(sequence_times_kernel.times_of(self.graph, lines).head, lines.choice.tolist())

    def _schedule(self, starts: Int64s, choice: Sequence[int]) -> Schedule:
        """The schedule of starts and options; the evaluator's shared memory may delay what kernels do not."""
        begun = {task: int(start) for task, start in enumerate(starts)}
        chosen = {task: self._options[task][option] for task, option in enumerate(choice)}
        return in_start_order(self._problem, begun, chosen)


def tails(problem: SchedulingProblem, chosen: Sequence[Option]) -> list[float]:
    """Cycles from a task's start to the end of its chain: the priority of list scheduling."""
    tail = [0.0] * len(problem.tasks)
    for task in reversed(problem.order):
        tail[task] = chosen[task].cycles + max((tail[other] for other in problem.after[task]), default=0.0)
    return tail


def task_graph(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> list_kernel.TaskGraph:
    """Tasks, their options and what depends on what, as arrays."""
    shape = len(options), max(len(own) for own in options)
    layouts = {name: i for i, name in enumerate(sorted({o.layout for own in options for o in own}))}
    engine, cycles, fetch, layout = (np.zeros(shape, np.int64) for _ in range(4))
    for task, own in enumerate(options):
        for i, option in enumerate(own):
            engine[task, i], cycles[task, i] = option.engine, option.cycles
            fetch[task, i], layout[task, i] = option.fetch, layouts[option.layout]
    edges = (*_rows(problem.before), *_rows(problem.after))
    return list_kernel.TaskGraph(engine, cycles, fetch, layout, problem.context_cycles, *edges)


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
