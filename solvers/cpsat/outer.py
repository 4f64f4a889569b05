"""Outer tiles: what is stored in the first level below DRAM, together with the order of the DRAM loops.

Once they are fixed, everything outside is exact, and what lies inside is at least compulsory: a strong
bound that CP-SAT's own propagation would find only after branching on every group.  The combinations that
can still beat the cutoff are few; they become a table constraint with their bounds as columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as cartesian
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import Array
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.problem import LayerProblem
from tilewright.formulation.space import level_positions
from tilewright.solvers.cpsat.ends import BAND, Open
from tilewright.solvers.stages import stages_of
from tilewright.solvers.tables import Indices, Tables

JOINED = 1 << 19  # combinations that are bounded at once


@dataclass(frozen=True)
class Cells:
    """Open rows of one group by outer tile.

    Parameters
    ----------
    of : cell of every open row
    low, high : ends of the local expressions over each cell
    """

    of: Indices
    count: int
    low: dict[Expr, Array]
    high: dict[Expr, Array]


@dataclass(frozen=True)
class Outer:
    """Combinations of outer tiles and choices that may beat the cutoff.

    Parameters
    ----------
    cells : per group
    groups : positions of the groups that were joined, in the columns of ``tuples``
    selectors : choices that were joined, in the columns after them
    tuples : shape (combinations, groups + selectors)
    energy, cycles : lower bounds of each combination, safe to use as they are
    """

    cells: tuple[Cells, ...]
    groups: tuple[int, ...]
    selectors: tuple[Variable, ...]
    tuples: NDArray[np.int64]
    energy: NDArray[np.int64]
    cycles: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tuples)

    def rows_of(self, index: int, left: Open) -> list[Indices]:
        """The open rows of every group in one combination."""
        rows = list(left.rows)
        for column, position in enumerate(self.groups):
            inside = self.cells[position].of == self.tuples[index, column]
            rows[position] = left.rows[position][inside]
        return rows


class _Ends(IntervalReader):
    """Ends over the combinations of some groups' cells."""

    def __init__(self, cells: tuple[Cells, ...], at: dict[int, Indices], fixed: dict[Variable, int]) -> None:
        super().__init__(fixed)
        self._cells = cells
        self._at = at

    def known_low(self, expr: Expr) -> Array | None:
        for position, cells in enumerate(self._cells):
            values = cells.low.get(expr)
            if values is not None:
                return values[self._at[position]] if position in self._at else np.asarray(values.min())
        return None

    def known_high(self, expr: Expr) -> Array | None:
        for position, cells in enumerate(self._cells):
            values = cells.high.get(expr)
            if values is not None:
                return values[self._at[position]] if position in self._at else np.asarray(values.max())
        return None


def outer_tiles(problem: LayerProblem, tables: Tables, left: Open, cutoff: int | None) -> Outer:
    """Join the groups' cells one by one, dropping what breaks a limit or cannot beat the cutoff.

    Where more than ``JOINED`` combinations would have to be bounded, the remaining groups stay apart.
    """
    selectors = _selectors(problem)
    cells = tuple(_cells(problem, tables, left, position) for position in range(len(left.rows)))
    order = sorted(range(len(cells)), key=lambda position: cells[position].count)
    order = _joinable(cells, order)
    columns = [problem.space.selectors.index(selector) for selector in selectors]
    open_values = {tuple(chosen[c] for c in columns) for chosen in left.choices}
    domains = (selector.domain for selector in selectors)
    parts = []
    for chosen in cartesian(*domains):
        if chosen in open_values:
            fixed = dict(zip(selectors, chosen, strict=True))
            tuples, energy, cycles = _join(problem, cells, order, fixed, cutoff)
            picked = np.tile(np.array(chosen, dtype=np.int64), (len(tuples), 1))
            parts.append((np.concatenate([tuples, picked], axis=1), energy, cycles))
    width = len(order) + len(columns)
    return Outer(
        cells,
        tuple(order),
        selectors,
        np.concatenate([np.zeros((0, width), dtype=np.int64), *(part[0] for part in parts)]),
        _floors([part[1] for part in parts]),
        _floors([part[2] for part in parts]),
    )


def confined(outer: Outer, problem: LayerProblem, left: Open) -> Open:
    """Without the rows and choices that no combination uses."""
    rows = list(left.rows)
    fits = list(left.fits)
    for column, position in enumerate(outer.groups):
        keep = np.isin(outer.cells[position].of, outer.tuples[:, column])
        rows[position] = left.rows[position][keep]
        if fits:
            fits[position] = fits[position][:, keep]
    columns = [problem.space.selectors.index(selector) for selector in outer.selectors]
    used = {tuple(int(v) for v in row[len(outer.groups) :]) for row in outer.tuples}
    keep_choice = [tuple(chosen[c] for c in columns) in used for chosen in left.choices]
    choices = [chosen for chosen, keep in zip(left.choices, keep_choice, strict=True) if keep]
    return Open(rows, choices, [fit[np.array(keep_choice, dtype=bool)] for fit in fits])


def _selectors(problem: LayerProblem) -> tuple[Variable, ...]:
    """The choices that go with the outer tile: residencies and the order of the outermost loops."""
    found: list[Variable] = []
    for stage in stages_of(problem.space):
        found += stage.selectors
        if stage.spread is None:
            break
    return tuple(found)


def _joinable(cells: tuple[Cells, ...], order: list[int]) -> list[int]:
    """As many groups as can be joined even if nothing is dropped on the way."""
    kept = list(order)
    while kept and prod(cells[position].count for position in kept) > JOINED:
        kept.pop()
    return kept


def _cells(problem: LayerProblem, tables: Tables, left: Open, position: int) -> Cells:
    table, rows = tables.tables[position], left.rows[position]
    nest = problem.space.nest
    outside = range(1, level_positions(nest.blocks)[1] + 1) if len(nest.engine.levels) > 1 else range(0)
    decided = {nest.boundaries[edge][dim] for edge in outside for dim in table.group.dims}
    keys = [table.group.rows[rows, i] for i, v in enumerate(table.group.variables) if v in decided]
    if not keys:
        keys = [np.zeros(len(rows), dtype=np.int64)]
    unique, of = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    of = of.ravel()
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(len(unique)))
    ordered = {node: values[rows][order] for node, values in table.values.items()}
    return Cells(
        of,
        len(unique),
        {node: np.minimum.reduceat(values, starts) for node, values in ordered.items()},
        {node: np.maximum.reduceat(values, starts) for node, values in ordered.items()},
    )


def _join(
    problem: LayerProblem,
    cells: tuple[Cells, ...],
    order: list[int],
    fixed: dict[Variable, int],
    cutoff: int | None,
) -> tuple[NDArray[np.int64], Array, Array]:
    a, b = problem.objective.key_powers
    at: dict[int, Indices] = {}
    size = 1
    energy = cycles = np.zeros(1)
    for position in order:
        count = cells[position].count
        at = {other: np.repeat(index, count) for other, index in at.items()}
        at[position] = np.tile(np.arange(count), size)
        size *= count
        ends = _Ends(cells, at, fixed)
        keep = np.ones(size, dtype=bool)
        for limit in problem.limits:
            keep &= ends.low(limit.expr) <= limit.bound * (1 + BAND)
        energy = np.broadcast_to(ends.low(problem.statement.energy), (size,))
        cycles = np.broadcast_to(ends.low(problem.statement.cycles), (size,))
        if cutoff is not None:
            keep &= energy**a * cycles**b < cutoff * (1 + BAND)
        at = {other: index[keep] for other, index in at.items()}
        energy, cycles, size = energy[keep], cycles[keep], int(keep.sum())
    columns = [at[position].astype(np.int64) for position in order]
    joined = np.column_stack(columns) if columns else np.zeros((1, 0), dtype=np.int64)
    return joined, energy, cycles


def _floors(parts: list[Array]) -> NDArray[np.int64]:
    values = np.concatenate([np.zeros(0), *parts])
    return np.floor(np.where(values < 2.0**53, values, values * (1 - BAND))).astype(np.int64)
