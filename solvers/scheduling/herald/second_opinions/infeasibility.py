"""Is there a schedule below a given value?  A statement of its own, to question the bounds of `cpsat`.

`statement` has optional intervals, loads, chains and ordered runs, and minimises. Here the rules are
stated as orders of pairs: of two tasks on one engine one comes first, and then the other starts no
earlier than the first ends, and is fetched no earlier than the first begins. The question is a decision:
is there a schedule whose makespan lies between two numbers, and its energy below a line? For the
energy-delay product, below ``K``, it is asked stretch by stretch: ``K / T`` is convex, so that what is
below it at makespans from ``a`` to ``b`` is below its chord, ``E < K (a + b - T) / (a b)``. A solution
below the chord but not below the curve divides the stretch.

Of many tasks only some, the *core*, are put in order; the others keep their place in their chains and their
load on the engines.  Where even that has no solution there is no schedule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import assert_never

import networkx as nx
from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.residency import with_results_kept
from tilewright.formulation.scheduling.herald.schedule import Schedule, make_schedule
from tilewright.formulation.scheduling.herald.timeline import memory_may_bind
from tilewright.solvers.cpsat_run import CpSatRun

_LARGEST = 2**59  # of any number in a model
_STEP = 1.05  # from a stretch's beginning to its end; products on its chord are up to 0.06 % above K
_NEAR = 16  # a solution closer to an end than this part of the stretch does not divide it


class Finding(StrEnum):
    """What is known about whether such a schedule exists."""

    NONE = "none"  #: there is no such schedule
    FOUND = "found"
    OPEN = "open"  #: a limit struck, or numbers are too large


@dataclass(frozen=True, slots=True)
class SearchBelow:
    """The answer of `schedule_below`, with a schedule as its evidence where one was found."""

    answer: Finding
    schedule: Schedule | None = None
    value: Fraction | None = None


def schedule_below(
    problem: SchedulingProblem,
    objective: ScheduleObjective,
    value: Fraction,
    limits: Limits,
    core: int | None = None,
) -> SearchBelow:
    """Look for a schedule whose value is smaller than ``value``; the evaluator confirms what is found.

    Parameters
    ----------
    core : how many tasks are put in order, the longest ones; ``None`` for all.  Where it leaves tasks out,
        the answer is that there is no schedule, or open
    """
    question = _Question(problem, limits, core)
    least = question.least_energy
    match objective:
        case ScheduleObjective.MAKESPAN:
            stretches = [_Stretch(question.shortest, _below(value))]
        case ScheduleObjective.ENERGY:
            stretches = [_Stretch(question.shortest, question.horizon, Fraction(0), value)]
        case ScheduleObjective.EDP:
            longest = min(question.horizon, _below(value / least)) if least else question.horizon
            stretches = [_chord(a, b, value) for a, b in _stairs(question.shortest, longest)]
        case _:
            assert_never(objective)
    while stretches:
        stretch = stretches.pop()
        finding = question.ask(stretch)
        if finding is Finding.NONE:
            continue
        if isinstance(finding, Finding):
            return SearchBelow(finding)
        if question.whole:
            schedule = with_results_kept(problem, make_schedule(problem, finding.starts, finding.chosen))
            evaluation = evaluate_schedule(problem, schedule)
            if evaluation.violations:
                raise RuntimeError(f"orders of pairs allow an illegal schedule: {evaluation.violations[0]}")
            reached = objective.of(evaluation.makespan, evaluation.energy)
            if reached < value:
                return SearchBelow(Finding.FOUND, schedule, reached)
            if problem.keeps_results and objective is not ScheduleObjective.MAKESPAN:
                return SearchBelow(Finding.OPEN)  # here all results stay, whatever the capacity
        elif objective.of(finding.makespan, finding.energy) < value:
            return SearchBelow(Finding.OPEN)
        stretches += _divided(stretch, finding.makespan, value)
    return SearchBelow(Finding.NONE)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Makespans ``T`` from ``first`` to ``last``; energies ``E + slope · T < height``, any without height."""

    first: int
    last: int
    slope: Fraction = Fraction(0)
    height: Fraction | None = None


def _chord(first: int, last: int, product: Fraction) -> _Stretch:
    """All that is below the product at these makespans, and little more."""
    if first == last:
        return _Stretch(first, last, Fraction(0), product / first)
    slope = product / (first * last)
    return _Stretch(first, last, slope, slope * (first + last))


def _stairs(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Stretches from the first makespan to the last, each a little longer than the one before."""
    if first >= last:
        return iter([(first, last)] if first == last else [])
    steps = math.ceil(math.log(last / first) / math.log(_STEP))
    inner = {round(first * (last / first) ** (step / steps)) for step in range(1, steps)}
    return pairwise(sorted({first, last} | {at for at in inner if first < at < last}))


def _divided(stretch: _Stretch, makespan: int, product: Fraction) -> list[_Stretch]:
    """The parts of a stretch in which a solution of that makespan lies between curve and chord.

    At the ends the two meet, so that a solution there has passed by rounding.  One makespan is not rounded.
    """
    first, last = stretch.first, stretch.last
    if makespan in (first, last):
        rest = (first + 1, last) if makespan == first else (first, last - 1)
        return [_chord(*rest, product), _chord(makespan, makespan, product)]
    near = min(makespan - first, last - makespan) < (last - first) // _NEAR
    middle = (first + last) // 2 if near else makespan
    return [_chord(first, middle, product), _chord(middle, last, product)]


def _below(value: Fraction) -> int:
    """The largest integer below a number."""
    return -(-value // 1) - 1


@dataclass(frozen=True, slots=True)
class _Found:
    """A solution of the model; energy in pJ."""

    starts: dict[int, int]
    chosen: dict[int, Option]
    makespan: int
    energy: Fraction


@dataclass(frozen=True)
class _Question:
    """Whether there are schedules in a stretch.

    Parameters
    ----------
    core : how many tasks are put in order, the longest ones; ``None`` for all
    """

    problem: SchedulingProblem
    limits: Limits
    core: int | None

    @cached_property
    def options(self) -> list[tuple[Option, ...]]:
        return feasible_options(self.problem)

    @cached_property
    def ordered(self) -> list[int]:
        """The tasks that are put in order."""
        tasks = sorted(range(len(self.options)), key=lambda task: -min(o.cycles for o in self.options[task]))
        return sorted(tasks[: self.core])

    @property
    def whole(self) -> bool:
        return len(self.ordered) == len(self.options)

    @cached_property
    def horizon(self) -> int:
        """Cycles in which all tasks can run one after the other, however they run."""
        cycles = sum(max(o.cycles + o.fetch for o in own) for own in self.options)
        return cycles + self.problem.context_cycles * len(self.problem.edges)

    @cached_property
    def shortest(self) -> int:
        """No schedule is shorter: no engine is ever idle, every task is on its fastest one."""
        cycles = sum(min(o.cycles for o in own) for own in self.options)
        return -(-cycles // len(self.problem.engines))

    @cached_property
    def least_energy(self) -> Fraction:
        return sum((min(o.energy for o in own) for own in self.options), Fraction(0))

    @cached_property
    def most_energy(self) -> Fraction:
        changes = len(self.problem.edges) * self.problem.context_energy
        return sum((max(o.energy for o in own) for own in self.options), changes)

    def ask(self, stretch: _Stretch) -> _Found | Finding:
        """A solution, or why there is none."""
        if stretch.last < stretch.first:
            return Finding.NONE
        model = _Model(self, stretch.first, stretch.last)
        if not model.limit(stretch):
            return Finding.OPEN
        run = CpSatRun(model.model, self.limits, lambda: self.limits.expired)
        if run.solve() == cp_model.INFEASIBLE:
            return Finding.NONE
        return model.solution(run.solver) if run.has_solution else Finding.OPEN


class _Model:
    """The rules, for schedules of a makespan from ``first`` to ``last``."""

    def __init__(self, question: _Question, first: int, last: int) -> None:
        problem, options = question.problem, question.options
        self.question = question
        self.model = model = cp_model.CpModel()
        self.starts = starts = [model.new_int_var(0, last, "") for _ in options]
        self.choices = choices = [[model.new_bool_var("") for _ in own] for own in options]
        self.makespan = model.new_int_var(first, last, "")
        self.spent: list[cp_model.LinearExpr] = []
        ends: list[cp_model.LinearExprT] = []
        for start, own, literals in zip(starts, options, choices, strict=True):
            model.add_exactly_one(literals)
            ends.append(start + sum(o.cycles * x for o, x in zip(own, literals, strict=True)))
            model.add(start >= sum(o.fetch * x for o, x in zip(own, literals, strict=True)))
            model.add(ends[-1] <= self.makespan)
            self.spent += [
                int(o.energy * problem.energy_scale) * x for o, x in zip(own, literals, strict=True)
            ]
        for before, after in problem.edges:
            model.add(starts[after] >= ends[before])
            if problem.context_cycles or problem.context_energy:
                self._change_context(before, after)
        for engine in range(len(problem.engines)):
            model.add(
                sum(
                    o.cycles * x
                    for own, literals in zip(options, choices, strict=True)
                    for o, x in zip(own, literals, strict=True)
                    if o.engine == engine
                )
                <= self.makespan
            )
        self._put_in_order()
        if question.whole and memory_may_bind(problem):
            self._share_memory()

    def limit(self, stretch: _Stretch) -> bool:
        """State the stretch's line; ``False`` where its numbers are too large.

        Multiplied by ``factor`` it is exact, or rounded so that every schedule below the line stays.
        """
        scale = self.question.problem.energy_scale
        if max(int(self.question.most_energy * scale), stretch.last) >= _LARGEST:
            return False
        if stretch.height is None:
            return True
        slope, height = stretch.slope * scale, stretch.height * scale
        largest = max(self.question.most_energy * scale, slope * stretch.last, height, Fraction(1))
        if largest >= _LARGEST:
            return False
        factor = math.lcm(slope.denominator, height.denominator) if slope else 1
        if factor * largest >= _LARGEST:
            factor = int(_LARGEST / largest)
        energy = sum(factor * part for part in self.spent)
        self.model.add(energy + int(factor * slope) * self.makespan <= _below(factor * height))
        return True

    def solution(self, solver: cp_model.CpSolver) -> _Found:
        """What the solver has found."""
        problem, options = self.question.problem, self.question.options
        starts = {task: solver.value(start) for task, start in enumerate(self.starts)}
        chosen = {
            task: options[task][[solver.boolean_value(x) for x in own].index(True)]
            for task, own in enumerate(self.choices)
        }
        energy = Fraction(int(solver.value(sum(self.spent))), problem.energy_scale)
        return _Found(starts, chosen, solver.value(self.makespan), energy)

    def _change_context(self, before: int, after: int) -> None:
        """Reading a result that is laid out otherwise takes cycles and energy."""
        problem, options, model = self.question.problem, self.question.options, self.model
        for option, x in zip(options[before], self.choices[before], strict=True):
            for other, y in zip(options[after], self.choices[after], strict=True):
                if option.layout != other.layout:
                    both = model.new_bool_var("")
                    model.add_bool_or(~x, ~y, both)
                    self.spent.append(int(problem.context_energy * problem.energy_scale) * both)
                    lag = option.cycles + problem.context_cycles
                    model.add(self.starts[after] >= self.starts[before] + lag).only_enforce_if(x, y)

    def _put_in_order(self) -> None:
        """Of two tasks on one engine one comes first."""
        options, starts, choices, model = self.question.options, self.starts, self.choices, self.model
        graph: nx.DiGraph[int] = nx.DiGraph(self.question.problem.edges)
        graph.add_nodes_from(range(len(options)))
        behind = {task: nx.descendants(graph, task) for task in self.question.ordered}
        for first, second in combinations(self.question.ordered, 2):
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

    def _share_memory(self) -> None:
        """What runs and what is fetched at one time fits the shared memory."""
        needs: list[tuple[cp_model.IntervalVar, int]] = []
        for start, own, literals in zip(self.starts, self.question.options, self.choices, strict=True):
            for option, literal in zip(own, literals, strict=True):
                run = self.model.new_optional_fixed_size_interval_var(start, option.cycles, literal, "")
                fetch = self.model.new_optional_fixed_size_interval_var(
                    start - option.fetch, option.fetch, literal, ""
                )
                needs += [(run, option.memory), (fetch, option.fetch_need)]
        memory = self.question.problem.memory
        assert memory is not None
        self.model.add_cumulative([interval for interval, _ in needs], [need for _, need in needs], memory)
