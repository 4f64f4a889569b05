"""Enforced rows of a CP-SAT model, kept narrow.

A row ``sum of c x`` that holds only where literals do is *wide* where the sum of ``|c|`` times the range of
``x`` reaches `WIDE`.  OR-Tools 9.15.6755 adds up Boolean terms of such rows in 32 bits while it presolves,
and may then enforce the row without its literals: it certifies values that are not optimal, and calls models
infeasible that have solutions (its issue 5293).  `cpsat_run` turns that part of the presolve off.  Here the
rows themselves are stated so that no sum of an enforced one reaches 32 bits, whatever a later release does.

For integers, ``row <= b`` is ``h <= -1`` where ``row - (b + 1) = 2^k h + l`` with ``0 <= l < 2^k``.  The
equation holds always, with one value of ``h`` and ``l`` for each of the row; only ``h <= -1`` is enforced.
So the model has the same solutions, and each has one continuation to the new variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

WIDE = 1 << 31
"""Sum of an enforced row's coefficients times ranges from which on it is stated otherwise."""
_LARGEST = 1 << 60
"""Of a row's values: with the digits beside it a row must not pass 2^62, CP-SAT's own limit."""
_DIGIT = 30
"""Bits of the high digit."""
_CLAUSES = ("bool_or", "bool_and", "bool_xor", "at_most_one", "exactly_one")

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Row:
    """An enforced row as numbers: variables by their indices, and the intervals that its sum may lie in."""

    place: int
    enforcement: tuple[int, ...]
    variables: tuple[int, ...]
    coefficients: tuple[int, ...]
    allowed: tuple[Interval, ...]
    low: int
    high: int


def narrowed(model: cp_model.CpModel) -> str:
    """State a model's wide enforced rows by digits; why that cannot be done with all of them, or nothing.

    Hints are carried on to the new variables.  What is left wide are rows of values beyond 2^60, and
    constraints of other kinds than rows.
    """
    ranges = _Ranges(model)
    wide = [*_wide(model, ranges)]
    if not wide:
        return ""
    hints = _Hints(model)
    for row in wide:
        if isinstance(row, str):
            return row
        if max(abs(row.low), abs(row.high)) > _LARGEST:
            return "a conditional row has values beyond 2^60"
    for row in wide:
        assert isinstance(row, _Row)
        _Rewriting(model, row, hints).run()
    return ""


class _Ranges:
    """Least and greatest values of variables, read when they are asked for."""

    def __init__(self, model: cp_model.CpModel) -> None:
        self._variables = model.proto.variables
        self._known: dict[int, Interval] = {}

    def of(self, index: int) -> Interval:
        ends = self._known.get(index)
        if ends is None:
            domain = self._variables[index].domain
            ends = self._known[index] = (domain[0], domain[len(domain) - 1])
        return ends

    def span(self, variables: Sequence[int], coefficients: Sequence[int]) -> Interval:
        """Least and greatest value of a sum."""
        low = high = 0
        for index, c in zip(variables, coefficients, strict=True):
            least, most = self.of(index)
            low += c * (least if c > 0 else most)
            high += c * (most if c > 0 else least)
        return low, high


def _wide(model: cp_model.CpModel, ranges: _Ranges) -> Iterator[_Row | str]:
    """Enforced rows that are wide; a text for one of another kind, which cannot be restated."""
    for place, constraint in enumerate(model.proto.constraints):
        if not constraint.enforcement_literal:
            continue
        if constraint.has_linear():
            linear = constraint.linear
            variables, coefficients = tuple(linear.vars), tuple(linear.coeffs)
            low, high = ranges.span(variables, coefficients)
            if high - low >= WIDE:
                ends = [*linear.domain]
                allowed = tuple(zip(ends[::2], ends[1::2], strict=True))
                enforcement = tuple(constraint.enforcement_literal)
                yield _Row(place, enforcement, variables, coefficients, allowed, low, high)
        elif constraint.has_interval():
            terms: dict[int, int] = {}
            interval = constraint.interval
            for expr, sign in ((interval.start, 1), (interval.size, 1), (interval.end, -1)):
                for index, c in zip(expr.vars, expr.coeffs, strict=True):
                    terms[index] = terms.get(index, 0) + sign * c
            low, high = ranges.span([*terms], [*terms.values()])
            if high - low >= WIDE:
                yield "an optional interval is longer than 2^31"
        elif not any(getattr(constraint, f"has_{kind}")() for kind in _CLAUSES):
            yield "a constraint other than a row is conditional"


class _Hints:
    """What is suggested for variables."""

    def __init__(self, model: cp_model.CpModel) -> None:
        hint = model.proto.solution_hint
        self._known = dict(zip(hint.vars, hint.values, strict=True))

    def of(self, row: _Row) -> int | None:
        """The value of a row, where all of its variables have hints."""
        values = [self._known.get(index) for index in row.variables]
        if None in values:
            return None
        return int(sum(c * v for c, v in zip(row.coefficients, values, strict=True) if v is not None))


class _Rewriting:
    """States one row by digits."""

    def __init__(self, model: cp_model.CpModel, row: _Row, hints: _Hints) -> None:
        self.model, self.row = model, row
        self.hint = hints.of(row)
        self.holds = [_literal(model, index) for index in row.enforcement]

    def run(self) -> None:
        row, model = self.row, self.model
        clipped = [(max(a, row.low), min(b, row.high)) for a, b in row.allowed]
        possible = [(a, b) for a, b in clipped if a <= b]
        constraint = model.proto.constraints[row.place]
        constraint.clear_linear()
        constraint.enforcement_literal.clear()
        if len(possible) == 1:
            self._within(*possible[0], self.holds)
            return
        pieces = []
        for a, b in possible:
            inside = model.new_bool_var("")
            if self.hint is not None:
                model.add_hint(inside, a <= self.hint <= b)
            self._within(a, b, [inside])
            pieces.append(inside)
        model.add_bool_or([*(~literal for literal in self.holds), *pieces])

    def _within(self, least: int, most: int, holds: Sequence[cp_model.LiteralT]) -> None:
        """Where literals hold, the row lies between two values."""
        if least == most:
            high, low = self._digits(least)
            self.model.add(high == 0).only_enforce_if(holds)
            self.model.add(low == 0).only_enforce_if(holds)
            return
        if least > self.row.low:
            self.model.add(self._digits(least)[0] >= 0).only_enforce_if(holds)
        if most < self.row.high:
            self.model.add(self._digits(most + 1)[0] <= -1).only_enforce_if(holds)

    def _digits(self, begin: int) -> tuple[cp_model.IntVar, cp_model.IntVar]:
        """``h`` and ``l`` of ``row - begin = 2^k h + l``."""
        row, model = self.row, self.model
        bits = max(0, (row.high - row.low).bit_length() - _DIGIT)
        high = model.new_int_var((row.low - begin) >> bits, (row.high - begin) >> bits, "")
        low = model.new_int_var(0, (1 << bits) - 1, "")
        terms = [model.get_int_var_from_proto_index(index) for index in row.variables]
        weights = [*row.coefficients, -(1 << bits), -1]
        model.add(cp_model.LinearExpr.weighted_sum([*terms, high, low], weights) == begin)
        if self.hint is not None:
            model.add_hint(high, (self.hint - begin) >> bits)
            model.add_hint(low, (self.hint - begin) & ((1 << bits) - 1))
        return high, low


def _literal(model: cp_model.CpModel, index: int) -> cp_model.LiteralT:
    if index >= 0:
        return model.get_bool_var_from_proto_index(index)
    return ~model.get_bool_var_from_proto_index(-index - 1)
