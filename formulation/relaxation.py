"""What holds of every mapping of a problem, read off the tables of its axis groups.

Interval arithmetic over whole tables (``docs/proofs.md``, bounds by intervals): a lower bound of the
objective key, and rows of tile sizes that no mapping can use because a constraint fails whatever the other
groups do.  Both cost milliseconds; branch and bound starts from the same bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tilewright.formulation.expression import Expr
from tilewright.formulation.expression.batch import Array
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.problem import LayerProblem
from tilewright.formulation.tables import GroupTable, Indices, Tables

_SAFE = 1 - 1e-12  # relative; far above the rounding of a product of a few floats


class _WholeReader(IntervalReader):
    """Reads every group with the ends of its whole table, but one group row by row."""

    def __init__(self, tables: Sequence[GroupTable], row_wise: int | None = None) -> None:
        super().__init__({})
        self._ends: dict[Expr, tuple[Array, Array]] = {}
        for position, table in enumerate(tables):
            for node, values in table.values.items():
                ends = (values, values) if position == row_wise else (values.min(), values.max())
                self._ends[node] = ends

    def known_low(self, expr: Expr) -> Array | None:
        found = self._ends.get(expr)
        return None if found is None else found[0]

    def known_high(self, expr: Expr) -> Array | None:
        found = self._ends.get(expr)
        return None if found is None else found[1]


def problem_tables(problem: LayerProblem) -> Tables:
    """Tables of everything that the objective and the constraints read."""
    limits = [limit.expr for limit in problem.limits]
    return Tables(problem.space.groups, [problem.statement.energy, problem.statement.cycles, *limits])


def usable_rows(problem: LayerProblem, tables: Tables) -> list[Indices]:
    """Per group, the rows with which every constraint, taken alone, may still hold."""
    result: list[Indices] = []
    for position, table in enumerate(tables.tables):
        keep = np.ones(len(table), dtype=bool)
        if all(len(other) for other in tables.tables):
            reader: Any = _WholeReader(tables.tables, position)
            for limit in problem.limits:
                keep &= reader.low(limit.expr) <= limit.bound
        result.append(np.flatnonzero(keep))
    return result


def root_bound(problem: LayerProblem, tables: Tables) -> Fraction | None:
    """No mapping's objective key is below this; ``None`` where nothing positive is known."""
    if not all(len(table) for table in tables.tables):
        return None
    reader = _WholeReader(tables.tables)
    a, b = problem.objective.key_powers
    energy = float(reader.low(problem.statement.energy)) if a else 1.0
    cycles = float(reader.low(problem.statement.cycles)) if b else 1.0
    if energy <= 0 or cycles <= 0:
        return None
    key = max(energy, 0.0) ** a * max(cycles, 0.0) ** b
    return Fraction(int(key * _SAFE)) / problem.key_scale if np.isfinite(key) else None
