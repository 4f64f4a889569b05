"""The whole mapping problem as one CP-SAT model, and its objective within 64 bits."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.solvers.mapping.cpsat.decisions import Decisions
from tilewright.solvers.mapping.cpsat.outer_tiles import OuterTiles
from tilewright.solvers.mapping.cpsat.reader import CpReader
from tilewright.solvers.mapping.cpsat.terms import LARGEST, Term
from tilewright.solvers.mapping.presolve.expansion import Expansion
from tilewright.solvers.mapping.presolve.intervals import OpenSpace

TUPLES = 20_000  # larger tables cost more than they give
PRODUCT = LARGEST  # of the factors of the objective


@dataclass(frozen=True, slots=True)
class Stated:
    """The CP-SAT model of a problem, with its decisions and objective.

    Parameters
    ----------
    objective : the variable that is minimised
    scale : the objective key is at least ``scale`` times the objective variable; equal where it is 1
    energy, cycles : what the model makes of them, at least their values
    """

    decisions: Decisions
    objective: Any
    scale: int
    energy: Term
    cycles: Term

    def assignment(self, value: Any) -> dict[Variable, int]:
        """All decisions of a solution; ``value`` gives the value of a literal."""
        rows = []
        for literals, kept in zip(self.decisions.rows, self.decisions.left.rows, strict=True):
            place = next(i for i, literal in enumerate(literals) if value(literal))
            rows.append(int(kept[place]))
        chosen = {
            selector: next(v for v, literal in values.items() if value(literal))
            for selector, values in self.decisions.selectors.items()
        }
        return {**self.decisions.tables.assignment(rows), **chosen}

    def hint(self, assignment: MappingABC[Variable, int]) -> None:
        """Suggest an assignment where its rows and choices are open."""
        decisions = self.decisions
        for table, literals, kept in zip(
            decisions.tables.tables, decisions.rows, decisions.left.rows, strict=True
        ):
            wanted = [assignment[variable] for variable in table.group.variables]
            places = np.flatnonzero((table.group.rows[kept] == wanted).all(axis=1))
            if len(places) and len(literals) > 1:
                for place, literal in enumerate(literals):
                    decisions.model.add_hint(literal, place == places[0])
        for selector, values in decisions.selectors.items():
            if len(values) > 1 and assignment[selector] in values:
                # of two values one literal is the opposite of the other
                for value, literal in list(values.items())[: 1 if len(values) == 2 else None]:
                    decisions.model.add_hint(literal, value == assignment[selector])


def state(
    problem: LayerProblem,
    tables: Tables,
    left: OpenSpace,
    cutoff: int | None,
    beaten: Sequence[tuple[int, int]] = (),
    outer: OuterTiles | None = None,
    limits: Limits | None = None,
) -> Stated:
    """State what is open of a problem as a CP-SAT model.

    Parameters
    ----------
    cutoff : objective key in scaled units that a mapping must stay below
    beaten : pairs of energy and cycles whose key reaches the cutoff; so does all that is no better in both
    outer : outer tiles that are open, with their bounds
    limits : ``LimitReachedError`` is raised where one strikes
    """
    decisions = Decisions(problem, tables, left, limits)
    reader = CpReader(decisions)
    expansion = Expansion(lambda expr: decisions.bounds(expr)[0])
    model = decisions.model
    for limit in problem.limits:
        # Limits that nothing open can break are left out.
        if decisions.bounds(limit.expr)[1] > limit.bound:
            model.add(reader.read(expansion.rewrite(limit.expr)).expr <= limit.bound)
    energy = cycles = Term(1, 1, 1)
    a, b = problem.objective.key_powers
    # What the cutoff leaves to one factor follows from the least value of the other.
    lows = [max(0, decisions.bounds(e)[0]) for e in (problem.statement.energy, problem.statement.cycles)]
    caps = [
        _cap(cutoff, power, lows[other] ** other_power)
        for power, other, other_power in ((a, 1, b), (b, 0, a))
    ]
    if a:
        energy = _factor(reader, expansion.rewrite(problem.statement.energy), lows[0], caps[0])
    if b:
        cycles = _factor(reader, expansion.rewrite(problem.statement.cycles), lows[1], caps[1])
    objective, scale = _key(decisions, [*[energy] * a, *[cycles] * b], cutoff)
    used = [(term, place) for place, (term, power) in enumerate([(energy, a), (cycles, b)]) if power]
    # Points that were found rule out all that is no better in both figures.
    for pair in beaten:
        model.add_bool_or(
            [decisions.reified(term.expr <= pair[at] - 1, term.expr >= pair[at]) for term, at in used]
        )
    # A table constraint of many tuples costs more than it closes.
    if outer is not None and len(outer) <= TUPLES:
        _allow(decisions, outer, energy, cycles)
    model.minimize(objective.expr)
    return Stated(decisions, objective.expr, scale, energy, cycles)


def _allow(decisions: Decisions, outer: OuterTiles, energy: Term, cycles: Term) -> None:
    """Only open outer tiles, each at its cost at least."""
    model = decisions.model
    columns = [
        _index(decisions, [decisions.subset(place, outer.cells[place].of == cell) for cell in range(count)])
        for place, count in ((place, outer.cells[place].count) for place in outer.groups)
    ]
    for selector in outer.selectors:
        values = decisions.choices(selector)
        columns.append(_index(decisions, [values.get(v, decisions.truth(False)) for v in selector.domain]))
    table = outer.tuples
    for term, bounds in ((energy, outer.energy), (cycles, outer.cycles)):
        if not term.is_constant and len(outer):
            least = model.new_int_var(int(bounds.min()), int(bounds.max()), "")
            model.add(term.expr >= least)
            columns.append(least)
            table = np.column_stack([table, bounds])
    if columns:
        model.add_allowed_assignments(columns, table.tolist())


def _index(decisions: Decisions, literals: Sequence[Any]) -> Any:
    """The position of the one true literal."""
    index = decisions.model.new_int_var(0, len(literals) - 1, "")
    for position, literal in enumerate(literals):
        decisions.model.add(index == position).only_enforce_if(literal)
    return index


def _factor(reader: CpReader, node: Expr, low: int, cap: int | None) -> Term:
    """A variable of its own for a factor of the objective, within what the cutoff leaves."""
    model = reader.model
    term = reader.read(node) if cap is None else reader.within(node, cap)
    high = term.high if cap is None else min(term.high, cap)
    low = max(low, term.low)
    if high < low:
        model.add_bool_or([])
        high = low
    result = model.new_int_var(low, high, "")
    model.add(result >= term.expr)
    return Term(result, low, high)


def _key(decisions: Decisions, factors: Sequence[Term], cutoff: int | None) -> tuple[Term, int]:
    """The product of the factors, scaled down wherever it would leave 64 bits.

    Every step that scales rounds down, so the result times the scale never exceeds the key.
    """
    model, scale, result = decisions.model, 1, factors[0]
    for index, factor in enumerate(factors[1:], start=1):
        rest = prod(f.low for f in factors[index + 1 :])
        most = max(1, PRODUCT // max(1, factor.high))
        if result.high > most:
            step = -(-result.high // most)
            low, high = result.low // step, result.high // step
            smaller = model.new_int_var(low, high, "")
            model.add(step * smaller >= result.expr - (step - 1))
            result, scale = Term(smaller, low, high), scale * step
        low, high = result.low * factor.low, result.high * factor.high
        if cutoff is not None and rest:
            high = min(high, (cutoff - 1) // (scale * rest))
        if high < low:
            model.add_bool_or([])
            high = low
        value = model.new_int_var(low, high, "")
        model.add_multiplication_equality(value, [result.expr, factor.expr])
        result = Term(value, low, high)
    return result, scale


def _cap(cutoff: int | None, power: int, rest: int) -> int | None:
    """The largest factor of a key below the cutoff, whose other factors are at least ``rest``."""
    if cutoff is None or not power or not rest:
        return None
    return _root(max(cutoff - 1, 0) // rest, power)


def _root(number: int, power: int) -> int:
    """The largest integer whose power does not exceed the number."""
    if power == 1 or number < 2:
        return number
    guess = 1 << -(-number.bit_length() // power)
    while True:
        better = ((power - 1) * guess + number // guess ** (power - 1)) // power
        if better >= guess:
            return guess
        guess = better
