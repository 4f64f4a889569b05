"""Products pushed into sums, maxima and cases, down to products of single factors.

``trips * max(a, b)`` equals ``max(trips * a, trips * b)``: inside, the trip counts meet the tile sizes of
their own axis groups, where they telescope.  That keeps numbers small and their bounds tight, which a
product of two wide variables would lose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

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
    ceil_div,
    choose,
    maximum,
    product,
    rounded,
    tighten,
    total,
    where,
)

LARGEST = 20_000


class Expansion:
    """Rewrites expressions; equal ones once.

    Past ``LARGEST`` rewritten products, further ones stay as they are.

    Parameters
    ----------
    low : a lower bound of an expression over all decisions
    """

    def __init__(self, low: Callable[[Expr], int]) -> None:
        self._low = low
        self._seen: dict[Expr, Expr] = {}
        self._products: dict[frozenset[tuple[int, int]], Expr] = {}
        self._kept: list[Expr] = []

    def rewrite(self, expr: Expr) -> Expr:
        """An equal expression in which products are pushed inwards."""
        rewritten = self._seen.get(expr)
        if rewritten is None:
            rewritten = self._seen[expr] = self._rewrite(expr)
        return rewritten

    def _rewrite(self, expr: Expr) -> Expr:
        if expr.group is not None:
            return expr
        node = as_node(expr)
        match node:
            case Sum():
                plain = total([node.constant, *(c * self.rewrite(term) for c, term in node.terms)])
                lower = self._shared_maximum(node)
                return plain if lower is None else tighten(plain, self.rewrite(lower))
            case Product():
                return self._multiply([self.rewrite(factor) for factor in node.factors])
            case Maximum():
                return maximum(self.rewrite(argument) for argument in node.arguments)
            case Where():
                return where(node.condition, self.rewrite(node.then), self.rewrite(node.otherwise))
            case Choice():
                return choose(node.selector, [self.rewrite(option) for option in node.options])
            case Quotient():
                return ceil_div(self.rewrite(node.numerator), node.denominator)
            case Rounded():
                return rounded(self.rewrite(node.argument), node.denominator)
            case Tightened():
                return tighten(self.rewrite(node.argument), self.rewrite(node.lower), node.upper)
            case Constant() | Variable() | IsOne() | Function():
                return expr
            case _:
                assert_never(node)

    def _multiply(self, factors: Sequence[Expr]) -> Expr:
        """The product of rewritten factors, all of them non-negative."""
        flat: list[Expr] = []
        for factor in factors:
            flat += factor.factors if isinstance(factor, Product) and factor.group is None else [factor]
        count: dict[int, int] = {}
        for factor in flat:
            count[id(factor)] = count.get(id(factor), 0) + 1
        # A multiset of factors: products of the same factors are rewritten once, in whatever order they
        # stand.
        key = frozenset(count.items())
        multiplied = self._products.get(key)
        if multiplied is None:
            # Keys are identities: factors must live as long as the table.
            self._kept += flat
            full = len(self._products) >= LARGEST
            multiplied = self._products[key] = product(flat) if full else self._expand(flat)
        return multiplied

    def _expand(self, factors: list[Expr]) -> Expr:
        for kinds in ((Maximum, Where, Choice, Tightened), (Sum,)):
            for position, factor in enumerate(factors):
                if isinstance(factor, kinds) and factor.group is None and not is_binary(factor):
                    rest = [*factors[:position], *factors[position + 1 :]]
                    if rest:
                        return self._into(factor, rest)
        return product(factors)

    def _into(self, factor: Expr, rest: list[Expr]) -> Expr:
        """Multiply every part of a factor by the rest."""

        def times(part: Expr) -> Expr:
            return self._multiply([part, *rest])

        match factor:
            case Maximum():
                return maximum(times(argument) for argument in factor.arguments)
            case Where():
                return where(factor.condition, times(factor.then), times(factor.otherwise))
            case Choice():
                return choose(factor.selector, [times(option) for option in factor.options])
            case Tightened():
                # a factor may be negative in a case that is not chosen; the bound holds for the others
                valid = all(self._low(other) >= 0 for other in rest)
                grown = times(factor.argument)
                return tighten(grown, times(factor.lower)) if valid else grown
            case Sum():
                return total([product([factor.constant, *rest]), *(c * times(t) for c, t in factor.terms)])
        raise AssertionError(f"cannot multiply into {type(factor).__name__}")

    def _shared_maximum(self, expr: Sum) -> Expr | None:
        """A lower bound of a sum in which several maxima contain a common one.

        In ``x * max(a, b) + y * max(a, b, c)`` the second maximum is at least the first, so that the sum is
        at least ``(x + y) * max(a, b)``; where ``x`` subtracts what ``y`` adds, much of it cancels.
        """
        parts: list[tuple[Maximum, Expr]] = []
        for coefficient, term in expr.terms:
            factors = term.factors if isinstance(term, Product) else (term,)
            maxima = [factor for factor in factors if isinstance(factor, Maximum) and factor.group is None]
            if coefficient > 0 and len(maxima) == 1:
                rest = product([coefficient, *(factor for factor in factors if factor is not maxima[0])])
                parts.append((maxima[0], rest))
        # Every term must take part, or the bound of the others would be missing.
        if len(parts) < max(2, len(expr.terms)) or expr.constant < 0:
            return None
        # The maximum of fewest arguments is the only one that all others can contain.
        common = min((m for m, _ in parts), key=lambda m: len(m.arguments))
        larger = [
            rest
            for m, rest in parts
            if m is common or (set(common.arguments) <= set(m.arguments) and self._low(rest) >= 0)
        ]
        return product([common, total(larger)]) if len(larger) == len(parts) else None


def is_binary(node: Expr) -> bool:
    """Whether the node is a condition: an ``IsOne``, the opposite of one, or several at once."""
    match node:
        case IsOne():
            return True
        case Sum():
            opposite = node.constant == 1 and len(node.terms) == 1 and node.terms[0][0] == -1
            return opposite and is_binary(node.terms[0][1])
        case Product():
            return all(is_binary(factor) for factor in node.factors)
    return False
