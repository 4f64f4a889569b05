"""Building schedules task by task: every task at the earliest cycle that the rules allow."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule, make_schedule


class Timeline:
    """A schedule under construction; tasks are appended to their engines, never inserted.

    A task may be appended once everything that it depends on has been.
    """

    def __init__(self, problem: SchedulingProblem) -> None:
        self.problem = problem
        self.options: dict[int, Option] = {}
        self.starts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.free = [0] * len(problem.engines)
        self._last = [0] * len(problem.engines)
        self._memory: list[tuple[int, int, int]] = []  # (from, until, bytes) of all placed tasks
        self._watch = problem.memory is not None and memory_may_bind(problem)

    def earliest(self, task: int, option: Option) -> int:
        """The first cycle at which the task may start."""
        start = max(self.free[option.engine], self._last[option.engine] + option.fetch)
        for first in self.problem.before[task]:
            lag = self.problem.context_cycles if self.options[first].layout != option.layout else 0
            start = max(start, self.ends[first] + lag)
        return self._with_capacity(start, option) if self._watch else start

    def append(self, task: int, option: Option) -> int:
        """Place a task; returns its start."""
        start = self.earliest(task, option)
        self.options[task], self.starts[task], self.ends[task] = option, start, start + option.cycles
        self.free[option.engine], self._last[option.engine] = start + option.cycles, start
        if self._watch:
            self._memory += _needs(start, option)
        return start

    @property
    def makespan(self) -> int:
        return max(self.ends.values(), default=0)

    def schedule(self) -> Schedule:
        """The schedule of everything appended."""
        return make_schedule(self.problem, self.starts, self.options)

    def _with_capacity(self, start: int, option: Option) -> int:
        """The first cycle from ``start`` on at which the shared memory has the capacity throughout."""
        ends = sorted({until for _, until, _ in self._memory})
        tries = sorted(
            {
                start,
                *(e for e in ends if e > start),
                *(e + option.fetch for e in ends if e + option.fetch > start),
            }
        )
        return next(cycle for cycle in tries if self._fits(cycle, option))

    def _fits(self, start: int, option: Option) -> bool:
        assert self.problem.memory is not None
        needs = _needs(start, option)
        for begin, until, amount in needs:
            inside = [max(begin, b) for b, u, _ in self._memory if b < until and u > begin]
            for cycle in {begin, *inside}:
                used = sum(m for b, u, m in self._memory if b <= cycle < u)
                if used + amount > self.problem.memory:
                    return False
        return True


def in_start_order(
    problem: SchedulingProblem, starts: MappingABC[int, int], options: MappingABC[int, Option]
) -> Schedule:
    """Tasks in the order of given starts, which respect dependencies, each as early as the rules allow."""
    timeline = Timeline(problem)
    rank = {task: i for i, task in enumerate(problem.order)}
    for task in sorted(starts, key=lambda t: (starts[t], rank[t])):
        timeline.append(task, options[task])
    return timeline.schedule()


def memory_may_bind(problem: SchedulingProblem) -> bool:
    """Whether tasks that run and are fetched at once could need more than the shared memory has."""
    if problem.memory is None:
        return False
    most = 0
    for engine in range(len(problem.engines)):
        own = [option for task in problem.tasks for option in task.options if option.engine == engine]
        most += max((o.memory for o in own), default=0)
        most += max((o.fetch_need for o in own), default=0)
    return most > problem.memory


def _needs(start: int, option: Option) -> list[tuple[int, int, int]]:
    needs = [(start, start + option.cycles, option.memory), (start - option.fetch, start, option.fetch_need)]
    return [need for need in needs if need[2]]
