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
from tilewright.solvers.scheduling.herald.walks.list_kernel import Cooling, TaskGraph
from tilewright.solvers.scheduling.herald.walks.random_kernel import draw, draw_below, draw_normal, stream

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
    """Filled in by dispatching; all but the first three are scratch.

    Parameters
    ----------
    starts, ends, choice : per task; a start of -1 has not been dispatched
    waiting : per task, how many others it waits for
    free, last, running : per engine: its end, the start of its last task, and that task until it has ended
    worth, entry, held : per engine, a heap of what it may take: how much each is worth, ``task * options +
        option``, and how many there are
    """

    starts: Int64s
    ends: Int64s
    choice: Int64s
    waiting: Int64s
    free: Int64s
    last: Int64s
    running: Int64s
    worth: Floats
    entry: Int64s
    held: Int64s


@compiled
def room(tasks: int, options: int, engines: int) -> Dispatched:
    """Room for one schedule of tasks with so many options at most."""
    return Dispatched(
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(engines, np.int64),
        np.zeros(engines, np.int64),
        np.zeros(engines, np.int64),
        np.zeros((engines, tasks * options)),
        np.zeros((engines, tasks * options), np.int64),
        np.zeros(engines, np.int64),
    )


@compiled
def _offer(graph: TaskGraph, costs: Costs, rule: Rule, task: int, filled: Dispatched) -> None:
    """Put the options of a task that is ready on the heaps of their engines."""
    most = graph.engine.shape[1]
    priority = costs.tail[task] + rule.task[task] + rule.run[costs.run[task]]
    for option in range(costs.options[task]):
        if costs.excess[task, option] > rule.weights[_EXCESS]:
            continue
        here = graph.engine[task, option]
        at = filled.held[here]
        filled.held[here] = at + 1
        value = priority - rule.weights[_PRICE] * costs.regret[task, option]
        while at > 0 and filled.worth[here, (at - 1) // 2] < value:
            above = (at - 1) // 2
            filled.worth[here, at] = filled.worth[here, above]
            filled.entry[here, at] = filled.entry[here, above]
            at = above
        filled.worth[here, at] = value
        filled.entry[here, at] = task * most + option


@compiled
def _drop(filled: Dispatched, here: int) -> None:
    """Take the best entry off an engine's heap."""
    count = filled.held[here] - 1
    filled.held[here] = count
    value, entry = filled.worth[here, count], filled.entry[here, count]
    at = 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and filled.worth[here, below + 1] > filled.worth[here, below]:
            below += 1
        if filled.worth[here, below] <= value:
            break
        filled.worth[here, at] = filled.worth[here, below]
        filled.entry[here, at] = filled.entry[here, below]
        at = below
    filled.worth[here, at] = value
    filled.entry[here, at] = entry


@compiled
def _best(graph: TaskGraph, now: int, filled: Dispatched) -> int:
    """The engine whose best task is worth most of those that are free; -1 where there is none."""
    most, chosen, value = graph.engine.shape[1], -1, -np.inf
    for here in range(filled.free.shape[0]):
        if filled.free[here] > now:
            continue
        while filled.held[here] > 0 and filled.starts[filled.entry[here, 0] // most] >= 0:
            _drop(filled, here)  # another engine has taken it
        if filled.held[here] > 0 and filled.worth[here, 0] > value:
            value, chosen = filled.worth[here, 0], here
    return chosen


@compiled
def _least_excess(graph: TaskGraph, costs: Costs, filled: Dispatched) -> int:
    """The entry of the ready task and option of the least excess."""
    most, chosen, value = graph.engine.shape[1], -1, np.inf
    for task in range(costs.options.shape[0]):
        if filled.waiting[task] > 0 or filled.starts[task] >= 0:
            continue
        for option in range(costs.options[task]):
            if costs.excess[task, option] < value:
                value, chosen = costs.excess[task, option], task * most + option
    return chosen


@compiled
def dispatch(graph: TaskGraph, costs: Costs, rule: Rule, limit: float, filled: Dispatched) -> int:
    """Dispatch all tasks; returns the makespan, or -1 where it is sure to exceed the limit.

    Time goes from one end of a task to the next.  As long as some free engine may take a task that is ready,
    the pair of the highest worth is taken.  Where no engine works and none would take a task, the least
    excess is taken.

    Parameters
    ----------
    graph : tasks and their options
    costs : of the options
    rule : of choosing
    limit : makespan beyond which the schedule is left unfinished
    filled : the schedule
    """
    cycles, fetch, layout, lag = graph.cycles, graph.fetch, graph.layout, graph.context_cycles
    before_at, before, after_at, after = graph.before_at, graph.before, graph.after_at, graph.after
    starts, ends, choice, waiting, free, last, running, _, entry, held = filled
    tasks, engines, most = starts.shape[0], free.shape[0], graph.engine.shape[1]
    free[:] = 0
    last[:] = 0
    running[:] = -1
    held[:] = 0
    starts[:] = -1
    rest = 0.0  # priced cycles of what is not dispatched, at least
    for task in range(tasks):
        rest += costs.least[task]
        waiting[task] = before_at[task + 1] - before_at[task]
    for task in range(tasks):
        if waiting[task] == 0:
            _offer(graph, costs, rule, task, filled)
    left, makespan, now = tasks, 0, 0
    while left > 0:
        here = _best(graph, now, filled)
        if here < 0:
            following, spent = _NEVER, rest
            for index in range(engines):
                if free[index] > now:
                    following = min(following, free[index])
            for index in range(engines):
                spent += costs.engines[index] * max(free[index], now)
            if spent > limit:
                return -1
            if following < _NEVER:
                now = following
                for index in range(engines):
                    done = running[index]
                    if done < 0 or free[index] > now:
                        continue
                    running[index] = -1
                    for at in range(after_at[done], after_at[done + 1]):
                        other = after[at]
                        waiting[other] -= 1
                        if waiting[other] == 0:
                            if now + costs.tail[other] > limit:
                                return -1
                            _offer(graph, costs, rule, other, filled)
                continue
        taken = entry[here, 0] if here >= 0 else _least_excess(graph, costs, filled)
        task, option = taken // most, taken % most
        here = graph.engine[task, option]
        start = max(now, last[here] + fetch[task, option])
        if lag > 0:
            for at in range(before_at[task], before_at[task + 1]):
                source = before[at]
                if layout[source, choice[source]] != layout[task, option]:
                    start = max(start, ends[source] + lag)
        end = start + cycles[task, option]
        starts[task], ends[task], choice[task] = start, end, option
        last[here], free[here], running[here] = start, end, task
        makespan = max(makespan, end)
        rest -= costs.least[task]
        left -= 1
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
    filled = room(tasks, graph.engine.shape[1], costs.engines.shape[0])
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
