"""Herald's scheduler (Kwon et al., "Heterogeneous Dataflow Accelerators ...", section IV-D).

1. Every layer goes to the sub-accelerator that it prefers by a metric.
2. Where loads are more unbalanced than allowed, layers move from the fullest to the emptiest
   sub-accelerator for as long as that lowers the overall cost (figure 7, the feedback loop).
3. Layers are ordered depth-first (one network after the other) or breadth-first (networks interleaved,
   figure 8).
4. Idle time goes: where the next layer of a sub-accelerator cannot start when it becomes free, the heads of
   all networks are looked through for one that can, and it is moved ahead (figure 9).

The greedy baseline of section V-B is step 1 with a plain order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import zip_longest

from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.timeline import Timeline

METRICS = ("cycles", "energy", "edp")


class Ordering(StrEnum):
    """The initial order of layers."""

    DEPTH_FIRST = "depth-first"
    BREADTH_FIRST = "breadth-first"


class IdleRule(StrEnum):
    """What becomes of idle time before an engine's next layer, which has to wait (figure 9).

    The heads of all networks are looked through.  ``PRINTED`` moves the first one ahead that can start when
    the engine becomes free, and leaves the order as it is where there is none; ``EARLIEST`` then takes the
    one that can start first.
    """

    EARLIEST = "earliest"
    PRINTED = "printed"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class HeraldSettings:
    """The user's parameters.

    Parameters
    ----------
    metric : by which layers prefer sub-accelerators, and which balancing must lower
    ordering : the initial order
    unbalance : the largest load over the smallest that is allowed without balancing
    idle : how layers are looked for that fill idle time
    patience : moves in a row that may fail to lower the cost of the schedule before balancing ends; 0 to
        balance by loads alone, without building a schedule for every move
    balance : whether layers move off the fullest sub-accelerator at all
    """

    metric: str = "edp"
    ordering: Ordering = Ordering.BREADTH_FIRST
    unbalance: float = 1.1
    idle: IdleRule = IdleRule.EARLIEST
    patience: int = 50
    balance: bool = True


def herald(
    problem: SchedulingProblem,
    settings: HeraldSettings | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Schedule:
    """Herald's schedule; the problem must have one (`SchedulingProblem.obstacle`).

    ``stopped`` is asked between moves; balancing ends where it says so.
    """
    settings = settings or HeraldSettings()
    options = feasible_options(problem)
    chosen = preferred(options, settings.metric)
    if settings.balance and not settings.patience:
        chosen = balanced(problem, options, chosen, settings, stopped)
    order = initial_order(problem, settings.ordering)
    schedule = in_order(problem, chosen, order, settings.idle, stopped)
    if settings.balance and settings.patience:
        schedule = _with_feedback(problem, options, chosen, order, schedule, settings, stopped)
    return schedule


def greedy(problem: SchedulingProblem, metric: str = "edp") -> Schedule:
    """The baseline: every layer where it costs least, networks one after the other, nothing moved."""
    chosen = preferred(feasible_options(problem), metric)
    return in_order(problem, chosen, initial_order(problem, Ordering.DEPTH_FIRST), IdleRule.OFF)


def preferred(options: Sequence[tuple[Option, ...]], metric: str) -> list[Option]:
    """Per task, the option of least cost."""
    return [min(own, key=lambda option: (_cost(option, metric), option.cycles)) for own in options]


def _cost(option: Option, metric: str) -> Fraction:
    match metric:
        case "cycles":
            return Fraction(option.cycles)
        case "energy":
            return option.energy
    return option.cycles * option.energy


def _with_feedback(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    chosen: list[Option],
    order: Sequence[int],
    schedule: Schedule,
    settings: HeraldSettings,
    stopped: Callable[[], bool],
) -> Schedule:
    """The feedback loop of figure 7: move layers off the fullest engine while the schedule's cost falls.

    Layers are tried in the order of what the move costs per cycle that it takes off.
    """
    cost = _cost_of(schedule, settings.metric)
    tried: set[tuple[int, Option]] = set()
    failures = 0
    while failures < settings.patience and not stopped():
        loads = _loads(problem, chosen)
        if max(loads) <= settings.unbalance * min(loads):
            break
        full, empty = loads.index(max(loads)), loads.index(min(loads))
        moves = [
            (_price(chosen[task], other, settings.metric), task, other)
            for task, own in enumerate(options)
            if chosen[task].engine == full
            for other in own
            if other.engine == empty and (task, other) not in tried
        ]
        if not moves:
            break
        _, task, other = min(moves, key=lambda move: move[:2])
        tried.add((task, other))
        before, chosen[task] = chosen[task], other
        new = in_order(problem, chosen, order, settings.idle, stopped)
        new_cost = _cost_of(new, settings.metric)
        if new_cost < cost:
            schedule, cost, failures = new, new_cost, 0
        else:
            chosen[task] = before
            failures += 1
    return schedule


def _loads(problem: SchedulingProblem, chosen: Sequence[Option]) -> list[int]:
    loads = [0] * len(problem.engines)
    for option in chosen:
        loads[option.engine] += option.cycles
    return loads


def _price(now: Option, then: Option, metric: str) -> Fraction:
    """What a move costs by the metric, per cycle taken off the engine."""
    return (_cost(then, metric) - _cost(now, metric)) / now.cycles


def _cost_of(schedule: Schedule, metric: str) -> Fraction:
    energy = sum((placement.option.energy for placement in schedule.placements), Fraction(0))
    return _overall(schedule.makespan, energy, metric)


def balanced(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    chosen: Sequence[Option],
    settings: HeraldSettings,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Option]:
    """Move tasks from the fullest to the emptiest engine while loads are unbalanced and the cost falls.

    The overall cost is estimated by the largest load and the total energy; of all moves that lower it the one
    that lowers it the most is made.

    Parameters
    ----------
    problem : to be scheduled
    options : of every task
    chosen : an option per task to begin with
    settings : the metric and the unbalance that is allowed
    stopped : asked between moves
    """
    chosen = list(chosen)
    loads = _loads(problem, chosen)
    energy = sum((option.energy for option in chosen), Fraction(0))
    while max(loads) > settings.unbalance * min(loads) and not stopped():
        full, empty = loads.index(max(loads)), loads.index(min(loads))
        cost = _overall(max(loads), energy, settings.metric)
        best: tuple[Fraction, int, Option] | None = None
        for task, option in enumerate(chosen):
            if option.engine != full:
                continue
            for other in options[task]:
                if other.engine != empty:
                    continue
                moved = loads.copy()
                moved[full] -= option.cycles
                moved[empty] += other.cycles
                new = _overall(max(moved), energy + other.energy - option.energy, settings.metric)
                if new < cost and (best is None or new < best[0]):
                    best = new, task, other
        if best is None:
            break
        _, task, other = best
        loads[full] -= chosen[task].cycles
        loads[empty] += other.cycles
        energy += other.energy - chosen[task].energy
        chosen[task] = other
    return chosen


def _overall(load: int, energy: Fraction, metric: str) -> Fraction:
    match metric:
        case "cycles":
            return Fraction(load)
        case "energy":
            return energy
    return load * energy


def initial_order(problem: SchedulingProblem, ordering: Ordering) -> list[int]:
    """All tasks, each behind those that it depends on.

    Where runs read each other's results, a task that comes too early waits for the first place behind
    everything that it reads; the order of all others stays.
    """
    runs = list(problem.instances.values())
    if ordering is Ordering.DEPTH_FIRST:
        wanted = [task for run in runs for task in run]
    else:
        wanted = [task for layers in zip_longest(*runs) for task in layers if task is not None]
    rank = {task: place for place, task in enumerate(wanted)}
    waiting = [len(set(before)) for before in problem.before]
    ready = [rank[task] for task in wanted if not waiting[task]]
    heapq.heapify(ready)
    order = []
    while ready:
        task = wanted[heapq.heappop(ready)]
        order.append(task)
        for other in {*problem.after[task]}:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, rank[other])
    return order


def in_order(
    problem: SchedulingProblem,
    chosen: Sequence[Option],
    order: Sequence[int],
    idle: IdleRule,
    stopped: Callable[[], bool] = lambda: False,
) -> Schedule:
    """Run every engine's tasks in an order, filling idle time by looking ahead where that is wanted.

    Once ``stopped`` the rest is put in order without looking ahead.

    Parameters
    ----------
    problem : to be scheduled
    chosen : the option of every task
    order : all tasks, each behind those that it depends on
    idle : how tasks are looked for that fill idle time
    stopped : asked before each task
    """
    timeline = Timeline(problem)
    rank = {task: i for i, task in enumerate(order)}
    queues: list[dict[str, deque[int]]] = [{} for _ in problem.engines]
    for task in order:
        queues[chosen[task].engine].setdefault(problem.tasks[task].instance, deque()).append(task)
    for _ in order:
        best: tuple[int, int, int] | None = None
        rule = IdleRule.OFF if idle is IdleRule.OFF or stopped() else idle
        for queue in queues:
            candidate = _next(problem, timeline, chosen, rank, queue, rule) if queue else None
            if candidate is not None and (best is None or candidate < best):
                best = candidate
        assert best is not None  # the order respects dependencies, so some queue's head is ready
        task = best[2]
        timeline.append(task, chosen[task])
        instance, queue = problem.tasks[task].instance, queues[chosen[task].engine]
        queue[instance].popleft()
        if not queue[instance]:
            del queue[instance]
    return timeline.schedule()


def _next(
    problem: SchedulingProblem,
    timeline: Timeline,
    chosen: Sequence[Option],
    rank: MappingABC[int, int],
    queue: MappingABC[str, deque[int]],
    idle: IdleRule,
) -> tuple[int, int, int] | None:
    """Start, rank and task of what an engine runs next; ``None`` while that waits for another engine."""
    heads = [(rank[own[0]], own[0]) for own in queue.values()]
    heads = [min(heads)] if idle is IdleRule.OFF else sorted(heads)
    best: tuple[int, int, int] | None = None
    for place, task in heads:  # the head layer of every network
        start = _start(problem, timeline, chosen, task)
        at_once = start == timeline.free[chosen[task].engine]
        in_turn = idle is not IdleRule.PRINTED or place == heads[0][0]
        if start is not None and (at_once or in_turn) and (best is None or start < best[0]):
            best = start, place, task
        if at_once:
            break
    return best


def _start(problem: SchedulingProblem, timeline: Timeline, chosen: Sequence[Option], task: int) -> int | None:
    if any(first not in timeline.ends for first in problem.before[task]):
        return None
    return timeline.earliest(task, chosen[task])


def metric_of(objective: ScheduleObjective) -> str:
    """The metric of layers that goes with an objective of schedules."""
    return "cycles" if objective is ScheduleObjective.MAKESPAN else str(objective)
