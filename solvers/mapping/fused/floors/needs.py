"""What the readers of a group's intermediates need of them at least, whatever the halos.

Along every axis alone: which elements are needed at all, and in how many turns of a loop some are needed that
were not needed before.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from functools import cached_property

import numpy as np

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.foundation.arrays import Int64s, distinct
from tilewright.workloads.mapping.operator import Axis


class Needs:
    """Of all layers of a group."""

    def __init__(self, group: FusedGroup) -> None:
        self.group = group
        self._windowed: dict[tuple[str, str], bool] = {}

    @cached_property
    def elements(self) -> dict[tuple[str, str], Int64s]:
        """Per layer and dimension, the iterations that must be run."""
        needed: dict[tuple[str, str], Int64s] = {}
        for layer in reversed(self.group.names):
            operator = self.group.operator(layer)
            for dim, bound in operator.bounds.items():
                needed[layer, dim] = np.arange(bound)
            for place, axis in enumerate(operator.output.axes):
                for term in axis.terms:
                    parts = [self.touched(reading, place, needed) for reading in self.group.read_by(layer)]
                    if parts and layer not in self.group.leaving:
                        needed[layer, term.dim] = (
                            parts[0] if len(parts) == 1 else distinct(np.concatenate(parts))
                        )
        return needed

    def touched(self, reading: Reading, place: int, needed: MappingABC[tuple[str, str], Int64s]) -> Int64s:
        """Elements along an axis of a result that a reader touches.

        Parameters
        ----------
        reading, place : of the result, and which of its axes
        needed : per layer and dimension, the iterations that run
        """
        axis, offset = self.axis(reading, place)
        reached = np.zeros(1, np.int64)
        for term in axis.terms:
            moved = term.stride * needed[reading.reader, term.dim]
            # both ascend, and so does what one element and many reach
            sums = np.add.outer(reached, moved).reshape(-1)
            reached = sums if len(sums) in (len(reached), len(moved)) else distinct(sums)
        size = self.group.operator(reading.producer).output.axes[place].size
        reached = reached - offset
        return reached[(reached >= 0) & (reached < size)]

    def axis(self, reading: Reading, place: int) -> tuple[Axis, int]:
        """The operand's axis that is some axis of the result, and its padding."""
        index = reading.axes.index(place)
        operand = self.group.operator(reading.reader).tensor(reading.operand)
        return operand.axes[index], reading.offsets[index]

    def is_windowed(self, layer: str, dim: str) -> bool:
        """Whether a reader, or its reader, needs other iterations of a dimension than its loop's own."""
        if (layer, dim) not in self._windowed:
            self._windowed[layer, dim] = self._finds_window(layer, dim)
        return self._windowed[layer, dim]

    def _finds_window(self, layer: str, dim: str) -> bool:
        operator = self.group.operator(layer)
        for place, axis in enumerate(operator.output.axes):
            if any(term.dim == dim for term in axis.terms):
                for reading in self.group.read_by(layer):
                    if not self.group.reads_plainly(reading, reading.axes.index(place)):
                        return True
                    theirs, _ = self.axis(reading, place)
                    own = [
                        term.dim
                        for term in theirs.terms
                        if self.group.ranks[reading.reader, term.dim] == self.group.ranks[layer, dim]
                    ]
                    if any(self.is_windowed(reading.reader, theirs_dim) for theirs_dim in own):
                        return True
        return False

    def runs(self, layer: str, dim: str, rank: int, ends: Int64s) -> int:
        """In how many tiles of a loop new iterations of a dimension are needed.

        Parameters
        ----------
        layer, dim : whose iterations
        rank : of the loop, which moves a window over them
        ends : of the loop's tiles, in its own iterations
        """
        reached = self._reached(layer, dim, rank, ends)
        if reached is None:
            return 1
        highest = np.maximum.accumulate(reached)
        return max(1, int(np.sum(np.diff(np.concatenate([[0], highest])) > 0)))

    def _reached(self, layer: str, dim: str, rank: int, ends: Int64s) -> Int64s | None:
        """How far a dimension is needed up to each tile's end; ``None`` if the loop does not move it."""
        if self.group.ranks[layer, dim] == rank and not self.is_windowed(layer, dim):
            return ends
        operator = self.group.operator(layer)
        places = [
            place
            for place, axis in enumerate(operator.output.axes)
            if any(term.dim == dim for term in axis.terms)
        ]
        results: list[Int64s] = []
        for reading in self.group.read_by(layer):
            for place in places:
                axis, offset = self.axis(reading, place)
                moving = [
                    (term, reached)
                    for term in axis.terms
                    if (reached := self._reached(reading.reader, term.dim, rank, ends)) is not None
                ]
                if len(moving) != 1:
                    continue
                (term, reached) = moving[0]
                bounds = self.group.operator(reading.reader).bounds
                rest = sum(
                    other.stride * (bounds[other.dim] - 1) for other in axis.terms if other is not term
                )
                size = operator.output.axes[place].size
                high = np.clip(term.stride * (reached - 1) + rest + 1 - offset, 0, size)
                results.append(np.where(reached > 0, high, 0))
        if not results or len(results) < len(self.group.read_by(layer)):
            return None
        furthest: Int64s = np.maximum.reduce(results)
        return furthest
