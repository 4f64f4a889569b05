"""The intra-layer engine (section 4.2.2): the best partition of a layer over its tiles, kept once found.

A leaf's cost depends on its layer, its tiles, its batch, whether its results go to DRAM, and the layouts of
those producers that pass theirs on directly.  Layers of equal shape share what is known.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.leaf import (
    leaf_kernel,
    leaf_search_kernel,
    leaf_traffic_kernel,
)
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer, SetNetwork, shares
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow, Mesh, Prices
from tilewright.formulation.scheduling.tiled.set.leaf.partition import (
    Partition,
    divisions,
    ordered,
    row_numbers,
    share_tiles,
)
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import stripe_parts
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import TileCosts
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import LINKS, ports_of
from tilewright.formulation.scheduling.tiled.set.trees.placement import grid_of
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INPUTS_IN_BUFFERS = 0.8
"""Part of all buffers that the inputs of a layer may take before it has to be cut along samples, rows or
columns.
"""


@dataclass(frozen=True, slots=True, eq=False)
class LeafCost:
    """One run of a leaf.

    Parameters
    ----------
    partition : the shares and their order
    layout : number of its layout
    energy : pJ; ``parts``: those at the tiles' buffers, inside arrays, on their buses, in multipliers
    cycles : of the slowest of array and DRAM
    counts : bytes times links, bytes of DRAM, bytes of every link
    buffer, inputs, weights : bytes per tile of the machine
    streamed : whether weights pass through the buffers at every run
    borders : rows between which the bands lie in which the leaf runs, where it makes its results in bands
    turns : cycles of every such band; everything else is of all of them
    """

    partition: Partition
    layout: int
    energy: float
    parts: Floats
    cycles: int
    counts: Longs
    buffer: Longs
    inputs: Longs
    weights: Longs
    streamed: bool = False
    borders: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()


class Menu(NamedTuple):
    """Partitions of a layer over tiles that are tried.

    Parameters
    ----------
    rows : shares and steps per dimension, shape (partitions, 8)
    numbers : of each among all partitions over as many tiles
    energy, cycles : of the largest share on its tile
    """

    partitions: list[Partition]
    rows: Longs
    numbers: Longs
    energy: Floats
    cycles: Floats


class IntraLayerEngine:
    """Finds and keeps the costs of leaves on one machine.

    Parameters
    ----------
    costs : of shares on a tile
    rules : the paper's, or with defects of the released program
    energy_power, delay_power : of the objective that each leaf keeps small for itself
    """

    def __init__(
        self,
        network: SetNetwork,
        machine: TiledMachine,
        costs: TileCosts,
        rules: Rules,
        energy_power: float = 1.0,
        delay_power: float = 1.0,
    ) -> None:
        self.network, self.machine, self.costs, self.rules = network, machine, costs, rules
        self.grid = grid_of(machine)
        engine = machine.engine
        self.prices = Prices(
            machine.hop_energy,
            machine.dram_energy,
            engine.buffer_read_energy,
            engine.buffer_write_energy,
            float(machine.dram_rate),
            float(energy_power),
            float(delay_power),
        )
        self.room = engine.buffer_bytes
        self.leaves: dict[tuple[object, ...], LeafCost | None] = {}
        self.layouts: list[Longs] = []
        self._layout_numbers: dict[bytes, int] = {}
        self._menus: dict[tuple[int, int, int], Menu] = {}
        self._links: dict[tuple[int, int], npt.NDArray[np.int32]] = {}
        self._numbers: dict[tuple[int, int], leaf_kernel.Leaf] = {}
        self._meshes: dict[tuple[int, int], Mesh] = {}
        self._ports = ports_of(self.grid.ports, self.grid.width, self.grid.height)

    @cached_property
    def shapes(self) -> tuple[int, ...]:
        """Per layer, the first layer that differs from it in nothing but its name and its producers'
        numbers.
        """
        first: dict[SetLayer, int] = {}
        shapes = []
        for number, layer in enumerate(self.network.layers):
            bare = tuple(replace(producer, layer=0) for producer in layer.producers)
            shapes.append(first.setdefault(replace(layer, name="", producers=bare, is_output=False), number))
        return tuple(shapes)

    def leaf(
        self, layer: int, batch: int, first: int, tiles: int, stored: bool, runs: int, direct: tuple[int, ...]
    ) -> LeafCost | None:
        """One run of a layer on the tiles from ``first`` on; ``None`` where no partition fits the buffers.

        Parameters
        ----------
        stored : whether its results go to DRAM
        runs : runs that share one load of its weights
        direct : per producer, the number of the layout that it passes on directly, or -1
        """
        key = (self.shapes[layer], batch, first, tiles, stored, runs, direct)
        try:
            return self.leaves[key]
        except KeyError:
            cost = self._search(self.shapes[layer], batch, first, tiles, stored, runs, direct)
            self.leaves[key] = cost
            return cost

    def partitioned(
        self,
        layer: int,
        batch: int,
        first: int,
        stored: bool,
        runs: int,
        direct: tuple[int, ...],
        partition: Partition,
    ) -> LeafCost | None:
        """One run of a layer with a given partition; ``None`` where it cannot be mapped or does not fit."""
        shape = self.shapes[layer]
        cycles, energy = self.share_cost(shape, batch, partition.parts)
        if not cycles:
            return None
        flow = self.flow(shape, stored, runs, direct)
        cost = self._cost(shape, batch, first, flow, partition, cycles, energy)
        if cost is None and self.may_stream(shape):
            flow = self.flow(shape, stored, 1, direct)
            cost = self._cost(shape, batch, first, flow, partition, cycles, energy, streamed=True)
        return cost

    def menu(self, layer: int, batch: int, tiles: int) -> list[Partition]:
        """Partitions that are tried."""
        return self._menu(self.shapes[layer], batch, tiles).partitions

    def statement(
        self, layer: int, batch: int, first: int, tiles: int
    ) -> tuple[leaf_kernel.Leaf, Mesh, Longs, Floats, Floats]:
        """What the kernels need of a layer on its tiles: numbers, mesh, menu with its energies and cycles."""
        shape = self.shapes[layer]
        menu = self._menu(shape, batch, tiles)
        return self.numbers(shape, batch), self.mesh(first, tiles), menu.rows, menu.energy, menu.cycles

    def may_stream(self, layer: int) -> bool:
        """Whether a layer's weights may pass through the buffers at every run."""
        layer_shape = self.network.layers[layer]
        stored = layer_shape.weight_bytes > 0 and not layer_shape.makes_weights
        return self.rules.streamed_bytes > 0 and (stored or layer_shape.is_summed)

    def layout(
        self, layer: int, batch: int, first: int, partition: Partition, borders: tuple[int, ...] = ()
    ) -> int:
        """The number of the layout of a leaf's results, whose tiles share out every band where it has any."""
        divided, grid = self.network.layers[layer], self.grid
        k, b, h, w = (
            np.array(shares(size, count), dtype=np.int64)
            for size, count in zip(
                (divided.channels, batch, divided.rows, divided.columns), partition.parts, strict=True
            )
        )
        at = first + share_tiles(partition)
        head = np.array([batch, *partition.parts], dtype=np.int64)
        if borders and not divided.is_summed:
            h = np.array(stripe_parts(borders, partition.parts[2]), dtype=np.int64)
            at = np.tile(at.reshape(partition.parts), (1, 1, len(borders) - 1, 1)).ravel()
            head[3] = len(h) - 1
        numbers = np.concatenate([head, k, b, h, w, grid.x[at], grid.y[at]])
        number = self._layout_numbers.setdefault(numbers.tobytes(), len(self.layouts))
        if number == len(self.layouts):
            self.layouts.append(numbers)
        return number

    def _search(
        self, layer: int, batch: int, first: int, tiles: int, stored: bool, runs: int, direct: tuple[int, ...]
    ) -> LeafCost | None:
        menu = self._menu(layer, batch, tiles)
        if not menu.partitions:
            return None
        for streamed in (False, True) if self.may_stream(layer) else (False,):
            flow = self.flow(layer, stored, 1 if streamed else runs, direct)
            best = leaf_search_kernel.search(
                leaf=self.numbers(layer, batch),
                flow=flow,
                mesh=self.mesh(first, tiles),
                prices=self.prices,
                menu=menu.rows,
                rows=menu.numbers,
                links=self._links_on(first, tiles),
                tile_energy=menu.energy,
                tile_cycles=menu.cycles,
                room=self.room,
                result_room=self.rules.result_bytes,
                streamed=self.rules.streamed_bytes if streamed else 0,
            )
            if best >= 0:
                partition = menu.partitions[best]
                tile_cycles, share_energy = self.share_cost(layer, batch, partition.parts)
                return self._cost(
                    layer, batch, first, flow, partition, tile_cycles, share_energy, streamed=streamed
                )
        return None

    def share_cost(self, layer: int, batch: int, parts: tuple[int, int, int, int]) -> tuple[float, Floats]:
        """Cycles of the largest share on its tile (0 where it cannot be mapped), and its pJ by component."""
        divided = self.network.layers[layer]
        k, b, h, w = (
            -(-size // count)
            for size, count in zip(
                (divided.channels, batch, divided.rows, divided.columns), parts, strict=True
            )
        )
        cycles, *energy = self.costs.share(divided, b, k, h, w)
        return cycles, np.array(energy, dtype=np.float64)

    def _cost(
        self,
        layer: int,
        batch: int,
        first: int,
        flow: Flow,
        partition: Partition,
        tile_cycles: float,
        share_energy: Floats,
        *,
        streamed: bool = False,
    ) -> LeafCost | None:
        grid, prices, tiles = self.grid, self.prices, partition.tiles
        leaf, mesh = self.numbers(layer, batch), self.mesh(first, tiles)
        parts = np.array(partition.parts, dtype=np.int64)
        steps = np.array(partition.steps, dtype=np.int64)
        counts = np.zeros(LINKS + 4 * grid.tiles, dtype=np.int64)
        leaf_traffic_kernel.traffic(counts, leaf, flow, mesh, parts, steps, True)
        shares_in, shares_weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
        leaf_kernel.usage(leaf, parts, self.rules.idle_tiles_receive, shares_in, shares_weights)
        outside = leaf_kernel.buffer_energy(leaf, shares_in, shares_weights, flow.runs, prices)
        energy = share_energy * tiles
        energy[0] += outside
        moved = counts[0] * prices.hop + counts[1] * prices.dram
        at = first + share_tiles(partition)
        inputs, weights = np.zeros(grid.tiles, dtype=np.int64), np.zeros(grid.tiles, dtype=np.int64)
        inputs[at] = shares_in
        weights[at] = np.minimum(shares_weights, self.rules.streamed_bytes) if streamed else shares_weights
        if leaf.made:
            inputs, weights = inputs + weights, np.zeros_like(weights)
        buffer = inputs + (inputs > 0) * self.rules.result_bytes
        if int((buffer + weights).max()) > self.room:
            return None
        cycles = max(int(tile_cycles), int(np.ceil(counts[1] / prices.rate)))
        layout = self.layout(layer, batch, first, partition)
        return LeafCost(
            partition=partition,
            layout=layout,
            energy=float(energy.sum() + moved),
            parts=energy,
            cycles=cycles,
            counts=counts,
            buffer=buffer,
            inputs=inputs,
            weights=weights,
            streamed=streamed,
        )

    def _menu(self, layer: int, batch: int, tiles: int) -> Menu:
        key = (layer, batch, tiles)
        menu = self._menus.get(key)
        if menu is None:
            divided = self.network.layers[layer]
            least = 0
            if divided.is_mac and divided.groups == 1 and not divided.is_summed:
                least = int(divided.input_bytes * batch / (self.room * tiles * INPUTS_IN_BUFFERS) + 1)
            sizes = (divided.channels, 1 if divided.is_summed else batch, divided.rows, divided.columns)
            first = row_numbers(tiles)[0]
            partitions: list[Partition] = []
            rows = [np.zeros((0, 8), dtype=np.int64)]
            numbers: list[int] = []
            counts, energy, cycles = [], [], []
            for parts in divisions(sizes, tiles, least):
                if divided.is_summed and parts[1] > 1:
                    continue  # sums of several tiles would have to be added up
                time, each = self.share_cost(layer, batch, parts)
                every, table = ordered(parts)
                partitions.extend(every)
                rows.append(table)
                counts.append(len(every))
                numbers.extend(range(first[parts], first[parts] + len(every)))
                energy.append(float(each.sum()))
                cycles.append(time)
            menu = Menu(
                partitions,
                np.concatenate(rows),
                np.array(numbers, dtype=np.int64),
                np.repeat(np.array(energy, dtype=np.float64), counts),
                np.repeat(np.array(cycles, dtype=np.float64), counts),
            )
            self._menus[key] = menu
        return menu

    def _links_on(self, first: int, tiles: int) -> npt.NDArray[np.int32]:
        """Links of multicasts on some tiles, see `leaf_search_kernel.search`; -1 at first."""
        links = self._links.get((first, tiles))
        if links is None:
            shape = row_numbers(tiles)[1], leaf_search_kernel.KINDS
            links = self._links[first, tiles] = np.full(shape, -1, dtype=np.int32)
        return links

    def numbers(self, layer: int, batch: int) -> leaf_kernel.Leaf:
        """A leaf as the kernels read it."""
        key = (layer, batch)
        if key not in self._numbers:
            numbered = self.network.layers[layer]
            reported = {"late", "weighs", "made", "batch", "first_row", "known_row", "hop_rows"}
            names = {field.name for field in fields(numbered)} & set(leaf_kernel.Leaf._fields) - reported
            values = {name: getattr(numbered, name) for name in names}
            made = numbered.makes_weights and not numbered.is_summed
            weighs = numbered.weight_bytes > 0 or made
            self._numbers[key] = leaf_kernel.Leaf(
                **values, late=numbered.late_operands, weighs=weighs, made=made, batch=batch
            )
        return self._numbers[key]

    def mesh(self, first: int, tiles: int) -> Mesh:
        """The tiles from ``first`` on as the kernels read them."""
        key = (first, tiles)
        if key not in self._meshes:
            grid, rules = self.grid, self.rules
            span = slice(first, first + tiles)
            self._meshes[key] = Mesh(
                grid.width,
                grid.height,
                grid.x[span].copy(),
                grid.y[span].copy(),
                self._ports,
                rules.idle_tiles_receive,
                rules.free_concatenation,
            )
        return self._meshes[key]

    def flow(self, layer: int, stored: bool, runs: int, direct: tuple[int, ...]) -> Flow:
        """Where a leaf's data comes from and goes to, as the kernels read it."""
        producers = self.network.layers[layer].producers
        rows = np.zeros((len(producers), 6), dtype=np.int64)
        used: list[Longs] = []
        start = 0
        for i, (producer, number) in enumerate(zip(producers, direct, strict=True)):
            rows[i] = (
                number >= 0,
                producer.offset,
                producer.channels,
                producer.role,
                producer.scattered,
                start,
            )
            if number >= 0:
                used.append(self.layouts[number])
                start += len(used[-1])
        layouts = np.concatenate(used) if used else np.zeros(0, dtype=np.int64)
        return Flow(rows, layouts, stored, runs)
