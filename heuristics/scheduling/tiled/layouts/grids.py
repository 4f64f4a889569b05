"""Grids: groups of channels, rows and columns of a layer along the two axes of a machine.

An engine at (x, y) makes one group of each.  Engines that share weights then lie in few rows and columns, and
so do those that share inputs, so that a multicast to m of them passes hardly more than m - 1 links.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

SPARE = 4 / 3
"""Groups of channels may be more than there are channels to go round by this factor; the rest stay empty."""

FULL = 2 / 3
"""Part of the engines that groups along the zig-zag occupy at least: fewer of them fit a rectangle."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How the groups of a layer lie on a machine.

    Parameters
    ----------
    across : groups of channels, rows and columns along x
    down : groups of channels and rows along y
    inside : whether neighbours along an axis differ in channels, and not in rows or columns
    winding : whether x runs along the zig-zag through all engines, and there is no y
    """

    across: tuple[int, int, int]
    down: tuple[int, int]
    inside: bool
    winding: bool = False

    @property
    def groups(self) -> tuple[int, int, int]:
        """Groups of channels, of rows and of columns."""
        return self.across[0] * self.down[0], self.across[1] * self.down[1], self.across[2]

    def engines(self, width: int) -> Int64s:
        """The engine of every group, shape `groups`, on a machine so many engines wide.

        Rows of groups that continue in the next row of engines run backwards there.
        """
        channels, rows, columns = np.ix_(*(np.arange(count) for count in self.groups))
        across, down = self.across, self.down
        k, ky = channels % across[0], channels // across[0]
        h, hy = rows % across[1], rows // across[1]
        h = np.where(hy % 2 == 1, across[1] - 1 - h, h)
        pixel = h * across[2] + np.where(h % 2 == 1, across[2] - 1 - columns, columns)
        pixel = pixel if self.winding else h * across[2] + columns
        if self.inside:
            x, y = pixel * across[0] + k, hy * down[0] + ky
        else:
            x, y = k * (across[1] * across[2]) + pixel, ky * down[1] + hy
        if self.winding:
            y, x = x // width, x % width
            x = np.where(y % 2 == 1, width - 1 - x, x)
        return np.asarray(y * width + x, dtype=np.int64)


def grids(machine: TiledMachine, blocks: int, rows: int, columns: int) -> tuple[Grid, ...]:
    """Grids of a layer on a machine: all that are rectangles, and some along the zig-zag.

    Parameters
    ----------
    blocks : smallest groups of channels
    rows, columns : of the layer's results
    """
    return _grids(machine.width, machine.height, blocks, rows, columns)


@lru_cache(maxsize=256)
def _grids(width: int, height: int, blocks: int, rows: int, columns: int) -> tuple[Grid, ...]:
    spare = max(1, int(SPARE * blocks))
    made = []
    for k in (n for n in _counts(width) if n <= spare):
        for h in (n for n in _counts(width // k) if n <= rows):
            for w in (n for n in _counts(width // (k * h)) if n <= columns):
                for ky in (n for n in _counts(height) if k * n <= spare):
                    for hy in (n for n in _counts(height // ky) if h * n <= rows):
                        made.append(Grid((k, h, w), (ky, hy), inside=False))
                        if (k > 1 and h * w > 1) or (ky > 1 and hy > 1):
                            made.append(Grid((k, h, w), (ky, hy), inside=True))
    engines = width * height
    for k in _even(blocks, engines):
        for h in _even(rows, engines // k):
            for w in _even(columns, engines // (k * h)):
                if k * h * w >= FULL * engines:
                    made.append(Grid((k, h, w), (1, 1), inside=False, winding=True))
                    if k > 1 and h * w > 1:
                        made.append(Grid((k, h, w), (1, 1), inside=True, winding=True))
    return tuple(made)


def _counts(most: int) -> list[int]:
    """Groups of one kind along one axis of a machine: all up to 8, then even ones."""
    return [n for n in range(1, most + 1) if n <= 8 or n % 2 == 0]


def _even(size: int, most: int) -> list[int]:
    """The fewest groups for every size of the largest."""
    return sorted({-(-size // n) for n in range(1, size + 1)} & set(range(1, most + 1)))


def shared(size: int, groups: int) -> tuple[int, ...]:
    """Borders of even groups of so many things; some are empty where there are more groups."""
    return tuple(size * i // groups for i in range(groups + 1))
