"""Expressions read as formulas in plain text, for ``tilewright show`` and the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.formulation.expression.nodes import Choice, Expr, Function, Variable, Where
from tilewright.formulation.expression.reader import Reader


class TextReader(Reader[str]):
    """Reads expressions as one line of text."""

    def constant(self, value: int) -> str:
        return str(value)

    def variable(self, variable: Variable) -> str:
        return variable.name

    def sum(self, terms: Sequence[tuple[int, str]], constant: int) -> str:
        text = ""
        for coefficient, term in terms:
            sign = " - " if coefficient < 0 else " + "
            size = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            text += sign + size + term
        if constant:
            text += f" {'-' if constant < 0 else '+'} {abs(constant)}"
        return f"({text.removeprefix(' + ').strip()})"

    def product(self, factors: Sequence[str]) -> str:
        return "*".join(factors)

    def quotient(self, numerator: str, denominator: str) -> str:
        return f"ceil({numerator} / {denominator})"

    def maximum(self, arguments: Sequence[str]) -> str:
        return f"max({', '.join(arguments)})"

    def is_one(self, argument: str) -> str:
        return f"[{argument} = 1]"

    def where(self, node: Where) -> str:
        parts = (self.read(node.then), self.read(node.condition), self.read(node.otherwise))
        return "({} if {} else {})".format(*parts)

    def choice(self, node: Choice) -> str:
        options = ", ".join(f"{i}: {self.read(option)}" for i, option in enumerate(node.options))
        return f"{node.selector.name}{{{options}}}"

    def function(self, node: Function, arguments: Sequence[str]) -> str:
        return f"{node.name}({', '.join(arguments)})"

    def rounded(self, argument: str, denominator: int) -> str:
        return f"round({argument} / {denominator})"


def formula(expr: Expr) -> str:
    """The expression as one line of text."""
    return TextReader().read(expr)
