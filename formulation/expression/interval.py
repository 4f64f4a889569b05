"""Expressions read with intervals: valid lower and upper bounds, one pair or arrays of pairs.

The lower end of an objective's interval over a part of the map space is a proof that nothing in that part
is better.  Factors of one axis group stand together in products, so that a table of their joint minimum
and maximum keeps what plain interval arithmetic would lose: tile size times number of tiles.

Lower and upper bounds are read apart and only where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from functools import reduce
from typing import assert_never

import numpy as np

from tilewright.formulation.expression.batch import round_half_even_arrays
from tilewright.formulation.expression.nodes import (
    Choice,
    Constant,
    Expr,
    Function,
    IsOne,
    Maximum,
    Product,
    Quotient,
    Rounded,
    Sum,
    Tightened,
    Variable,
    Where,
    as_node,
)
from tilewright.foundation.arrays import Floats

UNKNOWN = 1e20  # above every count, yet finite: times zero it is zero, and a product of many stays finite

NEVER_NEGATIVE = (Constant, Variable, Product, IsOne)
"""Kinds of factors whose bounds by intervals are never negative."""


class IntervalReader:
    """Reads lower and upper bounds of expressions.

    Parameters
    ----------
    fixed : values of variables that are decided; others range over their whole domain

    A subclass may know bounds that were obtained another way, such as tables (:meth:`known_low`,
    :meth:`known_high`).
    """

    def __init__(self, fixed: MappingABC[Variable, int]) -> None:
        self._fixed = fixed
        self._low: dict[Expr, Floats] = {}
        self._high: dict[Expr, Floats] = {}

    def known_low(self, expr: Expr) -> Floats | None:
        """A lower bound that is known without reading the expression; ``None`` where there is none."""
        return None

    def known_high(self, expr: Expr) -> Floats | None:
        """An upper bound that is known without reading the expression; ``None`` where there is none."""
        return None

    def low(self, expr: Expr) -> Floats:
        """A value that the expression never falls below."""
        low = self._low.get(expr)
        if low is None:
            # A subclass's table is exact over its rows; arithmetic on its parts would lose how they hang
            # together.
            low = self.known_low(expr)
            low = self._low[expr] = self._read_low(expr) if low is None else low
        return low

    def high(self, expr: Expr) -> Floats:
        """A value that the expression never exceeds."""
        high = self._high.get(expr)
        if high is None:
            high = self.known_high(expr)
            high = self._high[expr] = self._read_high(expr) if high is None else high
        return high

    def _read_low(self, expr: Expr) -> Floats:
        node = as_node(expr)
        match node:
            case Constant():
                return _scalar(node.value)
            case Variable():
                return _scalar(self._fixed.get(node, node.domain[0]))
            case Sum():
                # A negative coefficient turns the ends around.
                ends = [c * (self.low(t) if c > 0 else self.high(t)) for c, t in node.terms]
                return np.add(reduce(np.add, ends), node.constant)
            case Product():
                return reduce(
                    np.multiply, (_bounded_below(factor, self.low(factor)) for factor in node.factors)
                )
            case Quotient():
                # Denominators are at least 1 at both ends.
                return np.asarray(np.ceil(self.low(node.numerator) / self.high(node.denominator)))
            case Maximum():
                return reduce(np.maximum, (self.low(argument) for argument in node.arguments))
            case IsOne():
                # 1 only where it is certain: the argument is at least 1 and cannot be more.
                return np.asarray(self.high(node.argument) <= 1, dtype=np.float64)
            case Where():
                return self._where(node, self.low, np.minimum)
            case Choice():
                return reduce(np.minimum, (self.low(option) for option in self._options(node)))
            case Function():
                return self._function(node, 0)
            case Rounded():
                return round_half_even_arrays(self.low(node.argument), node.denominator)
            case Tightened():
                return np.maximum(self.low(node.argument), self.low(node.lower))
            case _:
                assert_never(node)

    def _read_high(self, expr: Expr) -> Floats:
        node = as_node(expr)
        match node:
            case Constant():
                return _scalar(node.value)
            case Variable():
                return _scalar(self._fixed.get(node, node.domain[-1]))
            case Sum():
                ends = [c * (self.high(t) if c > 0 else self.low(t)) for c, t in node.terms]
                return np.add(reduce(np.add, ends), node.constant)
            case Product():
                return reduce(
                    np.multiply, (_bounded_below(factor, self.high(factor)) for factor in node.factors)
                )
            case Quotient():
                return np.asarray(np.ceil(self.high(node.numerator) / self.low(node.denominator)))
            case Maximum():
                return reduce(np.maximum, (self.high(argument) for argument in node.arguments))
            case IsOne():
                return np.asarray(self.low(node.argument) <= 1, dtype=np.float64)
            case Where():
                return self._where(node, self.high, np.maximum)
            case Choice():
                return reduce(np.maximum, (self.high(option) for option in self._options(node)))
            case Function():
                return self._function(node, UNKNOWN)
            case Rounded():
                return round_half_even_arrays(self.high(node.argument), node.denominator)
            case Tightened():
                high = self.high(node.argument)
                return high if node.upper is None else np.minimum(high, node.upper)
            case _:
                assert_never(node)

    def _options(self, expr: Choice) -> tuple[Expr, ...]:
        chosen = self._fixed.get(expr.selector)
        return expr.options if chosen is None else (expr.options[chosen],)

    def _where(self, expr: Where, end: Callable[[Expr], Floats], combine: np.ufunc) -> Floats:
        """The end of the branch that is taken, or the looser one of both while that is open."""
        always = self.low(expr.condition) >= 1
        never = self.high(expr.condition) <= 0
        if np.all(always):
            return end(expr.then)
        if np.all(never):
            return end(expr.otherwise)
        then, otherwise = end(expr.then), end(expr.otherwise)
        return np.where(always, then, np.where(never, otherwise, combine(then, otherwise)))

    def _function(self, expr: Function, unknown: float) -> Floats:
        """Functions are tabulated by axis group where it matters; elsewhere nothing is known of them."""
        lows = [self.low(argument) for argument in expr.arguments]
        highs = [self.high(argument) for argument in expr.arguments]
        # Decided arguments have a value; between ends a function may do anything.
        if all(np.array_equal(low, high) for low, high in zip(lows, highs, strict=True)):
            evaluated = np.frompyfunc(lambda *v: expr.evaluate(*map(int, v)), len(lows), 1)
            return np.asarray(evaluated(*lows), dtype=np.float64)
        return _scalar(unknown)


def _bounded_below(factor: Expr, end: Floats) -> Floats:
    """Factors are never negative, but the bounds of a difference, or of a case of differences, may be."""
    return end if isinstance(factor, NEVER_NEGATIVE) else np.maximum(end, 0)


def _scalar(value: float) -> Floats:
    return np.float64(value)  # type: ignore[return-value]
