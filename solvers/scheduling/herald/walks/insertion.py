"""Tasks put into the gaps that a schedule of some tasks leaves on the engines."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.solvers.scheduling.herald.walks.annealing import tails


class _Busy(NamedTuple):
    """When an engine runs a task, in cycles."""

    start: int
    end: int
    task: int
    option: int


def inserted(
    problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], taken: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """All tasks and the indices of their options, by their starts.

    Empty where some given task waits for one that is not placed before it.  The given tasks begin as early as
    their order allows.  Of the others those with the longest chains behind them come first, each where it
    ends first in a gap.

    Parameters
    ----------
    problem : whose tasks are placed
    options : of every task
    taken : tasks that are placed first, and the indices of their options, by their starts
    """
    lines: list[list[_Busy]] = [[] for _ in problem.engines]
    ends: dict[int, int] = {}
    for task, index in taken:
        if any(before not in ends for before in problem.before[task]):
            return []
        option = options[task][index]
        line = lines[option.engine]
        start = max([_ready(problem, ends, task), *(own.end for own in line[-1:])])
        ends[task] = start + option.cycles
        line.append(_Busy(start, ends[task], task, index))
    rank = {task: number for number, task in enumerate(problem.order)}
    tail = tails(problem, [min(own, key=lambda option: option.cycles) for own in options])
    for task in sorted(set(rank) - set(ends), key=lambda task: (-tail[task], rank[task])):
        ready = _ready(problem, ends, task)
        ways = [
            _Busy(start, start + option.cycles, task, index)
            for index, option in enumerate(options[task])
            for start in (_first_gap(lines[option.engine], ready, option.cycles),)
        ]
        best = min(ways, key=lambda way: (way.end, -way.start))
        insort(lines[options[task][best.option].engine], best)
        ends[task] = best.end
    placed = sorted((own for line in lines for own in line), key=lambda own: (own[:2], rank[own.task]))
    return [(own.task, own.option) for own in placed]


def _ready(problem: SchedulingProblem, ends: dict[int, int], task: int) -> int:
    """When what a task reads is done."""
    return max((ends[before] for before in problem.before[task]), default=0)


def _first_gap(line: Sequence[_Busy], ready: int, cycles: int) -> int:
    """The first start, not before ``ready``, at which an engine has nothing to do for so many cycles."""
    start = ready
    for own in line:
        if own.start >= start + cycles:
            break
        start = max(start, own.end)
    return start
