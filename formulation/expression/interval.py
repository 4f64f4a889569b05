"""Expressions read with intervals: valid lower and upper bounds, one pair or arrays of pairs.

The lower end of an objective's interval over a part of the map space is a proof that nothing in that part
is better.  Factors of one axis group stand together in products, so that a table of their joint minimum
and maximum (``known``) keeps what plain interval arithmetic would lose: tile size times number of tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tilewright.formulation.expression.batch import Array
from tilewright.formulation.expression.nodes import Choice, Expr, Function, Tightened, Variable, Where
from tilewright.formulation.expression.reader import Reader


@dataclass(frozen=True, slots=True)
class Interval:
    """All values between ``low`` and ``high``, element by element."""

    low: Array
    high: Array


def _scalar(value: float) -> Array:
    return np.float64(value)  # type: ignore[return-value]


class IntervalReader(Reader[Interval]):
    """Reads expressions under intervals of the variables.

    Parameters
    ----------
    values : an interval, or one fixed value, for variables; others range over their whole domain
    known : intervals of nodes that were obtained another way
    """

    def __init__(
        self,
        values: Mapping[Variable, Interval | int],
        known: dict[Expr, Interval] | None = None,
    ) -> None:
        super().__init__(known)
        self._assignment = values

    def constant(self, value: int) -> Interval:
        return Interval(_scalar(value), _scalar(value))

    def variable(self, variable: Variable) -> Interval:
        value = self._assignment.get(variable)
        if value is None:
            return Interval(_scalar(variable.domain[0]), _scalar(variable.domain[-1]))
        if isinstance(value, Interval):
            return value
        return self.constant(value)

    def sum(self, terms: Sequence[tuple[int, Interval]], constant: int) -> Interval:
        lows = [c * (v.low if c > 0 else v.high) for c, v in terms]
        highs = [c * (v.high if c > 0 else v.low) for c, v in terms]
        return Interval(reduce(np.add, lows) + constant, reduce(np.add, highs) + constant)

    def product(self, factors: Sequence[Interval]) -> Interval:
        low = reduce(np.multiply, (np.maximum(f.low, 0) for f in factors))
        return Interval(low, reduce(np.multiply, (f.high for f in factors)))

    def quotient(self, numerator: Interval, denominator: Interval) -> Interval:
        return Interval(
            np.ceil(numerator.low / denominator.high), np.ceil(numerator.high / denominator.low)
        )

    def maximum(self, arguments: Sequence[Interval]) -> Interval:
        return Interval(
            reduce(np.maximum, (a.low for a in arguments)), reduce(np.maximum, (a.high for a in arguments))
        )

    def is_one(self, argument: Interval) -> Interval:
        return Interval(
            np.asarray(argument.high == 1, dtype=np.float64), np.asarray(argument.low <= 1, dtype=np.float64)
        )

    def where(self, node: Where) -> Interval:
        condition = self.read(node.condition)
        always, never = condition.low == 1, condition.high == 0
        if np.all(always):
            return self.read(node.then)
        if np.all(never):
            return self.read(node.otherwise)
        then, otherwise = self.read(node.then), self.read(node.otherwise)
        low = np.where(
            always, then.low, np.where(never, otherwise.low, np.minimum(then.low, otherwise.low))
        )
        high = np.where(
            always, then.high, np.where(never, otherwise.high, np.maximum(then.high, otherwise.high))
        )
        return Interval(low, high)

    def choice(self, node: Choice) -> Interval:
        selector = self.read(node.selector)
        first, last = int(np.min(selector.low)), int(np.max(selector.high))
        options = [self.read(option) for option in node.options[first : last + 1]]
        return Interval(
            reduce(np.minimum, (o.low for o in options)), reduce(np.maximum, (o.high for o in options))
        )

    def function(self, node: Function, arguments: Sequence[Interval]) -> Interval:
        """Functions are tabulated by axis group where it matters; elsewhere nothing is known of them."""
        if all(np.all(argument.low == argument.high) for argument in arguments):
            evaluated = np.frompyfunc(lambda *v: node.evaluate(*map(int, v)), len(arguments), 1)
            value = np.asarray(evaluated(*(argument.low for argument in arguments)), dtype=np.float64)
            return Interval(value, value)
        return Interval(_scalar(0), _scalar(np.inf))

    def rounded(self, argument: Interval, denominator: int) -> Interval:
        return Interval(
            np.ceil(argument.low / denominator - 0.5), np.floor(argument.high / denominator + 0.5)
        )

    def tightened(self, node: Tightened) -> Interval:
        argument = self.read(node.argument)
        low = np.maximum(argument.low, self.read(node.lower).low)
        high = argument.high if node.upper is None else np.minimum(argument.high, node.upper)
        return Interval(low, np.maximum(high, low))
