"""Partial mappings: per axis group the rows that are still open, narrowed one decision at a time.

Decisions are made on *measures*: the tile of a dimension at a boundary, or the instances that a spatial
block spreads it over.  After each one the smallest completion shows whether the constraints can still hold.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts.relaxation import GroupIntervals, group_intervals, within_limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Indices, Int64s


@dataclass(frozen=True, slots=True)
class Measure:
    """What a decision fixes.

    Parameters
    ----------
    dim : the dimension
    boundary : the boundary at whose inside its tile is meant
    spatial : whether the instances of the spatial block ``boundary`` are meant instead
    """

    dim: str
    boundary: int
    spatial: bool = False


class DecisionSpace:
    """A problem's rows and measures; what partial mappings share.

    Raises ``LimitReachedError`` where a limit strikes while they are tabulated.
    """

    def __init__(self, problem: LayerProblem, limits: Limits | None = None) -> None:
        self.problem = problem
        self.tables = Tables(problem.space.groups, [limit.expr for limit in problem.limits], limits)
        self.group_of = {
            dim: position for position, table in enumerate(self.tables.tables) for dim in table.group.dims
        }
        self.all_rows = tuple(np.arange(len(table)) for table in self.tables.tables)
        self.all_intervals = tuple(group_intervals(t) if len(t) else {} for t in self.tables.tables)
        self._values: dict[Measure, Int64s] = {}

    def values(self, measure: Measure) -> Int64s:
        """The measure of every row of its dimension's group."""
        if measure not in self._values:
            edges = self.problem.space.nest.boundaries
            inner = self._tile(measure.dim, measure.boundary + measure.spatial)
            value = inner
            if measure.spatial:
                value = -(-self._tile(measure.dim, measure.boundary) // inner)
            assert measure.boundary < len(edges)
            self._values[measure] = value
        return self._values[measure]

    def _tile(self, dim: str, boundary: int) -> Int64s:
        group = self.tables.tables[self.group_of[dim]].group
        expr: Expr = self.problem.space.nest.boundaries[boundary][dim]
        if isinstance(expr, Constant):
            return np.full(len(group), expr.value, dtype=np.int64)
        assert isinstance(expr, Variable)
        return group.rows[:, group.variables.index(expr)]


@dataclass(frozen=True)
class Partial:
    """Rows that are still open, per group, and the choices that are made.

    ``intervals`` are the least and largest values of what the constraints read of each group.
    """

    decision_space: DecisionSpace
    rows: tuple[Indices, ...]
    intervals: tuple[GroupIntervals, ...]
    chosen: dict[Variable, int]

    @classmethod
    def whole(cls, decision_space: DecisionSpace, chosen: dict[Variable, int]) -> Partial:
        """A partial mapping in which only some choices are decided."""
        return cls(decision_space, decision_space.all_rows, decision_space.all_intervals, chosen)

    @property
    def feasible(self) -> bool:
        """Whether the constraints may still hold."""
        if not all(len(rows) for rows in self.rows):
            return False
        return within_limits(self.decision_space.problem, self.intervals, self.chosen)

    def options(self, measure: Measure) -> list[int]:
        """Values that the measure may still take, increasing."""
        if measure.dim not in self.decision_space.group_of:
            return [1]
        open_rows = self.rows[self.decision_space.group_of[measure.dim]]
        return [int(value) for value in np.unique(self.decision_space.values(measure)[open_rows])]

    def fixed(self, measure: Measure, value: int) -> Partial:
        """With one more decision, on a value that the measure may still take."""
        position = self.decision_space.group_of[measure.dim]
        kept = self.rows[position][self.decision_space.values(measure)[self.rows[position]] == value]
        rows = (*self.rows[:position], kept, *self.rows[position + 1 :])
        intervals = group_intervals(self.decision_space.tables.tables[position], kept)
        return Partial(
            self.decision_space,
            rows,
            (*self.intervals[:position], intervals, *self.intervals[position + 1 :]),
            self.chosen,
        )

    def largest(self, measure: Measure) -> Partial:
        """With the largest value of the measure that leaves the constraints a chance."""
        if measure.dim not in self.decision_space.group_of:
            return self
        for value in reversed(self.options(measure)):
            fixed = self.fixed(measure, value)
            if fixed.feasible:
                return fixed
        return self

    def assignment(self) -> dict[Variable, int]:
        """Tile sizes and choices of the first open row of every group."""
        return {**self.decision_space.tables.assignment([int(rows[0]) for rows in self.rows]), **self.chosen}


def stated_key(problem: LayerProblem, assignment: MappingABC[Variable, int]) -> Fraction | None:
    """The objective key that the problem states for an assignment; ``None`` where a constraint is broken."""
    reader = ExactReader(assignment)
    if any(reader.read(limit.expr) > limit.bound for limit in problem.limits):
        return None
    return Fraction(reader.read(problem.key), problem.key_scale)
