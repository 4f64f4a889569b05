"""Least distances that results travel between the children of an S cut, by the places of both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import shares
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition, share_tiles
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.set.trees.places import Places

ANY = 0
"""The table of results that may lie on any tile of a place."""


class Distances:
    """Tables of links by the place of a producer and that of its reader.

    A byte passes as many links as its tile is away from the nearest tile of the reader, and one more for
    every further tile that receives it.  Where the producer is a leaf, its results lie as one of its
    partitions divides them; the least over all partitions is the table of its layer and batch.  Elsewhere
    they may all lie on the nearest tile.

    Parameters
    ----------
    form : evaluates leaves; names their layouts
    places : ranges of tiles that a child may get

    Attributes
    ----------
    tables : links, shape (tables, places, places)
    """

    def __init__(self, form: ClosedForm, places: Places) -> None:
        self.form, self.places = form, places
        grid = form.engine.grid
        spots = np.stack([grid.x, grid.y], axis=1)
        apart = np.abs(spots[:, None, :] - spots[None, :, :]).sum(axis=2)
        self._near = np.ones((grid.tiles, len(places)))
        if places.apart:
            for tiles in range(1, places.total + 1):
                for first in range(places.total - tiles + 1):
                    self._near[:, places.begin[tiles] + first] = apart[:, first : first + tiles].min(axis=1)
        self._numbers: dict[tuple[int, int], int] = {}
        self.tables = np.ones((1, len(places), len(places)))
        self.tables[ANY] = self._table(lambda tiles: np.ones((0, tiles)))

    def table(self, layer: int, batch: int) -> int:
        """The number of the table of a leaf's results."""
        if not self.places.apart:
            return ANY
        key = self.form.engine.shapes[layer], batch
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.tables)
            made = self._table(lambda tiles: self._divided(key[0], batch, tiles))
            self.tables = np.concatenate([self.tables, made[None]])
        return number

    def _table(self, divided: Callable[[int], Floats]) -> Floats:
        places, table = self.places, np.ones((len(self.places), len(self.places)))
        if not places.apart:
            return table
        for tiles in range(1, places.total + 1):
            parts = divided(tiles)
            for first in range(places.total - tiles + 1):
                near = self._near[first : first + tiles]
                away = (parts @ near).min(axis=0) if len(parts) else near.min(axis=0)
                table[places.begin[tiles] + first] = np.maximum(1.0, away * (1 - 1e-9))
        return table

    def _divided(self, layer: int, batch: int, tiles: int) -> Floats:
        """Per partition that is tried, the part of the results on each tile."""
        divided, rows = self.form.network.layers[layer], []
        sizes = divided.channels, batch, divided.rows, divided.columns
        for partition in self.form.engine.menu(layer, batch, tiles):
            rows.append(_parts(partition, sizes))
        return np.array(rows).reshape(-1, tiles)


def _parts(partition: Partition, sizes: tuple[int, int, int, int]) -> Floats:
    """The part of the results on each tile."""
    parts = np.ones(1)
    for size, count in zip(sizes, partition.parts, strict=True):
        parts = np.multiply.outer(parts, np.diff(shares(size, count)) / size).ravel()
    every = np.zeros(partition.tiles)
    every[share_tiles(partition)] = parts
    return every
