"""What every mapping of a layer counts at least and at most, whatever a machine's prices are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.parts.relaxation import GroupIntervalReader, group_intervals
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.explore.features import features_of, spaces_of, with_prices
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, slots=True)
class CountBounds:
    """Bounds that hold on every machine of a shape.

    Parameters
    ----------
    least, most : per price, how often it is paid at least and at most
    cycles : engine cycles at least
    """

    least: tuple[float, ...]
    most: tuple[float, ...]
    cycles: float


MOST = 1e25
"""Stands for any count beyond it."""


def count_bounds(
    operator: Operator, engine: Engine, model: str, factors: str | None, limits: Limits | None = None
) -> CountBounds:
    """Bounds of a layer's counts and cycles by intervals over the whole map space.

    Parameters
    ----------
    engine : with at least the capacities of every machine that the bounds are for
    limits : once they strike, operations alone bound the counts

    Notes
    -----
    The energy of a machine on which one price is 1 pJ and all others nothing is the count of that price, so
    the cost model's own statement is read, once per price.
    """
    number = len(features_of(engine).prices)
    operations = float(operator.iterations)
    of_operations = CountBounds((operations, *(0.0,) * (number - 1)), (MOST,) * number, 0.0)
    if limits is not None and limits.expired:
        return of_operations
    objective, alike = parse_objective("edp"), spaces_of(operator, engine)
    problem = layer_problem(operator, engine, objective, model, factors=factors, alike=alike)
    statements = []
    for place in range(number):
        prices = [Fraction(index == place) for index in range(number)]
        nest = problem.space.nest
        priced = nest.storing(with_prices(engine, prices), nest.residency)
        statements.append(problem.model.statement(priced))
    cycles = problem.statement.cycles
    try:
        tables = Tables(
            problem.space.groups, [cycles, *(statement.energy for statement in statements)], limits
        )
    except LimitReachedError:
        return of_operations
    if not all(len(table) for table in tables.tables):
        return of_operations  # nothing fits the array
    reader = GroupIntervalReader([group_intervals(table) for table in tables.tables])
    least = tuple(
        max(0.0, float(reader.low(statement.energy)) / statement.energy_scale) for statement in statements
    )
    most = tuple(
        min(MOST, float(reader.high(statement.energy)) / statement.energy_scale) for statement in statements
    )
    return CountBounds(least, most, max(0.0, float(reader.low(cycles))))
