"""Expressions read with numbers: Python integers of any size, one assignment at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence

from tilewright.formulation.expression.nodes import Choice, Expr, Function, Variable, Where
from tilewright.formulation.expression.operations import round_half_even
from tilewright.formulation.expression.reader import Reader


class ExactReader(Reader[int]):
    """Reads expressions under one assignment of integers to variables.

    Raises ``KeyError`` for a variable without a value.
    """

    def __init__(self, assignment: MappingABC[Variable, int]) -> None:
        super().__init__()
        self._assignment = assignment

    def constant(self, value: int) -> int:
        return value

    def variable(self, variable: Variable) -> int:
        return self._assignment[variable]

    def sum(self, terms: Sequence[tuple[int, int]], constant: int) -> int:
        return constant + sum(coefficient * value for coefficient, value in terms)

    def product(self, factors: Sequence[int]) -> int:
        return math.prod(factors)

    def quotient(self, numerator: int, denominator: int) -> int:
        return -(-numerator // denominator)

    def maximum(self, arguments: Sequence[int]) -> int:
        return max(arguments)

    def is_one(self, argument: int) -> int:
        return int(argument == 1)

    def where(self, node: Where) -> int:
        return self.read(node.then if self.read(node.condition) else node.otherwise)

    def choice(self, node: Choice) -> int:
        return self.read(node.options[self.read(node.selector)])

    def function(self, node: Function, arguments: Sequence[int]) -> int:
        return node.evaluate(*arguments)

    def rounded(self, argument: int, denominator: int) -> int:
        return round_half_even(argument, denominator)


def evaluate(expr: Expr, assignment: MappingABC[Variable, int]) -> int:
    """The exact value of an expression under an assignment."""
    return ExactReader(assignment).read(expr)
