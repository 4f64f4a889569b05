"""Boxes around one decision that hold no better mapping, so that all of it is excluded at once.

The relaxation may value a decision lower than the evaluator does.  Where no further line can help, the
decision is excluded, together with all that intervals show to be no better: for every axis a set of rows,
such that the interval of the objective (or of a broken limit) over all their combinations stays beyond
what the incumbent leaves to gain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Bools, Floats, Indices
from tilewright.solvers.mapping.presolve.intervals import TableIntervals

NEAR = 1e-12


def worse(problem: LayerProblem, intervals: TableIntervals, key: int | None, size: int) -> Bools:
    """Where nothing is legal and cheaper than ``key`` (scaled, an integer), by the lower bounds.

    Parameters
    ----------
    problem : gives limits, energy and cycles
    intervals : lower bounds over the combinations in question
    key : scaled key that has to be beaten; ``None`` where only limits count
    size : how many combinations there are
    """
    closed = np.zeros(size, dtype=bool)
    for limit in problem.limits:
        low = intervals.low(limit.expr)
        closed |= (low > limit.bound) & (low > limit.bound * (1 + NEAR))
    if key is not None:
        closed |= _not_improving(problem, intervals, key, size)
    return closed


def _not_improving(problem: LayerProblem, intervals: TableIntervals, key: int, size: int) -> Bools:
    a, b = problem.objective.key_powers
    energy, cycles = (
        np.broadcast_to(intervals.low(expr) if power else np.float64(1), (size,))
        for expr, power in ((problem.statement.energy, a), (problem.statement.cycles, b))
    )
    if max(energy.max(), cycles.max()) >= EXACT_LIMIT:
        raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
    rough: Floats = energy**a * cycles**b
    result = np.asarray(rough > float(key) * (1 + 1e-9))
    for index in np.flatnonzero(~result & (rough > float(key) * (1 - 1e-9))):
        result[index] = int(np.ceil(energy[index])) ** a * int(np.ceil(cycles[index])) ** b >= key
    return result


def grow(
    problem: LayerProblem,
    tables: Tables,
    rows: Sequence[Indices],
    fixed: dict[Variable, int],
    point: Sequence[int],
    key: int | None,
    first: int,
) -> list[Bools]:
    """The sets of rows around a decision that is not better than ``key``.

    Parameters
    ----------
    rows : per group, the open rows
    fixed : the decision's choices
    point : per group, the position of the decision's row among the open ones
    first : the group that is grown first
    """
    count = len(rows)
    members = [np.zeros(len(index), dtype=bool) for index in rows]
    for inside, place in zip(members, point, strict=False):
        inside[place] = True
    for step in range(count):
        position = (first + step) % count
        kept = [index[inside] for index, inside in zip(rows, members, strict=True)]
        kept[position] = rows[position]
        intervals = TableIntervals(tables, kept, fixed, position)
        members[position] |= worse(problem, intervals, key, len(rows[position]))
    return members
