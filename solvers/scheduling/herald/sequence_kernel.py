"""Annealing of the engines' sequences over flat arrays, compiled once per installation.

A schedule is an option per task and a sequence per engine; every task starts as early as its graph allows.
A step takes a task on a longest path, on which alone a shorter makespan depends, and puts it elsewhere into
its own engine's sequence or into another's: where no way from it leads back to it, and where the longest path
through it is short (Mastrolilli and Gambardella, Journal of Scheduling 3, 2000: sets L and R of theorem 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.herald.list_kernel import Cooling, TaskGraph
from tilewright.solvers.scheduling.herald.random_kernel import draw, draw_below, stream

_ELSEWHERE = 0.3  # share of steps that try another option
_BETTER = 1e-12  # by so much the logarithm of a better value is smaller


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


class Work(NamedTuple):
    """What options cost.

    Parameters
    ----------
    priced, energy : shape (tasks, options): cycles at their engine's price, and pJ
    options : number of options of every task
    """

    priced: Floats
    energy: Floats
    options: Int64s


class Times(NamedTuple):
    """Starts, in an order in which every task stands behind those that it waits for.

    Parameters
    ----------
    order, rank : tasks in that order, and where each stands in it
    head : per task, its start
    """

    order: Int64s
    rank: Int64s
    head: Int64s


@compiled
def unordered(tasks: int) -> Times:
    """Room for so many tasks, in the order of their numbers."""
    return Times(np.arange(tasks), np.arange(tasks), np.zeros(tasks, np.int64))


@compiled
def _lag(graph: TaskGraph, choice: Int64s, first: int, second: int) -> int:
    """Cycles between a result and the task that reads it."""
    lag = 0
    if graph.layout[first, choice[first]] != graph.layout[second, choice[second]]:
        lag = graph.context_cycles
    return lag


@compiled
def _ready(graph: TaskGraph, choice: Int64s, head: Int64s, task: int) -> int:
    """The first cycle at which a task may start by what it reads and fetches."""
    start: int = graph.fetch[task, choice[task]]
    for at in range(graph.before_at[task], graph.before_at[task + 1]):
        first = graph.before[at]
        start = max(
            start, head[first] + graph.cycles[first, choice[first]] + _lag(graph, choice, first, task)
        )
    return start


@compiled
def _behind(graph: TaskGraph, choice: Int64s, tail: Int64s, task: int) -> int:
    """Cycles from a task's end to that of all, by those that read its result."""
    longest = 0
    for at in range(graph.after_at[task], graph.after_at[task + 1]):
        other = graph.after[at]
        later = graph.cycles[other, choice[other]] + tail[other] + _lag(graph, choice, task, other)
        longest = max(longest, later)
    return longest


@compiled
def _reorder(graph: TaskGraph, lines: Sequences, low: int, high: int, waiting: Int64s, times: Times) -> bool:
    """Put the tasks from place ``low`` to ``high`` in order again; false where they wait for each other."""
    order, rank = times.order, times.rank
    window = order[low : high + 1].copy()
    for task in window:
        waiting[task] = 0
    for task in window:
        for at in range(graph.after_at[task], graph.after_at[task + 1]):
            other = graph.after[at]
            if rank[other] <= high:
                waiting[other] += 1
        here = graph.engine[task, lines.choice[task]]
        if lines.place[task] + 1 < lines.held[here]:
            other = lines.line[here, lines.place[task] + 1]
            if rank[other] <= high:
                waiting[other] += 1
    filled = low
    for task in window:
        if waiting[task] == 0:
            order[filled] = task
            filled += 1
    done = low
    while done < filled:
        task = order[done]
        done += 1
        for at in range(graph.after_at[task], graph.after_at[task + 1]):
            other = graph.after[at]
            if rank[other] <= high:
                waiting[other] -= 1
                if waiting[other] == 0:
                    order[filled] = other
                    filled += 1
        here = graph.engine[task, lines.choice[task]]
        if lines.place[task] + 1 < lines.held[here]:
            other = lines.line[here, lines.place[task] + 1]
            if rank[other] <= high:
                waiting[other] -= 1
                if waiting[other] == 0:
                    order[filled] = other
                    filled += 1
    if filled <= high:
        return False
    for at in range(low, high + 1):
        rank[order[at]] = at
    return True


@compiled
def _start(
    graph: TaskGraph, lines: Sequences, low: int, high: int, limit: float, tail: Int64s, times: Times
) -> int:
    """Start all tasks from place ``low`` of the order on; returns the makespan, -1 where above the limit.

    Parameters
    ----------
    graph, lines : the schedule
    low, high : behind ``high`` nothing has changed but the starts, so that the tails hold
    limit : of the makespan
    tail : per task, cycles from its end to that of all
    times : filled in
    """
    order, head, choice = times.order, times.head, lines.choice
    for at in range(low, order.shape[0]):
        task = order[at]
        option = choice[task]
        start = _ready(graph, choice, head, task)
        here = graph.engine[task, option]
        if lines.place[task] > 0:
            first = lines.line[here, lines.place[task] - 1]
            busy = max(graph.cycles[first, choice[first]], graph.fetch[task, option])
            start = max(start, head[first] + busy)
        head[task] = start
        end = start + graph.cycles[task, option]
        if at > high:
            end += tail[task]
        if end > limit:
            return -1
    makespan = 0
    for here in range(lines.held.shape[0]):
        if lines.held[here] > 0:
            task = lines.line[here, lines.held[here] - 1]
            makespan = max(makespan, head[task] + graph.cycles[task, choice[task]])
    return makespan


@compiled
def _end(graph: TaskGraph, lines: Sequences, high: int, times: Times, tail: Int64s) -> None:
    """The tails of the tasks up to place ``high`` of the order."""
    choice = lines.choice
    for at in range(high, -1, -1):
        task = times.order[at]
        option = choice[task]
        longest = _behind(graph, choice, tail, task)
        here = graph.engine[task, option]
        if lines.place[task] + 1 < lines.held[here]:
            other = lines.line[here, lines.place[task] + 1]
            gap = max(0, graph.fetch[other, choice[other]] - graph.cycles[task, option])
            longest = max(longest, gap + graph.cycles[other, choice[other]] + tail[other])
        tail[task] = longest


@compiled
def _put(graph: TaskGraph, lines: Sequences, task: int, option: int, at: int) -> None:
    """Take a task out of its line, and put it into that of an option."""
    here = graph.engine[task, lines.choice[task]]
    lines.held[here] -= 1
    for place in range(lines.place[task], lines.held[here]):
        other = lines.line[here, place + 1]
        lines.line[here, place] = other
        lines.place[other] = place
    here = graph.engine[task, option]
    for place in range(lines.held[here], at, -1):
        other = lines.line[here, place - 1]
        lines.line[here, place] = other
        lines.place[other] = place
    lines.held[here] += 1
    lines.line[here, at] = task
    lines.place[task] = at
    lines.choice[task] = option


@compiled
def times_of(graph: TaskGraph, lines: Sequences) -> Times:
    """When tasks start.  They must not wait for each other."""
    tasks = lines.choice.shape[0]
    times = unordered(tasks)
    _reorder(graph, lines, 0, tasks - 1, np.zeros(tasks, np.int64), times)
    _start(graph, lines, 0, tasks, np.inf, times.head, times)
    return times


@compiled
def anneal_sequences(
    graph: TaskGraph, work: Work, by_energy: bool, lines: Sequences, cooling: Cooling
) -> tuple[float, Sequences]:
    """Simulated annealing of sequences, in place.  Returns the best value and the sequences that have it.

    The value is the logarithm of the makespan, plus that of the energy where ``by_energy``.  The walk adds
    that of the priced work: cycles on an engine that is not a task's cheapest are lost as idle ones are.

    Parameters
    ----------
    graph, work : tasks and their options
    by_energy : whether the energy counts
    lines : to begin with; changed in place
    cooling : steps, temperatures (relative changes of the cost) and seed
    """
    cycles, choice = graph.cycles, lines.choice
    steps, hot, cold, seed = cooling
    random = stream(seed)
    tasks = choice.shape[0]
    waiting, tail = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    times, tried = times_of(graph, lines), unordered(tasks)
    _end(graph, lines, tasks - 1, times, tail)
    length = _start(graph, lines, 0, tasks, np.inf, tail, times)
    priced, total = 0.0, 0.0
    for task in range(tasks):
        priced += work.priced[task, choice[task]]
        total += work.energy[task, choice[task]]
    spent = math.log(total) if by_energy else 0.0
    cost = math.log(length) + math.log(priced) + spent
    best = math.log(length) + spent
    kept = Sequences(choice.copy(), lines.line.copy(), lines.held.copy(), lines.place.copy())
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        task = draw_below(random, tasks)
        while times.head[task] + cycles[task, choice[task]] + tail[task] < length:
            task = draw_below(random, tasks)
        was, old = choice[task], lines.place[task]
        option = was
        if work.options[task] > 1 and draw(random) < _ELSEWHERE:
            option = draw_below(random, work.options[task] - 1)
            option += option >= was
        new_priced = priced + work.priced[task, option] - work.priced[task, was]
        new_total = total + work.energy[task, option] - work.energy[task, was]
        new_spent = math.log(new_total) if by_energy else 0.0
        others = math.log(new_priced) + new_spent
        accepted = cost - temperature * math.log(1.0 - draw(random))  # what Metropolis accepts
        limit = math.exp(accepted - others)
        choice[task] = option
        first, last = _ready(graph, choice, times.head, task), _behind(graph, choice, tail, task)
        choice[task] = was
        if first + cycles[task, option] + last > limit:
            continue
        here = graph.engine[task, option]
        own = here == graph.engine[task, was]
        low = _first_later(graph, lines, times.head, here, first)
        high = _first_shorter(graph, lines, tail, here, last)
        if own:  # the line without the task
            low -= low > old
            high -= high > old
        low, high = min(low, high), max(low, high)
        at = low + draw_below(random, high - low + 1)
        if option == was and at == old:
            continue
        _put(graph, lines, task, option, at)
        low = high = times.rank[task]
        if at > 0:
            high = max(high, times.rank[lines.line[here, at - 1]])
        if at + 1 < lines.held[here]:
            low = min(low, times.rank[lines.line[here, at + 1]])
        tried.order[:] = times.order
        tried.rank[:] = times.rank
        makespan = -1
        tried.head[:] = times.head
        if _reorder(graph, lines, low, high, waiting, tried):
            makespan = _start(graph, lines, low, high, limit, tail, tried)
        if makespan < 0:
            _put(graph, lines, task, was, old)
            continue
        times, tried = tried, times
        _end(graph, lines, high, times, tail)
        length, priced, total = makespan, new_priced, new_total
        cost = math.log(length) + others
        if math.log(length) + new_spent < best - _BETTER:
            best = math.log(length) + new_spent
            kept.choice[:] = choice
            kept.line[:] = lines.line
            kept.held[:] = lines.held
            kept.place[:] = lines.place
    return best, kept


@compiled
def _first_later(graph: TaskGraph, lines: Sequences, head: Int64s, here: int, start: int) -> int:
    """The first place of a line whose task ends behind a start (from it on is set L)."""
    low, high = 0, lines.held[here]
    while low < high:
        middle = (low + high) // 2
        task = lines.line[here, middle]
        if head[task] + graph.cycles[task, lines.choice[task]] <= start:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _first_shorter(graph: TaskGraph, lines: Sequences, tail: Int64s, here: int, last: int) -> int:
    """The first place of a line from whose task on at most ``last`` cycles are left (before it is set R)."""
    low, high = 0, lines.held[here]
    while low < high:
        middle = (low + high) // 2
        task = lines.line[here, middle]
        if tail[task] + graph.cycles[task, lines.choice[task]] > last:
            low = middle + 1
        else:
            high = middle
    return low
