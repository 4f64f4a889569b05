"""What every mapping of a layer must count at least, whatever a machine's prices are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.relaxation import GroupIntervalReader, group_intervals
from tilewright.formulation.mapping.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.explore.features import features_of, with_prices
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, slots=True)
class LeastCounts:
    """Lower bounds that hold on every machine of a shape.

    Parameters
    ----------
    counts : per price, how often it is paid at least
    cycles : engine cycles at least
    """

    counts: tuple[float, ...]
    cycles: float


def least_counts(operator: Operator, engine: Engine, model: str, factors: str | None) -> LeastCounts:
    """Lower bounds of a layer's counts and cycles by intervals over the whole map space.

    Parameters
    ----------
    engine : with at least the room of every machine that the bounds are for

    Notes
    -----
    The energy of a machine on which one price is 1 pJ and all others nothing is the count of that price, so
    the cost model's own statement is read, once per price.
    """
    problem = layer_problem(operator, engine, parse_objective("edp"), model, factors=factors)
    number = len(features_of(engine).prices)
    statements = []
    for place in range(number):
        prices = [Fraction(index == place) for index in range(number)]
        nest = replace(problem.space.nest, engine=with_prices(engine, prices))
        statements.append(problem.model.statement(nest))
    cycles = problem.statement.cycles
    tables = Tables(problem.space.groups, [cycles, *(one.energy for one in statements)])
    if not all(len(table) for table in tables.tables):
        return LeastCounts((0.0,) * number, 0.0)  # nothing fits the array
    reader = GroupIntervalReader([group_intervals(table) for table in tables.tables])
    counts = tuple(max(0.0, float(reader.low(one.energy)) / one.energy_scale) for one in statements)
    return LeastCounts(counts, max(0.0, float(reader.low(cycles))))
