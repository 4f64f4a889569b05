"""Lower bounds by weak duality, in exact arithmetic: a second way to the bounds of `bounds`.

Let an engine's cycle cost ``m_e ≥ 0``, all together ``m = Σ m_e``.  Every engine is busy for at most the
makespan ``T``, so a schedule of energy ``E`` has

    E + m T  ≥  E + Σ_e m_e load_e  ≥  Σ_tasks min over options (energy + m_engine · cycles),

whatever the multipliers; without the energies it bounds ``T`` alone.  Multipliers come from an LP, but
nothing rests on them: the right-hand side is summed up again in fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from ortools.linear_solver import pywraplp

from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front

_PLANES = 40
_ENOUGH = Fraction(1, 10**9)
_DIGITS = 10**12  # multipliers are rounded to fractions of this

Groups = list[tuple[tuple[Option, ...], int]]
"""Options, and how many tasks have them."""


def multiplier_bound(problem: SchedulingProblem, objective: ScheduleObjective) -> Fraction:
    """A lower bound of the objective over all schedules; the problem must have one."""
    options = feasible_options(problem)
    groups = [*Counter(options).items()]
    energy = sum((count * min(o.energy for o in own) for own, count in groups), Fraction(0))
    if objective is ScheduleObjective.ENERGY:
        return energy
    makespan = max(_longest_chain(problem, options), _least_makespan(groups, len(problem.engines)))
    if objective is ScheduleObjective.MAKESPAN:
        return Fraction(-(-makespan.numerator // makespan.denominator))
    front = Front(energy, makespan)
    product, corner = front.least_product()
    for _ in range(_PLANES):
        weights = _weights(groups, len(problem.engines), float(corner))
        front.add(Fraction(1), sum(weights, Fraction(0)), _weighted(groups, weights, Fraction(1)))
        before, (product, corner) = product, front.least_product()
        if product <= before * (1 + _ENOUGH):
            break
    return product


def _longest_chain(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> Fraction:
    """Every task behind all whose results it reads, on its fastest engine."""
    ends = [0] * len(options)
    for task in problem.order:
        begun = max((ends[before] for before in problem.before[task]), default=0)
        ends[task] = begun + min(option.cycles for option in options[task])
    return Fraction(max(ends))


def _least_makespan(groups: Groups, engines: int) -> Fraction:
    weights = _weights(groups, engines, None)
    total = sum(weights, Fraction(0))
    return _weighted(groups, weights, Fraction(0)) / total if total else Fraction(0)


def _weighted(groups: Groups, weights: Sequence[Fraction], energy: Fraction) -> Fraction:
    """The right-hand side: the least cost of all tasks, each for itself."""
    return sum(
        (
            count * min(energy * option.energy + weights[option.engine] * option.cycles for option in own)
            for own, count in groups
        ),
        Fraction(0),
    )


def _weights(groups: Groups, engines: int, makespan: float | None) -> list[Fraction]:
    """Multipliers: duals of the loads in the LP over shares of options.

    Parameters
    ----------
    makespan : for the least energy within it; ``None`` for the least makespan
    """
    unit = sum(count * min(o.cycles for o in own) for own, count in groups) / engines
    price = float(max(1, sum(count * max(o.energy for o in own) for own, count in groups)))
    solver = pywraplp.Solver.CreateSolver("GLOP")
    length = solver.NumVar(0.0, solver.infinity(), "")
    if makespan is not None:
        length.SetBounds(makespan / unit, makespan / unit)
    loads: list[list[pywraplp.LinearExpr]] = [[] for _ in range(engines)]
    energies = []
    for own, count in groups:
        shares = [solver.NumVar(0.0, 1.0, "") for _ in own]
        solver.Add(sum(shares) == 1.0)
        for option, share in zip(own, shares, strict=True):
            loads[option.engine].append(count * option.cycles / unit * share)
            energies.append(count * float(option.energy) / price * share)
    rows = [solver.Add(length >= sum(load)) for load in loads]
    solver.Minimize(length if makespan is None else sum(energies))
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return [Fraction(0)] * engines
    scale = 1 if makespan is None else Fraction(price) / Fraction(unit)
    return [max(Fraction(0), Fraction(round(row.dual_value() * _DIGITS), _DIGITS)) * scale for row in rows]
