"""List scheduling and annealing over flat arrays, compiled once per installation.

The functions release the interpreter lock, so that a thread of annealing runs beside another solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

# ruff: noqa: NPY002 - the random functions that numba compiles are numpy's old ones

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(function: Function) -> Function:
    made: Any = njit(cache=True, nogil=True)(function)
    return cast(Function, made)


@_compiled
def list_schedule(
    engine: Ints, cycles: Ints, fetch: Ints, layout: Ints, lag: int,
    before_at: Ints, before: Ints, after_at: Ints, after: Ints, choice: Ints, priority: Floats,
    starts: Ints, ends: Ints, free: Ints, last: Ints, ready: Ints, waiting: Ints, earliest: Ints,
) -> int:  # fmt: skip
    """Dispatch tasks: whatever can start earliest goes first, ties by priority.  Returns the makespan.

    Parameters
    ----------
    engine, cycles, fetch, layout : arrays of shape (tasks, options)
    lag : cycles of a context change
    choice, priority : option and priority of every task
    before_at, before, after_at, after : neighbours in compressed rows
    starts, ends : filled in
    free, last : per engine, scratch
    ready, waiting, earliest : per task, scratch
    """
    tasks = choice.shape[0]
    free[:] = 0
    last[:] = 0
    count = 0
    for task in range(tasks):
        waiting[task] = before_at[task + 1] - before_at[task]
        earliest[task] = 0
        if waiting[task] == 0:
            ready[count] = task
            count += 1
    makespan = 0
    while count > 0:
        best_start = -1
        best_priority = 0.0
        best = -1
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
        end = best_start + cycles[task, option]
        starts[task], ends[task] = best_start, end
        free[where], last[where] = end, best_start
        makespan = max(makespan, end)
        for index in range(after_at[task], after_at[task + 1]):
            other = after[index]
            waiting[other] -= 1
            if waiting[other] == 0:
                for source in range(before_at[other], before_at[other + 1]):
                    first = before[source]
                    arrival = ends[first]
                    if layout[first, choice[first]] != layout[other, choice[other]]:
                        arrival += lag
                    earliest[other] = max(earliest[other], arrival)
                ready[count] = other
                count += 1
    return makespan


@_compiled
def anneal(
    engine: Ints, cycles: Ints, fetch: Ints, layout: Ints, lag: int,
    before_at: Ints, before: Ints, after_at: Ints, after: Ints,
    energy: Floats, options: Ints, weight: Floats, engines: int, by_energy: bool, blend: float,
    choice: Ints, priority: Floats, steps: int, hot: float, cold: float, seed: int,
) -> tuple[float, Ints, Floats]:  # fmt: skip
    """Simulated annealing over options and priorities.  Returns the best cost, choice and priority.

    The cost is the logarithm of the makespan, plus that of the energy where ``by_energy``.  The walk also
    minds, a little, when the engines become free on average: a step that only makes room is worth something.

    Parameters
    ----------
    energy : shape (tasks, options); context changes are left to the evaluator
    options : number of options of every task
    weight : running sums; tasks are picked in proportion to their share
    blend : weight of the engines' mean end
    hot, cold : first and last temperature, as relative changes of the cost
    """
    np.random.seed(seed)
    tasks = choice.shape[0]
    starts, ends = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    ready, waiting = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    earliest = np.zeros(tasks, np.int64)
    free, last = np.zeros(engines, np.int64), np.zeros(engines, np.int64)
    total = 0.0
    for task in range(tasks):
        total += energy[task, choice[task]]
    makespan = list_schedule(
        engine, cycles, fetch, layout, lag, before_at, before, after_at, after, choice, priority,
        starts, ends, free, last, ready, waiting, earliest,
    )  # fmt: skip
    best = math.log(makespan) + (math.log(total) if by_energy else 0.0)
    cost = best + blend * math.log(free.sum())
    best_choice, best_priority = choice.copy(), priority.copy()
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        kind = np.random.random()
        first = min(tasks - 1, np.searchsorted(weight, np.random.random() * weight[tasks - 1]))
        second = first
        if 0.35 <= kind < 0.6:
            second = min(tasks - 1, np.searchsorted(weight, np.random.random() * weight[tasks - 1]))
        elif kind >= 0.8:
            second = np.random.randint(tasks)
        old_first, old_second = choice[first], choice[second]
        old_priority, other_priority = priority[first], priority[second]
        old_total = total
        if kind < 0.35:  # another option
            if options[first] < 2:
                continue
            new = np.random.randint(options[first] - 1)
            choice[first] = new if new < old_first else new + 1
        elif kind < 0.6:  # exchange the options of two tasks
            if old_first == old_second or options[first] <= old_second or options[second] <= old_first:
                continue
            choice[first], choice[second] = old_second, old_first
        elif kind < 0.8:  # another priority
            priority[first] = old_priority * math.exp(0.5 * np.random.normal())
        else:  # exchange priorities
            priority[first], priority[second] = other_priority, old_priority
        total += energy[first, choice[first]] - energy[first, old_first]
        if second != first:
            total += energy[second, choice[second]] - energy[second, old_second]
        makespan = list_schedule(
            engine, cycles, fetch, layout, lag, before_at, before, after_at, after, choice, priority,
            starts, ends, free, last, ready, waiting, earliest,
        )  # fmt: skip
        value = math.log(makespan) + (math.log(total) if by_energy else 0.0)
        new_cost = value + blend * math.log(free.sum())
        if new_cost <= cost or np.random.random() < math.exp((cost - new_cost) / temperature):
            cost = new_cost
            if value < best - 1e-12:
                best = value
                best_choice[:] = choice
                best_priority[:] = priority
        else:
            choice[second], priority[second] = old_second, other_priority
            choice[first], priority[first] = old_first, old_priority
            total = old_total
    return best, best_choice, best_priority
