"""Which results stay in the shared memory (Herald, section IV-A, step 7), where a method leaves that open.

A result that stays takes its bytes from its task's start to the end of the last one that reads it there.
What stays costs no energy at DRAM.  Neither starts nor options change, so that no schedule becomes longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import MEMORY, Placement, Schedule, make_schedule


def with_results_kept(problem: SchedulingProblem, schedule: Schedule) -> Schedule:
    """The schedule with results kept wherever there is room, those first that save the most for it.

    A schedule that keeps some already stays as it is.
    """
    if not problem.keeps_results or any(MEMORY in p.sources.values() for p in schedule.placements):
        return schedule
    placed = {placement.task: placement for placement in schedule.placements}
    room = _Room(problem, schedule.placements)
    kept: set[tuple[int, int]] = set()
    for _, task in sorted(((-_worth(problem, placed, t), t) for t in placed), key=lambda pair: pair[0]):
        size = problem.tasks[task].result_bytes
        readers = sorted(problem.after[task], key=lambda other: placed[other].end)
        while size and readers:
            if room.take(placed[task].start, placed[readers[-1]].end, size):
                kept.update((task, other) for other in readers)
                break
            readers.pop()  # the last one reads it from DRAM
    starts = {task: placement.start for task, placement in placed.items()}
    return make_schedule(problem, starts, {task: p.option for task, p in placed.items()}, kept)


def _worth(problem: SchedulingProblem, placed: dict[int, Placement], task: int) -> Fraction:
    """pJ that keeping a result saves, per byte and cycle; a reader's saving is shared by what it reads."""
    readers = problem.after[task]
    if not readers or not problem.tasks[task].result_bytes:
        return Fraction(0)
    saved = placed[task].option.output_spill
    for other in readers:
        saved += placed[other].option.input_spill / len(problem.before[other])
    held = max(placed[other].end for other in readers) - placed[task].start
    return saved / (max(1, held) * problem.tasks[task].result_bytes)


class _Room:
    """What is left of the shared memory over time."""

    def __init__(self, problem: SchedulingProblem, placements: Iterable[Placement]) -> None:
        self._memory = problem.memory
        needs = [
            need
            for p in placements
            for need in ((p.fetch_start, p.start, p.option.fetch_need), (p.start, p.end, p.option.memory))
        ]
        self._times = np.unique(np.array([[begin, end] for begin, end, _ in needs], np.int64))
        steps = np.zeros(len(self._times) + 1, np.int64)
        for begin, end, size in needs:
            first, last = np.searchsorted(self._times, (begin, end))
            steps[first] += size
            steps[last] -= size
        self._used = np.cumsum(steps)

    def take(self, begin: int, end: int, size: int) -> bool:
        """Take bytes for a while; returns whether there was room."""
        if self._memory is None:
            return True
        first, last = np.searchsorted(self._times, (begin, end))
        span = self._used[first:last]
        if len(span) and int(span.max()) + size > self._memory:
            return False
        span += size
        return True
