"""Dispatching by engines over flat arrays, and annealing of its rule, compiled once per installation.

List scheduling with fixed options leaves an engine idle where the tasks that it was given are not ready.
Here an engine that is free takes one of the tasks that are ready, whichever engine they prefer: by priority,
less the price of what the choice costs beyond the task's cheapest option.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.herald.compiled import Cooling, TaskGraph
from tilewright.solvers.scheduling.herald.random_kernel import draw, draw_below, draw_normal, stream

_NEVER = 2**62
_PRICE, _EXCESS = 0, 1  # entries of a rule's weights
_DEAREST, _LARGEST = 3.0, 10.0  # decimal logarithm of the price, and excess, at most
_RUN_MOVES, _TASK_MOVES = 0.5, 0.9  # a number drawn from [0, 1) means the first move that it stays below
_RUN_STEP, _TASK_STEP = 0.05, 0.1  # standard deviations of large moves, as parts of the makespan
_DECADES = 2.0  # small moves are down to so many times ten smaller


class Costs(NamedTuple):
    """What options cost, and what is known of tasks.

    Parameters
    ----------
    energy, regret, excess : arrays of shape (tasks, options): pJ; what an option costs beyond the cheapest
        one, in priced cycles; and as a multiple of what that one costs
    options : number of options of every task
    run : per task, the run of a network that it belongs to
    tail : per task, the least cycles from its start to the end of its chain
    least : per task, the least priced cycles
    engines : per engine, what a cycle of it is worth; together 1
    """

    energy: Floats
    regret: Floats
    excess: Floats
    options: Int64s
    run: Int64s
    tail: Floats
    least: Floats
    engines: Floats


class Rule(NamedTuple):
    """By what engines choose.

    Parameters
    ----------
    task, run : cycles that come to the tails: per task, and per run of a network
    weights : the price of a priced cycle of regret, in cycles of priority, and the largest excess that an
        engine takes rather than stay idle
    """

    task: Floats
    run: Floats
    weights: Floats


class Dispatched(NamedTuple):
    """Filled in by dispatching; the last four are scratch.

    Parameters
    ----------
    starts, ends, choice : per task
    ready, waiting, arrival : per task: those that are ready, how many others it waits for, and when their
        results are there
    free, last : per engine: its end, and the start of its last task
    """

    starts: Int64s
    ends: Int64s
    choice: Int64s
    ready: Int64s
    waiting: Int64s
    arrival: Int64s
    free: Int64s
    last: Int64s


@compiled
def room(tasks: int, engines: int) -> Dispatched:
    """Room for one schedule."""
    return Dispatched(
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(engines, np.int64),
        np.zeros(engines, np.int64),
    )


@compiled
def dispatch(graph: TaskGraph, costs: Costs, rule: Rule, limit: float, filled: Dispatched) -> int:
    """Dispatch all tasks; returns the makespan, or -1 where it is sure to exceed the limit.

    Time goes from one end of a task to the next.  As long as some free engine may take a task that is ready,
    the pair of the highest worth is taken.  Where no engine works and none would take a task, the largest
    excess does not count.

    Parameters
    ----------
    graph : tasks and their options
    costs : of the options
    rule : of choosing
    limit : makespan beyond which the schedule is left unfinished
    filled : the schedule
    """
    engine, cycles, fetch, layout, lag, before_at, before, after_at, after = graph
    _, regret, excess, options, run, tail, least, prices = costs
    extra, offset, weights = rule
    starts, ends, choice, ready, waiting, arrival, free, last = filled
    tasks, engines = tail.shape[0], free.shape[0]
    free[:] = 0
    last[:] = 0
    count = 0
    rest = 0.0  # priced cycles of what is not dispatched, at least
    for task in range(tasks):
        rest += least[task]
        waiting[task] = before_at[task + 1] - before_at[task]
        if waiting[task] == 0:
            arrival[task] = 0
            ready[count] = task
            count += 1
    price, largest = weights[_PRICE], weights[_EXCESS]
    left, makespan, now, forced = tasks, 0, 0, False
    while left > 0:
        place, taken, most = -1, 0, -np.inf
        for at in range(count):
            task = ready[at]
            if arrival[task] > now:
                continue
            priority = tail[task] + extra[task] + offset[run[task]]
            for option in range(options[task]):
                if free[engine[task, option]] > now or (excess[task, option] > largest and not forced):
                    continue
                worth = priority - price * regret[task, option]
                if worth > most:
                    most, place, taken = worth, at, option
        if place < 0:
            following, spent = _NEVER, rest
            for index in range(engines):
                if free[index] > now:
                    following = min(following, free[index])
            for index in range(engines):
                spent += prices[index] * max(free[index], min(now, following))
            if spent > limit:
                return -1
            forced = following == _NEVER
            if not forced:
                now = following
            continue
        forced = False
        task = ready[place]
        count -= 1
        ready[place] = ready[count]
        here = engine[task, taken]
        start = max(now, last[here] + fetch[task, taken])
        if lag > 0:
            for at in range(before_at[task], before_at[task + 1]):
                source = before[at]
                if layout[source, choice[source]] != layout[task, taken]:
                    start = max(start, ends[source] + lag)
        end = start + cycles[task, taken]
        starts[task], ends[task], choice[task] = start, end, taken
        last[here], free[here] = start, end
        makespan = max(makespan, end)
        rest -= least[task]
        left -= 1
        for index in range(after_at[task], after_at[task + 1]):
            other = after[index]
            waiting[other] -= 1
            if waiting[other] == 0:
                arrival[other] = 0
                for at in range(before_at[other], before_at[other + 1]):
                    arrival[other] = max(arrival[other], ends[before[at]])
                if arrival[other] + tail[other] > limit:
                    return -1
                ready[count] = other
                count += 1
    return makespan


@compiled
def anneal_rule(
    graph: TaskGraph, costs: Costs, by_energy: bool, rule: Rule, cooling: Cooling
) -> tuple[float, Rule]:
    """Simulated annealing of a rule, in place.  Returns the best value and the rule that has it.

    The value is the logarithm of the makespan, plus that of the energy where ``by_energy``.

    Parameters
    ----------
    graph, costs : tasks and their options
    by_energy : whether the energy counts
    rule : to begin with; changed in place
    cooling : steps, temperatures (relative changes of the value) and seed
    """
    steps, hot, cold, seed = cooling
    random = stream(seed)
    tasks, runs = rule.task.shape[0], rule.run.shape[0]
    filled = room(tasks, costs.engines.shape[0])
    length = float(dispatch(graph, costs, rule, np.inf, filled))
    least = 0.0
    for task in range(tasks):
        cheapest = np.inf
        for option in range(costs.options[task]):
            cheapest = min(cheapest, costs.energy[task, option])
        least += cheapest
    value = math.log(length) + (math.log(_energy(costs, filled)) if by_energy else 0.0)
    best, best_rule = value, Rule(rule.task.copy(), rule.run.copy(), rule.weights.copy())
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        kind = draw(random)
        small = 10.0 ** (-_DECADES * draw(random))
        at = draw_below(random, runs if kind < _RUN_MOVES else tasks)
        price, largest = rule.weights[_PRICE], rule.weights[_EXCESS]
        was = rule.run[at] if kind < _RUN_MOVES else rule.task[at]
        if kind < _RUN_MOVES:
            rule.run[at] = was + draw_normal(random) * length * _RUN_STEP * small
        elif kind < _TASK_MOVES:
            rule.task[at] = was + draw_normal(random) * length * _TASK_STEP * small
        else:
            rule.weights[_PRICE] = 10.0 ** (_DEAREST * draw(random))
            rule.weights[_EXCESS] = _LARGEST * draw(random)
        accepted = value - temperature * math.log(1.0 - draw(random))  # what Metropolis accepts
        limit = math.exp(accepted - (math.log(least) if by_energy else 0.0))
        makespan = dispatch(graph, costs, rule, limit, filled)
        reached = np.inf
        if makespan > 0:
            reached = math.log(makespan) + (math.log(_energy(costs, filled)) if by_energy else 0.0)
        if reached <= accepted:
            value = reached
            if value < best:
                best = value
                best_rule.task[:] = rule.task
                best_rule.run[:] = rule.run
                best_rule.weights[:] = rule.weights
        elif kind < _RUN_MOVES:
            rule.run[at] = was
        else:
            rule.task[at] = was
            rule.weights[_PRICE], rule.weights[_EXCESS] = price, largest
    return best, best_rule


@compiled
def _energy(costs: Costs, filled: Dispatched) -> float:
    total = 0.0
    for task in range(costs.options.shape[0]):
        total += costs.energy[task, filled.choice[task]]
    return total
