"""Linear statements over whole numbers: CP-SAT solves them in process, HiGHS and CBC in one of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.solvers.mapping.mip.child import Child

SOLVERS = ("cpsat", "highs", "cbc")

ROUNDING = 1e-6
"""Part of a MIP's bound that is given away for its arithmetic."""

LARGEST = 1e6
"""Coefficients of a MIP's objective are scaled down to that, so that its tolerances mean something."""


@dataclass(eq=False)
class LinearStatement:
    """Columns from 0 to their greatest values, rows, and what is to be small.

    Every column is a whole number in every answer that counts: it is chosen as one, or rows make it one.

    Parameters
    ----------
    most : greatest value per column
    chosen : columns that a MIP declares as integers
    rows : (columns, coefficients, least, most)
    objective : coefficient per column
    """

    most: list[int] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    rows: list[tuple[list[int], list[int], int | None, int | None]] = field(default_factory=list)
    objective: dict[int, int] = field(default_factory=dict)

    def choice(self, most: int = 1) -> int:
        """A new column that is chosen."""
        self.chosen.append(len(self.most))
        return self.column(most)

    def column(self, most: int = 1) -> int:
        """A new column that rows make whole."""
        self.most.append(most)
        return len(self.most) - 1

    def row(self, terms: dict[int, int], low: int | None = None, high: int | None = None) -> None:
        """A sum of columns by coefficients that lies between two values."""
        self.rows.append((list(terms), list(terms.values()), low, high))


@dataclass(frozen=True, slots=True)
class LinearAnswer:
    """What a solver says.

    Parameters
    ----------
    values : of all columns, in the best answer it has; ``None`` without one
    bound : no answer has a smaller objective; ``None`` where nothing is known
    impossible : whether there is proven to be no answer
    """

    values: list[int] | None
    bound: int | None
    impossible: bool = False


def missing_solver(solver: str) -> str:
    """Why a solver cannot run here; empty where it can."""
    if solver != "cpsat" and find_spec("pulp") is None:
        return "the solver is not installed: pip install 'pulp>=3.3,<4' 'highspy>=1.15.1'"
    return ""


def child_of(solver: str, limits: Limits) -> AbstractContextManager[Child | None]:
    """The worker of a MIP solver; nothing for CP-SAT."""
    return nullcontext() if solver == "cpsat" else Child(solver, lambda: limits.expired)


def solve_linear(
    linear: LinearStatement, begin: Sequence[int] | None, solver: str, limits: Limits, child: Child | None
) -> LinearAnswer:
    """The best answer that a solver finds within limits, and a bound.

    Parameters
    ----------
    begin : values of all columns to begin with
    child : the running worker of ``highs`` or ``cbc``

    Raises
    ------
    ChildError : where a worker dies
    """
    if limits.expired:
        return LinearAnswer(None, None)
    if solver == "cpsat":
        return _by_cpsat(linear, begin, limits)
    assert child is not None
    return _by_mip(linear, begin, limits, child)


def _by_cpsat(linear: LinearStatement, begin: Sequence[int] | None, limits: Limits) -> LinearAnswer:
    from ortools.sat.python import cp_model  # large, and many methods begin without

    from tilewright.solvers.cpsat_run import CpSatRun

    model = cp_model.CpModel()
    columns = [model.new_int_var(0, most, "") for most in linear.most]
    for indices, coefficients, low, high in linear.rows:
        row = cp_model.LinearExpr.weighted_sum([columns[i] for i in indices], coefficients)
        if low == high:
            model.add(row == low)
            continue
        if low is not None:
            model.add(row >= low)
        if high is not None:
            model.add(row <= high)
    goal = linear.objective
    model.minimize(cp_model.LinearExpr.weighted_sum([columns[i] for i in goal], list(goal.values())))
    for column, value in zip(columns, begin or (), strict=False):
        model.add_hint(column, value)
    run = CpSatRun(model, limits, lambda: limits.expired)
    status = run.solve()
    if status == cp_model.INFEASIBLE:
        return LinearAnswer(None, None, impossible=True)
    bound = run.bound if math.isfinite(run.solver.best_objective_bound) else None
    if not run.has_solution:
        return LinearAnswer(None, bound)
    return LinearAnswer([int(run.solver.value(column)) for column in columns], bound)


def _by_mip(
    linear: LinearStatement, begin: Sequence[int] | None, limits: Limits, child: Child
) -> LinearAnswer:
    unit = max(1.0, max(map(abs, linear.objective.values()), default=0) / LARGEST)
    model: dict[str, Any] = {
        "lower": [0.0] * len(linear.most),
        "upper": [float(most) for most in linear.most],
        "integer": linear.chosen,
        "objective": [[i, cost / unit] for i, cost in linear.objective.items()],
        "rows": [
            [indices, [float(c) for c in coefficients], low, high]
            for indices, coefficients, low, high in linear.rows
        ],
    }
    if begin is not None:
        model["start"] = [float(value) for value in begin]
    left = limits.remaining
    request = {
        "model": model,
        "seconds": 3600.0 if left is None else max(0.1, left),
        "threads": limits.threads,
        "seed": limits.seed,
    }
    values: list[int] | None = None
    bound: float | None = None
    impossible = False
    for reply in child.solve(request):
        if reply.get("bound") is not None:
            bound = max(float(reply["bound"]), -math.inf if bound is None else bound)
        if reply.get("values") is not None:
            values = [round(value) for value in reply["values"]]
        impossible = impossible or reply.get("status") == "infeasible"
    if bound is None or not math.isfinite(bound):
        return LinearAnswer(values, None, impossible)
    grain = max(1, math.gcd(*linear.objective.values()))  # all objectives are multiples of it
    least = math.ceil((bound - abs(bound) * ROUNDING - ROUNDING) * unit / grain) * grain
    return LinearAnswer(values, least, impossible)
