"""Values that the bound programs of one search read, each array once.

Arrangements of storage share most of their tables: what a store's tile costs does not depend on where other
tensors are stored.  A bank keeps arrays that differ, so memory hardly grows with the number of trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary

import numpy as np

from tilewright.foundation.arrays import Floats, Int32s

Entry = tuple[object, Hashable, int, Callable[[Floats], object]]
"""Whose values they are, what of it, how many, and what writes them into memory."""
_CHUNK = 1 << 26
"""Capacity of an arena in values.  They are addresses; memory is allocated as values are written."""
_SMALL = 1 << 18
"""Values of a single layout, up to which its arena has no more room than these take."""


class TableBank:
    """Arenas of values, for one thread at a time.

    Parameters
    ----------
    exact : whether it serves the programs of a single layout, whose arrays all differ: none is compared
    """

    def __init__(self, exact: bool = False) -> None:
        self._exact = exact
        self._arena: Floats = np.empty(0)
        self._used = self._full = 0
        self._places: dict[tuple[int, float, float, float], list[int]] = {}
        self._joined: dict[tuple[int, ...], tuple[list[Int32s], Int32s]] = {}  # by identity
        self._known: WeakKeyDictionary[object, dict[Hashable, int]] = WeakKeyDictionary()

    @property
    def bytes(self) -> int:
        """Memory of what was put there, also where an arena that was full is still read."""
        return 8 * (self._full + self._used)

    @property
    def exact(self) -> bool:
        """Whether it serves a single layout."""
        return self._exact

    def clear(self) -> None:
        """Forget everything; programs keep what they read."""
        self._arena = np.empty(0)
        self._used = self._full = 0
        self._forget()

    def _forget(self) -> None:
        self._places.clear()
        self._known.clear()
        self._joined.clear()

    def joined(self, arrays: Sequence[Int32s | None]) -> tuple[list[int], Int32s]:
        """Where each array begins (-1 for none) in one that has all of them, and this one."""
        there = [array for array in arrays if array is not None]
        starts, used = list[int](), 0
        for array in arrays:
            starts.append(-1 if array is None else used)
            used += 0 if array is None else len(array)
        if self._exact:
            return starts, _laid(there)
        key = tuple(map(id, there))
        if key not in self._joined:  # what is joined is kept, and so its identity
            self._joined[key] = there, _laid(there)
        return starts, self._joined[key][1]

    def lacking(self, tables: Iterable[Entry]) -> int:
        """How many values some arrays have that the arena has not."""
        return sum(size for owner, what, size, _ in tables if what not in self._known.get(owner, ()))

    def placed(self, tables: Sequence[Entry], check: Callable[[], None]) -> tuple[Floats, list[int]]:
        """Put some arrays where a program can read them, each as soon as it is computed.

        Parameters
        ----------
        tables : those that the arena has already are not computed again
        check : called before each that is computed

        Returns
        -------
        An arena that has all of them, and where each begins there
        """
        if self._used + self.lacking(tables) > len(self._arena):
            size = sum(size for _, _, size, _ in tables)
            # Dividing the energy adds little to what the program of the whole reads.
            self._arena = _reserved(size, size * (1 + (size > _SMALL)) if self._exact else max(_CHUNK, size))
            self._full += self._used
            self._used = 0
            self._forget()
        return self._arena, [self._start(*entry, check) for entry in tables]

    def _start(
        self,
        owner: object,
        what: Hashable,
        size: int,
        write: Callable[[Floats], object],
        check: Callable[[], None],
    ) -> int:
        """Where the arena has an array, which is computed where it is not known."""
        own = self._known.setdefault(owner, {})
        start = own.get(what)
        if start is None:
            check()
            values = self._arena[self._used : self._used + size]
            write(values)
            start = own[what] = self._kept(values)
        return start

    def _kept(self, values: Floats) -> int:
        """Where the arena has the array that was written behind all others: there, if not before."""
        size = len(values)
        if self._exact:
            self._used += size
            return self._used - size
        likely = self._places.setdefault((size, *_traits(values)), [])
        for start in likely:
            if np.array_equal(self._arena[start : start + size], values):
                return start
        self._used += size
        likely.append(self._used - size)
        return self._used - size


def _reserved(least: int, wanted: int) -> Floats:
    """Room for as many values as are wanted, or for the least where addresses are limited."""
    with suppress(MemoryError):
        return np.empty(wanted)
    return np.empty(least)


def _laid(arrays: Sequence[Int32s]) -> Int32s:
    """Some arrays one after the other."""
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)


def _traits(values: Floats) -> tuple[float, float, float]:
    """Values that distinguish most arrays of one length."""
    return (float(values[0]), float(values[-1]), float(values.sum())) if len(values) else (0.0, 0.0, 0.0)
