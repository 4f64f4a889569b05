"""The one evaluator of schedules: what a schedule costs, and which dependency or buffer it violates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import DRAM, MEMORY, Placement, Schedule


@dataclass(frozen=True)
class ScheduleEvaluation:
    """What a schedule costs.

    Parameters
    ----------
    makespan : cycles
    energy : pJ, exact
    engine_energy : pJ by engine
    context_energy : pJ of context changes
    utilization : per engine, the part of the makespan in which it is busy
    occupancy : (cycle, bytes of the shared memory from then on), whenever it changes
    violations : what is illegal, empty for a legal schedule
    """

    makespan: int
    energy: Fraction
    engine_energy: tuple[Fraction, ...]
    context_energy: Fraction
    utilization: tuple[float, ...]
    occupancy: tuple[tuple[int, int], ...]
    violations: tuple[str, ...]

    @property
    def edp(self) -> Fraction:
        return self.makespan * self.energy

    @property
    def peak_memory(self) -> int:
        return max((used for _, used in self.occupancy), default=0)


def evaluate_schedule(problem: SchedulingProblem, schedule: Schedule) -> ScheduleEvaluation:
    """Check and price a schedule, legal or not."""
    violations = _presence(problem, schedule)
    placed = {placement.task: placement for placement in schedule.placements}
    engine_energy = [Fraction(0)] * len(problem.engines)
    for placement, energy in zip(schedule.placements, placement_energies(problem, schedule), strict=True):
        engine_energy[placement.option.engine] += energy
    violations += _places(problem, schedule)
    changes = 0
    for first, second in problem.edges:
        if first in placed and second in placed:
            change = placed[first].option.layout != placed[second].option.layout
            changes += change
            violations += _dependency(problem, placed[first], placed[second], change)
    for engine in range(len(problem.engines)):
        violations += _one_at_a_time(problem, engine, schedule)
    occupancy = _occupancy(problem, schedule)
    if problem.memory is not None:
        over = next(((cycle, used) for cycle, used in occupancy if used > problem.memory), None)
        if over is not None:
            violations.append(
                f"shared memory: {over[1]} bytes in use from cycle {over[0]}, it has {problem.memory}"
            )
    makespan = max((placement.end for placement in schedule.placements), default=0)
    busy = [
        sum(p.option.cycles for p in schedule.placements if p.option.engine == engine)
        for engine in range(len(problem.engines))
    ]
    context = changes * problem.context_energy
    return ScheduleEvaluation(
        makespan=makespan,
        energy=sum(engine_energy, Fraction(0)) + context,
        engine_energy=tuple(engine_energy),
        context_energy=context,
        utilization=tuple(cycles / makespan if makespan else 0.0 for cycles in busy),
        occupancy=occupancy,
        violations=tuple(violations),
    )


def _presence(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Every task once, with one of its own options, at or after cycle 0."""
    faults = []
    times = Counter(placement.task for placement in schedule.placements)
    for index, task in enumerate(problem.tasks):
        if times[index] != 1:
            faults.append(f"{task.name} is scheduled {times[index]} times, expected once")
    for placement in schedule.placements:
        if not 0 <= placement.task < len(problem.tasks):
            faults.append(f"task {placement.task} does not exist")
            continue
        task = problem.tasks[placement.task]
        if placement.option not in task.options:
            faults.append(
                f"{task.name} cannot run as scheduled on {problem.engines[placement.option.engine]}"
            )
        if placement.fetch_start < 0:
            faults.append(
                f"{task.name} starts at {placement.start}, its fetch alone takes {placement.option.fetch}"
            )
        if set(placement.sources) != set(problem.before[placement.task]):
            faults.append(f"{task.name} does not name a source for each result that it reads")
    return faults


def _dependency(problem: SchedulingProblem, first: Placement, second: Placement, change: bool) -> list[str]:
    lag = problem.context_cycles if change else 0
    if second.start >= first.end + lag:
        return []
    names = problem.tasks[second.task].name, problem.tasks[first.task].name
    after = f" and a context change of {lag}" if lag else ""
    return [f"{names[0]} starts at {second.start}, before its input {names[1]} ends at {first.end}{after}"]


def _one_at_a_time(problem: SchedulingProblem, engine: int, schedule: Schedule) -> list[str]:
    faults = []
    line = schedule.on(engine)
    for first, second in pairwise(line):
        names = problem.tasks[second.task].name, problem.tasks[first.task].name
        if second.start < first.end:
            faults.append(f"{problem.engines[engine]}: {names[0]} starts before {names[1]} has ended")
        elif second.fetch_start < first.start:
            faults.append(f"{problem.engines[engine]}: {names[0]} is fetched before {names[1]} has begun")
    return faults


def placement_energies(problem: SchedulingProblem, schedule: Schedule) -> list[Fraction]:
    """What every placement costs: its option, and what is fetched from DRAM or written to it."""
    readers: Counter[int] = Counter()
    stored = set()
    for placement in schedule.placements:
        for first, place in placement.sources.items():
            readers[first] += 1
            if place != MEMORY:
                stored.add(first)
    energies = []
    for placement in schedule.placements:
        option, energy = placement.option, placement.option.energy
        if not placement.sources or any(place != MEMORY for place in placement.sources.values()):
            energy += option.input_spill
        if not readers[placement.task] or placement.task in stored:
            energy += option.output_spill
        energies.append(energy)
    return energies


def _places(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Results are read from DRAM, or from the shared memory where they may stay in it."""
    faults = []
    for placement in schedule.placements:
        for first, place in placement.sources.items():
            if place == DRAM or not 0 <= first < len(problem.tasks):
                continue
            name = problem.tasks[first].name
            if place != MEMORY:
                faults.append(f"the result of {name} is read from {place!r}, expected {DRAM} or {MEMORY}")
            elif not problem.tasks[first].result_bytes:
                faults.append(f"the result of {name} cannot stay in the shared memory")
    return faults


def held_until(schedule: Schedule) -> dict[int, int]:
    """Per task whose result stays in the shared memory, the cycle at which the last one has read it there."""
    ends: dict[int, int] = {}
    for placement in schedule.placements:
        for first, place in placement.sources.items():
            if place == MEMORY:
                ends[first] = max(placement.end, ends.get(first, 0))
    return ends


def _occupancy(problem: SchedulingProblem, schedule: Schedule) -> tuple[tuple[int, int], ...]:
    """Bytes in use, as steps."""
    steps: Counter[int] = Counter()
    starts = {placement.task: placement.start for placement in schedule.placements}
    for task, end in held_until(schedule).items():
        if task in starts and end > starts[task] and task < len(problem.tasks):
            steps[starts[task]] += problem.tasks[task].result_bytes
            steps[end] -= problem.tasks[task].result_bytes
    for placement in schedule.placements:
        option = placement.option
        steps[placement.fetch_start] += option.fetch_need
        steps[placement.start] += option.memory - option.fetch_need
        steps[placement.end] -= option.memory
    used, levels = 0, []
    for cycle in sorted(steps):
        if steps[cycle]:
            used += steps[cycle]
            levels.append((cycle, used))
    return tuple(levels)
