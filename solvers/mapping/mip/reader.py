"""Expressions read as forms: lower bounds made of products of tables, exact wherever that is possible.

The objective is minimised and limits are upper bounds, so a lower bound of every expression is a
relaxation of the problem.  Inexact are only quotients of several axis groups (rounded up), maxima that are
subtracted, and functions of several axis groups; there the search closes the difference
(:mod:`tilewright.solvers.mapping.mip.boxes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from typing import assert_never

import numpy as np

from tilewright.formulation.expression import (
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
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Floats, Indices
from tilewright.solvers.mapping.mip.forms import ONE, Form, Monomials, TooLargeError
from tilewright.solvers.mapping.presolve.expansion import Expansion
from tilewright.solvers.mapping.presolve.intervals import TableIntervals


class FormReader:
    """Reads expressions over the open rows and options of a part of the map space.

    Parameters
    ----------
    rows : per group, the open rows
    options : per selector, its open values; one alone is decided
    check : called often; may raise to end the reading
    """

    def __init__(
        self,
        tables: Tables,
        rows: Sequence[Indices],
        options: MappingABC[Variable, Sequence[int]],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._tables = tables
        self._rows = rows
        self._options = options
        self._groups = {table.group.name: axis for axis, table in enumerate(tables.tables)}
        self._selectors = {selector: len(rows) + place for place, selector in enumerate(options)}
        sizes = [*(len(index) for index in rows), *(len(values) for values in options.values())]
        self.monomials = Monomials(sizes, check)
        fixed = {selector: values[0] for selector, values in options.items() if len(values) == 1}
        self.intervals = TableIntervals(tables, rows, fixed)
        self._known: dict[Expr, Form] = {}
        self._columns: dict[str, dict[Variable, Floats]] = {}

    def read(self, expr: Expr) -> Form:
        """A lower bound of an expression."""
        form = self._known.get(expr)
        if form is None:
            try:
                form = self._read(expr)
            # Too many monomials to state: a constant from intervals is a valid lower bound, too.
            except TooLargeError:
                form = self._least(expr)
            self._known[expr] = form
        return form

    def bounded(self, expr: Expr) -> Form:
        """A lower bound of an objective or a limit: products pushed into maxima where that is tighter."""
        form = self.read(expr)
        if form.exact:
            return form
        # Rewriting makes expressions larger, so it is kept for those that are not exact as they are.
        return self.read(Expansion(self.intervals.whole_low).rewrite(expr))

    def values(self, expr: Expr) -> Floats:
        """A local expression at the open rows of its group."""
        axis = self._groups[str(expr.group)]
        table = self._tables.tables[axis]
        known = table.values.get(expr)
        if known is not None:
            return known[self._rows[axis]]
        group = table.group
        columns = self._columns.get(group.name)
        if columns is None:
            picked = group.rows[self._rows[axis]].astype(np.float64)
            columns = {v: picked[:, place] for place, v in enumerate(group.variables)}
            self._columns[group.name] = columns
        return np.broadcast_to(BatchReader(columns).read(expr), (len(self._rows[axis]),))

    def _least(self, expr: Expr) -> Form:
        low = float(self.intervals.low(expr))
        return Form({ONE: low} if low else {}, (), exact=False)

    def _greatest(self, expr: Expr) -> float:
        return float(self.intervals.high(expr))

    def _read(self, expr: Expr) -> Form:
        if expr.group is not None:
            return self.monomials.table(self._groups[expr.group], self.values(expr))
        node = as_node(expr)
        match node:
            case Constant():
                return Form({ONE: float(node.value)} if node.value else {})
            case Variable():
                return self._selector(node, [float(value) for value in self._options[node]])
            case Sum():
                return self._sum(node)
            case Product():
                return self._product(node.factors)
            case Maximum():
                return self._maximum([self.read(argument) for argument in node.arguments])
            case IsOne():
                condition = self._equals_one(node.argument)
                return self._least(node) if condition is None else condition
            case Where():
                return self._where(node)
            case Choice():
                return self._choice(node)
            case Tightened():
                form = self.read(node.argument)
                return form if form.polynomial else self._maximum([form, self.read(node.lower)])
            case Rounded():
                half = Form({ONE: -0.5}, (), exact=False)
                return self.monomials.add([(1 / node.denominator, self.read(node.argument)), (1.0, half)])
            case Quotient():
                return self._quotient(node)
            case Function():
                return self._least(node)
            case _:
                assert_never(node)

    # -- arithmetic ----------------------------------------------------------------------------------

    def _sum(self, expr: Sum) -> Form:
        parts = [(1.0, Form({ONE: float(expr.constant)} if expr.constant else {}))]
        for coefficient, term in expr.terms:
            form = self.read(term)
            # A form is a lower bound; what is subtracted needs an upper one.
            if coefficient < 0 and not form.polynomial:
                high = coefficient * self._greatest(term)
                parts.append((1.0, Form({ONE: high} if high else {}, (), exact=False)))
            else:
                parts.append((float(coefficient), form))
        return self.monomials.telescoped(self.monomials.add(parts))

    def _product(self, factors: Sequence[Expr], condition: Form | None = None) -> Form:
        """Polynomials first; of the other factors one may keep its form, the rest become constants."""
        forms = [(self.read(factor), factor) for factor in factors]
        # Products of polynomials are exact; a maximum among them can be kept only as the last factor.
        forms.sort(key=lambda pair: not pair[0].polynomial)
        result = condition or Form({ONE: 1.0})
        for form, factor in forms:
            if not form.polynomial:
                result = self.monomials.telescoped(result)
            whole = result.polynomial and (form.polynomial or result.positive)
            result = (
                self.monomials.times(result, form if whole else self._least(factor))
                if result.polynomial
                else (self.monomials.times(self._least(factor), result))
            )
        return self.monomials.telescoped(result)

    def _maximum(self, forms: Sequence[Form]) -> Form:
        if len(forms) == 1:
            return forms[0]
        return Form({}, ((1.0, tuple(forms)),), all(form.exact for form in forms))

    def _quotient(self, expr: Quotient) -> Form:
        numerator, denominator = self.read(expr.numerator), self.read(expr.denominator)
        # Rounding up only raises a quotient, so that the plain one over the largest denominator is a bound.
        inverse = Form({ONE: 1 / self._greatest(expr.denominator)})
        if denominator.polynomial and len(denominator.terms) == 1:
            ((monomial, coefficient),) = denominator.terms.items()
            tables = self.monomials.by_axis(monomial)
            if all(values.min() > 0 for values in tables.values()):
                turned = {axis: 1 / values for axis, values in tables.items()}
                inverse = Form(dict([self.monomials.of(turned, 1 / coefficient)]))
        result = self.monomials.times(inverse, numerator)
        return Form(result.terms, result.maxima, exact=False)

    # -- cases ---------------------------------------------------------------------------------------

    def _selector(self, selector: Variable, values: Sequence[float]) -> Form:
        if len(values) == 1:
            return Form({ONE: values[0]} if values[0] else {})
        return self.monomials.table(self._selectors[selector], np.array(values))

    def _choice(self, expr: Choice) -> Form:
        options = self._options[expr.selector]
        if len(options) == 1:
            return self.read(expr.options[options[0]])
        parts = []
        for value in options:
            chosen = self._selector(expr.selector, [float(other == value) for other in options])
            parts.append((1.0, self.monomials.times(chosen, self.read(expr.options[value]))))
        return self.monomials.add(parts)

    def _where(self, expr: Where, given: Form | None = None) -> Form:
        condition, always = self.read(expr.condition), Form({ONE: 1.0})
        times = self.monomials.times
        # Without the condition as a polynomial nothing can be multiplied by it; the looser branch counts.
        if not (condition.polynomial and condition.positive):
            return times(given or always, self._least(expr))
        opposite = self.monomials.telescoped(self.monomials.add([(1.0, always), (-1.0, condition)]))
        if not opposite.positive:
            return times(given or always, self._least(expr))
        if given is not None:
            condition, opposite = times(given, condition), times(given, opposite)
        then, otherwise = self._given(condition, expr.then), self._given(opposite, expr.otherwise)
        return self.monomials.add([(1.0, then), (1.0, otherwise)])

    def _given(self, condition: Form, expr: Expr) -> Form:
        """An expression times a condition, which may be what keeps a difference in it from being negative."""
        plain = self.read(expr)
        # Without differences the bound stays valid when it is multiplied by a condition.
        if expr.group is not None or (plain.exact and _added(plain)):
            return self.monomials.times(condition, plain)
        match expr:
            case Sum():
                parts = [(float(expr.constant), condition)]
                for coefficient, term in expr.terms:
                    form = self._given(condition, term)
                    if coefficient < 0 and not form.polynomial:
                        form = self.monomials.times(
                            condition, Form({ONE: self._greatest(term)}, (), exact=False)
                        )
                    parts.append((float(coefficient), form))
                return self.monomials.telescoped(self.monomials.add(parts))
            case Product():
                return self._product(expr.factors, condition)
            case Maximum():
                return self._maximum([self._given(condition, argument) for argument in expr.arguments])
            case Tightened():
                return self._maximum([self._given(condition, e) for e in (expr.argument, expr.lower)])
            case Where():
                return self._where(expr, condition)
            case Choice() if len(self._options[expr.selector]) == 1:
                return self._given(condition, expr.options[self._options[expr.selector][0]])
        return self.monomials.telescoped(self.monomials.times(condition, plain))

    def _equals_one(self, argument: Expr) -> Form | None:
        """The condition that an expression of at least 1 equals 1, as a monomial of zeros and ones."""
        if argument.group is not None:
            return self.monomials.table(
                self._groups[argument.group], (self.values(argument) == 1).astype(np.float64)
            )
        if isinstance(argument, Constant):
            return Form({ONE: 1.0} if argument.value == 1 else {})
        if isinstance(argument, Product) and all(
            self.intervals.low(factor) >= 1 for factor in argument.factors
        ):
            result = Form({ONE: 1.0})
            for factor in argument.factors:
                part = self._equals_one(factor)
                if part is None:
                    return None
                result = self.monomials.times(result, part)
            return result
        return None


def _added(form: Form) -> bool:
    """Whether nothing is subtracted anywhere in a form."""
    return form.positive and all(_added(part) for _, arguments in form.maxima for part in arguments)
