"""Solving the linear statement: CP-SAT in process, HiGHS and CBC through PuLP in a process of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.mapping.mip.child import Child
from tilewright.solvers.scheduling.tiled.placing.problem import Ints
from tilewright.solvers.scheduling.tiled.placing.statement import PlacingStatement

SOLVERS = ("cpsat", "highs", "cbc")

ROUNDING = 1e-6
"""Part of a MIP's bound that is given away for its arithmetic."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacingAnswer:
    """What a solver says of some rounds.

    Parameters
    ----------
    engine : of the window's tasks, never worse than where they began
    cost, bound : bytes times hops; no engines cost less than the bound
    """

    engine: Ints
    cost: int
    bound: int

    @property
    def proven(self) -> bool:
        return self.cost == self.bound


def solve_placing(
    statement: PlacingStatement, begin: Ints, solver: str, limits: Limits, child: Child | None = None
) -> PlacingAnswer:
    """The best engines that a solver finds within limits, and a bound.

    Parameters
    ----------
    begin : engines to begin with
    child : the running worker of ``highs`` or ``cbc``

    Raises
    ------
    ChildError : where a worker dies
    """
    if limits.expired:
        engine, bound = begin, 0
    elif solver == "cpsat":
        engine, bound = _by_cpsat(statement, begin, limits)
    else:
        assert child is not None
        engine, bound = _by_mip(statement, begin, limits, child)
    best = min((begin, engine), key=statement.problem.cost)
    cost = statement.problem.cost(best)
    return PlacingAnswer(best, cost, max(0, bound))


def _by_cpsat(statement: PlacingStatement, begin: Ints, limits: Limits) -> tuple[Ints, int]:
    linear = statement.linear
    model = cp_model.CpModel()
    columns = [model.new_bool_var("") for _ in range(linear.columns)]
    for indices, coefficients, low, high in linear.rows:
        row = sum(c * columns[i] for i, c in zip(indices, coefficients, strict=True))
        if low == high:
            model.add(row == low)
        elif low is not None:
            model.add(row >= low)
        elif high is not None:
            model.add(row <= high)
    model.minimize(sum(cost * columns[i] for i, cost in linear.objective.items()))
    for column, value in zip(columns, statement.values_of(begin), strict=True):
        model.add_hint(column, value)
    run = CpSatRun(model, limits, lambda: limits.expired)
    run.solve()
    if not run.has_solution:
        return begin, 0
    values = [run.solver.value(column) for column in columns[: linear.whole]]
    return statement.engines_of(values), -(-run.bound // linear.scale)


def _by_mip(statement: PlacingStatement, begin: Ints, limits: Limits, child: Child) -> tuple[Ints, int]:
    linear = statement.linear
    model: dict[str, Any] = {
        "lower": [0.0] * linear.columns,
        "upper": [1.0] * linear.columns,
        "integer": list(range(linear.whole)),
        "objective": [[i, float(cost)] for i, cost in linear.objective.items()],
        "rows": [
            [indices, [float(c) for c in coefficients], low, high]
            for indices, coefficients, low, high in linear.rows
        ],
        "start": [float(value) for value in statement.values_of(begin)],
    }
    left = limits.remaining
    request = {
        "model": model,
        "seconds": 3600.0 if left is None else max(0.1, left),
        "threads": limits.threads,
        "seed": limits.seed,
    }
    engine, bound = begin, 0.0
    for reply in child.solve(request):
        if reply.get("bound") is not None:
            bound = max(bound, float(reply["bound"]))
        if reply.get("values") is not None:
            found = statement.engines_of(reply["values"])
            engine = min((engine, found), key=statement.problem.cost)
    grain = max(1, math.gcd(*linear.objective.values()))  # all costs are multiples of it
    least = math.ceil((bound * (1 - ROUNDING) - ROUNDING) / grain) * grain
    return engine, -(-least // linear.scale)
