"""Values that the bound programs of one search read, each array once.

Arrangements of storage share most of their tables: what a store's tile costs does not depend on where other
tensors are stored.  A bank keeps arrays that differ, so memory hardly grows with the number of trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tilewright.foundation.arrays import Floats

_CHUNK = 1 << 26
"""Capacity of an arena in values.  They are addresses; memory is allocated as values are written."""


class TableBank:
    """Arenas of values, for one thread at a time.

    Parameters
    ----------
    exact : whether it serves a single program, whose arrays all differ: they are put together as they are

    Attributes
    ----------
    placed_bytes : of all values that have been put into arenas
    """

    def __init__(self, exact: bool = False) -> None:
        self.placed_bytes = 0
        self._is_exact = exact
        self._arena: Floats = np.empty(0)
        self._used = 0
        self._places: dict[tuple[int, float, float, float], list[int]] = {}

    def placed(self, tables: Sequence[Floats]) -> tuple[Floats, list[int]]:
        """Put some arrays where a program can read them.

        Returns
        -------
        An arena that has all of them, and where each begins there
        """
        if self._is_exact:
            arena = np.concatenate(tables) if tables else np.empty(0)
            self.placed_bytes += arena.nbytes
            return arena, [0, *accumulate(map(len, tables))][: len(tables)]
        if self._used + sum(map(len, tables)) > len(self._arena):
            self._arena = np.empty(max(_CHUNK, sum(map(len, tables))))
            self._used = 0
            self._places.clear()
        return self._arena, [self._place(values) for values in tables]

    def _place(self, values: Floats) -> int:
        """Where the arena has an array, now if not before."""
        size = len(values)
        likely = self._places.setdefault((size, *_traits(values)), [])
        for start in likely:
            if np.array_equal(self._arena[start : start + size], values):
                return start
        start = self._used
        self._arena[start : start + size] = values
        self._used += size
        self.placed_bytes += values.nbytes
        likely.append(start)
        return start


def _traits(values: Floats) -> tuple[float, float, float]:
    """Values that distinguish most arrays of one length."""
    return (float(values[0]), float(values[-1]), float(values.sum())) if len(values) else (0.0, 0.0, 0.0)
