"""Expressions read as integer constraints of CP-SAT.

The objective is minimised and limits are upper bounds, so most expressions need to be bounded from below
only: their variable may be larger than the value, and minimising presses it down.  That halves the
constraints of maxima and choices.  Where an expression counts against another one (a negative
coefficient, a divisor, a condition), it is read exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    Rounded,
    Sum,
    Tightened,
    Variable,
    Where,
)
from tilewright.formulation.expression.reader import Reader
from tilewright.solvers.mapping.cpsat.decisions import Decisions
from tilewright.solvers.mapping.cpsat.literals import Literals
from tilewright.solvers.mapping.cpsat.terms import LARGEST, Linear, Term, check_size, span
from tilewright.solvers.mapping.presolve.expansion import is_binary


class CpReader(Reader[Term]):
    """Reads expressions into a model.

    Parameters
    ----------
    decisions : the model and the literals of rows and choices
    exactly : whether values equal their expressions; otherwise they are at least as large
    """

    def __init__(self, decisions: Decisions, exactly: bool = False) -> None:
        super().__init__()
        self._decisions = decisions
        self._model = decisions.model
        self._exactly = exactly
        self._exact: CpReader = self if exactly else CpReader(decisions, exactly=True)
        self._products: dict[tuple[int, int], Term] = {}
        self._factors: list[Term] = []  # keeps them alive: products are known by their identities
        self._literals: Literals = Literals(decisions, self._relation) if exactly else self._exact._literals

    @property
    def model(self) -> cp_model.CpModel:
        return self._model

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
                return self._of_literal(self._literals.of(expr))
            case Quotient():
                return self._quotient(expr)
        return super()._compute(expr)

    def constant(self, value: int) -> Term:
        return Term(value, value, value)

    def variable(self, variable: Variable) -> Term:
        """A selector; tile sizes are local to their group."""
        values = self._decisions.choices(variable)
        expr = sum(value * literal for value, literal in values.items())
        return Term(expr, min(values), max(values))

    def within(self, node: Expr, cap: int) -> Term:
        """Read a node that is at most ``cap`` in every solution worth finding.

        Where the parts of a sum could leave 64 bits together, none of them is let beyond the cap.
        """
        if isinstance(node, Rounded):
            inner = (cap + 1) * node.denominator
            return self.rounded(self.within(node.argument, inner), node.denominator)
        if not isinstance(node, Sum) or self._exactly:
            return self.read(node)
        terms = [(c, (self if c > 0 else self._exact).read(term)) for c, term in node.terms]
        low, high = span(terms, node.constant)
        if high > LARGEST:
            part_caps = [cap - low + c * term.low for c, term in terms]
            terms = [
                (c, self._capped(term, max(part_cap // c, term.low)) if c > 0 else term)
                for (c, term), part_cap in zip(terms, part_caps, strict=True)
            ]
        return self.sum(terms, node.constant)

    def _capped(self, term: Term, cap: int) -> Term:
        if term.high <= cap:
            return term
        result = self._model.new_int_var(term.low, cap, "")
        self._model.add(result >= term.expr)
        return Term(result, term.low, cap)

    # -- arithmetic ----------------------------------------------------------------------------------

    def sum(self, terms: Sequence[tuple[int, Term]], constant: int) -> Term:
        low, high = span(terms, constant)
        check_size(low, high)
        return Term(sum(c * t.expr for c, t in terms) + constant, low, high)

    def product(self, factors: Sequence[Term]) -> Term:
        result = factors[0]
        for factor in factors[1:]:
            result = self._times(result, factor)
        return result

    def _times(self, left: Term, right: Term) -> Term:
        if left.is_constant or right.is_constant:
            number, other = (left, right) if left.is_constant else (right, left)
            ends = sorted((number.low * other.low, number.low * other.high))
            check_size(*ends)
            return Term(number.low * other.expr, *ends)
        # Equal expressions are one term, so that their product is one constraint.
        key = (id(left), id(right))
        term = self._products.get(key)
        if term is None:
            left_var, right_var = self._as_variable(left), self._as_variable(right)
            ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            low, high = min(ends), max(ends)
            check_size(low, high)
            result = self._model.new_int_var(low, high, "")
            self._model.add_multiplication_equality(result, [left_var, right_var])
            self._products[key] = term = Term(result, low, high)
            self._factors += [left, right]
        return term

    def _product(self, node: Product) -> Term:
        """0-1 factors become conditions; the others are multiplied group by group."""
        literals = [self._literals.of(f) for f in node.factors if is_binary(f)]
        others = [self.read(f) for f in node.factors if not is_binary(f)]
        rest = self.product(others) if others else self.constant(1)
        if not literals:
            return self._bounded(node, rest)
        low, high = min(0, rest.low), max(rest.high, 0)
        result = self._model.new_int_var(low, high, "")
        self._relate(result, rest.expr, literals)
        for literal in literals:
            # Minimising presses a variable to its least value, so the case of 0 need not be said unless it
            # could be negative.
            if self._exactly or low < 0:
                self._relate(result, 0, [~literal])
        return Term(result, low, high)

    def _bounded(self, node: Expr, term: Term) -> Term:
        """The term with the lower bound that intervals prove for it."""
        low, _ = self._decisions.bounds(node)
        if term.is_constant or low <= term.low:
            return term
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
        # The upper side is left out where the model minimises: nothing gains from a larger quotient.
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
        # Halves go to the even integer, so the parity of the result is a variable of the rounding row.
        half, odd = self._model.new_int_var(low // 2, high // 2 + 1, ""), self._model.new_bool_var("")
        result = 2 * half + odd
        self._model.add(2 * denominator * result >= 2 * argument.expr - denominator + odd)
        if self._exactly:
            self._model.add(2 * denominator * result <= 2 * argument.expr + denominator - odd)
        return Term(result, low, high + 1)

    def tightened(self, node: Tightened) -> Term:
        """The argument, with its bounds as redundant constraints."""
        term = self.read(node.argument)
        if self._exactly:
            high = term.high if node.upper is None else min(term.high, node.upper)
            if high < term.high:
                self._model.add(term.expr <= high)
            return Term(term.expr, term.low, high)
        lower = self.read(node.lower)
        if lower.high > term.low:
            self._model.add(term.expr >= lower.expr)
        return Term(term.expr, max(term.low, lower.low), term.high)

    # -- cases ---------------------------------------------------------------------------------------

    def where(self, node: Where) -> Term:
        literal = self._literals.of(node.condition)
        return self._cases(node, [(literal, node.then), (~literal, node.otherwise)])

    def choice(self, node: Choice) -> Term:
        values = self._decisions.choices(node.selector)
        return self._cases(node, [(literal, node.options[value]) for value, literal in values.items()])

    def _cases(self, node: Expr, cases: Sequence[tuple[Any, Expr]]) -> Term:
        """The value of the case whose literal holds."""
        possible = [(literal, part) for literal, part in cases if not self._decisions.is_false(literal)]
        # Probing has closed all other cases.
        if len(possible) == 1:
            return self.read(possible[0][1])
        parts = [(literal, self.read(part)) for literal, part in possible]
        low, high = self._decisions.bounds(node)
        low = max(low, min(part.low for _, part in parts))
        high = max(part.high for _, part in parts)
        result = self._model.new_int_var(low, high, "")
        for literal, part in parts:
            # A case that cannot exceed the variable's lower end says nothing.
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

    def _relation(self, node: Expr, value: int) -> tuple[Any, Any]:
        """That a node has a value, and that it is larger."""
        term = self.read(node)
        return term.expr == value, term.expr >= value + 1

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
