"""What a tile takes for one share of a layer, by the released program's tile or by the machine's engine.

Both give cycles and pJ at the tile's unified buffer (reads by the array, results written), inside the array,
on its bus and in its multipliers, and the normalized processing time (NPT) of a layer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from tilewright.formulation.scheduling.tiled.costs import AtomShapes, atom_costs, energy
from tilewright.formulation.scheduling.tiled.own_costs import LeastPrices
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SUM_BYTES, SetLayer
from tilewright.formulation.scheduling.tiled.set.released import tile as released_tile
from tilewright.hardware.scheduling.tiled.machine import TileEngine

MANY = 64
"""Samples of a weight update over which its time is taken, as it fills the array with them."""

ShareCost = tuple[float, float, float, float, float]
"""Cycles, and pJ at the unified buffer, inside the array, on the bus, in the multipliers."""


class TileCosts(Protocol):
    """A table of what shares cost."""

    def share(self, layer: SetLayer, samples: int, channels: int, rows: int, columns: int) -> ShareCost:
        """The cost of a box of results; no cycles where it cannot be mapped.

        Parameters
        ----------
        layer : whose window and inputs the box has
        samples, channels, rows, columns : sizes of the box; of a weight update, samples are what it sums over
        """
        ...

    def processing_time(self, layer: SetLayer) -> float:
        """NPT: cycles of one sample of the layer on one tile."""
        ...


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _groups(layer: SetLayer, channels: int) -> tuple[int, int]:
    """Groups of channels in a share, and output channels of each."""
    if layer.groups == 1:
        return 1, channels
    per_group = layer.channels // layer.groups
    groups = _up(channels, per_group)
    return groups, per_group if groups > 1 else channels


class ProgramTile:
    """The released program's tile, see `released_tile`.

    Parameters
    ----------
    energy_power, delay_power : of the objective that its mapper minimizes
    """

    def __init__(self, energy_power: float = 1.0, delay_power: float = 1.0) -> None:
        self.powers = energy_power, delay_power
        self.known: dict[tuple[int, ...], ShareCost] = {}

    def share(self, layer: SetLayer, samples: int, channels: int, rows: int, columns: int) -> ShareCost:
        """What the released program's tile takes for a box of results; cached by shape.

        Parameters
        ----------
        layer, samples, channels, rows, columns : as for `TileCosts.share`
        """
        if not layer.is_mac:
            taps = layer.taps_rows * layer.taps_columns * layer.operands
            rows, columns = layer.positions(rows, columns)
            work = samples * channels * rows * columns * taps
            cycles = _up(work, released_tile.VECTOR_LANES)
            return float(cycles), 0.0, 0.0, 0.0, work * released_tile.VECTOR_ENERGY
        groups, outputs = _groups(layer, channels)
        depth = layer.depth
        if layer.is_summed:
            samples, depth = 1, samples
        elif layer.makes_weights:
            groups, samples = groups * samples, 1
        rows, columns = layer.positions(rows, columns)
        key = (
            samples,
            outputs,
            rows,
            columns,
            depth,
            layer.taps_rows,
            layer.taps_columns,
            layer.stride_rows,
            layer.stride_columns,
            groups,
        )
        cost = self.known.get(key)
        if cost is None:
            cost = released_tile.map_share(np.array(key, dtype=np.int64), *self.powers)
            self.known[key] = cost
        return cost

    def processing_time(self, layer: SetLayer) -> float:
        if not layer.is_mac:
            return layer.operations / released_tile.VECTOR_LANES
        lanes = released_tile.LANES
        inputs, outputs = MANY if layer.is_summed else layer.depth, layer.channels // layer.groups
        padded = _up(inputs, lanes) * lanes * _up(outputs, lanes) * lanes
        rows, columns = layer.positions(layer.rows, layer.columns)
        work = float(padded * rows * columns * layer.taps_rows * layer.taps_columns * layer.groups)
        if layer.is_summed:
            work /= MANY
        if layer.groups > 1 and inputs < lanes and outputs < lanes:
            work /= min(lanes // inputs, lanes // outputs)
        return work / (released_tile.ROWS * released_tile.COLUMNS * lanes * lanes)


class EngineTile:
    """The machine's engine with the costs of atoms, so that closed form and common evaluator count alike.

    A tile from a machine file has the least costs of any mapping here: mappings of all shares that a search
    looks at would take too long.  Plans have mappings.
    """

    def __init__(self, engine: TileEngine) -> None:
        self.engine = engine if engine.own is None else replace(engine, prices=LeastPrices())
        self.known: dict[tuple[SetLayer, int, int, int, int], ShareCost] = {}

    def share(self, layer: SetLayer, samples: int, channels: int, rows: int, columns: int) -> ShareCost:
        """What the machine's engine takes for a box of results; cached.

        Parameters
        ----------
        layer, samples, channels, rows, columns : as for `TileCosts.share`
        """
        key = (layer, samples, channels, rows, columns)
        cost = self.known.get(key)
        if cost is None:
            cost = self._share(layer, samples, channels, rows, columns)
            self.known[key] = cost
        return cost

    def _share(self, layer: SetLayer, samples: int, channels: int, rows: int, columns: int) -> ShareCost:
        groups, outputs = _groups(layer, channels)
        inputs = layer.depth if layer.is_mac else 1
        if not layer.is_mac:
            groups, outputs = 1, channels
        depthwise = layer.is_mac and layer.groups > 1 and layer.inputs == layer.groups == layer.channels
        results = samples * channels * rows * columns
        if layer.is_summed:  # samples are what each result sums over; each run reads and writes its sums
            results = 2 * SUM_BYTES * channels * rows * columns // self.engine.element_bytes
            samples, inputs, depthwise = 1, samples, False
        rows, columns = layer.positions(rows, columns)
        positions = ((rows - 1) * layer.stride_rows + layer.taps_rows) * (
            (columns - 1) * layer.stride_columns + layer.taps_columns
        )
        taps = layer.taps_rows * layer.taps_columns * (1 if layer.is_mac else layer.operands)
        values = samples, groups, outputs, inputs, rows, columns, taps, positions
        kind = "depthwise" if depthwise else "mac" if layer.is_mac else "vector"
        window = (layer.taps_rows, layer.taps_columns, layer.stride_rows, layer.stride_columns, 1, 1)
        arrays = (np.array([value], dtype=np.int64) for value in values)
        shapes = AtomShapes(kind, *arrays, window=window)
        costs = atom_costs(self.engine, shapes)
        compute, buffer, registers = energy(self.engine, costs, np.array([not layer.is_mac]))
        written = results * self.engine.element_bytes * self.engine.buffer_write_energy
        return float(costs.cycles[0]), float(buffer[0]) + written, float(registers[0]), 0.0, float(compute[0])

    def processing_time(self, layer: SetLayer) -> float:
        samples = MANY if layer.is_summed else 1
        return self.share(layer, samples, layer.channels, layer.rows, layer.columns)[0] / samples
