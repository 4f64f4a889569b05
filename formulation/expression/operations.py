"""What expressions are built of besides sums and products: quotients, maxima, cases, functions, bounds.

Each folds constants, and gives the equal expression that there is already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright.formulation.expression.nodes import (
    Choice,
    Constant,
    Expr,
    Function,
    IsOne,
    Maximum,
    Quotient,
    Rounded,
    Tightened,
    Variable,
    Where,
    as_expr,
    known_node,
    make_node,
)


def ceil_div(numerator: Expr | int, denominator: Expr | int) -> Expr:
    """``ceil(numerator / denominator)`` for a denominator of at least 1."""
    numerator, denominator = as_expr(numerator), as_expr(denominator)
    # Equal expressions are one node, so a loop of one iteration is seen without numbers.
    if numerator is denominator:
        return as_expr(1)
    if isinstance(denominator, Constant):
        if denominator.value == 1:
            return numerator
        if isinstance(numerator, Constant):
            return as_expr(-(-numerator.value // denominator.value))
    key = (Quotient, id(numerator), id(denominator))
    return known_node(key) or make_node(
        Quotient, (numerator, denominator), key, numerator=numerator, denominator=denominator
    )


def maximum(arguments: Iterable[Expr | int]) -> Expr:
    """The largest of the arguments (at least one)."""
    constant: int | None = None
    # A dictionary keeps the sequence and drops repetitions.
    rest: dict[Expr, None] = {}

    # A stack, because nested maxima are opened, in their order, without recursion.
    left = [as_expr(argument) for argument in arguments][::-1]
    while left:
        expr = left.pop()
        if isinstance(expr, Constant):
            constant = expr.value if constant is None else max(constant, expr.value)
        elif isinstance(expr, Maximum):
            left += expr.arguments[::-1]
        else:
            rest[expr] = None
    parts = [*rest]
    if constant is not None:
        if not parts:
            return as_expr(constant)
        parts.append(as_expr(constant))
    if len(parts) == 1:
        return parts[0]
    key = (Maximum, frozenset(map(id, parts)))
    return known_node(key) or make_node(Maximum, parts, key, arguments=tuple(parts))


def is_one(argument: Expr | int) -> Expr:
    """1 where the argument, at least 1 everywhere, equals 1; else 0."""
    argument = as_expr(argument)
    if isinstance(argument, Constant):
        return as_expr(int(argument.value == 1))
    key = (IsOne, id(argument))
    return known_node(key) or make_node(IsOne, (argument,), key, argument=argument)


def where(condition: Expr | int, then: Expr | int, otherwise: Expr | int) -> Expr:
    """``then`` where the 0-1 valued condition is 1, else ``otherwise``."""
    condition, then, otherwise = as_expr(condition), as_expr(then), as_expr(otherwise)
    if isinstance(condition, Constant):
        return then if condition.value else otherwise
    if then is otherwise:
        return then
    key = (Where, id(condition), id(then), id(otherwise))
    return known_node(key) or make_node(
        Where, (condition, then, otherwise), key, condition=condition, then=then, otherwise=otherwise
    )


def choose(selector: Variable | int, options: Sequence[Expr | int]) -> Expr:
    """The option at the selector's value."""
    # A choice that is none: spaces state it alike.
    if type(selector) is int:
        return as_expr(options[selector])
    assert isinstance(selector, Variable)
    parts = tuple(map(as_expr, options))
    # A choice that makes no difference here, as loop orders make none to many tensors, needs no node.
    if parts.count(parts[0]) == len(parts):  # expressions are equal where they are one
        return parts[0]
    key = (Choice, id(selector), *map(id, parts))
    return known_node(key) or make_node(Choice, (selector, *parts), key, selector=selector, options=parts)


def function(
    name: str,
    evaluate: Callable[..., int],
    arguments: Sequence[Expr | int],
    evaluate_many: Callable[..., Any] | None = None,
) -> Expr:
    """A named integer function; the name identifies it, so equal names must mean equal functions.

    Parameters
    ----------
    name : identifies the function: equal names are taken for equal functions, and formulas show it
    evaluate : the function of as many Python integers as there are arguments
    arguments : expressions; where all are constants the result is one too
    evaluate_many : the same function of arrays of integers in float64, all of one length; before them comes a
        dictionary for what functions of the same arrays share, which lives as long as these
    """
    parts = tuple(map(as_expr, arguments))
    key = (Function, name, *map(id, parts))
    known = known_node(key)
    if known is not None:
        return known
    if all(isinstance(part, Constant) for part in parts):
        return as_expr(evaluate(*(part.value for part in parts if isinstance(part, Constant))))
    return make_node(
        Function, parts, key, name=name, evaluate=evaluate, evaluate_many=evaluate_many, arguments=parts
    )


def round_half_even(value: int, denominator: int) -> int:
    """``value / denominator`` to the nearest integer, halves to the even one, exactly."""
    quotient, remainder = divmod(value, denominator)
    twice = 2 * remainder
    return quotient + (twice > denominator or (twice == denominator and quotient % 2 == 1))


def rounded(argument: Expr | int, denominator: int) -> Expr:
    """``argument / denominator`` rounded half to even."""
    argument = as_expr(argument)
    if denominator == 1:
        return argument
    if isinstance(argument, Constant):
        return as_expr(round_half_even(argument.value, denominator))
    key = (Rounded, id(argument), denominator)
    return known_node(key) or make_node(Rounded, (argument,), key, argument=argument, denominator=denominator)


def tighten(argument: Expr | int, lower: Expr | int = 0, upper: int | None = None) -> Expr:
    """``argument`` with bounds that the problem's constraints imply."""
    argument, lower = as_expr(argument), as_expr(lower)
    if isinstance(argument, Constant):
        return argument
    key = (Tightened, id(argument), id(lower), upper)
    return known_node(key) or make_node(
        Tightened, (argument, lower), key, argument=argument, lower=lower, upper=upper
    )
