"""List scheduling and annealing over flat arrays, compiled once per installation.

The functions release the interpreter lock, so that a thread of annealing runs beside another solver.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tilewright.solvers.caches import compiled

# ruff: noqa: NPY002 - the random functions that numba compiles are numpy's old ones

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@compiled
def list_schedule(
    engine: Ints,
    cycles: Ints,
    fetch: Ints,
    layout: Ints,
    lag: int,
    before_at: Ints,
    before: Ints,
    after_at: Ints,
    after: Ints,
    choice: Ints,
    priority: Floats,
    delay: Ints,
    price: Floats,
    blend: float,
    limit: float,
    keep: int,
    order: Ints,
    since: Ints,
    starts: Ints,
    ends: Ints,
    free: Ints,
    last: Ints,
    ready: Ints,
    waiting: Ints,
    earliest: Ints,
) -> float:
    """Dispatch tasks: whatever is due earliest goes first, ties by priority.  Returns the cost of length.

    A task is due when it can start, later by its delay: that long it lets others go first, some of which
    are not ready yet.
    The cost is the logarithm of the makespan plus ``blend`` times that of the engines' ends, each at its
    price.  Work that is left only adds to the ends, so the cost is bounded from below on the way.

    Parameters
    ----------
    engine, cycles, fetch, layout : arrays of shape (tasks, options)
    lag : cycles of a context change
    before_at, before, after_at, after : neighbours in compressed rows
    choice, priority, delay : option, priority and delay of every task
    price : per engine, what a cycle of it is worth
    limit : where the cost is sure to exceed this, infinity is returned and the schedule left unfinished
    keep : so many tasks are dispatched as ``order`` has it
    order, since : filled in: tasks as they were dispatched; per task, how many had been when it became ready
    starts, ends : filled in
    free, last : per engine: filled in with its end, scratch
    ready, waiting, earliest : per task, scratch
    """
    tasks, engines = choice.shape[0], price.shape[0]
    last[:] = 0
    free[:] = 0
    left = np.zeros(engines, np.int64)  # work not yet dispatched
    count = 0
    for task in range(tasks):
        waiting[task] = before_at[task + 1] - before_at[task]
        earliest[task] = 0
        left[engine[task, choice[task]]] += cycles[task, choice[task]]
        if waiting[task] == 0:
            ready[count] = task
            since[task] = 0
            count += 1
    if _length_cost(free, left, price, blend) > limit:
        return np.inf
    for step in range(tasks):
        best = -1
        if step < keep:
            best = 0
            while ready[best] != order[step]:
                best += 1
            option = choice[order[step]]
            where = engine[order[step], option]
            best_start = max(earliest[order[step]], free[where], last[where] + fetch[order[step], option])
        else:
            best_start, best_due = -1, -1
            best_priority = 0.0
            for place in range(count):
                task = ready[place]
                option = choice[task]
                where = engine[task, option]
                start = max(earliest[task], free[where], last[where] + fetch[task, option])
                due = start + delay[task]
                if best < 0 or due < best_due or (due == best_due and priority[task] > best_priority):
                    best_start, best_due, best_priority, best = start, due, priority[task], place
        task = ready[best]
        order[step] = task
        count -= 1
        ready[best] = ready[count]
        option = choice[task]
        where = engine[task, option]
        end = best_start + cycles[task, option]
        idle = best_start > free[where]
        starts[task], ends[task] = best_start, end
        free[where], last[where] = end, best_start
        left[where] -= cycles[task, option]
        if idle and _length_cost(free, left, price, blend) > limit:
            return np.inf
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
                since[other] = step + 1
                count += 1
    return _length_cost(free, left, price, blend)


@compiled
def _length_cost(free: Ints, left: Ints, price: Floats, blend: float) -> float:
    """The cost of length if every engine goes on without idling."""
    makespan, priced = 0, 0.0
    for index in range(free.shape[0]):
        end = free[index] + left[index]
        makespan = max(makespan, end)
        priced += price[index] * end
    return math.log(makespan) + blend * math.log(priced)


@compiled
def anneal(
    engine: Ints,
    cycles: Ints,
    fetch: Ints,
    layout: Ints,
    lag: int,
    before_at: Ints,
    before: Ints,
    after_at: Ints,
    after: Ints,
    energy: Floats,
    options: Ints,
    weight: Floats,
    price: Floats,
    by_energy: bool,
    blend: float,
    choice: Ints,
    priority: Floats,
    delay: Ints,
    steps: int,
    hot: float,
    cold: float,
    seed: int,
) -> tuple[float, Ints, Floats, Ints]:
    """Simulated annealing over options, priorities and delays.  Returns the best value and its three.

    The value is the logarithm of the makespan, plus that of the energy where ``by_energy``.  The walk also
    minds when the engines become free, each at its price: a step that only makes room is worth something,
    and a task that runs where the LP would not run it costs what the LP says.  Energy
    weighs as much as the makespan alone.

    Parameters
    ----------
    energy : shape (tasks, options); context changes are left to the evaluator
    options : number of options of every task
    weight : running sums; tasks are picked in proportion to their share
    price, blend : as of `list_schedule`
    hot, cold : first and last temperature, as relative changes of the cost
    """
    np.random.seed(seed)
    tasks, engines = choice.shape[0], price.shape[0]
    starts, ends = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    ready, waiting = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    earliest = np.zeros(tasks, np.int64)
    free, last = np.zeros(engines, np.int64), np.zeros(engines, np.int64)
    order, since = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    new_order, new_since = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    total = 0.0
    for task in range(tasks):
        total += energy[task, choice[task]]
    cost = list_schedule(
        engine,
        cycles,
        fetch,
        layout,
        lag,
        before_at,
        before,
        after_at,
        after,
        choice,
        priority,
        delay,
        price,
        blend,
        np.inf,
        0,
        order,
        since,
        starts,
        ends,
        free,
        last,
        ready,
        waiting,
        earliest,
    )
    spent = math.log(total) if by_energy else 0.0
    cost += spent
    best = math.log(free.max()) + spent
    best_choice, best_priority, best_delay = choice.copy(), priority.copy(), delay.copy()
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
        old_delay = delay[first]
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
        elif kind < 0.7:  # another priority
            priority[first] = old_priority * math.exp(0.5 * np.random.normal())
        elif kind < 0.8:  # wait for a part of another task's length, or no longer
            delay[first] = 0
            if old_delay == 0 or np.random.random() < 0.5:
                other = np.random.randint(tasks)
                delay[first] = int(np.random.random() * cycles[other, choice[other]])
        else:  # exchange priorities
            priority[first], priority[second] = other_priority, old_priority
        total += energy[first, choice[first]] - energy[first, old_first]
        if second != first:
            total += energy[second, choice[second]] - energy[second, old_second]
        spent = math.log(total) if by_energy else 0.0
        limit = cost - temperature * math.log(1.0 - np.random.random())  # what Metropolis accepts
        keep = min(since[first], since[second])  # until one of them is ready, nothing changes
        new_order[:keep] = order[:keep]
        length = list_schedule(
            engine,
            cycles,
            fetch,
            layout,
            lag,
            before_at,
            before,
            after_at,
            after,
            choice,
            priority,
            delay,
            price,
            blend,
            limit - spent,
            keep,
            new_order,
            new_since,
            starts,
            ends,
            free,
            last,
            ready,
            waiting,
            earliest,
        )
        if length + spent <= limit:
            cost = length + spent
            order, new_order = new_order, order
            since, new_since = new_since, since
            value = math.log(free.max()) + spent
            if value < best - 1e-12:
                best = value
                best_choice[:] = choice
                best_priority[:] = priority
                best_delay[:] = delay
        else:
            choice[second], priority[second] = old_second, other_priority
            choice[first], priority[first], delay[first] = old_first, old_priority, old_delay
            total = old_total
    return best, best_choice, best_priority, best_delay
