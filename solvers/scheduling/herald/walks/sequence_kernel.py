"""Annealing of the engines' sequences over flat arrays, compiled once per installation.

A step takes a task on a longest path, on which alone a shorter makespan depends, and puts it elsewhere into
its own engine's sequence or into another's: where no way from it leads back to it, and where the longest path
through it is short (Mastrolilli and Gambardella, Journal of Scheduling 3, 2000: sets L and R of theorem 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.herald.walks.list_kernel import Cooling, TaskGraph, behind, ready_at
from tilewright.solvers.scheduling.herald.walks.random_kernel import draw, draw_below, stream
from tilewright.solvers.scheduling.herald.walks.sequence_times_kernel import (
    Sequences,
    room,
    times_of,
    try_move,
)

_ELSEWHERE = 0.3  # share of steps that try another option
_BETTER = 1e-12  # by so much the logarithm of a better value is smaller


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
    times, step = times_of(graph, lines), room(tasks)
    head, tail = times.head, times.tail
    length, priced, total = 0, 0.0, 0.0
    for task in range(tasks):
        length = max(length, head[task] + cycles[task, choice[task]])
        priced += work.priced[task, choice[task]]
        total += work.energy[task, choice[task]]
    spent = math.log(total) if by_energy else 0.0
    cost = math.log(length) + math.log(priced) + spent
    best = math.log(length) + spent
    kept = Sequences(choice.copy(), lines.line.copy(), lines.held.copy(), lines.place.copy())
    for number in range(steps):
        temperature = hot * (cold / hot) ** (number / steps)
        task = draw_below(random, tasks)
        while head[task] + cycles[task, choice[task]] + tail[task] < length:
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
        first, last = ready_at(graph, choice, head, task), behind(graph, choice, tail, task)
        choice[task] = was
        if first + cycles[task, option] + last > limit:
            continue
        here = graph.engine[task, option]
        low = _first_later(graph, lines, head, here, first)
        high = _first_shorter(graph, lines, tail, here, last)
        if here == graph.engine[task, was]:  # the line without the task
            low -= low > old
            high -= high > old
        low, high = min(low, high), max(low, high)
        at = low + draw_below(random, high - low + 1)
        if option == was and at == old:
            continue
        makespan = try_move(graph, lines, task, option, at, limit, times, step)
        if makespan < 0:
            continue
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
