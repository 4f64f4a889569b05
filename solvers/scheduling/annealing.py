"""Simulated annealing over options and priorities, decoded by list scheduling."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from tilewright.formulation.scheduling.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.schedule import Schedule
from tilewright.formulation.scheduling.search import ScheduleSearch
from tilewright.formulation.scheduling.timeline import in_start_order
from tilewright.solvers.scheduling import compiled

_SLICE = 0.4  # seconds between looks at limits
_BLEND = 0.05
_HOT, _COLD = 1e-3, 1e-5
_ROUND = 10.0  # seconds from hot to cold, at first
_TRIAL = 50  # steps before the speed is known


class Annealing:
    """One state of annealing over a problem."""

    def __init__(self, problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], seed: int) -> None:
        self._problem = problem
        self._options = options
        self._seed = seed
        tasks, most = len(problem.tasks), max(len(own) for own in options)
        layouts = {name: i for i, name in enumerate(sorted({o.layout for own in options for o in own}))}
        self._engine = np.zeros((tasks, most), np.int64)
        self._cycles, self._fetch, self._layout = (np.zeros_like(self._engine) for _ in range(3))
        self._energy = np.zeros((tasks, most))
        for task, own in enumerate(options):
            for i, option in enumerate(own):
                self._engine[task, i], self._cycles[task, i] = option.engine, option.cycles
                self._fetch[task, i], self._layout[task, i] = option.fetch, layouts[option.layout]
                self._energy[task, i] = float(option.energy)
        self._count = np.array([len(own) for own in options], np.int64)
        self._weight = np.cumsum(np.sqrt(self._cycles.max(axis=1).astype(np.float64)))
        self._seeds: list[Schedule] = []
        self._before_at, self._before = _rows(problem.before)
        self._after_at, self._after = _rows(problem.after)

    def decode(self, choice: Sequence[int], priority: Sequence[float]) -> Schedule:
        """The schedule of options and priorities."""
        tasks = len(self._problem.tasks)
        starts, ends, *scratch = (np.zeros(tasks, np.int64) for _ in range(5))
        chosen = np.array(choice, np.int64)
        compiled.list_schedule(
            self._engine, self._cycles, self._fetch, self._layout, self._problem.context_cycles,
            chosen, np.array(priority, np.float64),
            self._before_at, self._before, self._after_at, self._after, starts, ends,
            np.zeros(len(self._problem.engines), np.int64), np.zeros(len(self._problem.engines), np.int64),
            *scratch,
        )  # fmt: skip
        begun = {task: int(start) for task, start in enumerate(starts)}
        options = {task: self._options[task][int(option)] for task, option in enumerate(chosen)}
        return in_start_order(self._problem, begun, options)  # which knows of the shared memory, too

    def suggest(self, schedule: Schedule) -> None:
        """Begin the next round here, even where better schedules are known."""
        self._seeds.append(schedule)

    def run(self, search: ScheduleSearch, source: str = "annealing", rounds: int | None = None) -> None:
        """Anneal in rounds from the best schedule known, until the search is done (or so many rounds)."""
        by_energy = search.objective is ScheduleObjective.EDP
        length, number, speed = _ROUND, 0, 0.0
        while not search.done and search.schedule is not None and number != rounds:
            choice, priority = self._state_of(self._seeds.pop() if self._seeds else search.schedule)
            begun = time.monotonic()
            hot = _HOT
            passed = 0.0
            while passed < 1 and not search.done:
                steps = _TRIAL if speed == 0 else max(_TRIAL, int(speed * _SLICE))
                until = 1.0 if speed == 0 else min(1.0, passed + steps / (speed * length))
                moment = time.monotonic()
                _, best_choice, best_priority = compiled.anneal(
                    self._engine, self._cycles, self._fetch, self._layout, self._problem.context_cycles,
                    self._energy, self._count, self._weight,
                    self._before_at, self._before, self._after_at, self._after,
                    len(self._problem.engines), by_energy, _BLEND, choice, priority, steps,
                    hot * (_COLD / hot) ** passed, hot * (_COLD / hot) ** until,
                    (self._seed * 7919 + number * 104729 + int(passed * 1000)) % 2**31,
                )  # fmt: skip
                if speed == 0:  # the first call also compiled
                    moment = time.monotonic()
                    compiled.anneal(
                        self._engine, self._cycles, self._fetch, self._layout, self._problem.context_cycles,
                        self._energy, self._count, self._weight,
                        self._before_at, self._before, self._after_at, self._after,
                        len(self._problem.engines), by_energy, _BLEND, choice, priority, steps, hot, hot, self._seed,
                    )  # fmt: skip
                    speed = steps / max(1e-6, time.monotonic() - moment)
                    continue
                speed = steps / max(1e-6, time.monotonic() - moment)
                passed = until
                search.offer(self.decode(best_choice, best_priority), source, heuristic=True)
            number += 1
            length = max(length, 1.5 * (time.monotonic() - begun))

    def _state_of(self, schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
        """Options and priorities whose list schedule is close to a given one: what starts early goes first."""
        tasks = len(self._problem.tasks)
        choice, priority = np.zeros(tasks, np.int64), np.zeros(tasks)
        makespan = schedule.makespan
        for placement in schedule.placements:
            choice[placement.task] = self._options[placement.task].index(placement.option)
            priority[placement.task] = makespan - placement.start + 1.0
        return choice, priority


def tails(problem: SchedulingProblem, chosen: Sequence[Option]) -> list[float]:
    """Cycles from a task's start to the end of its chain: the priority of list scheduling."""
    found = [0.0] * len(problem.tasks)
    for task in reversed(problem.order):
        found[task] = chosen[task].cycles + max((found[other] for other in problem.after[task]), default=0.0)
    return found


def _rows(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists as compressed rows."""
    at = np.zeros(len(lists) + 1, np.int64)
    at[1:] = np.cumsum([len(one) for one in lists])
    return at, np.array([x for one in lists for x in one], np.int64)
