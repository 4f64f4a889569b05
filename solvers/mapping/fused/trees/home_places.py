"""Where among the loops of its sequence a home may stand, and what it retains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import SharedLoop


@dataclass(frozen=True)
class HomePlaces:
    """Places among loops for the homes of the results of a group's layers."""

    group: FusedGroup
    _plain: dict[str, frozenset[int] | None] = field(default_factory=dict)

    def places(self, layer: str, loops: Sequence[SharedLoop | None]) -> list[int]:
        """Places of a layer's result: how many loops of its sequence stand outside.

        Inside all loops, unless halos matter.  Then also behind every loop that slides a window: what it
        needs again is retained there, although loops further inside move on.  Anywhere else the next place
        inwards makes the same in every turn and takes no more room.

        Parameters
        ----------
        layer : whose result
        loops : the loop around the sequence, and its own
        """
        depth = len(loops) - 1
        return [depth, *(place for place in range(depth) if self.slides(layer, loops[place]))]

    def slides(self, layer: str, loop: SharedLoop | None) -> bool:
        """Whether a loop around a layer's result may slide a window over it."""
        if layer not in self._plain:
            self._plain[layer] = self._plain_ranks(layer)
        plain = self._plain[layer]
        return plain is not None and loop is not None and self.group.ranks[loop.layer, loop.dim] not in plain

    def _plain_ranks(self, layer: str) -> frozenset[int] | None:
        """Loops of a layer's result that all its readers read element by element; ``None`` if all are."""
        readings = self.group.read_by(layer)
        if all(self.group.is_plain(reading) for reading in readings):
            return None
        return frozenset(
            self.group.ranks[layer, term.dim]
            for place, axis in enumerate(self.group.operator(layer).output.axes)
            for term in axis.terms
            if all(self.group.reads_plainly(reading, reading.axes.index(place)) for reading in readings)
        )
