"""Expressions read with numpy arrays: one value per candidate, many candidates at once.

Values are float64.  Integers below 2**53 are exact in it, quotients and roundings of such integers
included, so counts, energies in scaled integers and cycles are exact; only a final product of two of them
(an energy-delay product) carries a relative error of at most 2**-52.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from functools import reduce
from typing import Any

import numpy as np

from tilewright.formulation.expression.nodes import Choice, Expr, Function, Variable, Where
from tilewright.formulation.expression.reader import Reader
from tilewright.foundation.arrays import Floats

EXACT_LIMIT = 2**53


class BatchReader(Reader[Floats]):
    """Reads expressions under arrays of values that broadcast against each other.

    Parameters
    ----------
    values : an array (or a scalar) for every variable
    known : arrays of nodes that were obtained another way, such as tables of one axis group
    check : called before every node that is computed, so that a limit may end a long reading in the middle
    """

    def __init__(
        self,
        values: MappingABC[Variable, Floats | int],
        known: dict[Expr, Floats] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(known)
        self._assignment = values
        self._check_limits = check
        self._flattened: dict[tuple[Expr, tuple[int, ...]], Floats] = {}
        self._shared: dict[Any, Any] = {}  # what functions of the same arguments share

    def _compute(self, expr: Expr) -> Floats:
        self._check_limits()
        return super()._compute(expr)

    def constant(self, value: int) -> Floats:
        return np.float64(value)  # type: ignore[return-value]

    def variable(self, variable: Variable) -> Floats:
        return np.asarray(self._assignment[variable], dtype=np.float64)

    def sum(self, terms: Sequence[tuple[int, Floats]], constant: int) -> Floats:
        parts = [value if coefficient == 1 else coefficient * value for coefficient, value in terms]
        result = reduce(np.add, parts)
        return np.add(result, constant)

    def product(self, factors: Sequence[Floats]) -> Floats:
        return reduce(np.multiply, factors)

    def quotient(self, numerator: Floats, denominator: Floats) -> Floats:
        return np.asarray(np.ceil(numerator / denominator))

    def maximum(self, arguments: Sequence[Floats]) -> Floats:
        return reduce(np.maximum, arguments)

    def is_one(self, argument: Floats) -> Floats:
        return np.asarray(argument == 1, dtype=np.float64)

    def where(self, node: Where) -> Floats:
        condition = self.read(node.condition)
        # A decided condition: only the branch that is taken is read.
        if condition.ndim == 0:
            return self.read(node.then if condition else node.otherwise)
        return np.where(condition != 0, self.read(node.then), self.read(node.otherwise))

    def choice(self, node: Choice) -> Floats:
        index = self.read(node.selector)
        if index.ndim == 0:
            return self.read(node.options[int(index)])
        # Options are laid over each other; every candidate picks its own.
        result = self.read(node.options[-1])
        for position, option in enumerate(node.options[:-1]):
            result = np.where(index == position, self.read(option), result)
        return result

    def function(self, node: Function, arguments: Sequence[Floats]) -> Floats:
        if node.evaluate_many is not None:
            shape = np.broadcast_shapes(*map(np.shape, arguments))
            flat = [self._flat(*pair, shape) for pair in zip(node.arguments, arguments, strict=True)]
            return np.asarray(node.evaluate_many(self._shared, *flat)).reshape(shape)
        evaluated = np.frompyfunc(lambda *values: node.evaluate(*map(int, values)), len(arguments), 1)
        return np.asarray(evaluated(*arguments), dtype=np.float64)

    def _flat(self, expr: Expr, value: Floats, shape: tuple[int, ...]) -> Floats:
        """The value of an argument as functions take it: flat, and one array whoever reads it."""
        key = expr, shape
        if key not in self._flattened:
            self._flattened[key] = np.ravel(np.broadcast_to(np.asarray(value, dtype=np.float64), shape))
        return self._flattened[key]

    def rounded(self, argument: Floats, denominator: int) -> Floats:
        return round_half_even_arrays(argument, denominator)


def round_half_even_arrays(values: Floats, denominator: int) -> Floats:
    """``values / denominator`` to the nearest integers, halves to the even one, exact below 2**53."""
    quotient = np.floor(values / denominator)
    twice = 2 * (values - quotient * denominator)
    up = (twice > denominator) | ((twice == denominator) & (quotient % 2 == 1))
    return np.asarray(quotient + up)
