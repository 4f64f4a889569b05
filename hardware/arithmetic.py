"""Formulas that users write: sums, products, quotients, powers and a few functions over named quantities.

``0.06 * sqrt(capacity / 32 B)``: sizes carry their unit and stand for bytes (kB is 1024), ``^`` is a power.
What has no root is computed exactly; ``sqrt``, ``log2`` and broken powers are those of floats.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tilewright.foundation.units import BYTES

_SIZE = re.compile(rf"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) *({'|'.join(BYTES)})\b")
_LONGEST = 500
_MOST = Fraction(10) ** 30
_MOST_POWER = 16

_FUNCTIONS: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "sqrt": (1, lambda x: Fraction(math.sqrt(x))),
    "log2": (1, lambda x: Fraction(math.log2(x))),
    "ceil": (1, lambda x: Fraction(math.ceil(x))),
    "min": (2, min),
    "max": (2, max),
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was read.

    Parameters
    ----------
    text : as the user wrote it
    names : the quantities that it speaks of
    """

    text: str
    names: frozenset[str]
    _tree: ast.expr

    def value(self, known: Mapping[str, Fraction]) -> Fraction:
        """Its value for these quantities.

        Raises
        ------
        ValueError : where it has none (division by zero, a root of a negative number, a huge power)
        """
        try:
            result = _value(self._tree, known)
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            raise ValueError(f"{self.text!r} has no value: {error}") from None
        return result


def parse_formula(text: str, names: Collection[str]) -> Formula:
    """Read a formula.

    Parameters
    ----------
    names : quantities that it may speak of, dots included

    Raises
    ------
    ValueError : for anything else, with what was expected
    """
    reported = (
        f"expected a formula of {', '.join(sorted(names))}, numbers, + - * / ^ and {', '.join(_FUNCTIONS)}"
    )
    if len(text) > _LONGEST:
        raise ValueError(f"{reported}, got {len(text)} characters")
    plain = _SIZE.sub(lambda match: f"({match[1]} * {BYTES[match[2]]})", text).replace("^", "**")
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
        used = frozenset(_names(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{reported}, got {text!r}") from None
    for name in sorted(used - frozenset(names)):
        raise ValueError(f"{reported}, got {name!r} in {text!r}")
    return Formula(text, used, tree)


def _names(node: ast.expr) -> list[str]:
    """Names in a tree; raises ``ValueError`` for what no formula has."""
    match node:
        case ast.Constant(value=int() | float()):
            return []
        case ast.Name() | ast.Attribute():
            return [_dotted(node)]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _names(inner)
        case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
            return _names(left) + _names(right)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            least = _FUNCTIONS[name][0]
            if len(args) == least or (least > 1 and len(args) > least):
                return [variable for argument in args for variable in _names(argument)]
    raise ValueError("not a formula")


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name):
            return f"{_dotted(inner)}.{name}"
    raise ValueError("not a name")


def _value(node: ast.expr, known: Mapping[str, Fraction]) -> Fraction:
    result = _computed(node, known)
    if abs(result) > _MOST:
        raise OverflowError("too large a number")
    return result


def _computed(node: ast.expr, known: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Constant(value=number):
            return Fraction(str(number))
        case ast.UnaryOp(operand=inner):
            return -_value(inner, known)
        case ast.BinOp(left=left, op=operation, right=right):
            return _combined(operation, _value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name][1](*(_value(argument, known) for argument in args))
    return known[_dotted(node)]


def _combined(operation: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    match operation:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
    if abs(right) > _MOST_POWER:
        raise OverflowError(f"a power beyond {_MOST_POWER}")
    if right.denominator == 1:
        return left**right.numerator
    if left < 0:
        raise ValueError("a broken power of a negative number")
    return Fraction(float(left) ** float(right))
