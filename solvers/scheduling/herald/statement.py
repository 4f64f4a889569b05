"""The scheduling problem as a CP-SAT model, whole or relaxed.

Every task chooses an option and has a start; engines run one task at a time.  Where only some
tasks are *sequenced*, the others keep their place in their chains and their load on the engines, but may
overlap: a relaxation whose optimum is a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Placement, Schedule
from tilewright.formulation.scheduling.herald.timeline import memory_may_bind
from tilewright.solvers.cpsat_run import Values
from tilewright.solvers.scheduling.herald.residency_terms import ResidencyTerms


@dataclass
class ScheduleStatement:
    """A model and its variables.

    Parameters
    ----------
    choices : per task, one literal per option
    starts : per task
    makespan, energy : the figures; energy in units of ``1 / energy_scale`` pJ
    kept : per edge whose result may be read from the shared memory, whether it is
    """

    model: cp_model.CpModel
    problem: SchedulingProblem
    options: Sequence[tuple[Option, ...]]
    choices: list[list[cp_model.IntVar]]
    starts: list[cp_model.IntVar]
    makespan: cp_model.IntVar
    energy: cp_model.LinearExprT
    kept: dict[tuple[int, int], cp_model.IntVar]

    def placed(self, values: Values) -> tuple[dict[int, int], dict[int, Option]]:
        """Starts and options of a solution."""
        starts = {task: values.value(start) for task, start in enumerate(self.starts)}
        chosen = {
            task: self.options[task][[values.boolean_value(x) for x in literals].index(True)]
            for task, literals in enumerate(self.choices)
        }
        return starts, chosen

    def hint(self, schedule: Schedule, *, symmetric: bool = True) -> None:
        """Begin with a schedule.

        Parameters
        ----------
        symmetric : whether equal runs are exchanged so that it meets the rules of `symmetric_pairs`
        """
        placements = {placement.task: placement for placement in schedule.placements}
        if symmetric:
            placements = in_symmetric_order(self.problem, schedule)
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for task, placement in placements.items():
            self.model.add_hint(self.starts[task], placement.start)
            for literal, option in zip(self.choices[task], self.options[task], strict=True):
                self.model.add_hint(literal, option == placement.option)
        self.model.add_hint(self.makespan, schedule.makespan)


def state(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    horizon: int,
    sequenced: Collection[int] | None = None,
    symmetric: bool = True,
    keeping: bool = False,
) -> ScheduleStatement:
    """The model.

    Parameters
    ----------
    options : per task, the options to choose from
    horizon : an upper bound on the makespan
    sequenced : tasks that may not overlap on their engine; ``None`` for all
    symmetric : whether equal runs may be put in order of their first starts
    keeping : whether results that stay in the shared memory are decided, too; otherwise all that can stay is
        taken to stay and to take no capacity, a relaxation.  Where so, all tasks must be sequenced
    """
    model = cp_model.CpModel()
    free = range(len(problem.tasks)) if sequenced is None else sequenced
    in_order = frozenset(free)
    makespan = model.new_int_var(0, horizon, "makespan")
    choices: list[list[cp_model.IntVar]] = []
    starts: list[cp_model.IntVar] = []
    durations: list[cp_model.LinearExpr | int] = []
    running: list[list[cp_model.IntervalVar]] = [[] for _ in problem.engines]
    fetching: list[list[cp_model.IntervalVar]] = [[] for _ in problem.engines]
    loads: list[list[cp_model.LinearExpr]] = [[] for _ in problem.engines]
    energies: list[cp_model.LinearExpr] = []
    memory: list[tuple[cp_model.IntervalVar, int]] = []
    watch = memory_may_bind(problem) or (keeping and problem.memory is not None)
    fetches = {option.engine for own in options for option in own if option.fetch}
    for index in range(len(problem.tasks)):
        start = model.new_int_var(0, horizon, f"start{index}")
        literals = [model.new_bool_var(f"run{index}_{i}") for i in range(len(options[index]))]
        model.add_exactly_one(literals)
        for literal, option in zip(literals, options[index], strict=True):
            loads[option.engine].append(option.cycles * literal)
            energies.append(int(option.energy * problem.energy_scale) * literal)
            if index not in in_order:
                continue
            run = model.new_optional_fixed_size_interval_var(start, option.cycles, literal, "")
            running[option.engine].append(run)
            if watch and option.memory:
                memory.append((run, option.memory))
            if option.engine in fetches:  # an empty fetch, too: no other may be under way when a task begins
                model.add(start >= option.fetch).only_enforce_if(literal)
                fetch = model.new_optional_fixed_size_interval_var(
                    start - option.fetch, option.fetch, literal, ""
                )
                fetching[option.engine].append(fetch)
                if watch and option.fetch_need:
                    memory.append((fetch, option.fetch_need))
        duration = sum(o.cycles * x for o, x in zip(options[index], literals, strict=True))
        model.add(start + duration <= makespan)
        choices.append(literals)
        starts.append(start)
        durations.append(duration)
    for engine in range(len(problem.engines)):
        if running[engine]:
            model.add_no_overlap(running[engine])
        if fetching[engine]:
            model.add_no_overlap(fetching[engine])
        model.add(sum(loads[engine]) <= makespan)
    kept: dict[tuple[int, int], cp_model.IntVar] = {}
    if keeping:
        stay = ResidencyTerms(model, problem, options, choices)
        kept, held = stay.decide(starts, durations, horizon)
        memory += held if watch else []
        energies += stay.spills(kept)
    if memory:
        assert problem.memory is not None
        model.add_cumulative([i for i, _ in memory], [need for _, need in memory], problem.memory)
    changes = _dependencies(model, problem, options, choices, starts, durations)
    context = int(problem.context_energy * problem.energy_scale)
    if symmetric:
        for first, second in symmetric_pairs(problem):
            model.add(starts[first] <= starts[second])
    return ScheduleStatement(
        model, problem, options, choices, starts, makespan, sum(energies) + context * sum(changes), kept
    )


def _dependencies(
    model: cp_model.CpModel,
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    choices: Sequence[Sequence[cp_model.IntVar]],
    starts: Sequence[cp_model.IntVar],
    durations: Sequence[cp_model.LinearExpr | int],
) -> list[cp_model.IntVar]:
    """Order along edges; returns one literal per edge that may be a context change."""
    changes = []
    for first, second in problem.edges:
        lag: cp_model.LinearExpr | int = 0
        if problem.context_cycles or problem.context_energy:
            change = model.new_bool_var("")
            for x, option in zip(choices[first], options[first], strict=True):
                for y, other in zip(choices[second], options[second], strict=True):
                    if option.layout != other.layout:
                        model.add_bool_or(~x, ~y, change)
            changes.append(change)
            lag = problem.context_cycles * change
        model.add(starts[second] >= starts[first] + durations[first] + lag)
    return changes


def equal_runs(problem: SchedulingProblem) -> list[list[tuple[int, ...]]]:
    """Runs that could be exchanged: alike in tasks, options and edges, and none tied to any other run.

    Returns their tasks, position by position.
    """
    groups: dict[object, list[tuple[int, ...]]] = {}
    for indices in problem.instances.values():
        indices = tuple(sorted(indices))
        place = {task: position for position, task in enumerate(indices)}
        if any(other not in place for task in indices for other in _neighbours(problem, task)):
            continue  # tied to another run, by what it reads or by who reads it
        key = tuple(
            (
                problem.tasks[task].options,
                problem.tasks[task].result_bytes,
                tuple(sorted(place[b] for b in problem.before[task])),
            )
            for task in indices
        )
        groups.setdefault(key, []).append(indices)
    return [runs for runs in groups.values() if len(runs) > 1]


def _neighbours(problem: SchedulingProblem, task: int) -> tuple[int, ...]:
    return (*problem.before[task], *problem.after[task])


def symmetric_pairs(problem: SchedulingProblem) -> list[tuple[int, int]]:
    """Pairs of tasks whose starts may be taken in order, because their runs could be exchanged."""
    return [(first[0], second[0]) for runs in equal_runs(problem) for first, second in pairwise(runs)]


def in_symmetric_order(problem: SchedulingProblem, schedule: Schedule) -> dict[int, Placement]:
    """The placements by task, equal runs exchanged so that their first tasks start in order."""
    placed = {placement.task: placement for placement in schedule.placements}
    result = dict(placed)
    for runs in equal_runs(problem):
        ordered = sorted(runs, key=lambda run: placed[run[0]].start)
        for run, source in zip(runs, ordered, strict=True):
            for task, other in zip(run, source, strict=True):
                result[task] = placed[other]
    return result


def fixed_order(schedule: Schedule) -> MappingABC[int, list[int]]:
    """Tasks of every engine in the order in which they run."""
    order: dict[int, list[int]] = {}
    for placement in sorted(schedule.placements, key=lambda p: p.start):
        order.setdefault(placement.option.engine, []).append(placement.task)
    return order
