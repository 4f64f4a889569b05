"""Expressions read as integer constraints of CP-SAT.

The objective is minimised and limits are upper bounds, so most expressions need to be bounded from below
only: their variable may be larger than the value, and minimising presses it down.  That halves the
constraints of maxima and choices.  Where an expression counts against another one (a negative
coefficient, a divisor, a condition), it is read exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from tilewright.formulation.expression import (
    Choice,
    Constant,
    Expr,
    Function,
    IsOne,
    Product,
    Quotient,
    Sum,
    Tightened,
    Variable,
    Where,
)
from tilewright.formulation.expression.reader import Reader
from tilewright.solvers.cpsat.decisions import Decisions
from tilewright.solvers.cpsat.expansion import is_binary

LARGEST = 1 << 62  # CP-SAT's integers are 64 bits wide

Linear = Any  # an integer, a variable or a linear expression of ortools


@dataclass(frozen=True, slots=True)
class Term:
    """What an expression became: a linear expression of the model and its bounds."""

    expr: Linear
    low: int
    high: int

    @property
    def is_constant(self) -> bool:
        return self.low == self.high


class CpReader(Reader[Term]):
    """Reads expressions into a model.

    Parameters
    ----------
    decisions : the model and the literals of rows and choices
    exactly : whether values equal their expressions; otherwise they are at least as large
    """

    def __init__(self, decisions: Decisions, exactly: bool = False, twin: CpReader | None = None) -> None:
        super().__init__()
        self._decisions = decisions
        self._model = decisions.model
        self._exactly = exactly
        self._exact: CpReader = self if exactly else (twin or CpReader(decisions, True))
        self._products: dict[tuple[int, int], Term] = {}
        self._literals: dict[Expr, Any] = {} if exactly else self._exact._literals
        self._node: Expr = Constant.__new__(Constant)

    # -- walking -------------------------------------------------------------------------------------

    def _compute(self, expr: Expr) -> Term:
        if isinstance(expr, Constant):
            return self.constant(expr.value)
        if expr.group is not None:
            return Term(*self._decisions.local(expr))
        match expr:
            case Sum():
                terms = [(c, (self if c > 0 else self._exact).read(term)) for c, term in expr.terms]
                return self.sum(terms, expr.constant)
            case Product():
                return self._product(expr)
            case IsOne():
                return self._of_literal(self.literal(expr))
            case Quotient():
                return self._quotient(expr)
        if not self._exactly and isinstance(expr, Tightened):
            return self.tightened(expr)
        parts = expr
        self._node = parts
        return super()._compute(expr)

    def constant(self, value: int) -> Term:
        return Term(value, value, value)

    def variable(self, variable: Variable) -> Term:
        """A selector; tile sizes are local to their group."""
        values = self._decisions.choices(variable)
        expr = sum(value * literal for value, literal in values.items())
        return Term(expr, min(values), max(values))

    # -- arithmetic ----------------------------------------------------------------------------------

    def sum(self, terms: Sequence[tuple[int, Term]], constant: int) -> Term:
        low = constant + sum(c * (t.low if c > 0 else t.high) for c, t in terms)
        high = constant + sum(c * (t.high if c > 0 else t.low) for c, t in terms)
        _check(low, high)
        return Term(sum(c * t.expr for c, t in terms) + constant, low, high)

    def product(self, factors: Sequence[Term]) -> Term:
        result = factors[0]
        for factor in factors[1:]:
            result = self._times(result, factor)
        return result

    def _times(self, left: Term, right: Term) -> Term:
        if left.is_constant or right.is_constant:
            number, other = (left, right) if left.is_constant else (right, left)
            _check(number.low * other.high)
            return Term(number.low * other.expr, number.low * other.low, number.low * other.high)
        key = (id(left), id(right))
        found = self._products.get(key)
        if found is None:
            left_var, right_var = self._as_variable(left), self._as_variable(right)
            low, high = max(left.low, 0) * max(right.low, 0), left.high * right.high
            _check(high)
            result = self._model.new_int_var(low, high, "")
            self._model.add_multiplication_equality(result, [left_var, right_var])
            self._products[key] = found = Term(result, low, high)
            self._keep = [*getattr(self, "_keep", []), left, right]
        return found

    def _product(self, node: Product) -> Term:
        """0-1 factors become conditions; the others are multiplied group by group."""
        literals = [self._exact.literal(f) for f in node.factors if is_binary(f)]
        others = [self.read(f) for f in node.factors if not is_binary(f)]
        rest = self.product(others) if others else self.constant(1)
        if not literals:
            return self._bounded(node, rest)
        low, high = min(0, rest.low), max(rest.high, 0)
        result = self._model.new_int_var(low, high, "")
        self._relate(result, rest.expr, literals)
        for literal in literals:
            if self._exactly or low < 0:
                self._relate(result, 0, [~literal])
        return Term(result, low, high)

    def _bounded(self, node: Expr, term: Term) -> Term:
        """The term with the bounds that intervals prove for it."""
        low, high = self._decisions.bounds(node)
        low, high = max(low, term.low), min(high, term.high)
        if low <= term.low and high >= term.high:
            return term
        if not term.is_constant:
            if low > term.low:
                self._model.add(term.expr >= low)
        return Term(term.expr, low, term.high)

    def _quotient(self, node: Quotient) -> Term:
        numerator, denominator = self.read(node.numerator), self._exact.read(node.denominator)
        if not denominator.is_constant:
            return self._general_quotient(numerator, denominator)
        divisor = denominator.low
        low, high = -(-numerator.low // divisor), -(-numerator.high // divisor)
        result = self._model.new_int_var(low, high, "")
        self._model.add(divisor * result >= numerator.expr)
        if self._exactly:
            self._model.add(divisor * result <= numerator.expr + divisor - 1)
        return Term(result, low, high)

    def quotient(self, numerator: Term, denominator: Term) -> Term:
        return self._general_quotient(numerator, denominator)

    def _general_quotient(self, numerator: Term, denominator: Term) -> Term:
        """``q >= n / d`` as ``q * d >= n``."""
        low, high = -(-numerator.low // denominator.high), -(-numerator.high // denominator.low)
        result = Term(self._model.new_int_var(low, high, ""), low, high)
        back = self._times(result, denominator)
        self._model.add(back.expr >= numerator.expr)
        if self._exactly:
            self._model.add(back.expr <= numerator.expr + denominator.expr - 1)
        return result

    def maximum(self, arguments: Sequence[Term]) -> Term:
        low, high = max(a.low for a in arguments), max(a.high for a in arguments)
        result = self._model.new_int_var(low, high, "")
        if self._exactly:
            self._model.add_max_equality(result, [a.expr for a in arguments])
        else:
            for argument in arguments:
                if argument.high > low:
                    self._model.add(result >= argument.expr)
        return Term(result, low, high)

    def rounded(self, argument: Term, denominator: int) -> Term:
        """To the nearest integer, halves to the even one: an odd result needs strictly less."""
        low, high = argument.low // denominator, -(-argument.high // denominator)
        half, odd = self._model.new_int_var(low // 2, high // 2 + 1, ""), self._model.new_bool_var("")
        result = 2 * half + odd
        self._model.add(2 * denominator * result >= 2 * argument.expr - denominator + odd)
        if self._exactly:
            self._model.add(2 * denominator * result <= 2 * argument.expr + denominator - odd)
        return Term(result, low, high + 1)

    def tightened(self, node: Tightened) -> Term:
        """The argument, with its bounds as redundant constraints."""
        term = self.read(node.argument)
        lower = self.read(node.lower) if not self._exactly else self.constant(0)
        if lower.high > term.low:
            self._model.add(term.expr >= lower.expr)
        high = term.high if node.upper is None else min(term.high, node.upper)
        if high < term.high and self._exactly:
            self._model.add(term.expr <= high)
        return Term(term.expr, max(term.low, lower.low), term.high)

    # -- cases ---------------------------------------------------------------------------------------

    def where(self, node: Where) -> Term:
        literal = self._exact.literal(node.condition)
        return self._cases(node, [(literal, node.then), (~literal, node.otherwise)])

    def choice(self, node: Choice) -> Term:
        values = self._decisions.choices(node.selector)
        return self._cases(node, [(literal, node.options[value]) for value, literal in values.items()])

    def _cases(self, node: Expr, cases: Sequence[tuple[Any, Expr]]) -> Term:
        """The value of the case whose literal holds."""
        possible = [(literal, part) for literal, part in cases if not self._decisions.is_false(literal)]
        if len(possible) == 1:
            return self.read(possible[0][1])
        parts = [(literal, self.read(part)) for literal, part in possible]
        low, high = self._decisions.bounds(node)
        low = max(low, min(part.low for _, part in parts))
        high = max(part.high for _, part in parts)
        result = self._model.new_int_var(low, high, "")
        for literal, part in parts:
            if self._exactly or part.high > low:
                self._relate(result, part.expr, [literal])
        return Term(result, low, high)

    def _relate(self, result: Linear, value: Linear, literals: Sequence[Any]) -> None:
        relation = result == value if self._exactly else result >= value
        self._model.add(relation).only_enforce_if(literals)

    def is_one(self, argument: Term) -> Term:
        raise AssertionError("read as a literal")

    def function(self, node: Function, arguments: Sequence[Term]) -> Term:
        raise OverflowError(f"function {node.name} of several axis groups cannot be stated for CP-SAT")

    # -- literals ------------------------------------------------------------------------------------

    def literal(self, node: Expr) -> Any:
        """A literal that is true where the 0-1 valued expression is 1."""
        found = self._literals.get(node)
        if found is None:
            found = self._literals[node] = self._literal(node)
        return found

    def _literal(self, node: Expr) -> Any:
        decisions = self._decisions
        if isinstance(node, Constant):
            return decisions.truth(node.value == 1)
        if node.group is not None:
            return decisions.where_local(node, lambda values: values == 1)
        if isinstance(node, IsOne):
            return self._one(node.argument)
        if is_binary(node):
            if isinstance(node, Product):
                return decisions.conjunction([self.literal(factor) for factor in node.factors])
            assert isinstance(node, Sum)
            return ~self.literal(node.terms[0][1])
        term = self._exact.read(node)
        return decisions.reified(term.expr == 1, term.expr == 0)

    def _one(self, node: Expr) -> Any:
        """A literal that is true where an expression of at least 1 equals 1."""
        decisions = self._decisions
        if isinstance(node, Constant):
            return decisions.truth(node.value == 1)
        if node.group is not None:
            return decisions.where_local(node, lambda values: values == 1)
        if isinstance(node, Product) and all(decisions.bounds(f)[0] >= 1 for f in node.factors):
            return decisions.conjunction([self._one(factor) for factor in node.factors])
        term = self._exact.read(node)
        return decisions.reified(term.expr == 1, term.expr >= 2)

    def _of_literal(self, literal: Any) -> Term:
        if self._decisions.is_false(literal):
            return self.constant(0)
        return Term(literal, 0, 1)

    def _as_variable(self, term: Term) -> Linear:
        """A variable for a sum of several, which products need."""
        if isinstance(term.expr, cp_model.IntVar):
            return term.expr
        result = self._model.new_int_var(term.low, term.high, "")
        self._model.add(result == term.expr)
        return result


def _check(*values: int) -> None:
    if any(abs(value) > LARGEST for value in values):
        raise OverflowError("a count beyond 2**62: the layer is too large for CP-SAT's integers")
