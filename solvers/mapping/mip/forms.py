"""Sums of products of tables: what expressions become before they become linear rows.

A *monomial* is a product with at most one table per axis, an axis being a group of dimensions (a value per
open row) or a selector (a value per open option).  Conditions are monomials of zeros and ones, so choices
and cases are sums of monomials like everything else, and only maxima stay maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

import numpy as np

from tilewright.foundation.arrays import Floats

Monomial = tuple[int, ...]  #: indices of tables, increasing by axis
ONE: Monomial = ()
LARGEST = 50_000


class TooLargeError(Exception):
    """An expression has too many products to be stated."""


@dataclass
class Form:
    """``sum(coefficient * monomial) + sum(coefficient * maximum)``, a lower bound of an expression.

    Parameters
    ----------
    terms : coefficient by monomial; the empty monomial is the constant
    maxima : positive coefficients and the arguments of maxima
    exact : whether the form equals its expression at every decision
    """

    terms: dict[Monomial, float] = field(default_factory=dict)
    maxima: tuple[tuple[float, tuple[Form, ...]], ...] = ()
    exact: bool = True

    @property
    def polynomial(self) -> bool:
        """Whether the form is exact and has no maxima, so that it may be subtracted."""
        return self.exact and not self.maxima

    @property
    def positive(self) -> bool:
        """Whether no monomial is subtracted."""
        return all(coefficient >= 0 for coefficient in self.terms.values())


class Monomials:
    """The monomials of a model over some axes; equal tables are one.

    Parameters
    ----------
    sizes : number of open rows or options per axis
    check : called at every product; may raise to end the work
    """

    def __init__(self, sizes: Sequence[int], check: Callable[[], None] = lambda: None) -> None:
        self.check = check
        self.sizes = tuple(sizes)
        self.tables: list[Floats] = []
        self.axis: list[int] = []
        self._index: dict[tuple[int, bytes], int] = {}

    def table(self, axis: int, values: Floats) -> Form:
        """A form that is one table over an axis."""
        least = float(values.min())
        if least == float(values.max()):
            return Form({ONE: least}) if least else Form()
        if least < 0:
            positive, negative = np.maximum(values, 0.0), np.maximum(-values, 0.0)
            return self.add([(1.0, self.table(axis, positive)), (-1.0, self.table(axis, negative))])
        return Form({(self._intern(axis, values),): 1.0})

    def _intern(self, axis: int, values: Floats) -> int:
        values = np.ascontiguousarray(values, dtype=np.float64)
        key = (axis, values.tobytes())
        number = self._index.get(key)
        if number is None:
            number = self._index[key] = len(self.tables)
            self.tables.append(values)
            self.axis.append(axis)
        return number

    def by_axis(self, monomial: Monomial) -> dict[int, Floats]:
        """The tables of a monomial."""
        return {self.axis[index]: self.tables[index] for index in monomial}

    def of(self, tables: MappingABC[int, Floats], coefficient: float = 1.0) -> tuple[Monomial, float]:
        """The monomial of some tables, constant ones folded into the coefficient."""
        indices: list[int] = []
        for axis in sorted(tables):
            values = tables[axis]
            least = float(values.min())
            if least == float(values.max()):
                coefficient *= least
            else:
                indices.append(self._intern(axis, values))
        return tuple(indices), coefficient

    # -- arithmetic ----------------------------------------------------------------------------------

    def add(self, parts: Iterable[tuple[float, Form]]) -> Form:
        """A weighted sum; only polynomials may have a negative weight."""
        terms: dict[Monomial, float] = {}
        maxima: list[tuple[float, tuple[Form, ...]]] = []
        exact = True
        for weight, form in parts:
            for monomial, coefficient in form.terms.items():
                terms[monomial] = terms.get(monomial, 0.0) + weight * coefficient
            maxima += [(weight * coefficient, arguments) for coefficient, arguments in form.maxima]
            exact = exact and form.exact
        return Form({m: c for m, c in terms.items() if c}, tuple(maxima), exact)

    def times(self, left: Form, right: Form) -> Form:
        """The product of a polynomial of positive coefficients, or any polynomial, with another form.

        Maxima may be multiplied by positive polynomials only.
        """
        if len(left.terms) * len(right.terms) > LARGEST:
            raise TooLargeError
        terms: dict[Monomial, float] = {}
        for first, a in left.terms.items():
            for second, b in right.terms.items():
                monomial, coefficient = self._multiply(first, second)
                if coefficient:
                    terms[monomial] = terms.get(monomial, 0.0) + a * b * coefficient
        maxima: list[tuple[float, tuple[Form, ...]]] = []
        for monomial, a in left.terms.items():
            factor = Form({monomial: 1.0})
            for b, arguments in right.maxima:
                products = tuple(self.times(factor, argument) for argument in arguments)
                if any(part.terms or part.maxima for part in products):
                    maxima.append((a * b, products))
        return Form({m: c for m, c in terms.items() if c}, tuple(maxima), left.exact and right.exact)

    def _multiply(self, first: Monomial, second: Monomial) -> tuple[Monomial, float]:
        if not first or not second:
            return first or second, 1.0
        self.check()
        tables = self.by_axis(first)
        for index in second:
            axis, values = self.axis[index], self.tables[index]
            tables[axis] = tables[axis] * values if axis in tables else values
        return self.of(tables)

    def telescoped(self, form: Form) -> Form:
        """The same form with subtracted monomials turned into sums of products that are not negative.

        Where ``P`` exceeds ``Q`` factor by factor, ``P1 P2 - Q1 Q2 = (P1 - Q1) P2 + Q1 (P2 - Q2)``.
        """
        negative = [monomial for monomial, coefficient in form.terms.items() if coefficient < 0]
        if not negative:
            return form
        terms = dict(form.terms)
        for monomial in negative:
            for other in sorted((m for m, c in terms.items() if c > 0), key=len, reverse=True):
                if other in terms and self._split(terms, other, monomial):
                    break
        return Form({m: c for m, c in terms.items() if c}, form.maxima, form.exact)

    def _split(self, terms: dict[Monomial, float], above: Monomial, below: Monomial) -> bool:
        upper, lower = self.by_axis(above), self.by_axis(below)
        axes = sorted({*upper, *lower})
        scale = terms[above]
        pairs: list[tuple[int, Floats, Floats]] = []
        for axis in axes:
            ones = np.ones(self.sizes[axis])
            p, q = upper.get(axis, ones), lower.get(axis, ones)
            used = q > 0
            ratio = float((p[used] / q[used]).min()) if used.any() else 0.0
            if ratio <= 0:
                return False
            scale *= ratio
            pairs.append((axis, p / ratio, q))
        weight = -terms[below]
        if scale < weight:
            return False
        del terms[below], terms[above]

        def gain(tables: MappingABC[int, Floats], coefficient: float) -> None:
            monomial, folded = self.of(tables, coefficient)
            if folded:
                terms[monomial] = terms.get(monomial, 0.0) + folded

        if scale > weight:
            gain({axis: p for axis, p, _ in pairs}, scale - weight)
        for place, (axis, p, q) in enumerate(pairs):
            parts = {a: b for a, _, b in pairs[:place]} | {a: b for a, b, _ in pairs[place + 1 :]}
            gain({**parts, axis: np.maximum(p - q, 0.0)}, weight)
        return True
