"""Forms as rows of a linear model: the relaxation that the MIP solver gets.

Products of several tables are exponentials of sums of logarithms, bounded from below by lines
(:mod:`tilewright.solvers.mapping.mip.envelope`); maxima are epigraphs; all else is linear in the one-hot
choice of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.solvers.mapping.mip.envelope import Envelope, Line
from tilewright.solvers.mapping.mip.forms import ONE, Form, Monomial, Monomials
from tilewright.solvers.mapping.mip.linear import Linear, LinearModel, Point

FIRST_LINES = 16
BEYOND = 10.0  # what exceeds a limit so many times need not be stated exactly


@dataclass(frozen=True, slots=True)
class _Product:
    """A column ``value / scale`` of a monomial of several factors, bounded from below."""

    column: int
    envelope: Envelope
    logs: tuple[int, ...]
    zeros: tuple[int | None, ...]


class Relaxation(LinearModel):
    """A linear model that forms are stated in.

    Parameters
    ----------
    columns : per group axis, the tile sizes of its open rows, shape (rows, variables); ``None`` for selectors
    check : called again and again while the model grows; raises where a limit has struck
    """

    def __init__(
        self, monomials: Monomials, columns: Sequence[Int64s | None], check: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(monomials.sizes, columns, check)
        self._monomials = monomials
        self._caps: dict[Monomial, float] = {}
        self._products: dict[Monomial, _Product] = {}
        self._bounded: dict[Monomial, tuple[int, float]] = {}
        self._lines: set[tuple[Monomial, float, float]] = set()

    # -- forms ---------------------------------------------------------------------------------------

    def cap(self, form: Form, limit: float) -> None:
        """State that a form never exceeds a limit, before any form is stated."""
        if not form.positive:
            return
        limit = max(limit, 0.0)
        for monomial, coefficient in form.terms.items():
            known = self._caps.get(monomial, np.inf)
            self._caps[monomial] = min(known, limit / coefficient)
        for coefficient, arguments in form.maxima:
            for argument in arguments:
                self.cap(argument, limit / coefficient)

    def at_most(self, form: Form, limit: float) -> None:
        """State ``form <= limit``."""
        scale = max(abs(limit), 1.0)
        if not form.maxima and len(form.terms) == 1:
            ((monomial, coefficient),) = form.terms.items()
            if monomial and coefficient > 0 and self._single(monomial, limit / coefficient):
                return
        linear = self.linear(form, scale, limit)
        self.row(linear, None, limit / scale + 1e-9)

    def _single(self, monomial: Monomial, limit: float) -> bool:
        """One product below a limit needs no exponential."""
        tables = self._monomials.by_axis(monomial)
        if limit <= 0 or any(values.min() <= 0 for values in tables.values()):
            return False
        logs = Linear()
        for axis, values in tables.items():
            logs.add(self.sum_of(axis, np.log(values)), 1.0)
        self.row(logs, None, float(np.log(limit)) + 1e-9)
        return True

    def linear(self, form: Form, scale: float, limit: float) -> Linear:
        """A lower bound of ``form / scale`` as a linear expression; ``limit`` as in :meth:`cap`."""
        result = Linear()
        most = BEYOND if form.positive and limit <= scale else np.inf
        for monomial, coefficient in form.terms.items():
            weight = coefficient / scale
            if monomial == ONE:
                result.constant += weight
            elif len(monomial) == 1:
                table = self._monomials.tables[monomial[0]]
                for column, value in zip(self.axes[self._monomials.axis[monomial[0]]], table, strict=True):
                    if value:
                        result.add(column, min(weight * float(value), most))
            elif coefficient > 0:
                product = self._product(monomial)
                result.add(product.column, weight * product.envelope.scale)
            else:
                column, largest = self._upper(monomial)
                result.add(column, weight * largest)
        for coefficient, arguments in form.maxima:
            top = limit / coefficient if form.positive else np.inf
            result.add(self._maximum(arguments, scale, top), coefficient)
        return result

    def _maximum(self, arguments: Sequence[Form], scale: float, limit: float) -> int:
        """A column of at least every argument (over ``scale``)."""
        parts = [self.linear(argument, scale, limit) for argument in arguments]

        def value(point: Point) -> float:
            return max(self.evaluate(part, point) for part in parts)

        low = min(self.least(part) for part in parts)
        column = self.column(low, max(self.most(part) for part in parts), value)
        for part in parts:
            self.row(part.below(column), 0.0, None)
        return column

    def _product(self, monomial: Monomial) -> _Product:
        column = self._products.get(monomial)
        if column is None:
            self._monomials.check()
            tables = self._monomials.by_axis(monomial)
            factors = [*tables.values()]
            envelope = Envelope(factors, self._caps.get(monomial, np.inf))
            logs = tuple(self.sum_of(a, v) for a, v in zip(tables, envelope.logs, strict=True))
            zeros = tuple(
                self.sum_of(a, v.astype(np.float64)) if v.any() else None
                for a, v in zip(tables, envelope.zeros, strict=True)
            )
            axes = [*tables]

            def value(point: Point) -> float:
                result = 1 / envelope.scale
                for axis, factor in zip(axes, factors, strict=True):
                    result *= float(factor[point[axis]])
                return result

            column = _Product(self.column(0.0, 1.0 + 1e-6, value), envelope, logs, zeros)
            self._products[monomial] = column
            for line in envelope.initial(FIRST_LINES):
                self._cut(monomial, line)
        return column

    def _cut(self, monomial: Monomial, line: Line) -> bool:
        """Add a line below a product; whether it is new."""
        key = (monomial, line.slope, line.offset)
        if key in self._lines:
            return False
        self._lines.add(key)
        product = self._products[monomial]
        linear = Linear(0.0, {product.column: 1.0})
        for log, zero, weight in zip(product.logs, product.zeros, line.weights, strict=True):
            linear.add(log, -line.slope)
            if zero is not None and weight:
                linear.add(zero, weight * (1 + 1e-9))
        self.row(linear, line.offset, None)
        return True

    def _upper(self, monomial: Monomial) -> tuple[int, float]:
        """A column of at most ``monomial / most``, and ``most``."""
        bounded = self._bounded.get(monomial)
        if bounded is None:
            tables = self._monomials.by_axis(monomial)
            most = float(np.prod([values.max() for values in tables.values()]))

            def value(point: Point) -> float:
                result = 1 / most
                for axis, factor in tables.items():
                    result *= float(factor[point[axis]])
                return result

            column = self.column(0.0, 1.0, value)
            for axis, values in tables.items():
                share = self.sum_of(axis, values / float(values.max()))
                self.row(Linear(0.0, {column: -1.0, share: 1.0}), -1e-9, None)
            bounded = self._bounded[monomial] = (column, most)
        return bounded

    # -- lines ---------------------------------------------------------------------------------------

    def separate(self, values: Sequence[float], least: float = 1e-7) -> int:
        """Add the lines that a solution violates; how many."""
        added = 0
        for monomial, product in self._products.items():
            log = sum(values[column] for column in product.logs)
            line = product.envelope.at(log)
            height = line.slope * log + line.offset
            for zero, weight in zip(product.zeros, line.weights, strict=True):
                height -= 0.0 if zero is None else weight * values[zero]
            if height > values[product.column] + least:
                added += self._cut(monomial, line)
        return added

    def touch(self, point: Point) -> None:
        """Add the lines that make every product exact at a decision."""
        for monomial, product in self._products.items():
            log = sum(self.values[column](point) for column in product.logs)
            self._cut(monomial, product.envelope.at(log))
