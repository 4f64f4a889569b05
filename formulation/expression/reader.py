"""What every reader of expressions shares: a memoised walk from the leaves to the root."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

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
)

Value = TypeVar("Value")


class Reader(ABC, Generic[Value]):
    """Gives every node a value of one kind; each node is read once.

    A subclass says what a constant, a variable and each operation mean to it.  ``known`` may hold values
    of nodes that were obtained another way, such as tables.
    """

    def __init__(self, known: dict[Expr, Value] | None = None) -> None:
        self._values: dict[Expr, Value] = dict(known or {})

    def read(self, expr: Expr) -> Value:
        """The value of an expression."""
        found = self._values.get(expr)
        if found is None:
            found = self._values[expr] = self._compute(expr)
        return found

    def _compute(self, expr: Expr) -> Value:
        match expr:
            case Constant():
                return self.constant(expr.value)
            case Variable():
                return self.variable(expr)
            case Sum():
                return self.sum([(c, self.read(term)) for c, term in expr.terms], expr.constant)
            case Product():
                return self.product([self.read(factor) for factor in expr.factors])
            case Quotient():
                return self.quotient(self.read(expr.numerator), self.read(expr.denominator))
            case Maximum():
                return self.maximum([self.read(argument) for argument in expr.arguments])
            case IsOne():
                return self.is_one(self.read(expr.argument))
            case Where():
                return self.where(expr)
            case Choice():
                return self.choice(expr)
            case Function():
                return self.function(expr, [self.read(argument) for argument in expr.arguments])
            case Rounded():
                return self.rounded(self.read(expr.argument), expr.denominator)
            case Tightened():
                return self.tightened(expr)
        raise TypeError(f"unknown expression node {type(expr).__name__}")

    @abstractmethod
    def constant(self, value: int) -> Value: ...

    @abstractmethod
    def variable(self, variable: Variable) -> Value: ...

    @abstractmethod
    def sum(self, terms: Sequence[tuple[int, Value]], constant: int) -> Value: ...

    @abstractmethod
    def product(self, factors: Sequence[Value]) -> Value: ...

    @abstractmethod
    def quotient(self, numerator: Value, denominator: Value) -> Value: ...

    @abstractmethod
    def maximum(self, arguments: Sequence[Value]) -> Value: ...

    @abstractmethod
    def is_one(self, argument: Value) -> Value: ...

    @abstractmethod
    def where(self, node: Where) -> Value: ...

    @abstractmethod
    def choice(self, node: Choice) -> Value: ...

    @abstractmethod
    def function(self, node: Function, arguments: Sequence[Value]) -> Value: ...

    @abstractmethod
    def rounded(self, argument: Value, denominator: int) -> Value: ...

    def tightened(self, node: Tightened) -> Value:
        """By default the bound is no part of the value."""
        return self.read(node.argument)
