"""The candidate partitions of a layer over some tiles, with what their largest shares cost on a tile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer
from tilewright.formulation.scheduling.tiled.set.leaf.partition import (
    Partition,
    divisions,
    ordered,
    row_numbers,
)
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import Borders, reach
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import TileCosts
from tilewright.foundation.arrays import Floats, Indices, Int64s

INPUTS_IN_BUFFERS = 0.8
"""Part of all buffers that the inputs of a layer may take before it has to be cut along samples, rows or
columns.
"""

Parts = tuple[int, int, int, int]
"""Numbers of shares of channels, samples, rows and columns."""


class Menu(NamedTuple):
    """Partitions of a layer over tiles that are tried.

    Parameters
    ----------
    partitions : rows of equal shares follow each other
    rows : their shares and steps per dimension, shape (partitions, 8)
    numbers : of each among all partitions over as many tiles
    energy, cycles : pJ and cycles of the largest share of every stripe on its tile, shape (partitions,
        stripes)
    """

    partitions: list[Partition]
    rows: Int64s
    numbers: Int64s
    energy: Floats
    cycles: Floats

    def part(self, rows: Indices) -> Menu:
        """Some of its partitions, by rising numbers of their rows."""
        rows = np.sort(rows)
        return Menu(
            [self.partitions[row] for row in rows],
            self.rows[rows],
            self.numbers[rows],
            self.energy[rows],
            self.cycles[rows],
        )


def share_cost(
    costs: TileCosts, layer: SetLayer, batch: int, parts: Parts, rows: int | None = None
) -> tuple[float, Floats]:
    """Cycles of the largest share on its tile (0 where it cannot be mapped), and its pJ by component.

    Parameters
    ----------
    rows : of the results, of a weight update rows of the gradient; all where it is ``None``
    """
    height = layer.rows if rows is None else rows
    if rows is not None and layer.is_summed:
        layer, height = replace(layer, taps_rows=rows), layer.rows
    k, b, h, w = (
        -(-size // count)
        for size, count in zip((layer.channels, batch, height, layer.columns), parts, strict=True)
    )
    cycles, *energy = costs.share(layer, b, k, h, w)
    return cycles, np.array(energy, dtype=np.float64)


def menu_of(
    costs: TileCosts,
    layer: SetLayer,
    batch: int,
    tiles: int,
    capacity: int,
    borders: Borders = (),
    fixed: Partition | None = None,
) -> Menu:
    """The partitions of a layer over tiles.

    Parameters
    ----------
    capacity : bytes of a buffer
    borders : of its stripes; none where it runs as a whole
    fixed : the only partition that is tried, where it is given
    """
    stripes = [high - low for low, high in itertools.pairwise(borders)]
    heights: list[int | None] = [*stripes] or [None]
    rows = [np.zeros((0, 8), dtype=np.int64)]
    partitions: list[Partition] = []
    numbers: list[int] = []
    energy, cycles = [], []
    first_of = row_numbers(tiles)[0]
    for parts, orders, table in (
        _divided(layer, batch, tiles, capacity, borders) if fixed is None else _only(fixed, tiles)
    ):
        if stripes and not layer.is_summed and parts[2] > min(stripes):
            continue  # every tile has rows in each of them
        known: dict[int | None, tuple[float, Floats]] = {}
        for height in heights:
            if height not in known:
                known[height] = share_cost(costs, layer, batch, parts, height)
        partitions.extend(orders)
        rows.append(table)
        numbers.extend(range(first_of[parts], first_of[parts] + len(orders)))
        energy += [[float(known[height][1].sum()) for height in heights]] * len(orders)
        cycles += [[known[height][0] for height in heights]] * len(orders)
    return Menu(
        partitions,
        np.concatenate(rows),
        np.array(numbers, dtype=np.int64),
        np.array(energy, dtype=np.float64).reshape(-1, len(heights)),
        np.array(cycles, dtype=np.float64).reshape(-1, len(heights)),
    )


Divided = Iterator[tuple[Parts, tuple[Partition, ...], Int64s]]


def _only(partition: Partition, tiles: int) -> Divided:
    if partition.tiles == tiles:
        row = np.array([(*partition.parts, *partition.steps)], dtype=np.int64)
        yield partition.parts, (partition,), row


def _divided(layer: SetLayer, batch: int, tiles: int, capacity: int, borders: Borders) -> Divided:
    """Every division worth trying in every order."""
    summed, least, rows = layer.is_summed, 0, layer.rows
    if layer.is_mac and layer.groups == 1 and not summed:
        arriving = layer.input_bytes * batch
        if borders:
            most = max(reach(layer, high) - reach(layer, low) for low, high in itertools.pairwise(borders))
            arriving = layer.inputs * most * layer.input_columns
        least = int(arriving / (capacity * tiles * INPUTS_IN_BUFFERS) + 1)
    if borders and not summed:  # the largest stripe is what tiles are to be busy with
        rows = max(high - low for low, high in itertools.pairwise(borders))
    sizes = (layer.channels, 1 if summed else batch, rows, layer.columns)
    for parts in divisions(sizes, tiles, least):
        if summed and parts[1] > 1:
            continue  # sums of several tiles would have to be added up
        yield parts, *ordered(parts)
