"""List scheduling and annealing over flat arrays, compiled once per installation.

The functions release the interpreter lock, so that annealing runs in a thread next to another solver.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.herald.random_kernel import draw, draw_below, draw_normal, stream


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


class State(NamedTuple):
    """What annealing changes: the option, the priority and the delay of every task."""

    choice: Int64s
    priority: Floats
    delay: Int64s


class EnginePrices(NamedTuple):
    """What length costs: the logarithm of the makespan and ``blend`` times that of the engines' priced ends.

    Parameters
    ----------
    engines : per engine, what a cycle of it is worth
    """

    engines: Floats
    blend: float


class Dispatch(NamedTuple):
    """Filled in by list scheduling.

    Parameters
    ----------
    order : tasks as they were dispatched
    since : per task, how many had been dispatched when it became ready
    """

    order: Int64s
    since: Int64s


class Timetable(NamedTuple):
    """Filled in by list scheduling; the last three are scratch.

    Parameters
    ----------
    starts, ends : per task
    free, last : per engine, its end, and the start of its last task
    ready, waiting, earliest : per task: those that are ready, how many others it waits for, when it may start
    """

    starts: Int64s
    ends: Int64s
    free: Int64s
    last: Int64s
    ready: Int64s
    waiting: Int64s
    earliest: Int64s


class Draws(NamedTuple):
    """What annealing's moves are drawn from.

    Parameters
    ----------
    energy : shape (tasks, options); context changes are left to the evaluator
    options : number of options of every task
    weight : running sums; tasks are picked in proportion to their share
    """

    energy: Floats
    options: Int64s
    weight: Floats


class Cooling(NamedTuple):
    """A walk's length, its first and last temperature as relative changes of the cost, and its seed."""

    steps: int
    hot: float
    cold: float
    seed: int


class MoveShares(NamedTuple):
    """How often annealing tries each kind of move; shares of one."""

    other_option: float
    exchange_options: float
    other_priority: float
    other_delay: float
    exchange_priorities: float


MOVES = MoveShares(0.35, 0.25, 0.1, 0.1, 0.2)

# a number drawn from [0, 1) means the first move whose threshold it stays below
_OTHER_OPTION, _EXCHANGE_OPTIONS, _OTHER_PRIORITY, _OTHER_DELAY = (
    round(until, 9) for until in [*accumulate(MOVES)][:-1]
)
_PRIORITY_SPREAD = 0.5  # standard deviation of the logarithm of a changed priority
_DELAY_AGAIN = 0.5  # probability that a task that waits gets another delay instead of none
_BETTER = 1e-12  # by so much the logarithm of a better value is smaller


@compiled
def timetable(tasks: int, engines: int) -> Timetable:
    """Room for one schedule."""
    return Timetable(
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(engines, np.int64),
        np.zeros(engines, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
    )


@compiled
def list_schedule(
    graph: TaskGraph,
    state: State,
    prices: EnginePrices,
    limit: float,
    keep: int,
    dispatch: Dispatch,
    times: Timetable,
) -> float:
    """Dispatch tasks: whatever is due earliest goes first, ties by priority.  Returns the cost of length.

    A task is due when it can start, later by its delay: that long it lets others go first, some of which
    are not ready yet.  Work that is left only adds to the engines' ends, so the cost is bounded from below on
    the way.

    Parameters
    ----------
    limit : where the cost is sure to exceed this, infinity is returned and the schedule left unfinished
    keep : so many tasks are dispatched as ``dispatch.order`` has it
    dispatch, times : filled in
    """
    engine, cycles, fetch, layout, lag, before_at, before, after_at, after = graph
    choice, priority, delay = state
    price, blend = prices
    order, since = dispatch
    starts, ends, free, last, ready, waiting, earliest = times
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
def _length_cost(free: Int64s, left: Int64s, price: Floats, blend: float) -> float:
    """The cost of length if every engine continues without idling."""
    makespan, priced = 0, 0.0
    for index in range(free.shape[0]):
        end = free[index] + left[index]
        makespan = max(makespan, end)
        priced += price[index] * end
    return math.log(makespan) + blend * math.log(priced)


@compiled
def anneal(
    graph: TaskGraph, draws: Draws, prices: EnginePrices, by_energy: bool, state: State, cooling: Cooling
) -> tuple[float, State]:
    """Simulated annealing over options, priorities and delays, in place.  Returns the best value and state.

    The value is the logarithm of the makespan, plus that of the energy where ``by_energy``.  The walk also
    minds when the engines become free, each at its price: a step that only makes room is worth something,
    and a task that runs where the LP would not run it costs what the LP says.  Energy weighs as much as the
    makespan alone.

    Parameters
    ----------
    graph : tasks and their options
    draws : what moves are drawn from
    prices : of length
    by_energy : whether the energy counts
    state : to begin with; changed in place
    cooling : steps, temperatures (relative changes of the cost) and seed
    """
    cycles = graph.cycles
    energy, options, weight = draws
    choice, priority, delay = state
    steps, hot, cold, seed = cooling
    random = stream(seed)
    tasks = choice.shape[0]
    times = timetable(tasks, prices.engines.shape[0])
    dispatch = Dispatch(np.zeros(tasks, np.int64), np.zeros(tasks, np.int64))
    tried = Dispatch(np.zeros(tasks, np.int64), np.zeros(tasks, np.int64))
    total = 0.0
    for task in range(tasks):
        total += energy[task, choice[task]]
    cost = list_schedule(graph, state, prices, np.inf, 0, dispatch, times)
    spent = math.log(total) if by_energy else 0.0
    cost += spent
    best = math.log(times.free.max()) + spent
    best_state = State(choice.copy(), priority.copy(), delay.copy())
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        kind = draw(random)
        first = min(tasks - 1, np.searchsorted(weight, draw(random) * weight[tasks - 1]))
        second = first
        if _OTHER_OPTION <= kind < _EXCHANGE_OPTIONS:
            second = min(tasks - 1, np.searchsorted(weight, draw(random) * weight[tasks - 1]))
        elif kind >= _OTHER_DELAY:
            second = draw_below(random, tasks)
        old_first, old_second = choice[first], choice[second]
        old_priority, other_priority = priority[first], priority[second]
        old_delay = delay[first]
        old_total = total
        if kind < _OTHER_OPTION:  # another option
            if options[first] < 2:
                continue
            new = draw_below(random, options[first] - 1)
            choice[first] = new if new < old_first else new + 1
        elif kind < _EXCHANGE_OPTIONS:  # exchange the options of two tasks
            if old_first == old_second or options[first] <= old_second or options[second] <= old_first:
                continue
            choice[first], choice[second] = old_second, old_first
        elif kind < _OTHER_PRIORITY:  # another priority
            priority[first] = old_priority * math.exp(_PRIORITY_SPREAD * draw_normal(random))
        elif kind < _OTHER_DELAY:  # wait for a part of another task's length, or no longer
            delay[first] = 0
            if old_delay == 0 or draw(random) < _DELAY_AGAIN:
                other = draw_below(random, tasks)
                delay[first] = int(draw(random) * cycles[other, choice[other]])
        else:  # exchange priorities
            priority[first], priority[second] = other_priority, old_priority
        total += energy[first, choice[first]] - energy[first, old_first]
        if second != first:
            total += energy[second, choice[second]] - energy[second, old_second]
        spent = math.log(total) if by_energy else 0.0
        limit = cost - temperature * math.log(1.0 - draw(random))  # what Metropolis accepts
        keep = min(
            dispatch.since[first], dispatch.since[second]
        )  # until one of them is ready, nothing changes
        tried.order[:keep] = dispatch.order[:keep]
        length = list_schedule(graph, state, prices, limit - spent, keep, tried, times)
        if length + spent <= limit:
            cost = length + spent
            dispatch, tried = tried, dispatch
            value = math.log(times.free.max()) + spent
            if value < best - _BETTER:
                best = value
                best_state.choice[:] = choice
                best_state.priority[:] = priority
                best_state.delay[:] = delay
        else:
            choice[second], priority[second] = old_second, other_priority
            choice[first], priority[first], delay[first] = old_first, old_priority, old_delay
            total = old_total
    return best, best_state
