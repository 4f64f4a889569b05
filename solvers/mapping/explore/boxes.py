"""Boxes of a design grid, least bound first; each gives its open design of largest capacities, then splits.

The design of largest capacities says most about the others of its box: what is legal on them is legal there.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

import numpy as np

from tilewright.foundation.arrays import Bools, Floats, Int64s

Box = tuple[tuple[int, int], ...]
"""Per axis, the first point and the one after the last."""


class Boxes:
    """A queue of boxes that together hold every design that is still open.

    Parameters
    ----------
    places : per design, its point on every axis, shape (designs, axes)
    capacities : per design, its rank by capacity: larger for a design that has more of everything
    """

    def __init__(self, places: Int64s, capacities: Floats) -> None:
        self._places = places
        self._capacities = capacities
        self._tick = count()
        self._queue: list[tuple[float, int, Box]] = []
        whole = tuple((0, int(places[:, axis].max()) + 1) for axis in range(places.shape[1]))
        self._push(whole, 0.0)

    def take(self, is_open: Bools, low: Floats) -> tuple[int, Box] | None:
        """An open design, with its box; ``None`` where no waiting box has one.

        Parameters
        ----------
        is_open, low : per design, whether it is worth solving, and its lower bound
        """
        while self._queue:
            key, _, box = heapq.heappop(self._queue)
            inside = self._inside(box) & is_open
            if not inside.any():
                continue
            least = float(low[inside].min())
            if self._queue and least > self._queue[0][0] and least > key:
                self._push(box, least)
                continue
            members = np.flatnonzero(inside)
            best = members[np.lexsort((low[members], -self._capacities[members]))[0]]
            return int(best), box
        return None

    def distance(self, place: int, other: int) -> int:
        """Steps between two designs, along all axes."""
        return int(np.abs(self._places[place] - self._places[other]).sum())

    def neighbours(self, design: int) -> Bools:
        """Designs one step away on one axis."""
        steps = np.abs(self._places - self._places[design])
        return np.asarray(steps.sum(axis=1) == 1)

    def halve(self, box: Box, low: Floats) -> None:
        """Put the halves of a box back, along its longest axis; a single point is done."""
        lengths = [end - start for start, end in box] or [1]
        axis = int(np.argmax(lengths))
        if lengths[axis] < 2:
            return
        start, end = box[axis]
        middle = (start + end) // 2
        for part in ((start, middle), (middle, end)):
            half = (*box[:axis], part, *box[axis + 1 :])
            inside = self._inside(half)
            if inside.any():
                self._push(half, float(low[inside].min()))

    def _inside(self, box: Box) -> Bools:
        inside = np.ones(len(self._places), dtype=bool)
        for axis, (start, end) in enumerate(box):
            inside &= (self._places[:, axis] >= start) & (self._places[:, axis] < end)
        return inside

    def _push(self, box: Box, key: float) -> None:
        heapq.heappush(self._queue, (key, next(self._tick), box))


def capacity_ranks(columns: Sequence[Sequence[float]]) -> Floats:
    """Per design, the sum of the ranks of its capacities: larger where it has more of everything."""
    total = np.zeros(len(columns[0]) if columns else 0)
    for column in columns:
        _, ranks = np.unique(np.array(column, dtype=float), return_inverse=True)
        total += ranks.reshape(-1)
    return total
