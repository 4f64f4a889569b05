"""What a second opinion lists, and how much of it at most."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.mapping.cost import CostModel
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Role

MOST_TREES = 400_000
"""Trees of one group that are listed at most."""
MOST_MAPPINGS = 4_000_000
"""Mappings of turns of one size that are listed at most."""
MOST_IN_ALL = 100_000_000
"""Mappings of turns of all sizes together."""
MOST_COLUMNS = 400_000
"""Columns of one group's model at most."""


class TooLargeError(Exception):
    """What would have to be listed is too much; the message says what."""


@dataclass(frozen=True)
class Listed:
    """The space of fused mappings on one machine, as a document states it.

    Parameters
    ----------
    engine, model : the machine with its price of a cycle, and the cost model
    factors, storage : of mappings of turns
    home : the only level that may be a home; ``None`` for any
    """

    engine: Engine
    model: CostModel
    factors: str | None = None
    storage: str | None = None
    home: str | None = None

    @property
    def divides(self) -> bool:
        """Whether all tiles divide the ones around them."""
        return self.factors == "perfect"

    @property
    def shared(self) -> range:
        """Indices of levels that all turns see as one: those outside all arrays, but the outermost one."""
        first = next((i for i, level in enumerate(self.engine.levels) if level.fanout is not None), None)
        return range(1, len(self.engine.levels) if first is None else first + 1)

    @property
    def places(self) -> tuple[tuple[int, Role | None], ...]:
        """Where room is shared: levels and their partitions, ``None`` for what other roles share."""
        levels = self.engine.levels
        return tuple((i, part) for i in self.shared for part in (None, *sorted(levels[i].partitions)))

    def place(self, level: int, role: Role) -> int:
        """The place that a role's tiles take in a level."""
        part = role if role in self.engine.levels[level].partitions else None
        return self.places.index((level, part))

    def may_start(self, role: Role, level: int) -> bool:
        """Whether a tensor may start in a shared level: kept there, and by no level outside that must."""
        levels = self.engine.levels
        skipped = any(role in outer.keeps - outer.may_bypass for outer in levels[1:level])
        return role in levels[level].keeps and not skipped
