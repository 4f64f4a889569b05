"""Columns and rows of a linear model over one-hot choices, and the values that a decision gives to them.

Whole are the rows' indicators and, for every tile size, *at least this large*: branching on the latter
halves a range instead of excluding one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.foundation.arrays import Bools, Floats, Int64s

TINY = 1e-9  # solvers drop coefficients below it

Point = Sequence[int]  #: the open row (or option) chosen on every axis
Box = Sequence[Bools]  #: per axis, which open rows belong to it


@dataclass
class Linear:
    """``constant + sum(coefficient * column)``."""

    constant: float = 0.0
    terms: dict[int, float] = field(default_factory=dict)

    def add(self, column: int, coefficient: float) -> None:
        """Add a multiple of a column."""
        self.terms[column] = self.terms.get(column, 0.0) + coefficient

    def below(self, column: int) -> Linear:
        """``column - self``."""
        return Linear(-self.constant, {column: 1.0, **{c: -v for c, v in self.terms.items()}})


class LinearModel:
    """Axes of one-hot columns, further columns, rows, objective.

    Parameters
    ----------
    sizes : number of open rows or options per axis
    columns : per group axis, the tile sizes of its open rows, shape (rows, variables); ``None`` for selectors
    check : called again and again while the model grows; raises where a limit has struck
    """

    def __init__(
        self, sizes: Sequence[int], columns: Sequence[Int64s | None], check: Callable[[], None] = lambda: None
    ) -> None:
        self._check = check
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.integer: list[int] = []
        self.rows: list[tuple[list[int], list[float], float | None, float | None]] = []
        self.values: list[Callable[[Point], float]] = []
        self.objective = Linear()
        self._sums: dict[tuple[int, bytes], int] = {}
        self.axes: list[list[int]] = []
        for axis, size in enumerate(sizes):
            self.axes.append([self._choice(axis, row) for row in range(size)])
            self.row(Linear(0.0, dict.fromkeys(self.axes[-1], 1.0)), 1.0, 1.0)
            self.integer += self.axes[-1]
            tiles = columns[axis]
            if tiles is not None:
                self._thresholds(axis, tiles)

    # -- building ------------------------------------------------------------------------------------

    def column(self, low: float, high: float, value: Callable[[Point], float]) -> int:
        """A new column; ``value`` is what a decision makes of it."""
        self.lower.append(low)
        self.upper.append(high)
        self.values.append(value)
        return len(self.lower) - 1

    def row(self, linear: Linear, low: float | None, high: float | None) -> None:
        """``low <= linear <= high``, loosened where coefficients are too small for a solver."""
        slack, indices, coefficients = 0.0, [], []
        for column, coefficient in linear.terms.items():
            if abs(coefficient) >= TINY:
                indices.append(column)
                coefficients.append(coefficient)
            else:
                slack += abs(coefficient) * max(abs(self.lower[column]), abs(self.upper[column]))
        low = None if low is None else low - linear.constant - slack
        high = None if high is None else high - linear.constant + slack
        if slack and low is not None and high is not None:
            self.rows.append((indices, coefficients, low, None))
            low = None
        self.rows.append((indices, coefficients, low, high))

    def above(self, linear: Linear, low: float, high: float) -> int:
        """A column between two bounds that is at least a linear expression."""
        column = self.column(low, max(low, high), lambda point: max(low, self.evaluate(linear, point)))
        self.row(linear.below(column), 0.0, None)
        return column

    def sum_of(self, axis: int, values: Floats) -> int:
        """A column equal to a table's value at the chosen row."""
        key = (axis, values.tobytes())
        variable = self._sums.get(key)
        if variable is None:
            self._check()
            low, high = float(values.min()), float(values.max())
            variable = self.column(low, high, lambda point: float(values[point[axis]]))
            self._sums[key] = variable
            linear = Linear(0.0, {variable: -1.0})
            for column, value in zip(self.axes[axis], values, strict=True):
                if value:
                    linear.add(column, float(value))
            self.row(linear, 0.0, 0.0)
        return variable

    def exclude(self, box: Box) -> None:
        """No decision whose rows all belong to the box."""
        linear = Linear()
        count = 0
        for columns, inside in zip(self.axes, box, strict=True):
            if not inside.all():
                count += 1
                for column, member in zip(columns, inside, strict=True):
                    if member:
                        linear.add(column, 1.0)
        self.row(linear, None, count - 1.0)

    def _choice(self, axis: int, row: int) -> int:
        return self.column(0.0, 1.0, lambda point: float(point[axis] == row))

    def _thresholds(self, axis: int, tiles: Int64s) -> None:
        for column in range(tiles.shape[1]):
            for size in np.unique(tiles[:, column])[1:]:
                self.integer.append(self.sum_of(axis, (tiles[:, column] >= size).astype(np.float64)))

    # -- reading -------------------------------------------------------------------------------------

    def evaluate(self, linear: Linear, point: Point) -> float:
        """A linear expression at a decision."""
        return linear.constant + sum(c * self.values[column](point) for column, c in linear.terms.items())

    def most(self, linear: Linear) -> float:
        """The largest value of a linear expression within its columns' bounds."""
        ends = (c * (self.upper[i] if c > 0 else self.lower[i]) for i, c in linear.terms.items())
        return linear.constant + sum(ends)

    def least(self, linear: Linear) -> float:
        """The smallest value of a linear expression within its columns' bounds."""
        ends = (c * (self.lower[i] if c > 0 else self.upper[i]) for i, c in linear.terms.items())
        return linear.constant + sum(ends)

    def objective_at(self, values: Sequence[float]) -> float:
        """The objective at a solution."""
        return self.objective.constant + sum(c * values[column] for column, c in self.objective.terms.items())

    def point(self, values: Sequence[float]) -> tuple[int, ...]:
        """The row that a solution weighs most, on every axis."""
        return tuple(max(range(len(columns)), key=lambda r: values[columns[r]]) for columns in self.axes)

    def data(self, start: Point | None = None) -> dict[str, Any]:
        """The model as the worker takes it; the objective's constant is left out."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "integer": self.integer,
            "objective": [*self.objective.terms.items()],
            "rows": self.rows,
            "start": None if start is None else [value(start) for value in self.values],
        }
