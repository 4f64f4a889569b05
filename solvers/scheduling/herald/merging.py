"""Problems in which layers that follow each other on one engine are one task, and what they say of the whole.

Runs of real networks have long stretches of layers that one engine should run.  Taken together they leave
half of the tasks or fewer, so that searches see farther within the same time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, Task
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices

_GRAIN = 0.0025  # of an average task's cost, what one more task in the merged problem has to save
_LARGE = 1.5  # times an average task's cost, from which on a task stays alone
_LONGEST = 0.15  # of the cost of all tasks, for a stretch

Kind = tuple[int, str]
"""Engine and layout."""


@dataclass(frozen=True)
class Merged:
    """A problem with fewer tasks, each of which stands for a stretch of a run.

    A stretch costs what its tasks cost together.  The shared memory and fetches within a stretch are left
    out, so a schedule of this is only an order for the whole, whose tasks may begin later.

    Parameters
    ----------
    problem : whose tasks are stretches
    stretches : per task of it, the tasks that it stands for, in turn
    chosen : per task of the whole and kind of option, the option
    """

    problem: SchedulingProblem
    stretches: tuple[tuple[int, ...], ...]
    chosen: tuple[dict[Kind, Option], ...]

    def placed(self, schedule: Schedule) -> tuple[dict[int, int], dict[int, Option]]:
        """Starts and options of all tasks in a schedule of stretches."""
        starts: dict[int, int] = {}
        options: dict[int, Option] = {}
        for placement in schedule.placements:
            start = placement.start
            for task in self.stretches[placement.task]:
                option = self.chosen[task][placement.option.engine, placement.option.layout]
                starts[task], options[task] = start, option
                start += option.cycles
        return starts, options


def merged(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], prices: Prices) -> Merged:
    """The problem in stretches that cost little more, all together, than their tasks where each costs least.

    Parameters
    ----------
    problem : to be scheduled
    options : of every task
    prices : what engines and energy are worth
    """
    if not all(prices.engines):
        prices = even_prices(problem)  # where an engine costs nothing, its stretches would have no end
    chosen = tuple(_cheapest(own, prices) for own in options)
    costs = [{kind: prices.of(option) for kind, option in own.items()} for own in chosen]
    total = sum(min(own.values()) for own in costs)
    average = total / len(costs)
    stretches: list[tuple[int, ...]] = []
    known: dict[object, list[int]] = {}
    for run in problem.instances.values():
        inside = set(run)
        alone = [
            min(costs[task].values()) > _LARGE * average
            or not inside.issuperset((*problem.before[task], *problem.after[task]))
            for task in run
        ]
        key = tuple(options[task] for task in run), tuple(alone)
        if key not in known:
            known[key] = _ends([costs[task] for task in run], alone, _GRAIN * average, _LONGEST * total)
        stretches += (run[a:b] for a, b in zip([0, *known[key]], known[key], strict=False))
    place = {task: number for number, stretch in enumerate(stretches) for task in stretch}
    tasks = tuple(_task(problem, stretch, chosen) for stretch in stretches)
    edges = {(place[a], place[b]) for a, b in problem.edges if place[a] != place[b]}
    whole = SchedulingProblem(
        f"{problem.name}, merged",
        problem.engines,
        tasks,
        tuple(sorted(edges)),
        None,
        problem.context_cycles,
        problem.context_energy,
    )
    return Merged(whole, tuple(stretches), chosen)


def _cheapest(own: Sequence[Option], prices: Prices) -> dict[Kind, Option]:
    """Per kind the option that costs least."""
    kinds: dict[Kind, Option] = {}
    for option in sorted(own, key=prices.of, reverse=True):
        kinds[option.engine, option.layout] = option
    return kinds


def _ends(
    costs: Sequence[dict[Kind, float]], alone: Sequence[bool], grain: float, longest: float
) -> list[int]:
    """Where the stretches of a run end, so that they and as many grains as there are of them cost least."""
    count = len(costs)
    least, begins = [0.0] + [math.inf] * count, [0] * (count + 1)
    for first in range(count):
        together = dict(costs[first])
        for end in range(first + 1, count + 1):
            if end > first + 1:
                own = costs[end - 1]
                together = {kind: cost + own[kind] for kind, cost in together.items() if kind in own}
                if alone[first] or alone[end - 1] or not together or min(together.values()) > longest:
                    break
            cost = least[first] + min(together.values()) + grain
            if cost < least[end]:
                least[end], begins[end] = cost, first
    ends = [count]
    while begins[ends[-1]]:
        ends.append(begins[ends[-1]])
    return ends[::-1]


def _task(problem: SchedulingProblem, stretch: Sequence[int], chosen: Sequence[dict[Kind, Option]]) -> Task:
    """A stretch as a task, with an option for every kind that all its tasks have."""
    kinds = [
        kind for kind in chosen[stretch[0]] if all(kind in chosen[task] for task in stretch)
    ]  # as the first task has them, so that equal stretches are equal
    options = []
    for kind in kinds:
        own = [chosen[task][kind] for task in stretch]
        energy = sum((option.energy for option in own), Fraction(0))
        cycles = sum(option.cycles for option in own)
        options.append(Option(kind[0], cycles, energy, own[0].fetch, layout=kind[1]))
    first = problem.tasks[stretch[0]]
    return Task(first.instance, first.network, first.layer, tuple(options))
