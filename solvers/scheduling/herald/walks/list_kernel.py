"""List scheduling over flat arrays, compiled once per installation, without the interpreter lock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled


class TaskGraph(NamedTuple):
    """Tasks, their options and what depends on what.

    Parameters
    ----------
    engine, cycles, fetch, layout : arrays of shape (tasks, options)
    context_cycles : cycles of a context change, where a layout differs from that of the task before
    before_at, before, after_at, after : neighbours in compressed rows
    """

    engine: Int64s
    cycles: Int64s
    fetch: Int64s
    layout: Int64s
    context_cycles: int
    before_at: Int64s
    before: Int64s
    after_at: Int64s
    after: Int64s


class Cooling(NamedTuple):
    """A walk's length, its first and last temperature as relative changes of the cost, and its seed."""

    steps: int
    hot: float
    cold: float
    seed: int


@compiled
def _lag(graph: TaskGraph, choice: Int64s, first: int, second: int) -> int:
    """Cycles between a result and the task that reads it."""
    lag = 0
    if graph.layout[first, choice[first]] != graph.layout[second, choice[second]]:
        lag = graph.context_cycles
    return lag


@compiled
def ready_at(graph: TaskGraph, choice: Int64s, head: Int64s, task: int) -> int:
    """The first cycle at which a task may start by what it reads and fetches.

    Parameters
    ----------
    graph, choice : tasks, and the option of each
    head : per task, its start
    task : of which it is asked
    """
    start: int = graph.fetch[task, choice[task]]
    for at in range(graph.before_at[task], graph.before_at[task + 1]):
        first = graph.before[at]
        start = max(
            start, head[first] + graph.cycles[first, choice[first]] + _lag(graph, choice, first, task)
        )
    return start


@compiled
def behind(graph: TaskGraph, choice: Int64s, tail: Int64s, task: int) -> int:
    """Cycles from a task's end to that of all, by those that read its result.

    Parameters
    ----------
    graph, choice : tasks, and the option of each
    tail : per task, cycles from its end to that of all
    task : of which it is asked
    """
    longest = 0
    for at in range(graph.after_at[task], graph.after_at[task + 1]):
        other = graph.after[at]
        later = graph.cycles[other, choice[other]] + tail[other] + _lag(graph, choice, task, other)
        longest = max(longest, later)
    return longest


@compiled
def list_schedule(graph: TaskGraph, choice: Int64s, priority: Floats, engines: int) -> Int64s:
    """The starts of all tasks: whatever can start earliest goes first, ties by priority.

    Parameters
    ----------
    graph : tasks and their options
    choice, priority : per task
    engines : how many there are
    """
    engine, cycles, fetch, layout = graph.engine, graph.cycles, graph.fetch, graph.layout
    tasks = choice.shape[0]
    starts, earliest = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    ready, waiting = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    free, last = np.zeros(engines, np.int64), np.zeros(engines, np.int64)
    count = 0
    for task in range(tasks):
        waiting[task] = graph.before_at[task + 1] - graph.before_at[task]
        if waiting[task] == 0:
            ready[count] = task
            count += 1
    for _ in range(tasks):
        best, best_start, best_priority = -1, -1, 0.0
        for place in range(count):
            task = ready[place]
            option = choice[task]
            where = engine[task, option]
            start = max(earliest[task], free[where], last[where] + fetch[task, option])
            if best < 0 or start < best_start or (start == best_start and priority[task] > best_priority):
                best_start, best_priority, best = start, priority[task], place
        task = ready[best]
        count -= 1
        ready[best] = ready[count]
        option = choice[task]
        where = engine[task, option]
        starts[task] = best_start
        last[where] = best_start
        free[where] = best_start + cycles[task, option]
        for index in range(graph.after_at[task], graph.after_at[task + 1]):
            other = graph.after[index]
            arrival = free[where]
            if layout[task, option] != layout[other, choice[other]]:
                arrival += graph.context_cycles
            earliest[other] = max(earliest[other], arrival)
            waiting[other] -= 1
            if waiting[other] == 0:
                ready[count] = other
                count += 1
    return starts
