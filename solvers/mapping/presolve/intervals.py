"""Intervals over the rows that are still open, and the probing that closes rows."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product as cartesian

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Bools, Floats, Indices

BAND = 1e-12  # relative; float bounds are loosened by it before they decide anything
CHOICES = 128


@dataclass(slots=True)
class OpenSpace:
    """The rows and choices that are not excluded yet.

    Parameters
    ----------
    rows : per group, indices of the open rows
    choices : the open combinations of selector values
    fits : per group, which open row goes with which choice, shape (choices, rows); none where unknown
    """

    rows: list[Indices]
    choices: list[tuple[int, ...]]
    fits: list[Bools] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.choices or any(not len(rows) for rows in self.rows)

    @property
    def size(self) -> tuple[int, ...]:
        return (*map(len, self.rows), len(self.choices))


class TableIntervals(IntervalReader):
    """Lower and upper bounds over the open rows of every group.

    Parameters
    ----------
    rows : per group, the open rows
    fixed : values of selectors that are decided
    spread : the group whose rows are read one by one instead of together, if any
    """

    def __init__(
        self,
        tables: Tables,
        rows: Sequence[Indices],
        fixed: MappingABC[Variable, int] | None = None,
        spread: int | None = None,
    ) -> None:
        super().__init__(fixed or {})
        self._least: dict[Expr, Floats] = {}
        self._most: dict[Expr, Floats] = {}
        for position, (table, kept) in enumerate(zip(tables.tables, rows, strict=True)):
            for node, values in table.values.items():
                here = values[kept]
                self._least[node] = here if position == spread else np.asarray(here.min())
                self._most[node] = here if position == spread else np.asarray(here.max())

    def known_low(self, expr: Expr) -> Floats | None:
        return self._least.get(expr)

    def known_high(self, expr: Expr) -> Floats | None:
        return self._most.get(expr)

    def whole_low(self, expr: Expr) -> int:
        """The lower end as an integer that is safe to use."""
        return _safe(float(self.low(expr)), -1)

    def whole_high(self, expr: Expr) -> int:
        """The upper end as an integer that is safe to use."""
        return _safe(float(self.high(expr)), 1)


def _safe(value: float, direction: int) -> int:
    """A float as an integer, moved outwards where it may have been rounded."""
    if not np.isfinite(value):
        raise OverflowError("an expression has no finite bound: it cannot be stated in integers")
    # Below 2^53 floats of counts are exact, above they may be off by their last bits.
    if abs(value) < EXACT_LIMIT:
        return int(np.floor(value) if direction < 0 else np.ceil(value))
    return int(value + direction * abs(value) * BAND)


def whole_space(problem: LayerProblem, tables: Tables) -> OpenSpace:
    """All rows and all choices."""
    domains = [selector.domain for selector in problem.space.selectors]
    return OpenSpace([np.arange(size) for size in tables.sizes], list(cartesian(*domains)))


def probe(
    problem: LayerProblem, tables: Tables, left: OpenSpace, cutoff: int | None, limits: Limits
) -> OpenSpace:
    """Close every row and choice that alone breaks a limit or cannot beat the cutoff.

    Stops early, with fewer closed, where a limit strikes.

    Parameters
    ----------
    cutoff : objective key in scaled units that a mapping must stay below
    """
    # Closed rows tighten the intervals of all others, so passes are repeated until nothing closes.
    while not left.empty:
        before = left.size
        left = _pass(problem, tables, left, cutoff, limits)
        if left.size == before:
            break
    return left


def _pass(
    problem: LayerProblem, tables: Tables, left: OpenSpace, cutoff: int | None, limits: Limits
) -> OpenSpace:
    selectors = problem.space.selectors
    # Few choices are looked at one by one, which is much tighter; many as an interval over all.
    singles = left.choices if len(left.choices) <= CHOICES else [()]
    alive = np.ones(len(singles), dtype=bool)
    fits = [np.zeros((len(singles), len(rows)), dtype=bool) for rows in left.rows]
    for position in range(len(left.rows)):
        for index, chosen in enumerate(singles):
            if limits.expired:
                return left
            if alive[index]:
                fixed = dict(zip(selectors, chosen, strict=True)) if chosen else {}
                # The rows of one group against the whole ranges of all others.
                intervals = TableIntervals(tables, left.rows, fixed, position)
                fits[position][index] = _open_rows(problem, intervals, cutoff, len(left.rows[position]))
                alive[index] = fits[position][index].any()
    kept = [fit[alive].any(axis=0) for fit in fits]
    rows = [rows[keep] for rows, keep in zip(left.rows, kept, strict=True)]
    fits = [fit[alive][:, keep] for fit, keep in zip(fits, kept, strict=True)]
    if singles == [()]:
        return OpenSpace(rows, left.choices if alive[0] else [])
    return OpenSpace(
        rows, [chosen for chosen, is_alive in zip(singles, alive, strict=True) if is_alive], fits
    )


def _open_rows(problem: LayerProblem, intervals: TableIntervals, cutoff: int | None, size: int) -> Bools:
    keep = np.ones(size, dtype=bool)
    for limit in problem.limits:
        keep &= intervals.low(limit.expr) <= limit.bound * (1 + BAND)
    if cutoff is not None:
        a, b = problem.objective.key_powers
        energy, cycles = (intervals.low(e) for e in (problem.statement.energy, problem.statement.cycles))
        keep &= energy**a * cycles**b < cutoff * (1 + BAND)
    return keep
