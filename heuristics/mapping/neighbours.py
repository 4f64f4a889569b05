"""Neighbouring tile sizes: rows of an axis group that differ in a window of tiles only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Bools, Floats, Indices


@dataclass(frozen=True)
class _Window:
    """Rows sorted so that those which differ in some columns only stand together.

    Parameters
    ----------
    order : row at every place
    place : place of every row
    start, stop : of the block that a row stands in
    """

    order: Indices
    place: Indices
    start: Indices
    stop: Indices

    def other(self, rows: Indices, random: np.random.Generator) -> Indices:
        """For every row one of its block, all equally likely; another one wherever there is one."""
        start, length = self.start[rows], self.stop[rows] - self.start[rows]
        step = random.integers(1, np.maximum(length, 2))
        place = start + (self.place[rows] - start + step) % length
        other_rows: Indices = self.order[place]
        return other_rows


class Neighbours:
    """The neighbourhood of every row of one axis group.

    A window is one tile of a dimension, two consecutive ones, or all of them: a factor moves between two
    neighbouring loops, across one loop, or anywhere.
    """

    def __init__(self, group: AxisGroup, nest: Nest) -> None:
        self._rows = group.rows
        self._group = group
        self._nest = nest
        self._cache: dict[tuple[int, ...], _Window] = {}

    @cached_property
    def windows(self) -> list[tuple[int, ...]]:
        """Columns that may change together."""
        windows: dict[tuple[int, ...], None] = {}
        for dim in self._group.dims:
            tiles = {boundary[dim] for boundary in self._nest.boundaries}
            columns = [column for column, tile in enumerate(self._group.variables) if tile in tiles]
            for first in range(len(columns)):
                for width in (1, 2):
                    windows[tuple(columns[first : first + width])] = None
            windows[tuple(columns)] = None
        return [window for window in windows if window]

    @cached_property
    def spread(self) -> Floats:
        """Instances that every row spreads its dimensions over."""
        place = {variable: column for column, variable in enumerate(self._group.variables)}

        def tiles(expr: Expr) -> Floats:
            if isinstance(expr, Constant):
                return np.full(len(self._rows), float(expr.value))
            assert isinstance(expr, Variable)
            return self._rows[:, place[expr]].astype(np.float64)

        result = np.ones(len(self._rows))
        for block in self._nest.spatial:
            outer, inner = self._nest.boundaries[block], self._nest.boundaries[block + 1]
            for dim in self._group.dims:
                result *= np.ceil(tiles(outer[dim]) / tiles(inner[dim]))
        return result

    def vary(self, rows: Indices, random: np.random.Generator) -> Indices:
        """A random neighbour of every row."""
        result = rows.copy()
        which = random.integers(len(self.windows), size=len(rows))
        for index, columns in enumerate(self.windows):
            chosen = np.flatnonzero(which == index)
            if len(chosen):
                result[chosen] = self._window(columns).other(rows[chosen], random)
        return result

    def respread(
        self, rows: Indices, random: np.random.Generator, better: Callable[[Floats, Floats], Bools]
    ) -> Indices:
        """A random neighbour where ``better(its spread, the row's spread)`` holds, else the row itself."""
        other = self.vary(rows, random)
        return np.where(better(self.spread[other], self.spread[rows]), other, rows)

    def _window(self, columns: tuple[int, ...]) -> _Window:
        if columns not in self._cache:
            self._cache[columns] = self._sorted(columns)
        return self._cache[columns]

    def _sorted(self, columns: tuple[int, ...]) -> _Window:
        fixed = [i for i in range(self._rows.shape[1]) if i not in columns]
        count = len(self._rows)
        order = np.lexsort([*self._rows.T[list(columns)], *self._rows.T[fixed]])
        changed = np.zeros(count, dtype=bool)
        changed[:1] = True
        for column in fixed:
            values = self._rows[order, column]
            changed[1:] |= values[1:] != values[:-1]
        starts = np.flatnonzero(changed)
        block = np.cumsum(changed) - 1
        place = np.empty(count, dtype=np.intp)
        place[order] = np.arange(count)
        edges = np.append(starts, count)
        return _Window(order, place, edges[block[place]], edges[block[place] + 1])
