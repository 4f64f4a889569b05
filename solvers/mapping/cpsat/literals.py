"""Conditions read as literals: an ``IsOne``, the opposite of one, or several at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.formulation.expression import Constant, Expr, IsOne, Product, Sum
from tilewright.solvers.mapping.cpsat.decisions import Decisions, Literal
from tilewright.solvers.mapping.presolve.expansion import is_binary

Relation = Callable[[Expr, int], tuple[Any, Any]]


class Literals:
    """Literals of conditions; equal conditions share one.

    Parameters
    ----------
    relation : for a node that cannot be split: that it has a value, and that it is larger
    """

    def __init__(self, decisions: Decisions, relation: Relation) -> None:
        self._decisions = decisions
        self._relation = relation
        self._known: dict[Expr, Literal] = {}

    def of(self, node: Expr) -> Literal:
        """A literal that is true where the 0-1 valued expression is 1."""
        literal = self._known.get(node)
        if literal is None:
            literal = self._known[node] = self._read(node)
        return literal

    def _read(self, node: Expr) -> Literal:
        decisions = self._decisions
        local = self._where_local(node)
        if local is not None:
            return local
        if isinstance(node, IsOne):
            return self._equals_one(node.argument)
        if is_binary(node):
            if isinstance(node, Product):
                return decisions.conjunction([self.of(factor) for factor in node.factors])
            assert isinstance(node, Sum)
            return ~self.of(node.terms[0][1])
        nothing, something = self._relation(node, 0)
        return decisions.reified(something, nothing)

    def _where_local(self, node: Expr) -> Literal | None:
        """Where a constant, or a node of one axis group, equals 1; ``None`` for any other node."""
        if isinstance(node, Constant):
            return self._decisions.truth(node.value == 1)
        if node.group is not None:
            return self._decisions.where_local(node, lambda values: values == 1)
        return None

    def _equals_one(self, node: Expr) -> Literal:
        """A literal that is true where an expression of at least 1 equals 1."""
        decisions = self._decisions
        local = self._where_local(node)
        if local is not None:
            return local
        if isinstance(node, Product) and all(decisions.bounds(f)[0] >= 1 for f in node.factors):
            return decisions.conjunction([self._equals_one(factor) for factor in node.factors])
        return decisions.reified(*self._relation(node, 1))
