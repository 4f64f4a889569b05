"""Is there a schedule below a given value?  A statement of its own, to question the bounds of `cpsat`.

`statement` has optional intervals, loads, chains and ordered runs, and minimises.  Here the rules are stated
as orders of pairs: of two tasks on one engine one comes first, and then the other starts no earlier than the
first ends, and is fetched no earlier than the first begins.  The question is a decision: is there a schedule
within a makespan and an energy?  For the energy-delay product ``E · T < K`` it is asked in steps: from a
makespan ``low`` on the energy must be below ``K / low``; the least makespan with that energy either shows a
schedule below ``K``, or is the next ``low``.

Of many tasks only some, the *core*, are put in order; the others keep their place in their chains and their
load on the engines.  Where even that has no solution there is no schedule.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations

import networkx as nx
from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.schedule import Schedule, make_schedule
from tilewright.formulation.scheduling.timeline import memory_may_bind
from tilewright.formulation.search import Limits

_LARGEST = 2**60
_POLL = 0.05


class Answer(StrEnum):
    """What is known of the question."""

    NONE = "none"  #: there is no such schedule
    FOUND = "found"
    OPEN = "open"  #: a limit struck, or numbers are too large


@dataclass(frozen=True, slots=True)
class Below:
    """The answer, with the schedule that shows it where there is one."""

    answer: Answer
    schedule: Schedule | None = None
    value: Fraction | None = None


def schedule_below(
    problem: SchedulingProblem,
    objective: ScheduleObjective,
    value: Fraction,
    limits: Limits,
    core: int | None = None,
) -> Below:
    """Look for a schedule whose value is smaller than ``value``; the evaluator confirms what is found.

    Parameters
    ----------
    core : how many tasks are put in order, the longest ones; ``None`` for all.  Where it leaves tasks out,
        the answer is that there is no schedule, or open
    """
    scale = problem.energy_scale
    options = feasible_options(problem)
    horizon = sum(max(o.cycles + o.fetch for o in own) for own in options)
    horizon += problem.context_cycles * len(problem.edges)
    dearest = len(problem.edges) * problem.context_energy
    dearest += sum((max(o.energy for o in own) for own in options), Fraction(0))
    if dearest * scale >= _LARGEST or horizon >= _LARGEST:
        return Below(Answer.OPEN)

    def units_below(energy: Fraction) -> int:
        return -(-energy * scale // 1) - 1

    longest = sorted(range(len(options)), key=lambda task: -min(o.cycles for o in options[task]))
    ordered = sorted(longest[:core])
    whole = len(ordered) == len(options)
    low, high, most = 1, horizon, int(dearest * scale)
    while True:
        match objective:
            case ScheduleObjective.MAKESPAN:
                high = min(horizon, -(-value // 1) - 1)
            case ScheduleObjective.ENERGY:
                most = units_below(value)
            case ScheduleObjective.EDP:
                most = units_below(value / low)
        if high < 1 or most < 0:
            return Below(Answer.NONE)
        limited = _limited(problem, options, high, min(most, int(dearest * scale)), ordered)
        found = limited.solve(limits, shortest=objective is ScheduleObjective.EDP)
        if isinstance(found, Answer):
            return Below(found)
        low, spent = found.makespan, Fraction(found.energy, scale)
        if whole:
            schedule = make_schedule(problem, found.starts, found.chosen)
            evaluation = evaluate_schedule(problem, schedule)
            if evaluation.violations:
                raise RuntimeError(f"orders of pairs allow an illegal schedule: {evaluation.violations[0]}")
            low, spent = evaluation.makespan, evaluation.energy
            if objective.of(low, spent) < value:
                return Below(Answer.FOUND, schedule, objective.of(low, spent))
        elif objective.of(low, spent) < value:
            return Below(Answer.OPEN)


@dataclass(frozen=True, slots=True)
class _Found:
    """A solution of the model; energy in units of ``1 / energy_scale`` pJ."""

    starts: dict[int, int]
    chosen: dict[int, Option]
    makespan: int
    energy: int


@dataclass(frozen=True)
class _Limited:
    """The model of all schedules within a makespan and an energy."""

    model: cp_model.CpModel
    options: Sequence[tuple[Option, ...]]
    starts: Sequence[cp_model.IntVar]
    choices: Sequence[Sequence[cp_model.IntVar]]
    makespan: cp_model.IntVar
    energy: cp_model.LinearExprT

    def solve(self, limits: Limits, *, shortest: bool) -> _Found | Answer:
        """A solution, the shortest one where asked; otherwise why there is none."""
        if shortest:
            self.model.minimize(self.makespan)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = limits.threads
        solver.parameters.random_seed = limits.seed
        solver.parameters.catch_sigint_signal = False
        if limits.remaining is not None:
            solver.parameters.max_time_in_seconds = max(0.01, limits.remaining)
        outcome: list[cp_model.CpSolverStatus] = []
        thread = threading.Thread(target=lambda: outcome.append(solver.solve(self.model)), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_POLL)
            if limits.expired:
                solver.stop_search()
        status = outcome[0] if outcome else cp_model.UNKNOWN
        if status == cp_model.INFEASIBLE:
            return Answer.NONE
        if status != cp_model.OPTIMAL:
            return Answer.OPEN
        starts = {task: solver.value(start) for task, start in enumerate(self.starts)}
        chosen = {
            task: self.options[task][[solver.boolean_value(x) for x in own].index(True)]
            for task, own in enumerate(self.choices)
        }
        return _Found(starts, chosen, solver.value(self.makespan), int(solver.value(self.energy)))


def _limited(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    makespan: int,
    energy: int,
    ordered: Sequence[int],
) -> _Limited:
    """State the rules.

    Parameters
    ----------
    makespan, energy : what a schedule may take at most, in cycles and units of ``1 / energy_scale`` pJ
    ordered : the tasks that are put in order
    """
    model = cp_model.CpModel()
    starts = [model.new_int_var(0, makespan, "") for _ in options]
    choices = [[model.new_bool_var("") for _ in own] for own in options]
    last = model.new_int_var(0, makespan, "")
    spent: list[cp_model.LinearExprT] = []
    watch = len(ordered) == len(options) and memory_may_bind(problem)
    needs: list[tuple[cp_model.IntervalVar, int]] = []
    for start, own, literals in zip(starts, options, choices, strict=True):
        model.add(sum(literals) == 1)
        for option, literal in zip(own, literals, strict=True):
            spent.append(int(option.energy * problem.energy_scale) * literal)
            model.add(start >= option.fetch).only_enforce_if(literal)
            model.add(start + option.cycles <= last).only_enforce_if(literal)
            if watch:
                run = model.new_optional_fixed_size_interval_var(start, option.cycles, literal, "")
                fetch = model.new_optional_fixed_size_interval_var(
                    start - option.fetch, option.fetch, literal, ""
                )
                needs += [(run, option.memory), (fetch, option.fetch_need)]
    if needs:
        assert problem.memory is not None
        model.add_cumulative([one for one, _ in needs], [need for _, need in needs], problem.memory)
    for first, second in problem.edges:
        for option, x in zip(options[first], choices[first], strict=True):
            for other, y in zip(options[second], choices[second], strict=True):
                lag = 0
                if option.layout != other.layout:
                    lag = problem.context_cycles
                    both = model.new_bool_var("")
                    model.add_bool_or(~x, ~y, both)
                    spent.append(int(problem.context_energy * problem.energy_scale) * both)
                after = starts[second] >= starts[first] + option.cycles + lag
                model.add(after).only_enforce_if(x, y)
    for engine in range(len(problem.engines)):
        load = [
            option.cycles * literal
            for own, literals in zip(options, choices, strict=True)
            for option, literal in zip(own, literals, strict=True)
            if option.engine == engine
        ]
        if len(ordered) < len(options) and load:
            model.add(sum(load) <= last)
    graph: nx.DiGraph[int] = nx.DiGraph(problem.edges)
    graph.add_nodes_from(range(len(options)))
    behind = {task: nx.descendants(graph, task) for task in ordered}
    for first, second in combinations(ordered, 2):
        free = second not in behind[first] and first not in behind[second]
        order = model.new_bool_var("") if free else int(second in behind[first])
        for i, option in enumerate(options[first]):
            for j, other in enumerate(options[second]):
                if option.engine == other.engine:
                    both_here = (choices[first][i], choices[second][j])
                    forward = starts[second] >= starts[first] + max(option.cycles, other.fetch)
                    backward = starts[first] >= starts[second] + max(other.cycles, option.fetch)
                    if free:
                        model.add(forward).only_enforce_if(*both_here, order)
                        model.add(backward).only_enforce_if(*both_here, ~order)
                    else:
                        model.add(forward if order else backward).only_enforce_if(*both_here)
    model.add(sum(spent) <= energy)
    return _Limited(model, options, starts, choices, last, sum(spent))
