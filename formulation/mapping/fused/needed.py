"""Which elements of a result its readers need in every turn, and whether all elements are made."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence

import numpy as np

from tilewright.formulation.mapping.fused.boxes import FAR, LayerBoxes, Windows, windows_of
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.workloads.mapping.operator import Tensor


def needed_of(
    group: FusedGroup, producer: str, readings: Sequence[Reading], boxes: MappingABC[str, LayerBoxes]
) -> Windows:
    """The elements of a result that its readers need in every turn: the hull over all of them.

    Parameters
    ----------
    group, producer : whose result
    readings : those that count
    boxes : what the readers compute in every turn
    """
    result = group.operator(producer).output
    parts = [_read_part(group, reading, boxes[reading.reader]) for reading in readings]
    if len(parts) == 1:
        return parts[0]
    alive: Bools = np.logical_or.reduce([part.alive for part in parts])
    low: list[Int64s] = []
    high: list[Int64s] = []
    for axis in range(len(result.axes)):
        first = np.minimum.reduce([np.where(part.alive, part.low[axis], FAR) for part in parts])
        end = np.maximum.reduce([np.where(part.alive, part.high[axis], -FAR) for part in parts])
        # Turns in which nobody needs anything go on as their loops do, so that no axis seems to move.
        low.append(np.where(alive, first, parts[0].low[axis]))
        high.append(np.where(alive, end, parts[0].high[axis]))
    return Windows(tuple(low), tuple(high), alive)


def _read_part(group: FusedGroup, reading: Reading, boxes: LayerBoxes) -> Windows:
    """What one reader needs of a result, in the result's coordinates and without padding."""
    result = group.operator(reading.producer).output
    operand = group.operator(reading.reader).tensor(reading.operand)
    touched = windows_of(operand, boxes)
    low: list[Int64s] = [np.zeros(0, np.int64)] * len(result.axes)
    high = list(low)
    alive = touched.alive.copy()
    for axis, (place, offset) in enumerate(zip(reading.axes, reading.offsets, strict=True)):
        size = result.axes[place].size
        low[place] = np.clip(touched.low[axis] - offset, 0, size)
        high[place] = np.clip(touched.high[axis] - offset, 0, size)
        alive &= high[place] > low[place]
    return Windows(tuple(low), tuple(high), alive)


def is_covered(result: Tensor, made: Windows) -> bool:
    """Whether all elements of a result are made; along every axis alone, since parts are products."""
    for axis, low, high in zip(result.axes, made.low, made.high, strict=True):
        seen = np.zeros(axis.size + 1, np.int64)
        np.add.at(seen, low[made.alive], 1)
        np.add.at(seen, high[made.alive], -1)
        if np.any(np.cumsum(seen)[: axis.size] <= 0):
            return False
    return bool(made.alive.any())
