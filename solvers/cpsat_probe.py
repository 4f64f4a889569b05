"""Models on which a release of CP-SAT shows whether its proofs can be believed.

OR-Tools 9.15.6755 certifies wrong optima of models with wide enforced rows (`cpsat_rows`).  The models made
here are of that kind, and so small that every assignment can be looked at: what the solver says is compared
with the least value over all of them.  Every solution has literals of which none holds, so there is one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product

import numpy as np
from ortools.sat.python import cp_model

LARGE = 4 * 10**9
"""Coefficients, and values of integers: beyond 32 bits."""
SHOWING = (0, 11, 12)
"""Seeds of models on which OR-Tools 9.15.6755, with its parameters as they are by default, is wrong."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A model, the objective that it is to make small, and the least value of that over its solutions."""

    model: cp_model.CpModel
    objective: cp_model.LinearExprT
    least: int


def probe(seed: int) -> Probe:
    """A model of some rows, each enforced by a literal whose opposite excludes terms of the row.

    Its variables are literals with coefficients up to `LARGE`, and integers of two values that are as far
    apart.
    """
    chance = random.Random(seed)
    conditions, terms = chance.randint(1, 3), chance.randint(4, 7)
    model = cp_model.CpModel()
    holds = [model.new_bool_var("") for _ in range(conditions)]
    steps = [chance.choice((1, 1, chance.randint(LARGE // 4, LARGE))) for _ in range(terms)]
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
        weights = [chance.randint(LARGE // 4, LARGE) if step == 1 else 1 for step in steps]
        most = chance.randint(0, sum(w * step for w, step in zip(weights, steps, strict=True)))
        model.add(sum(w * x for w, x in zip(weights, variables, strict=True)) <= most).only_enforce_if(literal)
        legal &= (chosen[:, place] == 0) | (values @ np.array(weights) <= most)
    prices = [chance.randint(-2, 9) for _ in holds]
    gains = [chance.randint(1, 9) for _ in steps]
    objective = sum(price * literal for price, literal in zip(prices, holds, strict=True)) - sum(
        gain * x for gain, x in zip(gains, variables, strict=True)
    )
    model.minimize(objective)
    worth = (chosen @ np.array(prices) - values @ np.array(gains))[legal]
    return Probe(model, objective, int(worth.min()))


def fault(new_solver: Callable[[], cp_model.CpSolver]) -> str:
    """Why the proofs of this release are not believed; empty where it is right on models that tell.

    Parameters
    ----------
    new_solver : makes a solver with the parameters of all runs
    """
    for seed in SHOWING:
        asked, solver = probe(seed), new_solver()
        solver.parameters.num_workers = 1
        status = solver.solve(asked.model)
        if status != cp_model.OPTIMAL or solver.value(asked.objective) != asked.least:
            return f"OR-Tools {version('ortools')} fails its self-test: what it says is taken for no proof"
    return ""
