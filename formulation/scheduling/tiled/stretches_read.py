"""What stretches along an axis of a layer's tiling read of a producer along one coordinate, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import PART, Digit, Range, loop_ranges, shape_of
from tilewright.formulation.scheduling.tiled.overlap import (
    OperandAxes,
    flat_positions,
    flat_range,
    positions_of_tile,
    range_read,
)
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, eq=False)
class Touched:
    """The positions of a producer along a coordinate that stretches of a consumer touch.

    Parameters
    ----------
    operator : the consumer
    along : how its operand lies along the coordinate, on at most one axis of the consumer's tiling
    size : positions of the producer along the coordinate
    is_flat : whether that are channels behind a flattening
    """

    operator: Operator
    along: OperandAxes
    size: int
    is_flat: bool

    def __call__(self, low: int, high: int) -> Int64s:
        """All of them, ascending, for a stretch from one border to another."""
        if self.is_flat:
            return flat_positions(self.along, low, high)
        return positions_of_tile(self.operator, self.along, self.size, low, high)

    def ends(self, low: Int64s, high: Int64s) -> Int64s:
        """The first one, and the one after the last, of each stretch, shape (stretches, 2)."""
        ends, whole = self._runs(low, high)
        for at in np.flatnonzero(~whole & (low < high)).tolist():
            positions = self(int(low[at]), int(high[at]))
            ends[at] = (positions[0], positions[-1] + 1) if len(positions) else (0, 0)
        return ends

    def below(self, low: Int64s, high: Int64s, points: Int64s) -> Floats:
        """How many come before each of some points, shape (stretches, points)."""
        ends, whole = self._runs(low, high)
        ends[low == high] = 0
        below: Floats = np.clip(points - ends[:, :1], 0, ends[:, 1:] - ends[:, :1]).astype(np.float64)
        for at in np.flatnonzero(~whole & (low < high)).tolist():
            below[at] = self(int(low[at]), int(high[at])).searchsorted(points)
        return below

    def often(self, low: Int64s, high: Int64s, which: Int64s, shape: tuple[int, int]) -> Floats:
        """How many stretches of each kind touch every position, of a shape (kinds, positions).

        Parameters
        ----------
        low, high : borders of the stretches
        which : kind of each
        shape : of what is returned
        """
        ends, whole = self._runs(low, high)
        ends = np.minimum(ends, shape[1])  # what touches nothing may lie behind the last position
        begun = np.zeros((shape[0], shape[1] + 1))
        np.add.at(begun, (which[whole], ends[whole, 0]), 1.0)
        np.add.at(begun, (which[whole], ends[whole, 1]), -1.0)
        often: Floats = begun[:, :-1].cumsum(axis=1)
        for at in np.flatnonzero(~whole & (low < high)).tolist():
            often[which[at], self(int(low[at]), int(high[at]))] += 1.0
        return often

    def _runs(self, low: Int64s, high: Int64s) -> tuple[Int64s, Any]:
        """The first position and the one after the last of each stretch without gaps, shape (stretches, 2),
        and which stretches are such ones.
        """
        spans = self._spans(low, high)
        if spans is None:
            return self._runs_in_turn(low, high)
        # as `coordinates.run_touched`: a gap is where a loop steps over more than those inside it run along
        first, run = np.zeros_like(low), np.ones_like(low)
        whole = np.ones(len(low), dtype=np.bool_)
        for stride, begin, end in sorted(spans, key=lambda span: span[0]):
            whole &= (stride <= run) & (end > begin)
            first += stride * begin
            run += stride * (end - 1 - begin)
        # as `overlap.range_read`
        along = self.along
        begins, ends = first - along.before, first + run - along.before
        if along.before or along.axes[-1].size != along.inner:
            begins, ends = np.maximum(begins, 0), np.minimum(ends, along.inner)
        begins, ends = np.maximum(begins - along.first, 0), np.minimum(ends - along.first, self.size)
        return np.stack([begins, np.maximum(begins, ends)], axis=1), whole

    def _spans(self, low: Int64s, high: Int64s) -> list[tuple[int, Int64s, Int64s]] | None:
        """Stride, first iteration and the one past the last of the loops of an axis, one entry per stretch;
        ``None`` where several loops or axes lie along the coordinate.
        """
        along, shape, bounds = self.along, shape_of(self.operator), self.operator.bounds
        # outer axes of one position, such as a batch of 1, say nothing
        if self.is_flat or not along.axes or any(axis.size > 1 for axis in along.axes[:-1]):
            return None
        if isinstance(along.axes[-1], Digit):
            return None
        moved: str | None = None
        for axis in along.depends:
            if axis >= PART:
                moved = (shape.part, shape.across)[axis - PART]
                continue
            loops = [name for name in shape.loops[axis] if bounds[name] > 1]
            if shape.scattered[axis] is not None or len(loops) > 1:
                return None
            moved = loops[0] if loops else None
        none, all_of = np.zeros_like(low), np.ones_like(low)
        return [
            (term.stride, low, high) if term.dim == moved else (term.stride, none, bounds[term.dim] * all_of)
            for term in along.axes[-1].terms
        ]

    def _runs_in_turn(self, low: Int64s, high: Int64s) -> tuple[Int64s, Any]:
        """As `_runs`, one stretch after the other."""
        ends, whole = np.zeros((len(low), 2), dtype=np.int64), np.ones(len(low), dtype=np.bool_)
        for at, borders in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            run: Range | None
            if self.is_flat:
                run = flat_range(self.along, *borders)
            else:
                depends = self.along.depends
                ranges = loop_ranges(self.operator, depends[0], *borders) if depends else {}
                run = range_read(self.operator, self.along, self.size, ranges)
            whole[at] = run is not None
            ends[at] = (0, 0) if run is None else run
        return ends, whole
