"""Which iterations of a layer and which elements of a tensor every turn covers: boxes, as arrays over turns.

Turns are numbered in the order in which they run, so that arrays can be folded back into the trips of the
loops around them.  All is integers; a box is a first index and a size per dimension, or bounds per axis.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Bools, Int64s
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Tensor

FAR = np.int64(2**62)


@dataclass(frozen=True)
class LayerBoxes:
    """The iterations of a layer in every turn.

    Parameters
    ----------
    low, size : per dimension, the first iteration and how many
    alive : whether there is anything to do in the turn
    continued : whether the turn adds to sums that an earlier one has begun
    """

    low: MappingABC[str, Int64s]
    size: MappingABC[str, Int64s]
    alive: Bools
    continued: Bools

    @property
    def key(self) -> bytes:
        """Equal for boxes of a layer that are the same in every turn, and short."""
        digest = hashlib.sha256()
        for array in (*self.low.values(), *self.size.values(), self.alive, self.continued):
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def repeated(self, trips: int) -> LayerBoxes:
        """Every turn as often as a loop inside it makes trips."""
        return LayerBoxes(
            {dim: np.repeat(values, trips) for dim, values in self.low.items()},
            {dim: np.repeat(values, trips) for dim, values in self.size.items()},
            np.repeat(self.alive, trips),
            np.repeat(self.continued, trips),
        )

    def cut(self, dim: str, index: Int64s, tile: int, sums: bool) -> LayerBoxes:
        """The tiles of a loop, relative to each turn's own box; turns past the end are not alive.

        Parameters
        ----------
        dim : the dimension that the loop moves
        index, tile : the loop's iteration in every turn, and the size of its tiles
        sums : whether the output adds up over the dimension
        """
        whole = self.size[dim]
        size = np.clip(whole - index * tile, 0, tile)
        low = self.low[dim] + np.minimum(index * tile, whole)
        continued = self.continued | (index > 0) if sums else self.continued
        return LayerBoxes(
            {**self.low, dim: low}, {**self.size, dim: size}, self.alive & (size > 0), continued
        )

    @classmethod
    def whole(cls, operator: Operator) -> LayerBoxes:
        """One turn that does everything."""
        return cls(
            {dim: np.zeros(1, np.int64) for dim in operator.bounds},
            {dim: np.full(1, bound, np.int64) for dim, bound in operator.bounds.items()},
            np.ones(1, np.bool_),
            np.zeros(1, np.bool_),
        )


@dataclass(frozen=True)
class Windows:
    """The elements of a tensor that every turn needs: per axis the first one and the end."""

    low: tuple[Int64s, ...]
    high: tuple[Int64s, ...]
    alive: Bools

    @property
    def elements(self) -> Int64s:
        """Per turn; 0 where nothing is needed."""
        volume = np.ones(len(self.alive), np.int64)
        for low, high in zip(self.low, self.high, strict=True):
            volume *= np.maximum(high - low, 0)
        return np.where(self.alive, volume, 0)


def windows_of(tensor: Tensor, boxes: LayerBoxes) -> Windows:
    """What the iterations of a layer touch of one of its tensors, padding included."""
    lows: list[Int64s] = []
    highs: list[Int64s] = []
    for axis in tensor.axes:
        low = np.zeros(len(boxes.alive), np.int64)
        extent = np.ones(len(boxes.alive), np.int64)
        for term in axis.terms:
            low += term.stride * boxes.low[term.dim]
            extent += term.stride * (boxes.size[term.dim] - 1)
        lows.append(low)
        highs.append(low + extent)
    return Windows(tuple(lows), tuple(highs), boxes.alive)


def rows_of(low: Sequence[Int64s], high: Sequence[Int64s], row: int | None) -> Int64s:
    """Runs along the last axis of each of some boxes.

    Parameters
    ----------
    low, high : bounds per axis, at least one axis
    row : elements of a run at most; ``None`` for any length
    """
    *leading, last = [above - below for below, above in zip(low, high, strict=True)]
    runs = np.ones_like(last) if row is None else -(-last // row)
    for extent in leading:
        runs = runs * extent
    return runs


@dataclass(frozen=True)
class Visits:
    """What a store holds from visit to visit: the hull of all that the turns inside a visit need.

    Parameters
    ----------
    low, high : bounds per axis and visit; visits in which nothing is needed are left out
    turns : per visit, its place among all visits of the store
    runs : per visit, in which run of the store's own sequence it is; nothing stays from one to the next
    """

    low: tuple[Int64s, ...]
    high: tuple[Int64s, ...]
    turns: Int64s
    runs: Int64s

    @property
    def elements(self) -> Int64s:
        volume = np.ones(len(self.turns), np.int64)
        for low, high in zip(self.low, self.high, strict=True):
            volume *= high - low
        return volume

    def differing(self) -> tuple[Int64s, list[Bools]]:
        """How many axes differ from the visit before, and which; a run's first visit differs everywhere."""
        begins: Bools = np.concatenate([[True], self.runs[1:] != self.runs[:-1]])[: len(self.turns)]
        axes: list[Bools] = [
            begins | np.concatenate([[True], (low[1:] != low[:-1]) | (high[1:] != high[:-1])])
            for low, high in zip(self.low, self.high, strict=True)
        ]
        number = np.zeros(len(self.turns), np.int64)
        for differs in axes:
            number += differs
        number[begins] = len(axes) + 2
        return number, axes

    def starts(self, slides: bool) -> tuple[tuple[Int64s, ...], Bools]:
        """Per axis the first element that is not there yet, and which visits find everything there.

        Parameters
        ----------
        slides : whether what a window that moved forward along one axis still needs is there
        """
        number, axes = self.differing()
        starts = [low.copy() for low in self.low]
        if slides:
            for start, low, high, differs in zip(starts, self.low, self.high, axes, strict=True):
                before_low = np.concatenate([low[:1], low[:-1]])
                before_high = np.concatenate([low[:1], high[:-1]])
                forward = (number == 1) & differs & (low >= before_low) & (high >= before_high)
                start[forward] = np.maximum(low, before_high)[forward]
        return tuple(starts), number == 0


def visits_of(windows: Windows, trips: Sequence[int], depth: int, since: int = 0) -> Visits:
    """The visits of a store that stands inside the first ``depth`` loops.

    Parameters
    ----------
    windows : what every turn needs
    trips : of the loops around the turns, outermost first
    depth : how many of them stand outside the store
    since : how many stand outside the sequence whose store it is, which ends with every run of it
    """
    outer = math.prod(trips[:depth])
    alive = windows.alive.reshape(outer, -1)
    visited = np.flatnonzero(alive.any(axis=1))
    low = tuple(
        np.where(alive, values.reshape(outer, -1), FAR).min(axis=1)[visited] for values in windows.low
    )
    high = tuple(
        np.where(alive, values.reshape(outer, -1), -FAR).max(axis=1)[visited] for values in windows.high
    )
    return Visits(low, high, visited, visited // math.prod(trips[since:depth]))


def tiles_in(visits: Visits, row: int | None, every: bool) -> tuple[int, int]:
    """Tiles that come to a store over all visits, and rows of them; whole ones, no window slides.

    Parameters
    ----------
    visits : of the store
    row : elements of a row at most; ``None`` for a run of any length
    every : count every visit, also where the tile stays
    """
    number, _ = visits.differing()
    came = np.full(len(number), True) if every else number > 0
    if not visits.low:
        return int(came.sum()), int(came.sum())
    return int(came.sum()), int(rows_of(visits.low, visits.high, row)[came].sum())


def moved_in(visits: Visits, slides: bool) -> int:
    """Elements that a store takes in over all visits: nothing for the tile that it has already."""
    starts, same = visits.starts(slides)
    volume = np.ones(len(visits.turns), np.int64)
    for start, high in zip(starts, visits.high, strict=True):
        volume *= np.maximum(high - start, 0)
    return int(np.where(same, 0, volume).sum())


@dataclass(frozen=True)
class Fresh:
    """What of an intermediate is made in every turn.

    Parameters
    ----------
    windows : what is needed and not there yet
    outlives : whether what one turn made is of use to a later one
    """

    windows: Windows
    outlives: bool


def fresh_part(windows: Windows, trips: Sequence[int], place: tuple[int, int], retained: bool) -> Fresh:
    """What a producer has to make in every turn, so that its readers have what they need.

    Within a visit of the store everything stays.  With ``retained``, from the visit before stays what a
    window that moved forward along one axis needs again.

    Parameters
    ----------
    windows : what the readers need in every turn
    trips : of the loops around the sequence, outermost first
    place : how many of them stand outside the store, and outside the sequence whose store it is
    retained : whether halos outlive a visit
    """
    depth, _ = place
    outer, inner = math.prod(trips[:depth]), tuple(trips[depth:])
    inside = math.prod(inner)
    low = [values.copy() for values in windows.low]
    alive = windows.alive.copy()
    outlives = inside > 1
    if retained:
        visits = visits_of(windows, trips, *place)
        starts, same = visits.starts(slides=True)
        for axis, start in enumerate(starts):
            outlives |= bool(np.any((start > visits.low[axis]) & (start < visits.high[axis] + 1)))
            from_visit = np.full(outer, -FAR)
            from_visit[visits.turns] = start
            low[axis] = np.maximum(low[axis], np.repeat(from_visit, inside))
        repeated = np.zeros(outer, np.bool_)
        repeated[visits.turns] = same
        outlives |= bool(same.any())
        alive &= ~np.repeat(repeated, inside)
    moving: set[int] = set()
    for axis, high in enumerate(windows.high):
        own = _varying((windows.low[axis], high), outer, inner)
        if own & moving:  # remainders of shared tiles: axes do not move independently of each other
            return Fresh(_walked(windows, trips, place, retained), outlives)
        moving |= own
        if own:
            low[axis] = np.maximum(low[axis], _highest_before(high, outer, inner, sorted(own)))
    for loop, number in enumerate(inner):
        if loop not in moving and number > 1:
            alive &= _index(outer, inner, loop) == 0
    for first, end in zip(low, windows.high, strict=True):
        alive &= end > first
    return Fresh(Windows(tuple(low), windows.high, alive), outlives)


def _walked(windows: Windows, trips: Sequence[int], place: tuple[int, int], retained: bool) -> Windows:
    """The same as :func:`fresh_part`, turn by turn, over the elements themselves.

    Raises
    ------
    InputError : where what is missing in a turn is no box
    """
    visits = visits_of(windows, trips, *place)
    number, axes = visits.differing()
    inside = math.prod(trips[place[0] :])
    low = [values.copy() for values in windows.low]
    high = [values.copy() for values in windows.high]
    alive = np.zeros_like(windows.alive)
    present = np.zeros([int(values.max(initial=0)) for values in windows.high], np.bool_)
    for visit, at in enumerate(visits.turns.tolist()):
        hull = tuple(
            slice(int(a[visit]), int(b[visit])) for a, b in zip(visits.low, visits.high, strict=True)
        )
        stays = retained and visit > 0 and number[visit] <= 1
        stays = stays and all(
            a[visit] >= a[visit - 1] and b[visit] >= b[visit - 1]
            for a, b, differs in zip(visits.low, visits.high, axes, strict=True)
            if differs[visit]
        )
        kept = present[hull].copy()
        present[:] = False
        if stays:
            present[hull] = kept
        for turn in range(at * inside, (at + 1) * inside):
            if not windows.alive[turn]:
                continue
            first = [int(values[turn]) for values in windows.low]
            end = [int(values[turn]) for values in windows.high]
            region = present[tuple(slice(a, b) for a, b in zip(first, end, strict=True))]
            missing = np.argwhere(~region)
            if not len(missing):
                continue
            least, most = missing.min(axis=0), missing.max(axis=0) + 1
            if int(np.prod(most - least)) != len(missing):
                raise InputError("mapping", None, "what a turn has to make of an intermediate is no box")
            region[:] = True
            alive[turn] = True
            for axis in range(len(low)):
                low[axis][turn], high[axis][turn] = first[axis] + least[axis], first[axis] + most[axis]
    return Windows(tuple(low), tuple(high), alive)


def _varying(values: Sequence[Int64s], outer: int, inner: tuple[int, ...]) -> set[int]:
    """Inner loops with which any of the values changes."""
    loops: set[int] = set()
    for array in values:
        folded = array.reshape(outer, *inner)
        for loop in range(len(inner)):
            if np.any(folded != folded.take([0], axis=loop + 1)):
                loops.add(loop)
    return loops


def _highest_before(high: Int64s, outer: int, inner: tuple[int, ...], loops: Sequence[int]) -> Int64s:
    """The largest end of the earlier iterations of some inner loops, those of all others the same."""
    places = [loop + 1 for loop in loops]
    last = range(len(inner) + 1 - len(places), len(inner) + 1)
    moved = np.moveaxis(high.reshape(outer, *inner), places, last)
    shape = moved.shape
    rows = moved.reshape(*shape[: len(shape) - len(places)], -1)
    highest = np.maximum.accumulate(rows, axis=-1)
    before = np.concatenate([np.full((*rows.shape[:-1], 1), -FAR), highest[..., :-1]], axis=-1)
    return np.ascontiguousarray(np.moveaxis(before.reshape(shape), last, places)).reshape(-1)


def _index(outer: int, inner: tuple[int, ...], loop: int) -> Int64s:
    """The iteration of an inner loop in every turn."""
    shape = [1] * (len(inner) + 1)
    shape[loop + 1] = inner[loop]
    row = np.arange(inner[loop]).reshape(shape)
    return np.ascontiguousarray(np.broadcast_to(row, (outer, *inner))).reshape(-1)
