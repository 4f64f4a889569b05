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

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import zip_longest

from tilewright.formulation.scheduling.problem import Option, SchedulingProblem, feasible_options
from tilewright.formulation.scheduling.schedule import Schedule
from tilewright.formulation.scheduling.timeline import Timeline

METRICS = ("cycles", "energy", "edp")


class Ordering(StrEnum):
    """The initial order of layers."""

    DEPTH_FIRST = "depth-first"
    BREADTH_FIRST = "breadth-first"


@dataclass(frozen=True, slots=True)
class HeraldSettings:
    """The user's parameters.

    Parameters
    ----------
    metric : by which layers prefer sub-accelerators, and which balancing must lower
    ordering : the initial order
    unbalance : the largest load over the smallest that is allowed without balancing
    eliminate_idle : whether to look ahead for layers that fill idle time
    """

    metric: str = "edp"
    ordering: Ordering = Ordering.BREADTH_FIRST
    unbalance: float = 1.1
    eliminate_idle: bool = True


def herald(problem: SchedulingProblem, settings: HeraldSettings | None = None) -> Schedule:
    """Herald's schedule; the problem must have one (`SchedulingProblem.obstacle`)."""
    settings = settings or HeraldSettings()
    options = feasible_options(problem)
    chosen = balanced(problem, options, preferred(options, settings.metric), settings)
    return in_order(problem, chosen, initial_order(problem, settings.ordering), settings.eliminate_idle)


def greedy(problem: SchedulingProblem, metric: str = "edp") -> Schedule:
    """The baseline: every layer where it costs least, networks one after the other, nothing moved."""
    chosen = preferred(feasible_options(problem), metric)
    return in_order(problem, chosen, initial_order(problem, Ordering.DEPTH_FIRST), eliminate_idle=False)


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


def balanced(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    chosen: Sequence[Option],
    settings: HeraldSettings,
) -> list[Option]:
    """Move tasks from the fullest to the emptiest engine while loads are unbalanced and the cost falls.

    The overall cost is estimated by the largest load and the total energy; of all moves that lower it the one
    that lowers it the most is made.
    """
    chosen = list(chosen)
    loads = [0] * len(problem.engines)
    energy = Fraction(0)
    for option in chosen:
        loads[option.engine] += option.cycles
        energy += option.energy
    while max(loads) > settings.unbalance * min(loads):
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
    """All tasks, each behind those that it depends on."""
    runs = list(problem.instances.values())
    if ordering is Ordering.DEPTH_FIRST:
        return [task for run in runs for task in run]
    return [task for layers in zip_longest(*runs) for task in layers if task is not None]


def in_order(
    problem: SchedulingProblem, chosen: Sequence[Option], order: Sequence[int], eliminate_idle: bool
) -> Schedule:
    """Run every engine's tasks in an order, filling idle time by looking ahead where that is wanted."""
    timeline = Timeline(problem)
    queues: list[list[int]] = [[] for _ in problem.engines]
    for task in order:
        queues[chosen[task].engine].append(task)
    while any(queues):
        best: tuple[int, int, int] | None = None
        for engine, queue in enumerate(queues):
            found = _next(problem, timeline, chosen, queue, eliminate_idle) if queue else None
            if found is not None and (best is None or found[0] < best[0]):
                best = found[0], engine, found[1]
        assert best is not None  # the order respects dependencies, so some queue's head is ready
        _, engine, task = best
        timeline.append(task, chosen[task])
        queues[engine].remove(task)
    return timeline.schedule()


def _next(
    problem: SchedulingProblem,
    timeline: Timeline,
    chosen: Sequence[Option],
    queue: Sequence[int],
    eliminate_idle: bool,
) -> tuple[int, int] | None:
    """Start and task of what an engine runs next; ``None`` while its next task waits for another engine."""
    head = queue[0]
    start = _start(problem, timeline, chosen, head)
    if not eliminate_idle or start == timeline.free[chosen[head].engine]:
        return None if start is None else (start, head)
    best = None if start is None else (start, head)
    seen: set[str] = set()
    for task in queue:  # the head layer of every network
        instance = problem.tasks[task].instance
        if instance in seen:
            continue
        seen.add(instance)
        start = _start(problem, timeline, chosen, task)
        if start is not None and (best is None or start < best[0]):
            best = start, task
    return best


def _start(problem: SchedulingProblem, timeline: Timeline, chosen: Sequence[Option], task: int) -> int | None:
    if any(first not in timeline.ends for first in problem.before[task]):
        return None
    return timeline.earliest(task, chosen[task])
