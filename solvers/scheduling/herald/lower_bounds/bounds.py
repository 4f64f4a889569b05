"""Lower bounds: critical path, the cheapest option of every task, and the assignment relaxation as an LP.

The LP lets tasks run in parts on several engines: every engine's load and every chain must fit the
makespan, options cost their energy.  Runs that are alike are taken together; by symmetry this loses
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from ortools.linear_solver import pywraplp

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front
from tilewright.solvers.scheduling.herald.statement import equal_runs
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices

SAFETY = Fraction(1, 10**7)
"""By which an LP's optimum is lowered, far above the solver's tolerance of 1e-9 on scaled figures."""
_INSIDE = Fraction(1, 10**5)  # the LP at its least makespan itself may look infeasible
_CUTS = 40
_PART = 0.5  # of the time that is left, at most, for one LP
_ENOUGH = Fraction(1, 10**4)
_WORTHLESS = 1e-6  # cycles of all engines, where chains alone decide: what is left of rounding


def critical_path(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> int:
    """The longest chain, every task on its fastest engine."""
    ends: dict[int, int] = {}
    for task in problem.order:
        first = max((ends[other] for other in problem.before[task]), default=0)
        ends[task] = first + min(option.cycles for option in options[task])
    return max(ends.values())


def least_energy(options: Sequence[tuple[Option, ...]]) -> Fraction:
    """Every task at its cheapest option, without context changes."""
    return sum((min(option.energy for option in own) for own in options), Fraction(0))


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """An optimum of the LP: its value and how it falls per cycle of makespan."""

    energy: float
    slope: float


class AssignmentRelaxation:
    """The LP over options, for makespans that are given or sought.

    Parameters
    ----------
    limits : an LP that is not solved when they strike proves nothing, and costs no more time
    """

    def __init__(
        self, problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], limits: Limits | None = None
    ) -> None:
        self._limits = limits or Limits()
        self._problem = problem
        self._options = options
        self._unit_energy = float(sum(max(o.energy for o in own) for own in options)) or 1.0
        self._unit_cycles = float(critical_path(problem, options))
        self._loads: dict[int, pywraplp.Constraint] = {}  # of the latest LP, by engine
        self._count = dict.fromkeys(range(len(problem.tasks)), 1)
        for runs in equal_runs(problem):
            for position, task in enumerate(runs[0]):
                self._count[task] = len(runs)
                for run in runs[1:]:
                    del self._count[run[position]]

    def least_makespan(self) -> int:
        """The makespan that the relaxation allows, as a bound."""
        solver, makespan, _ = self._state(None)
        solver.Minimize(makespan)
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return 0
        value = Fraction(solver.Objective().Value()) * Fraction(self._unit_cycles) * (1 - SAFETY)
        return -(-value.numerator // value.denominator)

    def prices(self, objective: ScheduleObjective, front: Front) -> tuple[Prices, ...]:
        """Dual values of the loads, as parts of all, at the least makespan.

        For the product also at the makespan of its bound; neither of the two is always the better one.
        """
        if objective is ScheduleObjective.MAKESPAN:
            return (self._prices(None, 0.0),)
        product, at = front.least_product()
        energy = float(at * at / product) if product else 0.0
        places = (at * (1 + _INSIDE), None)
        return tuple(dict.fromkeys(self._prices(place, energy) for place in places))

    def prices_at(self, worth: float) -> Prices:
        """Dual values of the loads, as parts of all, where makespan plus energy at its price is least.

        Parameters
        ----------
        worth : of a pJ, in cycles
        """
        solver, length, energy = self._state(None)
        solver.Minimize(length + worth * self._unit_energy / self._unit_cycles * energy)
        return self._solved(solver, worth)

    def _prices(self, makespan: Fraction | None, worth: float) -> Prices:
        """Prices where energy is least within a makespan, or the makespan is least."""
        solver, length, energy = self._state(
            None if makespan is None else float(makespan) / self._unit_cycles
        )
        solver.Minimize(length if makespan is None else energy)
        return self._solved(solver, worth)

    def _solved(self, solver: pywraplp.Solver, worth: float) -> Prices:
        """Solve the LP; the prices that it says, or even ones."""
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return Prices(even_prices(self._problem).engines, worth)
        duals = [
            abs(self._loads[engine].dual_value()) if engine in self._loads else 0.0
            for engine in range(len(self._problem.engines))
        ]
        total = sum(duals)
        if total < _WORTHLESS:
            return Prices(even_prices(self._problem).engines, worth)
        return Prices(tuple(round(dual / total, 9) for dual in duals), worth)

    def tighten(self, front: Front) -> None:
        """Add half-planes until the least product is the LP's own."""
        at = front.makespan
        for _ in range(_CUTS):
            if self._limits.expired:
                return
            at = max(at, front.makespan * (1 + _INSIDE))
            relaxed = self._at(at)
            if relaxed is None:
                return
            energy = Fraction(relaxed.energy) * (1 - SAFETY)
            slope = min(Fraction(0), Fraction(relaxed.slope))
            front.add(Fraction(1), -slope, energy - slope * at)
            product, corner = front.least_product()
            seen = self._at(max(corner, front.makespan * (1 + _INSIDE)))
            if seen is None or corner * Fraction(seen.energy) <= product * (1 + _ENOUGH):
                return
            at = corner

    def _at(self, makespan: Fraction) -> _Relaxed | None:
        """The least energy at a makespan, in pJ and pJ per cycle."""
        solver, variable, energy = self._state(float(makespan) / self._unit_cycles)
        solver.Minimize(energy)
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        value = solver.Objective().Value() * self._unit_energy
        return _Relaxed(value, variable.reduced_cost() * self._unit_energy / self._unit_cycles)

    def _state(
        self, makespan: float | None
    ) -> tuple[pywraplp.Solver, pywraplp.Variable, pywraplp.LinearExpr]:
        solver = pywraplp.Solver.CreateSolver("GLOP")
        if self._limits.remaining is not None:
            solver.SetTimeLimit(max(1, int(1000 * _PART * self._limits.remaining)))
        low, high = (0.0, solver.infinity()) if makespan is None else (makespan, makespan)
        length = solver.NumVar(low, high, "")
        loads: list[list[pywraplp.LinearExpr]] = [[] for _ in self._problem.engines]
        ends: dict[int, pywraplp.Variable] = {}
        energies = []
        for task in self._problem.order:
            if task not in self._count:
                continue
            shares = [solver.NumVar(0.0, 1.0, "") for _ in self._options[task]]
            solver.Add(sum(shares) == 1.0)
            times = [option.cycles / self._unit_cycles for option in self._options[task]]
            duration = sum(time * share for time, share in zip(times, shares, strict=True))
            ends[task] = solver.NumVar(0.0, solver.infinity(), "")
            solver.Add(ends[task] <= length)
            solver.Add(ends[task] >= duration)
            for first in self._problem.before[task]:
                if first in ends:
                    solver.Add(ends[task] >= ends[first] + duration)
            count = self._count[task]
            for option, time, share in zip(self._options[task], times, shares, strict=True):
                loads[option.engine].append(count * time * share)
                energies.append(count * float(option.energy) / self._unit_energy * share)
        for engine, load in enumerate(loads):
            if load:
                self._loads[engine] = solver.Add(sum(load) <= length)
        return solver, length, sum(energies)


def lp_prices(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    objective: ScheduleObjective,
    front: Front,
    limits: Limits | None = None,
) -> tuple[Prices, ...]:
    """What engines and energy are worth in the assignment LP; all the same where no time is left for it.

    Parameters
    ----------
    problem : whose tasks are assigned
    options : of every task
    objective : the prices are those of its best points
    front : what is known of energy and makespan
    limits : of the LP
    """
    return AssignmentRelaxation(problem, options, limits).prices(objective, front)


def first_bounds(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> Front:
    """Bounds in closed form, one pass over the tasks: every search has one, however short its limit.

    The longest chain with every task on its fastest engine; the work of all tasks, each on its fastest
    engine, with no engine idle; every task at its cheapest option; for the product, both at once.
    """
    shortest = sum(min(option.cycles for option in own) for own in options)
    idle_free = -(-shortest // len(search.problem.instance.engines))
    front = Front(
        least_energy(options), Fraction(max(critical_path(search.problem.instance, options), idle_free))
    )
    objective = search.problem.objective
    match objective:
        case ScheduleObjective.MAKESPAN:
            search.raise_bound(front.makespan, "loads and chains")
        case ScheduleObjective.ENERGY:
            search.raise_bound(front.energy, "cheapest options")
        case ScheduleObjective.EDP:
            search.raise_bound(front.least_product()[0], "loads and chains")
        case _:
            assert_never(objective)
    return front


def basic_bounds(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> Front:
    """Bounds that cost little: those in closed form, then the assignment LP as far as time is left."""
    front = first_bounds(search, options)
    if search.limits.expired or search.problem.objective is ScheduleObjective.ENERGY:
        return front
    relaxation = AssignmentRelaxation(search.problem.instance, options, search.limits)
    makespan = front.makespan = max(front.makespan, Fraction(relaxation.least_makespan()))
    match search.problem.objective:
        case ScheduleObjective.MAKESPAN:
            search.raise_bound(makespan, "assignment LP")
        case ScheduleObjective.EDP:
            relaxation.tighten(front)
            search.raise_bound(front.least_product()[0], "assignment LP")
    return front
