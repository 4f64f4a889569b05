"""How S cuts may divide their tiles among their children, cached."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tilewright.formulation.scheduling.tiled.set.trees.allocation import allocate, utilization
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.tiled.set.trees.any_order import allocations_in_any_order

Times = tuple[float, ...]
"""Normalized processing times of children."""


class Divisions:
    """Allocations on one machine.

    Parameters
    ----------
    total : tiles of the machine
    least_utilization : of an allocation
    any_order : whether every order of children is looked at
    """

    def __init__(self, total: int, least_utilization: float, any_order: bool) -> None:
        self.total, self.least, self.any_order = total, least_utilization, any_order
        self._own: dict[tuple[Times, int], tuple[int, ...] | None] = {}
        self._every: dict[tuple[Times, int], tuple[tuple[int, ...], ...]] = {}

    def own(self, times: Times, tiles: int) -> tuple[int, ...] | None:
        """Tiles of every child in this order; ``None`` where the cut is refused."""
        key = times, tiles
        if key not in self._own:
            given = allocate(times, tiles)
            fits = given is not None and self._fits(times, given)
            self._own[key] = given if fits else None
        return self._own[key]

    def table(self, times: Times, numbers: Collection[int]) -> Int64s:
        """Tiles for the children by the number of the cut's own, and all that orders of the children come to;
        -1 where any number is possible, 0 where the cut is refused, or has none of the numbers asked for.
        """
        rows = [self._all(times, tiles) if tiles in numbers else () for tiles in range(self.total + 1)]
        table = np.zeros((len(rows), max(1, *map(len, rows)), len(times)), dtype=np.int64)
        for tiles, row in enumerate(rows):
            if row:
                table[tiles, : len(row)] = row
        return table

    def _all(self, times: Times, tiles: int) -> tuple[tuple[int, ...], ...]:
        if not self.any_order:
            own = self.own(times, tiles)
            return () if own is None else (own,)
        key = times, tiles
        divisions = self._every.get(key)
        if divisions is None:
            every = allocations_in_any_order(times, tiles)
            if every is None:
                divisions = ((-1,) * len(times),)
            else:
                divisions = tuple(own for own in every if self._fits(times, own))
            self._every[key] = divisions
        return divisions

    def _fits(self, times: Times, given: tuple[int, ...]) -> bool:
        return min(given) > 0 and utilization(times, given) >= self.least
