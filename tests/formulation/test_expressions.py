"""Expressions: nodes that fold and are shared, and readers that agree with each other."""

from __future__ import annotations

import gc
import math
import sys
import threading
from fractions import Fraction
from itertools import product as cartesian

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.expression import (
    Expr,
    Product,
    Sum,
    Variable,
    as_expr,
    ceil_div,
    choose,
    function,
    is_one,
    maximum,
    nodes,
    product,
    rounded,
    tighten,
    total,
    where,
)
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.expression.text import formula

X = Variable("x", (1, 2, 3, 6), "a")
Y = Variable("y", (1, 2, 4), "a")
Z = Variable("z", (1, 3), "b")
W = Variable("w", (0, 1, 2))
VARIABLES = (X, Y, Z, W)
ASSIGNMENTS = [dict(zip(VARIABLES, v, strict=True)) for v in cartesian(*(v.domain for v in VARIABLES))]


def values(expr: Expr) -> list[int]:
    """The exact value under every assignment."""
    return [evaluate(expr, assignment) for assignment in ASSIGNMENTS]


def is_nonnegative(expr: Expr) -> bool:
    return min(values(expr)) >= 0


def clip(expr: Expr) -> Expr:
    """The expression where it is never negative, else its positive part."""
    return expr if is_nonnegative(expr) else maximum([0, expr])


def combine(kids: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Expressions one level above others."""
    several = st.lists(kids, min_size=2, max_size=3)
    small = st.integers(-3, 3)
    return st.one_of(
        st.builds(
            lambda e, c, k: total([k, *(a * clip(b) for a, b in zip(c, e, strict=False))]),
            several,
            st.lists(small, min_size=3, max_size=3),
            small,
        ),
        st.builds(lambda e: product(map(clip, e)), several),
        st.builds(lambda e, k: product([k, clip(e)]), kids, small),
        st.builds(lambda a, b: ceil_div(clip(a), maximum([1, b])), kids, kids),
        st.builds(maximum, several),
        st.builds(lambda a: is_one(maximum([1, a])), kids),
        st.builds(lambda c, a, b: where(is_one(maximum([1, c])), a, b), kids, kids, kids),
        st.builds(lambda e: choose(W, (e * 2)[:3]), several),
        st.builds(lambda a, b: function("gcd", math.gcd, [clip(a), clip(b)]), kids, kids),
        st.builds(rounded, kids.map(clip), st.integers(1, 7)),
        st.builds(_tightened, kids, st.booleans(), st.booleans()),
    )


def _tightened(expr: Expr, low: bool, high: bool) -> Expr:
    exact_values = values(expr)
    return tighten(expr, min(exact_values) if low else -(10**6), max(exact_values) if high else None)


LEAVES = st.one_of(st.sampled_from(VARIABLES), st.integers(0, 5).map(as_expr))
EXPRESSIONS = st.recursive(LEAVES, combine, max_leaves=12)


@settings(max_examples=effort(200))
@given(EXPRESSIONS)
def test_batch_reader_gives_the_exact_values(expr: Expr) -> None:
    """One value per candidate: arrays over all assignments equal the exact reader's numbers."""
    columns = {v: np.array([assignment[v] for assignment in ASSIGNMENTS]) for v in VARIABLES}
    batch = np.broadcast_to(BatchReader(columns).read(expr), (len(ASSIGNMENTS),))
    assert batch.tolist() == values(expr)


@settings(max_examples=effort(200))
@given(EXPRESSIONS, st.data())
def test_intervals_contain_every_value(expr: Expr, data: st.DataObject) -> None:
    """With any variables fixed, no completion has a value outside the interval."""
    chosen = data.draw(st.sampled_from(ASSIGNMENTS))
    fixed = {v: chosen[v] for v in VARIABLES if data.draw(st.booleans())}
    reader = IntervalReader(fixed)
    matching = [a for a in ASSIGNMENTS if all(a[v] == value for v, value in fixed.items())]
    exact = [evaluate(expr, assignment) for assignment in matching]
    assert float(reader.low(expr)) <= min(exact)
    assert float(reader.high(expr)) >= max(exact)


@settings(max_examples=effort(100))
@given(EXPRESSIONS)
def test_intervals_of_decided_expressions_are_points(expr: Expr) -> None:
    """Where every variable is fixed both ends are the exact value."""
    for assignment in ASSIGNMENTS[::7]:
        reader = IntervalReader(assignment)
        assert float(reader.low(expr)) == evaluate(expr, assignment) == float(reader.high(expr))


def test_factors_whose_interval_dips_below_zero_do_not_make_a_bound_too_high() -> None:
    """Two factors that are never negative, but whose lower ends are, give a lower end of at most zero."""
    dips, other = X * Y - Y, X * Y - X  # 0 at x = 1 and at y = 1, yet the intervals begin below zero
    ones = (dips, where(is_one(Z), dips, other), choose(W, [dips, other, dips]), tighten(dips, -9))
    others = (other, where(is_one(Z), other, dips), choose(W, [other, other, dips]), tighten(other, -9))
    for first, two in cartesian(ones, others):
        expr = product([first, two])
        reader = IntervalReader({})
        assert min(values(expr)) == 0
        assert float(reader.low(expr)) <= 0
        assert float(reader.high(expr)) >= max(values(expr))


def test_tightened_bounds_are_used_by_intervals_alone() -> None:
    """Numbers read the argument; intervals read the bounds, and only where they are the tighter ones."""
    expr = tighten(X * Z, lower=5, upper=10)
    assert evaluate(expr, {X: 1, Z: 1}) == 1
    assert float(BatchReader({X: 1, Z: 1}).read(expr)) == 1
    reader = IntervalReader({})
    assert (float(reader.low(expr)), float(reader.high(expr))) == (5, 10)
    loose = tighten(X * Z, lower=-5, upper=100)
    assert (float(reader.low(loose)), float(reader.high(loose))) == (1, 18)


def test_equal_expressions_are_one_object() -> None:
    """However they are built: order of terms, nesting and constants make no difference."""
    assert X + Y is Y + X
    assert X * Y * Z is Z * (Y * X)
    assert total([X, total([Y, 3]), -3]) is X + Y
    assert 2 * X + X is 3 * X
    assert product([2, X, 3, Y]) is 6 * (X * Y)
    assert maximum([X, maximum([Y, X])]) is maximum([Y, X])
    assert as_expr(7) is as_expr(7)
    assert ceil_div(X, Y) is ceil_div(X, Y)
    assert ceil_div(X, Y) is not ceil_div(Y, X)
    assert Variable("x", (1, 2), "a") is not X


def test_constants_fold() -> None:
    """Whatever is known without a decision is a number at once."""
    assert X - X is as_expr(0)
    assert product([0, X]) is as_expr(0)
    assert product([]) is as_expr(1)
    assert total([]) is as_expr(0)
    assert 1 * X is X
    assert X + 0 is X
    assert ceil_div(7, 2) is as_expr(4)
    assert ceil_div(X, X) is as_expr(1)
    assert ceil_div(X, 1) is X
    assert maximum([3, 5]) is as_expr(5)
    assert maximum([X]) is X
    assert is_one(1) is as_expr(1)
    assert is_one(2) is as_expr(0)
    assert where(1, X, Y) is X
    assert where(0, X, Y) is Y
    assert where(is_one(X), Y, Y) is Y
    assert choose(1, [X, Y]) is Y
    assert choose(W, [X, X, X]) is X
    assert function("gcd", math.gcd, [12, 18]) is as_expr(6)
    assert rounded(X, 1) is X
    assert rounded(7, 2) is as_expr(4)
    assert tighten(3, lower=5) is as_expr(3)


@settings(max_examples=effort(100))
@given(EXPRESSIONS, EXPRESSIONS, st.integers(-3, 3))
def test_arithmetic_means_what_it_says(expr: Expr, other: Expr, number: int) -> None:
    """Sums, differences and multiples of expressions have the sums, differences and multiples of values."""
    for assignment in ASSIGNMENTS[::5]:
        a, b = evaluate(expr, assignment), evaluate(other, assignment)
        assert evaluate(expr + other, assignment) == a + b
        assert evaluate(expr - other, assignment) == a - b
        assert evaluate(number - expr, assignment) == number - a
        assert evaluate(number * expr, assignment) == number * a


def test_factors_of_one_group_stand_together() -> None:
    """A product keeps what depends on one axis group as one factor, which can be tabulated."""
    expr = product([X, Z, W, Y, Z])
    assert isinstance(expr, Product)
    assert set(expr.factors) == {X * Y, Z * Z, W}
    assert {factor.group for factor in expr.factors} == {"a", "b", None}


def test_support_and_group() -> None:
    """An expression knows its variables, and the one group that they belong to."""
    assert (X + Y).group == "a"
    assert (X + Z).group is None
    assert (X * W).group is None
    assert choose(W, [X, Y, 1]).support == {W, X, Y}
    assert as_expr(3).support == frozenset()


def test_expressions_are_forgotten_with_their_last_user() -> None:
    """Interning keeps none alive but small constants; a later one with the same parts is a new one."""
    scratch = Variable("scratch", (1, 2))
    small = [as_expr(n) for n in range(50)]
    gc.collect()
    before = _alive()
    parts = [scratch * n + X for n in range(2, 50)]
    assert _alive() >= before + 48
    del parts
    gc.collect()
    assert _alive() <= before
    assert all(as_expr(n) is constant for n, constant in enumerate(small))
    assert evaluate(scratch * 3 + X, {scratch: 2, X: 1}) == 7


def test_places_of_forgotten_expressions_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are never more than the others and some room; what lives stays one node."""
    gc.collect()
    monkeypatch.setattr(nodes, "_LEAST_ROOM", 100)
    monkeypatch.setattr(nodes, "_room", 100)
    kept = [X * n for n in range(2, 50)]
    for n in range(2_000):
        assert len((X + Variable(f"scratch {n}", (1, 2))).support) == 2
    assert len(nodes._interned) <= max(100, 2 * _alive()) + 1
    assert all(X * n is own for n, own in enumerate(kept, 2))


def _alive() -> int:
    """How many expressions somebody uses."""
    return sum(reference() is not None for reference in nodes._interned.values())


def test_a_difference_is_a_sum_with_a_negative_coefficient() -> None:
    """Subtraction needs no node of its own, and a negative multiple is a sum, never a product."""
    expr = -2 * X
    assert isinstance(expr, Sum)
    assert expr.terms == ((-2, X),)
    assert expr is total([X, -3 * X])


@settings(max_examples=effort(200))
@given(st.integers(0, 10**6), st.integers(1, 50))
def test_rounding_is_to_the_nearest_and_halves_to_even(value: int, denominator: int) -> None:
    """Exact, batch and interval readers round as Python rounds fractions."""
    variable = Variable("v", (value,))
    expr = rounded(variable, denominator)
    expected = round(Fraction(value, denominator))
    assert evaluate(expr, {variable: value}) == expected
    assert int(BatchReader({variable: value}).read(expr)) == expected
    reader = IntervalReader({variable: value})
    assert float(reader.low(expr)) == expected == float(reader.high(expr))


@pytest.mark.parametrize(("value", "expected"), [(1, 0), (3, 2), (5, 2), (7, 4), (6, 3)])
def test_halves_go_to_the_even_integer(value: int, expected: int) -> None:
    """0.5 is 0, 1.5 is 2, 2.5 is 2, 3.5 is 4, in every reader that gives numbers."""
    variable = Variable("v", range(10))
    expr = rounded(variable, 2)
    assert evaluate(expr, {variable: value}) == expected
    assert float(BatchReader({variable: value}).read(expr)) == expected


def test_a_missing_value_is_an_error() -> None:
    """The exact reader does not guess variables."""
    with pytest.raises(KeyError):
        evaluate(X + Y, {X: 1})


def test_batches_choose_row_by_row() -> None:
    """Conditions and choices that differ between candidates take the branch of each."""
    values_of = {X: np.array([1, 2, 3]), W: np.array([0, 1, 2]), Y: 10, Z: 5}
    reader = BatchReader(values_of)
    assert reader.read(where(is_one(X), Y, Z)).tolist() == [10, 5, 5]
    assert reader.read(choose(W, [X, Y, Z])).tolist() == [1, 10, 5]


def test_large_integers_stay_exact() -> None:
    """The exact reader works beyond 64 bits."""
    assert evaluate(product([X] * 3), {X: 10**9 + 7}) == (10**9 + 7) ** 3


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (X + 2 * Y - 3, "(x + 2*y - 3)"),
        (3 - X, "(- x + 3)"),
        (2 * X * (Y + 1), "2*x*(y + 1)"),
        (ceil_div(X, Y), "ceil(x / y)"),
        (maximum([X, 4]), "max(x, 4)"),
        (where(is_one(X), Y, 0), "(y if [x = 1] else 0)"),
        (choose(W, [X, Y, 1]), "w{0: x, 1: y, 2: 1}"),
        (function("gcd", math.gcd, [X, Y]), "gcd(x, y)"),
        (rounded(X, 10), "round(x / 10)"),
        (tighten(X, lower=2), "x"),
    ],
)
def test_formulas(expr: Expr, text: str) -> None:
    """Every node prints as one line of plain text."""
    assert formula(expr) == text


def test_threads_that_build_at_once_share_nodes() -> None:
    """Equal expressions are one object whichever threads make them, while others are collected."""

    def build(variables: list[Variable]) -> list[Expr]:
        return [
            total([x, product([y, place + 5000]), maximum([x, y, ceil_div(x, y)])])
            for place, x in enumerate(variables)
            for y in variables
        ]

    def work(place: int) -> None:
        barrier.wait()
        built[place] = build(variables)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(effort(80)):
            variables = [Variable(f"v{i}", (1, 2, 3), "a" if i % 2 else None) for i in range(5)]
            built: list[list[Expr]] = [[], [], []]
            barrier = threading.Barrier(len(built))
            threads = [threading.Thread(target=work, args=(place,)) for place in range(len(built))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for other in built[1:]:
                assert len(other) == 25
                assert all(a is b for a, b in zip(built[0], other, strict=True))
    finally:
        sys.setswitchinterval(before)
