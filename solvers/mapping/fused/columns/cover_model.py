"""The least cost of groups that hold every layer once and can run one after the other, by CP-SAT."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.mapping.fused.columns.columns import LARGEST
from tilewright.solvers.mapping.fused.columns.linked import Linked
from tilewright.solvers.mapping.fused.columns.space import TooLargeError

Names = tuple[str, ...]


def least_cover(
    linked: Linked, costs: Mapping[Names, Fraction], limits: Limits
) -> tuple[Fraction, list[Names]] | None:
    """The least sum, and the groups; ``None`` where no groups with a cost hold every layer once.

    Every layer has a step.  Layers of one group have the same one, and a reader outside the group of what it
    reads has a later one, so that no groups wait for each other in a circle.

    Parameters
    ----------
    linked : the layers and who waits for whom
    costs : of layers alone and of groups; what is not there is not used
    limits : ``LimitReachedError`` is raised where one strikes

    Raises
    ------
    TooLargeError : where numbers are too large for the model
    """
    scale = math.lcm(*(cost.denominator for cost in costs.values()))
    weights = [int(cost * scale) for cost in costs.values()]
    if max(weights, default=0) * len(linked.operators) > LARGEST:
        raise TooLargeError("energies beyond 2**60")
    model = cp_model.CpModel()
    used = {names: model.new_bool_var("") for names in costs}
    last = len(linked.order)
    step = {name: model.new_int_var(0, last, "") for name in linked.order}
    for name in linked.operators:
        model.add_exactly_one(literal for names, literal in used.items() if name in names)
    for names, literal in used.items():
        for name in names[1:]:
            model.add(step[name] == step[names[0]]).only_enforce_if(literal)
    for producer, reader in {(producer, reader) for producer, reader, _ in linked.waits}:
        together = [literal for names, literal in used.items() if producer in names and reader in names]
        model.add(step[reader] >= step[producer] + 1 - sum(together))
    cost = cp_model.LinearExpr.weighted_sum([*used.values()], weights)
    model.minimize(cost)
    run = CpSatRun(model, limits, lambda: limits.expired)
    status = run.solve()
    if run.doubt:
        raise TooLargeError(f"CP-SAT: {run.doubt}")
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        limits.check()
        raise LimitReachedError("CP-SAT came to no end")
    chosen = [names for names, literal in used.items() if run.solver.boolean_value(literal)]
    return sum((costs[names] for names in chosen), Fraction(0)), chosen
