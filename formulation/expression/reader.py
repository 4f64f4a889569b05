"""What every reader of expressions shares: a memoised walk from the leaves to the root."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar, assert_never

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
        # Equal expressions are one node, so that each is computed once per reader.
        value = self._values.get(expr)
        if value is None:
            value = self._values[expr] = self._compute(expr)
        return value

    def _compute(self, expr: Expr) -> Value:
        node = as_node(expr)
        match node:
            case Constant():
                return self.constant(node.value)
            case Variable():
                return self.variable(node)
            case Sum():
                return self.sum([(c, self.read(term)) for c, term in node.terms], node.constant)
            case Product():
                return self.product([self.read(factor) for factor in node.factors])
            case Quotient():
                return self.quotient(self.read(node.numerator), self.read(node.denominator))
            case Maximum():
                return self.maximum([self.read(argument) for argument in node.arguments])
            case IsOne():
                return self.is_one(self.read(node.argument))
            case Where():
                return self.where(node)
            case Choice():
                return self.choice(node)
            case Function():
                return self.function(node, [self.read(argument) for argument in node.arguments])
            case Rounded():
                return self.rounded(self.read(node.argument), node.denominator)
            case Tightened():
                return self.tightened(node)
            case _:
                assert_never(node)

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
