"""Outer tiles: what is stored in the first level below DRAM, together with the order of the DRAM loops.

Once they are fixed, everything outside is exact, and what lies inside is at least compulsory: a strong
bound that CP-SAT's own propagation would find only after branching on every group.  The combinations that
can still beat the cutoff are few; they become a table constraint with their bounds as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import level_positions
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Floats, Indices, Int64s
from tilewright.solvers.mapping.presolve.intervals import BAND, OpenSpace

JOINED = 1 << 21  # combinations that are bounded for one more group
PIECE = 1 << 15  # of them at once


@dataclass(frozen=True)
class TileClasses:
    """Open rows of one group by outer tile.

    Parameters
    ----------
    of : cell of every open row
    low, high : least and largest values of the local expressions over each cell
    """

    of: Indices
    count: int
    low: dict[Expr, Floats]
    high: dict[Expr, Floats]


@dataclass(frozen=True)
class OuterTiles:
    """Combinations of outer tiles and choices that may beat the cutoff.

    Parameters
    ----------
    cells : per group
    groups : positions of the groups that were joined, in the columns of ``tuples``
    selectors : choices that were joined, in the columns after them
    tuples : shape (combinations, groups + selectors)
    energy, cycles : lower bounds of each combination, safe to use as they are
    """

    cells: tuple[TileClasses, ...]
    groups: tuple[int, ...]
    selectors: tuple[Variable, ...]
    tuples: Int64s
    energy: Int64s
    cycles: Int64s

    def __len__(self) -> int:
        return len(self.tuples)

    def least_key(self, energy_power: int, cycles_power: int) -> int:
        """A lower bound of the objective key over all combinations, of which there must be one."""
        keys = self.energy.astype(np.float64) ** energy_power * self.cycles.astype(np.float64) ** cycles_power
        return int(keys.min() * (1 - BAND))


class _ClassIntervals(IntervalReader):
    """Intervals over the combinations of some groups' cells."""

    def __init__(
        self, cells: tuple[TileClasses, ...], at: dict[int, Indices], fixed: dict[Variable, int]
    ) -> None:
        super().__init__(fixed)
        self._tile_classes = cells
        self._at = at

    def known_low(self, expr: Expr) -> Floats | None:
        return self._known([cells.low.get(expr) for cells in self._tile_classes], np.min)

    def known_high(self, expr: Expr) -> Floats | None:
        return self._known([cells.high.get(expr) for cells in self._tile_classes], np.max)

    def _known(self, bounds: Sequence[Floats | None], extreme: Callable[[Floats], Any]) -> Floats | None:
        """Bounds that some group's cells have: per combination where it is joined, else over all cells."""
        for position, values in enumerate(bounds):
            if values is not None:
                return values[self._at[position]] if position in self._at else np.asarray(extreme(values))
        return None


@dataclass(frozen=True)
class _Part:
    """Combinations under one choice: the cell of every joined group, and the bounds."""

    fixed: dict[Variable, int]
    at: dict[int, Indices] = field(default_factory=dict)
    energy: Floats = field(default_factory=lambda: np.zeros(1))
    cycles: Floats = field(default_factory=lambda: np.zeros(1))

    def __len__(self) -> int:
        return len(self.energy)


def join_outer_tiles(
    problem: LayerProblem, tables: Tables, left: OpenSpace, cutoff: int | None, limits: Limits | None = None
) -> OuterTiles:
    """Join the groups' cells one by one, dropping what breaks a limit or cannot beat the cutoff.

    Where more than ``JOINED`` combinations would have to be bounded, the remaining groups stay apart, and
    likewise where a limit strikes.

    Parameters
    ----------
    problem : gives limits, energy and cycles
    tables : the rows of every axis group
    left : rows and choices that are open
    cutoff : scaled key that has to be beaten; ``None`` while nothing is known
    limits : where one strikes, the groups that are left stay apart
    """
    cells = tuple(_tile_classes(problem, tables, left, position) for position in range(len(left.rows)))
    selectors = _selectors(problem)
    columns = [problem.space.selectors.index(selector) for selector in selectors]
    open_values = sorted({tuple(chosen[c] for c in columns) for chosen in left.choices})
    parts = [_Part(dict(zip(selectors, chosen, strict=True))) for chosen in open_values]
    joined: list[int] = []
    # Small groups first, so that much is closed before the large ones multiply.
    for position in sorted(range(len(cells)), key=lambda position: cells[position].count):
        if sum(map(len, parts)) * cells[position].count > JOINED:
            break
        grown = []
        for part in parts:
            if limits is not None and limits.expired:
                break
            grown.append(_grow(problem, cells, part, position, cutoff))
        # A limit struck within the group: the join before it is complete and stays.
        if len(grown) < len(parts):
            break
        parts = grown
        joined.append(position)
    picked = [np.tile(np.array([*part.fixed.values()], dtype=np.int64), (len(part), 1)) for part in parts]
    tuples = [
        np.column_stack([*(part.at[position] for position in joined), values])
        for part, values in zip(parts, picked, strict=True)
    ]
    return OuterTiles(
        cells,
        tuple(joined),
        selectors,
        np.concatenate([np.zeros((0, len(joined) + len(selectors)), dtype=np.int64), *tuples]),
        _rounded_down([part.energy for part in parts]),
        _rounded_down([part.cycles for part in parts]),
    )


def confined(outer: OuterTiles, problem: LayerProblem, left: OpenSpace) -> OpenSpace:
    """Without the rows and choices that no combination uses."""
    rows = list(left.rows)
    fits = list(left.fits)
    for column, position in enumerate(outer.groups):
        # A row stays open as long as some combination uses its cell.
        keep = np.isin(outer.cells[position].of, outer.tuples[:, column])
        rows[position] = left.rows[position][keep]
        if fits:
            fits[position] = fits[position][:, keep]
    columns = [problem.space.selectors.index(selector) for selector in outer.selectors]
    used = {tuple(int(v) for v in row[len(outer.groups) :]) for row in outer.tuples}
    keep_choice = [tuple(chosen[c] for c in columns) in used for chosen in left.choices]
    choices = [chosen for chosen, keep in zip(left.choices, keep_choice, strict=True) if keep]
    return OpenSpace(rows, choices, [fit[np.array(keep_choice, dtype=bool)] for fit in fits])


def _selectors(problem: LayerProblem) -> tuple[Variable, ...]:
    """The choices that go with the outer tile: residencies and the order of the outermost loops."""
    orders = {
        block.selector: block.level
        for block in problem.space.nest.blocks
        if block.is_temporal and isinstance(block.selector, Variable)
    }
    return tuple(selector for selector in problem.space.selectors if orders.get(selector, 0) == 0)


def _tile_classes(problem: LayerProblem, tables: Tables, left: OpenSpace, position: int) -> TileClasses:
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
    return TileClasses(
        of,
        len(unique),
        {node: np.minimum.reduceat(values, starts) for node, values in ordered.items()},
        {node: np.maximum.reduceat(values, starts) for node, values in ordered.items()},
    )


def _grow(
    problem: LayerProblem, cells: tuple[TileClasses, ...], part: _Part, position: int, cutoff: int | None
) -> _Part:
    """Every combination with every cell of one more group, as far as it may beat the cutoff."""
    count = cells[position].count
    # Combinations are bounded piece by piece, so that memory stays bounded.
    step = max(1, PIECE // count)
    kept = [
        _bounded(problem, cells, part, position, cutoff, slice(start, start + step))
        for start in range(0, max(1, len(part)), step)
    ]
    at = {place: np.concatenate([piece.at[place] for piece in kept]) for place in [*part.at, position]}
    energy = np.concatenate([piece.energy for piece in kept])
    return _Part(part.fixed, at, energy, np.concatenate([piece.cycles for piece in kept]))


def _bounded(
    problem: LayerProblem,
    cells: tuple[TileClasses, ...],
    part: _Part,
    position: int,
    cutoff: int | None,
    piece: slice,
) -> _Part:
    count = cells[position].count
    size = len(part.energy[piece]) * count
    at = {place: np.repeat(index[piece], count) for place, index in part.at.items()}
    at[position] = np.tile(np.arange(count), size // count)
    intervals = _ClassIntervals(cells, at, part.fixed)
    keep = np.ones(size, dtype=bool)
    for limit in problem.limits:
        keep &= intervals.low(limit.expr) <= limit.bound * (1 + BAND)
    energy = np.broadcast_to(intervals.low(problem.statement.energy), (size,))
    cycles = np.broadcast_to(intervals.low(problem.statement.cycles), (size,))
    if cutoff is not None:
        a, b = problem.objective.key_powers
        keep &= energy**a * cycles**b < cutoff * (1 + BAND)
    at = {place: index[keep] for place, index in at.items()}
    return _Part(part.fixed, at, energy[keep], cycles[keep])


def _rounded_down(parts: list[Floats]) -> Int64s:
    values = np.concatenate([np.zeros(0), *parts])
    safe = np.where(values < EXACT_LIMIT, values, values * (1 - BAND))
    # CP-SAT computes in 64 bits; a smaller bound is still a bound.
    return np.floor(np.minimum(safe, 2.0**62)).astype(np.int64)
