"""Whole numbers that every turn has, as expressions over the turns' loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.formulation.mapping.fused.boxes import Visits, Windows, visits_of
from tilewright.foundation.arrays import Int64s
from tilewright.foundation.errors import InputError

MOST_VALUES = 2**14
"""In one table of a text that people read."""


class TurnValues:
    """Writes values per turn: a number, a formula ``min(max(a + b * turn, low), high)``, or a table.

    Attributes
    ----------
    tables : lines of the tables that expressions use
    """

    def __init__(self) -> None:
        self.tables: list[str] = []
        self._names: dict[str, str] = {}
        self._taken = {"np", "kind"}

    def unused(self, name: str) -> str:
        """A name that nothing else has; it is taken from now on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def text(self, values: Int64s, trips: Sequence[int], loops: Sequence[str]) -> str:
        """An expression for values of all turns.

        Parameters
        ----------
        values : in the order of the turns
        trips, loops : of the loops around them, outermost first, and the names of their turns

        Raises
        ------
        InputError : where neither a formula nor a table of at most ``MOST_VALUES`` numbers gives the values
        """
        folded = values.reshape(tuple(trips))
        moving = [axis for axis in range(len(trips)) if np.any(folded != folded.take([0], axis=axis))]
        still = tuple(0 if axis not in moving else slice(None) for axis in range(len(trips)))
        table: Int64s = folded[still]
        names = [loops[axis] for axis in moving]
        if not names:
            return str(int(table))
        formula = _formula(table, names)
        if formula is not None:
            return formula
        if table.size > MOST_VALUES:
            raise InputError("--to", "python", f"what {table.size:,} turns compute follows no formula")
        content = repr(_nested(table))
        if content not in self._names:
            self._names[content] = self.unused(f"TABLE_{len(self._names)}")
            self.tables.append(f"{self._names[content]} = {content}")
        return self._names[content] + "".join(f"[{name}]" for name in names)

    def spans(self, windows: Windows, trips: Sequence[int], loops: Sequence[str]) -> list[tuple[str, str]]:
        """First and end per axis of what all turns inside a store need.

        Parameters
        ----------
        windows, trips : what every turn needs, and the trips of all loops around it
        loops : names of the turns of the loops outside the store
        """
        visits = visits_of(windows, trips, len(loops))
        return [
            (self._of_visits(low, visits, trips, loops), self._of_visits(high, visits, trips, loops))
            for low, high in zip(visits.low, visits.high, strict=True)
        ]

    def visited(self, windows: Windows, trips: Sequence[int], loops: Sequence[str]) -> str:
        """Whether anything is needed in a visit of a store."""
        visits = visits_of(windows, trips, len(loops))
        return self._of_visits(np.ones(len(visits.turns), np.int64), visits, trips, loops)

    def stays(self, windows: Windows, trips: Sequence[int], loops: Sequence[str], since: int) -> str:
        """Whether a store's tile has moved on along one axis alone, forward, or not at all.

        Parameters
        ----------
        windows, trips, loops : as for :meth:`spans`
        since : loops outside the sequence whose store it is
        """
        visits = visits_of(windows, trips, len(loops), since)
        number, axes = visits.differing()
        kept = number <= 1
        for low, high, differs in zip(visits.low, visits.high, axes, strict=True):
            kept &= ~differs | ((low >= np.roll(low, 1)) & (high >= np.roll(high, 1)))
        kept[:1] = False
        return self._of_visits(kept.astype(np.int64), visits, trips, loops)

    def _of_visits(self, values: Int64s, visits: Visits, trips: Sequence[int], loops: Sequence[str]) -> str:
        """Values of those visits in which something is needed, 0 in the others."""
        outer = trips[: len(loops)]
        every = np.zeros(math.prod(outer), np.int64)
        every[visits.turns] = values
        return self.text(every, outer, loops)


def _nested(table: Int64s) -> object:
    return tuple(_nested(row) for row in table) if table.ndim else int(table)


def _formula(table: Int64s, names: Sequence[str]) -> str | None:
    """A sum of steps between a least and a largest value, if that gives the table."""
    least, most = int(table.min()), int(table.max())
    grid = np.indices(table.shape)
    steps = []
    for axis in range(table.ndim):
        differences = np.diff(table, axis=axis)
        sizes, numbers = np.unique(differences[differences != 0], return_counts=True)
        steps.append(int(sizes[np.argmax(numbers)]))
    slopes = np.tensordot(np.array(steps), grid, axes=1)
    starts, numbers = np.unique(table - slopes, return_counts=True)
    start = int(starts[np.argmax(numbers)])
    plain = start + slopes
    if not np.array_equal(np.clip(plain, least, most), table):
        return None
    terms = [
        (step, name if abs(step) == 1 else f"{abs(step)} * {name}")
        for step, name in zip(steps, names, strict=True)
    ]
    terms = sorted([*terms, *([(start, str(abs(start)))] if start else [])], key=lambda term: term[0] < 0)
    text = "".join(f" {'-' if factor < 0 else '+'} {term}" for factor, term in terms)
    text = text.removeprefix(" + ") if text.startswith(" + ") else f"-{text[3:]}"
    if int(plain.min()) < least:
        text = f"max({text}, {least})"
    if int(plain.max()) > most:
        text = f"min({text}, {most})"
    return text if text.endswith(")") or " " not in text else f"({text})"
