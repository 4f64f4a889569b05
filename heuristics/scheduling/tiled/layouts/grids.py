"""Grids: groups of channels, rows, columns and parts of the sum of a layer along the two axes of a machine.

An engine at (x, y) makes one group of each.  Engines that share weights then lie in few rows and columns, and
so do those that share inputs, so that a multicast to m of them passes hardly more than m - 1 links.  Engines
that make parts of one sum pass it on in a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.foundation.arrays import Int64s

SPARE = 4 / 3
"""Groups of channels may be more than there are channels to go round by this factor; the rest stay empty."""

FULL = 2 / 3
"""Part of the engines that groups along the zig-zag occupy at least: fewer of them fit a rectangle."""


CHAIN = 8
"""Engines that share a sum at most: the last of them begins when all others have made their first part."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How the groups of a layer lie on a machine.

    Parameters
    ----------
    across : groups of channels, rows and columns along x
    down : groups of channels and rows along y
    inside : whether neighbours along an axis differ in channels, and not in rows or columns
    winding : whether x runs along the zig-zag through all engines, and there is no y
    parts : groups of the sum over inputs along x and y
    near : whether engines that share a sum are neighbours, and not those that share its inputs
    """

    across: tuple[int, int, int]
    down: tuple[int, int]
    inside: bool
    winding: bool = False
    parts: tuple[int, int] = (1, 1)
    near: bool = True

    @property
    def groups(self) -> tuple[int, int, int, int]:
        """Groups of channels, of rows, of columns and of the sum over inputs."""
        across, down, parts = self.across, self.down, self.parts
        return across[0] * down[0], across[1] * down[1], across[2], parts[0] * parts[1]

    def engines(self, width: int) -> Int64s:
        """The engine of every group, shape `groups`, on a machine so many engines wide.

        Rows of groups that continue in the next row of engines run backwards there.
        """
        channels, rows, columns, parts = np.ix_(*(np.arange(count) for count in self.groups))
        across, down = self.across, self.down
        k, ky = channels % across[0], channels // across[0]
        h, hy = rows % across[1], rows // across[1]
        p, py = parts % self.parts[0], parts // self.parts[0]
        p = np.where(py % 2 == 1, self.parts[0] - 1 - p, p)
        h = np.where(hy % 2 == 1, across[1] - 1 - h, h)
        pixel = h * across[2] + np.where(h % 2 == 1, across[2] - 1 - columns, columns)
        pixel = pixel if self.winding else h * across[2] + columns
        pixels = across[1] * across[2]
        if self.inside:
            x, y = pixel * across[0] + k, hy * down[0] + ky
        else:
            x, y = k * pixels + pixel, ky * down[1] + hy
        if self.near:
            x, y = x * self.parts[0] + p, y * self.parts[1] + py
        else:
            x, y = p * (pixels * across[0]) + x, py * (down[0] * down[1]) + y
        if self.winding:
            y, x = x // width, x % width
            x = np.where(y % 2 == 1, width - 1 - x, x)
        return np.asarray(y * width + x, dtype=np.int64)


def sides(made: Sequence[Grid]) -> Int64s:
    """What grids are made of as numbers, shape (grids, 10), for machine code."""
    rows = [(*grid.across, *grid.down, *grid.parts, grid.inside, grid.winding, grid.near) for grid in made]
    return np.array(rows, dtype=np.int64).reshape(len(made), 10)


def grid_of(row: Int64s) -> Grid:
    """The grid that is made of these numbers."""
    k, h, w, ky, hy, p, py, inside, winding, near = row.tolist()
    return Grid((k, h, w), (ky, hy), bool(inside), bool(winding), (p, py), bool(near))


@lru_cache(maxsize=256)
def grids(width: int, height: int, blocks: int, rows: int, columns: int, parts: int = 1) -> Int64s:
    """Grids of a layer on a machine, as of `sides`: all that are rectangles, and some along the zig-zag.

    Parameters
    ----------
    width, height : of the machine whose engines they occupy
    blocks : smallest groups of channels
    rows, columns : of the layer's results
    parts : smallest groups of the sum over inputs
    """
    spare = max(1, int(SPARE * blocks))
    engines = width * height
    made = [_beside(_rectangles(width, height, spare, rows, columns), (1, 1), (1,))]
    for p in _counts(min(width, parts, CHAIN)):
        for py in _counts(min(height, parts // p, CHAIN // p)):
            if p * py > 1:
                few = _rectangles(width // p, height // py, spare, rows, columns)
                few = few[few[:, :5].prod(axis=1) * p * py >= FULL * engines]
                made.append(_beside(few, (p, py), (1, 0)))
    winding = [
        (k, h, w, 1, 1, p, 1, inside, 1, 1)
        for p in _counts(min(engines, parts, CHAIN))
        for k in even_groups(blocks, engines // p)
        for h in even_groups(rows, engines // (p * k))
        for w in even_groups(columns, engines // (p * k * h))
        if p * k * h * w >= FULL * engines
        for inside in ((0, 1) if k > 1 and h * w > 1 else (0,))
    ]
    made.append(np.array(winding, dtype=np.int64).reshape(len(winding), 10))
    return np.concatenate(made)


def _beside(rectangles: Int64s, parts: tuple[int, int], near: Sequence[int]) -> Int64s:
    """Rectangles of engines with groups of the sum beside them, near or far, as of `sides`."""
    made = np.zeros((len(rectangles), len(near), 10), dtype=np.int64)
    made[:, :, :5] = rectangles[:, None, :5]
    made[:, :, 5:7] = parts
    made[:, :, 7] = rectangles[:, None, 5]
    made[:, :, 9] = near
    return made.reshape(-1, 10)


def _rectangles(width: int, height: int, blocks: int, rows: int, columns: int) -> Int64s:
    """Groups along x and y, and whether channels are inside, of all grids in so many engines."""
    every = _all_rectangles(width, height)
    k, h, w, ky, hy = every[:, :5].T
    few: Int64s = every[(k * ky <= blocks) & (h * hy <= rows) & (w <= columns)]
    return few


@lru_cache(maxsize=256)
def _all_rectangles(width: int, height: int) -> Int64s:
    """As `_rectangles`, of layers that may have any number of groups."""
    made = [
        (k, h, w, ky, hy, inside)
        for k in _counts(width)
        for h in _counts(width // k)
        for w in _counts(width // (k * h))
        for ky in _counts(height)
        for hy in _counts(height // ky)
        for inside in ((0, 1) if (k > 1 and h * w > 1) or (ky > 1 and hy > 1) else (0,))
    ]
    return np.array(made, dtype=np.int64)


def _counts(most: int) -> list[int]:
    """Groups of one kind along one axis of a machine: all up to 8, then even ones."""
    return [n for n in range(1, most + 1) if n <= 8 or n % 2 == 0]


def even_groups(size: int, most: int) -> list[int]:
    """The fewest groups for every size of the largest."""
    return sorted({-(-size // n) for n in range(1, size + 1)} & set(range(1, most + 1)))


def shared(size: int, groups: int) -> tuple[int, ...]:
    """Borders of even groups of so many things; some are empty where there are more groups."""
    return tuple(size * i // groups for i in range(groups + 1))
