"""Starts of the tasks in the engines' sequences, and how a move of one task changes them, in machine code.

A schedule is an option per task and a sequence per engine; every task starts as early as its graph allows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.herald.walks.list_kernel import TaskGraph, behind, ready_at

_STALE, _MOVED, _PASS = 0, 1, 2  # entries of a step's counts


class Sequences(NamedTuple):
    """A schedule without its times.

    Parameters
    ----------
    choice : per task, its option
    line, held : per engine, its tasks in their order, shape (engines, tasks), and how many there are
    place : per task, where it stands in its engine's line
    """

    choice: Int64s
    line: Int64s
    held: Int64s
    place: Int64s


class Times(NamedTuple):
    """Starts and tails, in an order in which every task stands behind those that it waits for.

    Parameters
    ----------
    order, rank : tasks in that order, and where each stands in it
    head, tail : per task, its start, and cycles from its end to that of all
    """

    order: Int64s
    rank: Int64s
    head: Int64s
    tail: Int64s


class Step(NamedTuple):
    """Scratch of one step, with what it takes to undo it.

    Parameters
    ----------
    waiting : per task, how many others within the window it waits for
    stale : per task, the latest pass in which what it depends on has changed
    moved, start : the tasks that start anew, and the starts that they had
    window : the part of the order that has changed, as it was
    counts : how many are stale in this pass, how many have moved, and the number of the pass
    """

    waiting: Int64s
    stale: Int64s
    moved: Int64s
    start: Int64s
    window: Int64s
    counts: Int64s


@compiled
def _unordered(tasks: int) -> Times:
    """Room for so many tasks, in the order of their numbers."""
    return Times(np.arange(tasks), np.arange(tasks), np.zeros(tasks, np.int64), np.zeros(tasks, np.int64))


@compiled
def room(tasks: int) -> Step:
    """Room for a step among so many tasks."""
    return Step(
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(3, np.int64),
    )


@compiled
def _reorder(graph: TaskGraph, lines: Sequences, low: int, high: int, times: Times, step: Step) -> bool:
    """Put the tasks from place ``low`` to ``high`` in order again; false where they wait for each other."""
    order, rank, waiting = times.order, times.rank, step.waiting
    window = step.window[: high - low + 1]
    window[:] = order[low : high + 1]
    for task in window:
        waiting[task] = 0
    for task in window:
        for at in range(graph.after_at[task], graph.after_at[task + 1]):
            waiting[graph.after[at]] += 1
        other = _next(graph, lines, task)
        if other >= 0:
            waiting[other] += 1
    filled = low
    for task in window:
        filled = _enter(task, high, filled, times, step)
    done = low
    while done < filled:
        task = order[done]
        done += 1
        for at in range(graph.after_at[task], graph.after_at[task + 1]):
            waiting[graph.after[at]] -= 1
            filled = _enter(graph.after[at], high, filled, times, step)
        other = _next(graph, lines, task)
        if other >= 0:
            waiting[other] -= 1
            filled = _enter(other, high, filled, times, step)
    if filled <= high:
        return False
    for at in range(low, high + 1):
        rank[order[at]] = at
    return True


@compiled
def _enter(task: int, high: int, filled: int, times: Times, step: Step) -> int:
    """Put a task of the window next in order if it waits for no other; returns how far the order goes."""
    if step.waiting[task] == 0 and times.rank[task] <= high:
        times.order[filled] = task
        filled += 1
    return filled


@compiled
def _next(graph: TaskGraph, lines: Sequences, task: int) -> int:
    """The task behind a task on its engine; -1 where it is the last one."""
    here, at = graph.engine[task, lines.choice[task]], lines.place[task] + 1
    other = -1
    if at < lines.held[here]:
        other = lines.line[here, at]
    return other


@compiled
def _previous(graph: TaskGraph, lines: Sequences, task: int) -> int:
    """The task before a task on its engine; -1 where it is the first one."""
    here, at = graph.engine[task, lines.choice[task]], lines.place[task] - 1
    other = -1
    if at >= 0:
        other = lines.line[here, at]
    return other


@compiled
def _mark(step: Step, task: int) -> None:
    """Note that what a task depends on has changed in a pass; nothing for a task of -1."""
    if task >= 0 and step.stale[task] != step.counts[_PASS]:
        step.stale[task] = step.counts[_PASS]
        step.counts[_STALE] += 1


@compiled
def _mark_later(graph: TaskGraph, lines: Sequences, step: Step, task: int) -> None:
    """Note that those that wait for a task may start at another time."""
    for at in range(graph.after_at[task], graph.after_at[task + 1]):
        _mark(step, graph.after[at])
    _mark(step, _next(graph, lines, task))


@compiled
def _mark_earlier(graph: TaskGraph, lines: Sequences, step: Step, task: int) -> None:
    """Note that those that a task waits for may have another tail."""
    for at in range(graph.before_at[task], graph.before_at[task + 1]):
        _mark(step, graph.before[at])
    _mark(step, _previous(graph, lines, task))


@compiled
def _earliest(graph: TaskGraph, lines: Sequences, head: Int64s, task: int) -> int:
    """The start of a task, by all that it waits for."""
    choice = lines.choice
    start = ready_at(graph, choice, head, task)
    first = _previous(graph, lines, task)
    if first >= 0:
        busy = max(graph.cycles[first, choice[first]], graph.fetch[task, choice[task]])
        start = max(start, head[first] + busy)
    return start


@compiled
def _longest(graph: TaskGraph, lines: Sequences, tail: Int64s, task: int) -> int:
    """The tail of a task, by all that wait for it."""
    choice = lines.choice
    longest = behind(graph, choice, tail, task)
    other = _next(graph, lines, task)
    if other >= 0:
        gap = max(0, graph.fetch[other, choice[other]] - graph.cycles[task, choice[task]])
        longest = max(longest, gap + graph.cycles[other, choice[other]] + tail[other])
    return longest


@compiled
def _start(
    graph: TaskGraph, lines: Sequences, low: int, high: int, limit: float, times: Times, step: Step
) -> int:
    """Start stale tasks, and what depends on them; returns the makespan, -1 where above the limit.

    Parameters
    ----------
    graph, lines : the schedule
    low, high : no task before place ``low`` is stale; behind ``high`` tails still hold
    limit : of the makespan
    times : changed
    step : filled in with what has moved
    """
    order, head = times.order, times.head
    at = low
    while step.counts[_STALE] > 0:
        task = order[at]
        if step.stale[task] == step.counts[_PASS]:
            step.counts[_STALE] -= 1
            start = _earliest(graph, lines, head, task)
            if start != head[task]:
                step.moved[step.counts[_MOVED]] = task
                step.start[step.counts[_MOVED]] = head[task]
                step.counts[_MOVED] += 1
                head[task] = start
                _mark_later(graph, lines, step, task)
            end = start + graph.cycles[task, lines.choice[task]]
            if at > high:
                end += times.tail[task]
            if end > limit:
                return -1
        at += 1
    makespan = 0
    for here in range(lines.held.shape[0]):
        if lines.held[here] > 0:
            task = lines.line[here, lines.held[here] - 1]
            makespan = max(makespan, head[task] + graph.cycles[task, lines.choice[task]])
    if makespan > limit:
        makespan = -1
    return makespan


@compiled
def _end(graph: TaskGraph, lines: Sequences, high: int, times: Times, step: Step) -> None:
    """The tails of stale tasks, of which none stands behind place ``high``, and of what depends on them."""
    at = high
    while step.counts[_STALE] > 0:
        task = times.order[at]
        if step.stale[task] == step.counts[_PASS]:
            step.counts[_STALE] -= 1
            longest = _longest(graph, lines, times.tail, task)
            if longest != times.tail[task]:
                times.tail[task] = longest
                _mark_earlier(graph, lines, step, task)
        at -= 1


@compiled
def _undo(low: int, high: int, times: Times, step: Step) -> None:
    """Order and starts as they were before a step."""
    for at in range(low, high + 1):
        task = step.window[at - low]
        times.order[at] = task
        times.rank[task] = at
    for at in range(step.counts[_MOVED]):
        times.head[step.moved[at]] = step.start[at]


@compiled
def _put(graph: TaskGraph, lines: Sequences, task: int, option: int, at: int) -> None:
    """Take a task out of its line, and put it into that of an option."""
    here, there = graph.engine[task, lines.choice[task]], graph.engine[task, option]
    last = lines.held[here] - 1
    if here == there:
        last = max(lines.place[task], at)
    for place in range(lines.place[task], last):
        other = lines.line[here, place + 1]
        lines.line[here, place] = other
        lines.place[other] = place
    first = last
    if here != there:
        lines.held[here] -= 1
        lines.held[there] += 1
        first = lines.held[there] - 1
    for place in range(first, at, -1):
        other = lines.line[there, place - 1]
        lines.line[there, place] = other
        lines.place[other] = place
    lines.line[there, at] = task
    lines.place[task] = at
    lines.choice[task] = option


@compiled
def try_move(
    graph: TaskGraph,
    lines: Sequences,
    task: int,
    option: int,
    at: int,
    limit: float,
    times: Times,
    step: Step,
) -> int:
    """Put a task into the line of an option; returns the makespan, -1 and all as it was where above a limit.

    Only what the move changes is computed anew: the starts of tasks as long as one before them has moved,
    and, of a move that stays, tails likewise.

    Parameters
    ----------
    graph, lines : the schedule; lines are changed
    task : to be moved
    option : its new one
    at : its place in the line of that option's engine, without the task
    limit : of the makespan
    times : of the schedule; changed
    step : scratch, the same for all moves of a walk
    """
    was, old = lines.choice[task], lines.place[task]
    before, behind_it = _previous(graph, lines, task), _next(graph, lines, task)
    _put(graph, lines, task, option, at)
    low = high = times.rank[task]
    first, second = _previous(graph, lines, task), _next(graph, lines, task)
    if first >= 0:
        high = max(high, times.rank[first])
    if second >= 0:
        low = min(low, times.rank[second])
    makespan = -1
    _begin(step)
    if _reorder(graph, lines, low, high, times, step):
        _mark(step, behind_it)
        _mark(step, task)
        _mark_later(graph, lines, step, task)
        makespan = _start(graph, lines, low, high, limit, times, step)
    if makespan < 0:
        _undo(low, high, times, step)
        _put(graph, lines, task, was, old)
        return -1
    _begin(step)
    _mark(step, before)
    _mark(step, task)
    _mark_earlier(graph, lines, step, task)
    _end(graph, lines, high, times, step)
    return makespan


@compiled
def _begin(step: Step) -> None:
    """Begin a pass in which nothing is stale."""
    step.counts[_STALE] = 0
    step.counts[_MOVED] = 0
    step.counts[_PASS] += 1


@compiled
def times_of(graph: TaskGraph, lines: Sequences) -> Times:
    """When tasks start, and what is behind them.  They must not wait for each other."""
    tasks = lines.choice.shape[0]
    times = _unordered(tasks)
    _reorder(graph, lines, 0, tasks - 1, times, room(tasks))
    for at in range(tasks):
        task = times.order[at]
        times.head[task] = _earliest(graph, lines, times.head, task)
    for at in range(tasks - 1, -1, -1):
        task = times.order[at]
        times.tail[task] = _longest(graph, lines, times.tail, task)
    return times
