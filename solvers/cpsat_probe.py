"""Models on which a release of CP-SAT shows whether its proofs can be believed.

OR-Tools 9.15.6755 is wrong in two ways with its parameters as they are by default:

- It certifies wrong optima of models with wide enforced rows (`cpsat_rows`): presolve adds up their terms in
  32 bits.  `presolve_inclusion_work_limit = 0` leaves that step out.
- It calls models with products infeasible that have solutions, also without presolve.  Of the clauses that
  search finds by itself among literals that enforce rows on one variable, some do not hold;
  `auto_detect_greater_than_at_least_one_of = False` takes the clauses that are stated.

The models made here are of these kinds, and so small that every assignment can be looked at: what the solver
says is compared with the least value over all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product

import numpy as np
from ortools.sat.python import cp_model

from tilewright.foundation.arrays import Int64s

LARGE = 4 * 10**9
"""Coefficients, and values of integers: beyond 32 bits."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A model, the objective that it is to make small, and its least value; ``None`` without a solution."""

    model: cp_model.CpModel
    objective: cp_model.LinearExprT
    least: int | None

    def is_right(self, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus) -> bool:
        """Whether a solver has come to the truth."""
        if self.least is None:
            return bool(status == cp_model.INFEASIBLE)
        return bool(status == cp_model.OPTIMAL and solver.value(self.objective) == self.least)


def wide_rows(seed: int) -> Probe:
    """A model of some rows, each enforced by a literal whose opposite excludes terms of the row.

    Its variables are literals with coefficients up to `LARGE`, and integers of two values that are as far
    apart.
    """
    generator = random.Random(seed)
    conditions, terms = generator.randint(1, 3), generator.randint(4, 7)
    model = cp_model.CpModel()
    holds = [model.new_bool_var("") for _ in range(conditions)]
    steps = [generator.choice((1, 1, generator.randint(LARGE // 4, LARGE))) for _ in range(terms)]
    variables = [
        model.new_bool_var("")
        if step == 1
        else model.new_int_var_from_domain(cp_model.Domain.from_values([0, step]), "")
        for step in steps
    ]
    points = np.array([*product((0, 1), repeat=conditions + terms)], dtype=np.int64)
    chosen, values = points[:, :conditions], points[:, conditions:] * np.array(steps)
    legal = np.ones(len(points), dtype=np.bool_)
    for place, literal in enumerate(holds):
        excluded = [t for t, step in enumerate(steps) if step == 1][:2]
        for t in excluded:
            model.add_at_most_one([~literal, variables[t]])
            legal &= chosen[:, place] >= values[:, t]
        weights = [generator.randint(LARGE // 4, LARGE) if step == 1 else 1 for step in steps]
        most = generator.randint(0, sum(w * step for w, step in zip(weights, steps, strict=True)))
        model.add(sum(w * x for w, x in zip(weights, variables, strict=True)) <= most).only_enforce_if(
            literal
        )
        legal &= (chosen[:, place] == 0) | (values @ np.array(weights) <= most)
    prices = [generator.randint(-2, 9) for _ in holds]
    gains = [generator.randint(1, 9) for _ in steps]
    objective = sum(price * literal for price, literal in zip(prices, holds, strict=True)) - sum(
        gain * x for gain, x in zip(gains, variables, strict=True)
    )
    model.minimize(objective)
    worth = (chosen @ np.array(prices) - values @ np.array(gains))[legal]
    return Probe(model, objective, int(worth.min()))


def products(seed: int) -> Probe:
    """A model of rows with conditions on products: of a sum of literals and an integer of few values."""
    generator = random.Random(seed)
    model, literals = cp_model.CpModel(), generator.randint(3, 5)
    choices = [[0, 1]] * literals
    choices += [
        sorted({generator.randint(1, 70_000) for _ in range(2)}) for _ in range(generator.randint(1, 2))
    ]
    variables = [model.new_int_var_from_domain(cp_model.Domain.from_values(own), "") for own in choices]
    points = np.array([*product(*choices)], dtype=np.int64)
    legal = np.ones(len(points), dtype=np.bool_)
    made: list[tuple[cp_model.IntVar, Int64s]] = []
    for _ in range(generator.randint(1, 2)):
        largest, factor = (
            generator.choice((10, 10**3, 10**5, 10**8)),
            generator.randrange(literals, len(choices)),
        )
        weights = [generator.choice((0, generator.randint(1, largest))) for _ in range(literals)]
        total = model.new_int_var(0, sum(weights), "")
        model.add(total == sum(w * x for w, x in zip(weights, variables, strict=False)))
        result = model.new_int_var(0, sum(weights) * choices[factor][-1], "")
        model.add_multiplication_equality(result, [total, variables[factor]])
        made.append((result, points[:, :literals] @ np.array(weights) * points[:, factor]))
    for _ in range(generator.randint(1, 4)):
        result, values = generator.choice(made)
        place, on, at_most = generator.randrange(literals), generator.random() < 0.5, generator.random() < 0.5
        limit = generator.randint(0, max(1, int(values.max())))
        row = model.add(result <= limit if at_most else result >= limit)
        row.only_enforce_if(variables[place] if on else ~variables[place])
        legal &= (points[:, place] != on) | (values <= limit if at_most else values >= limit)
    first, second = generator.sample(range(literals), 2)
    model.add_at_most_one([variables[first], variables[second]])
    legal &= points[:, first] + points[:, second] <= 1
    terms = [*made, *zip(variables, points.T, strict=True)]
    costs = [(generator.randint(-3, 3), *generator.choice(terms)) for _ in range(3)]
    objective = sum(cost * variable for cost, variable, _ in costs)
    model.minimize(objective)
    worth = sum((cost * values for cost, _, values in costs), np.zeros(len(points), dtype=np.int64))[legal]
    return Probe(model, objective, int(worth.min()) if len(worth) else None)


SHOWING = ((wide_rows, (0, 11, 12)), (products, (255, 263, 344)))
"""Models on which OR-Tools 9.15.6755, with its parameters as they are by default, is wrong: by seeds."""


def fault(new_solver: Callable[[], cp_model.CpSolver]) -> str:
    """Why the proofs of this release are rejected; empty where it is right on the probe's models.

    Parameters
    ----------
    new_solver : makes a solver with the parameters of all runs
    """
    for make, seeds in SHOWING:
        for seed in seeds:
            asked, solver = make(seed), new_solver()
            solver.parameters.num_workers = 1
            if not asked.is_right(solver, solver.solve(asked.model)):
                return (
                    f"OR-Tools {version('ortools')} fails its self-test: its answers do not count as proofs"
                )
    return ""
