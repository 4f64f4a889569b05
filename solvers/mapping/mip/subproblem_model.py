"""One part of the map space as a relaxation, and what its bounds mean for the objective key.

A subproblem fixes some choices and a range of cycles.  The model's objective is energy or cycles over a
scale. Where both count, it is the logarithm of their product: logarithms are concave, so over the
subproblem's ranges the chord lies below them, and the narrower the range the closer it is.

Solvers compute in floats within tolerances.  ``MARGIN`` is taken off every bound before it becomes a bound
of the key; it is ten times the largest tolerance, with columns between 0 and 1 and right-hand sides of the
order of 1.  The key is an integer (energy in its scaled unit), so what is left may be rounded up.  A
subproblem is closed only where its bound reaches the incumbent after the margin is taken off; decisions
within the margin of the incumbent are therefore visited and excluded one after the other, never assumed
away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Bools, Indices
from tilewright.solvers.mapping.mip.boxes import grow
from tilewright.solvers.mapping.mip.decision import Decision, distinct, evaluated, twin
from tilewright.solvers.mapping.mip.forms import Form
from tilewright.solvers.mapping.mip.linear import Linear
from tilewright.solvers.mapping.mip.reader import FormReader
from tilewright.solvers.mapping.mip.relaxation import Relaxation
from tilewright.solvers.mapping.mip.subproblems import Subproblem

MARGIN = 1e-6


class SubproblemModel:
    """The relaxation of a subproblem.

    Parameters
    ----------
    key : scaled key of the incumbent, if any
    check : called often while the model is built; may raise
    """

    def __init__(
        self,
        problem: LayerProblem,
        tables: Tables,
        subproblem: Subproblem,
        key: int | None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.problem = problem
        self.tables = tables
        self.subproblem = subproblem
        self.rows = [distinct(tables, axis, rows) for axis, rows in enumerate(subproblem.left.rows)]
        self.options = {
            selector: sorted({chosen[i] for chosen in subproblem.left.choices})
            for i, selector in enumerate(problem.space.selectors)
        }
        reader = FormReader(tables, self.rows, self.options, check)
        self._intervals = reader.intervals
        tiles = [t.group.rows[rows] for t, rows in zip(tables.tables, self.rows, strict=True)]
        columns = [*tiles, *(None for _ in self.options)]
        a, b = self.powers = problem.objective.key_powers
        energy = reader.bounded(problem.statement.energy) if a else Form()
        cycles = reader.bounded(problem.statement.cycles) if b else Form()
        limits = [(reader.bounded(limit.expr), float(limit.bound)) for limit in problem.limits]
        self.relaxation = Relaxation(reader.monomials, columns, check)
        # logarithms know no zero: where energy may be 0, they say nothing about the key
        figures = (problem.statement.energy, problem.statement.cycles)
        self._zero = bool(a and b) and min(float(self._intervals.low(expr)) for expr in figures) < 1
        if self._zero:
            key = None
        self._ranges = self._bounds(key)
        for form, (_, high) in zip((energy, cycles), self._ranges, strict=True):
            self.relaxation.cap(form, high)
        for form, limit in limits:
            self.relaxation.cap(form, limit)
        for form, limit in limits:
            self.relaxation.at_most(form, limit)
        self._state_objective(energy, cycles, key)
        self._boxes: list[list[Bools]] = []
        for box, choices in subproblem.boxes:
            self._state_box(box, choices)

    @property
    def empty(self) -> bool:
        """Whether the ranges of energy and cycles leave nothing."""
        return any(low > high * (1 + MARGIN) for low, high in self._ranges)

    def _bounds(self, key: int | None) -> list[tuple[float, float]]:
        """Ranges of energy and cycles, within what the incumbent leaves."""
        statement, (a, b) = self.problem.statement, self.powers
        result = []
        least = 1.0 if a and b else 0.0
        for expr, power in ((statement.energy, a), (statement.cycles, b)):
            low = max(least, float(self._intervals.low(expr))) if power else 1.0
            high = max(low, float(self._intervals.high(expr))) if power else 1.0
            if not math.isfinite(high):
                raise OverflowError(
                    "the objective has no finite bound: it cannot be stated as a linear model"
                )
            result.append((low, high))
        if b and self.subproblem.cycles is not None:
            low, high = result[1]
            result[1] = (
                max(low, float(self.subproblem.cycles[0])),
                min(high, float(self.subproblem.cycles[1])),
            )
        if key is not None:
            e, d = (max(low, 1.0) for low, _ in result)
            # What beats the incumbent has no more energy than its key leaves at the least cycles, and
            # likewise.
            caps = [(key / d**b) ** (1 / a) if a else 1.0, (key / e**a) ** (1 / b) if b else 1.0]
            result = [
                (low, min(high, cap * (1 + MARGIN))) for (low, high), cap in zip(result, caps, strict=True)
            ]
        return result

    def _state_objective(self, energy: Form, cycles: Form, key: int | None) -> None:
        relaxation, (a, b) = self.relaxation, self.powers
        self._scale, self._log = 1.0, False
        objective = Linear()
        both = bool(a and b)
        self._columns: list[int] = []
        for form, power, (low, high) in zip((energy, cycles), self.powers, self._ranges, strict=True):
            if not power:
                continue
            # Columns lie between 0 and 1: solvers compare with absolute tolerances.
            scale = max(high, 1.0)
            tolerance = 1 + 3 * MARGIN
            column = relaxation.above(
                relaxation.linear(form, scale, high), low / scale * (1 - 1e-9), tolerance
            )
            self._columns.append(column)
            if both:
                wide = high > low * (1 + 1e-9)
                # The chord of the logarithm over the range: it lies below the curve, so that the objective is
                # a lower bound.
                slope = math.log(high / low) / (high / scale - low / scale) if wide else 1.0
                objective.add(column, power * slope)
                objective.constant += power * (math.log(low) - slope * low / scale)
            else:
                objective.add(column, 1.0)
                self._scale = scale
        self._log = both
        if both and key is not None:
            shifted = Linear(objective.constant - math.log(key), dict(objective.terms))
            relaxation.row(shifted, None, 3 * MARGIN)
        relaxation.objective = objective

    # -- what a solver's numbers mean -------------------------------------------------------------------

    def key_bound(self, bound: float) -> int:
        """A bound of the scaled key from a bound of the model's objective."""
        if self._zero:
            return 0
        a, b = self.powers
        bound += self.relaxation.objective.constant
        if self._log:
            # Lowered by the solver's tolerances; beyond 700 the exponential is no float.
            return math.ceil(math.exp(bound - (a + b) * MARGIN) * (1 - 1e-12)) if bound < 700 else 0
        least = math.ceil((bound - MARGIN) * self._scale)
        return int(max(0, least) ** (a or b))

    def decision(self, values: Sequence[float]) -> Decision:
        """The decision that a solution of the model stands for."""
        point = self.relaxation.point(values)
        groups = len(self.rows)
        rows = tuple(int(self.rows[axis][place]) for axis, place in enumerate(point[:groups]))
        choices = tuple(
            values[place] for values, place in zip(self.options.values(), point[groups:], strict=True)
        )
        return evaluated(self.problem, self.tables, rows, choices)

    def point(self, decision: Decision) -> tuple[int, ...] | None:
        """The places of a decision in the model; ``None`` where it is not open."""
        places: list[int] = []
        for axis, (rows, row) in enumerate(zip(self.rows, decision.rows, strict=True)):
            place = twin(self.tables, axis, rows, row)
            if place is None:
                return None
            places.append(place)
        for values, value in zip(self.options.values(), decision.choices, strict=True):
            if value not in values:
                return None
            places.append(values.index(value))
        return tuple(places)

    def chord_loss(self, values: Sequence[float]) -> float:
        """How much of the logarithm of the key the chords lose at a solution."""
        ranges = zip(self._columns, self._ranges, strict=True)
        return self._loss([values[column] * max(high, 1.0) for column, (_, high) in ranges])

    def loss(self, decision: Decision) -> float:
        """How much of the logarithm of the key the chords lose at a decision."""
        return self._loss([float(decision.energy), float(decision.cycles)])

    def _loss(self, figures: Sequence[float]) -> float:
        result = 0.0
        for figure, power, (low, high) in zip(figures, self.powers, self._ranges, strict=True):
            if power and high > low * (1 + 1e-9):
                inside = min(max(figure, low), high)
                chord = math.log(low) + (inside - low) / (high - low) * math.log(high / low)
                result += power * (math.log(inside) - chord)
        return result

    @property
    def cycle_range(self) -> tuple[int, int]:
        """Cycles that the subproblem and the incumbent leave."""
        low, high = self._ranges[1]
        return math.ceil(low * (1 - 1e-12)), math.floor(high * (1 + 1e-12))

    def gap(self, key: int, values: Sequence[float]) -> float:
        """By how much a solution undercuts a key, in logarithms."""
        return math.log(key) - self.relaxation.objective_at(values)

    def separate(self, values: Sequence[float]) -> int:
        """Add the lines that a solution violates; how many."""
        return self.relaxation.separate(values)

    def touch(self, decision: Decision) -> None:
        """Make every product exact at a decision."""
        point = self.point(decision)
        if point is not None:
            self.relaxation.touch(point)

    def start(self, decision: Decision) -> tuple[int, ...] | None:
        """The places of a decision to begin with; ``None`` where it is not open."""
        point = self.point(decision)
        return None if point is None or self._excluded(point) else point

    # -- exclusion -------------------------------------------------------------------------------------

    def exclude(self, decision: Decision, key: int | None) -> None:
        """Exclude a decision of this model and what is no better around it."""
        point = self.point(decision)
        assert point is not None
        fixed = dict(zip(self.problem.space.selectors, decision.choices, strict=True))
        # Boxes grow first along another axis each time, so that they do not all lie alike.
        first = len(self.subproblem.boxes) % max(len(self.rows), 1)
        places = point[: len(self.rows)]
        members = grow(self.problem, self.tables, self.rows, fixed, places, key, first)
        box = [rows[inside] for rows, inside in zip(self.rows, members, strict=True)]
        self.subproblem.boxes.append((box, fixed))
        self._state_box(box, fixed)

    def _state_box(self, box: Sequence[Indices], choices: MappingABC[Variable, int]) -> None:
        inside = [np.isin(rows, members) for rows, members in zip(self.rows, box, strict=True)]
        inside += [np.isin(values, [choices[selector]]) for selector, values in self.options.items()]
        if all(part.any() for part in inside):
            self._boxes.append(inside)
            self.relaxation.exclude(inside)

    def _excluded(self, point: Sequence[int]) -> bool:
        return any(all(part[place] for part, place in zip(box, point, strict=True)) for box in self._boxes)
