"""Places: ranges of consecutive tiles on which a subtree may lie, numbered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Int64s

MOST_TILES = 36
"""On more tiles than that only the number of tiles counts, not which ones they are."""


@dataclass(frozen=True, eq=False)
class Places:
    """All places on a machine.

    Parameters
    ----------
    total : tiles of the machine
    apart : 1 where places differ in their first tile, 0 where those with equal numbers of tiles are one
    begin : by number of tiles, the place that begins at the first tile of the machine; with ``first * apart``
        added the one that begins at another tile
    tiles : of every place
    """

    total: int
    apart: int
    begin: Int64s
    tiles: Int64s

    def __len__(self) -> int:
        return len(self.tiles)

    @property
    def whole(self) -> int:
        """The place of all tiles."""
        return int(self.begin[self.total])


def places_of(total: int) -> Places:
    """The places on so many tiles."""
    apart = int(total <= MOST_TILES)
    counts = np.arange(1, total + 1, dtype=np.int64)
    several = total - counts + 1 if apart else np.ones_like(counts)
    begin = np.concatenate([[0], [0], np.cumsum(several)[:-1]]).astype(np.int64)
    return Places(total, apart, begin, np.repeat(counts, several))
