"""The best partition of a layer over its tiles where it runs in bands of rows (`leaf/stripes.py`), kept once
found.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.leaf import leaf_kernel, leaf_traffic_kernel
from tilewright.formulation.scheduling.tiled.set.leaf.intra_layer import (
    INPUTS_IN_BUFFERS,
    IntraLayerEngine,
    LeafCost,
)
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow, Mesh
from tilewright.formulation.scheduling.tiled.set.leaf.partition import (
    Partition,
    divisions,
    orders,
    share_tiles,
)
from tilewright.formulation.scheduling.tiled.set.leaf.stripe_kernel import (
    ENERGY,
    NEVER,
    ROW,
    largest_shares,
    stripe_costs,
    stripe_of,
)
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import Borders, known_rows, reach
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, HOPS, LINKS

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StripeStatement:
    """What the kernels need of a layer in bands: numbers, bands, mesh, and a menu with its costs per band.

    Parameters
    ----------
    menu, partitions : the same, as arrays of shares and steps and as they are
    energy, cycles : of the largest share on its tile, shape (menu, bands)
    """

    leaf: leaf_kernel.Leaf
    borders: Longs
    known: Longs
    mesh: Mesh
    menu: Longs
    energy: Floats
    cycles: Floats
    partitions: tuple[Partition, ...]


class Estimated(NamedTuple):
    """What estimates need to know of a leaf.

    Parameters
    ----------
    apart : whether producers have tiles of their own
    alike : whether the shares of channels all read the same of what comes directly
    """

    apart: bool
    alike: bool


class StripeEngine:
    """Finds and keeps the costs of leaves in bands, one sample at a time.

    Parameters
    ----------
    engine : of whole leaves, whose network, machine, rules, layouts and costs of shares are used
    """

    def __init__(self, engine: IntraLayerEngine) -> None:
        self.engine = engine
        self.leaves: dict[tuple[object, ...], LeafCost | None] = {}
        self._menus: dict[tuple[object, ...], tuple[Longs, Floats, Floats, tuple[Partition, ...]]] = {}

    def leaf(
        self,
        layer: int,
        borders: Borders,
        first: int,
        tiles: int,
        stored: bool,
        runs: int,
        direct: tuple[int, ...],
        copies: int,
        fixed: Partition | None = None,
    ) -> LeafCost | None:
        """All bands of a sample of a layer on the tiles from ``first`` on; ``None`` where no partition fits.

        Parameters
        ----------
        borders : of the bands
        stored, direct : as in `IntraLayerEngine.leaf`
        runs : samples that share one load of its weights
        copies : how often the inputs of a band lie in a buffer
        fixed : a partition that is not searched for
        """
        shape = self.engine.shapes[layer]
        key = (shape, borders, first, tiles, stored, runs, direct, copies, fixed)
        if key in self.leaves:
            return self.leaves[key]
        cost: LeafCost | None = None
        stated = self.statement(shape, borders, first, tiles, fixed)
        prices = self.engine.prices
        for streamed in (0, self.engine.rules.streamed_bytes) if self.engine.may_stream(shape) else (0,):
            flow = self.engine.flow(shape, stored, 1 if streamed else runs, direct)
            rows, cycles = self.costs(stated, flow, flow, streamed, copies)
            if len(rows):
                value = rows[:, ENERGY] ** prices.energy_power * cycles.sum(axis=1) ** prices.delay_power
                best = stated.partitions[int(rows[int(value.argmin()), ROW])]
                cost = self._cost(shape, borders, first, stated, flow, best, streamed)
                break
        self.leaves[key] = cost
        return cost

    def costs(
        self,
        stated: StripeStatement,
        flow: Flow,
        whole: Flow,
        streamed: int,
        copies: int,
        estimated: Estimated | None = None,
    ) -> tuple[Floats, Floats]:
        """What the partitions of a menu cost, and the cycles of their bands (`band_kernel.band_costs`).

        Parameters
        ----------
        flow : exact, or what comes from DRAM
        whole : the same with what comes directly as if it came from DRAM, for estimates
        streamed : bytes of a buffer that weights pass through; 0 where they stay
        copies : how often the inputs of a band lie in a buffer
        estimated : what estimates need to know; ``None`` for exact costs
        """
        engine = self.engine
        rows, cycles = stripe_costs(
            leaf=stated.leaf,
            borders=stated.borders,
            known=stated.known,
            flow=flow,
            whole=whole,
            estimated=estimated is not None,
            apart=estimated is not None and estimated.apart,
            shared=estimated is not None and estimated.alike,
            mesh=stated.mesh,
            prices=engine.prices,
            menu=stated.menu,
            tile_energy=stated.energy,
            tile_cycles=stated.cycles,
            room=engine.room,
            result_room=engine.rules.result_bytes,
            streamed=streamed,
            copies=copies,
        )
        return rows, cycles

    def statement(
        self, layer: int, borders: Borders, first: int, tiles: int, fixed: Partition | None = None
    ) -> StripeStatement:
        """What the kernels need of a layer on its tiles."""
        engine = self.engine
        shape = engine.shapes[layer]
        key = (shape, borders, tiles, fixed)
        if key not in self._menus:
            self._menus[key] = self._menu(shape, borders, tiles, fixed)
        known = known_rows(engine.network.layers[shape], borders)
        return StripeStatement(
            self.numbers(shape),
            np.array(borders, dtype=np.int64),
            np.array(known, dtype=np.int64),
            engine.mesh(first, tiles),
            *self._menus[key],
        )

    def numbers(self, layer: int) -> leaf_kernel.Leaf:
        """A leaf of one sample as the kernels read it, before it is cut into bands."""
        numbered = self.engine.network.layers[layer]
        return self.engine.numbers(layer, 1)._replace(hop_rows=numbered.hop_rows if numbered.is_summed else 0)

    def _menu(
        self, layer: int, borders: Borders, tiles: int, fixed: Partition | None
    ) -> tuple[Longs, Floats, Floats, tuple[Partition, ...]]:
        engine = self.engine
        striped = engine.network.layers[layer]
        summed = striped.is_summed
        rows = [high - low for low, high in itertools.pairwise(borders)]
        if fixed is None:
            least = 0
            if striped.is_mac and striped.groups == 1 and not summed:
                most = max(
                    reach(striped, high) - reach(striped, low) for low, high in itertools.pairwise(borders)
                )
                held = striped.inputs * most * striped.input_columns
                least = int(held / (engine.room * tiles * INPUTS_IN_BUFFERS) + 1)
            # the largest band is what tiles are to be busy with; every tile has rows in each of them
            sizes = (striped.channels, 1, striped.rows if summed else max(rows), striped.columns)
            partitions = [
                Partition(parts, order)
                for parts in divisions(sizes, tiles, least)
                if (parts[1] == 1 if summed else parts[2] <= min(rows))
                for order in orders(parts)
            ]
        else:
            partitions = [fixed] if fixed.tiles == tiles and (summed or fixed.parts[2] <= min(rows)) else []
        energy, cycles = np.zeros((2, len(partitions), len(rows)))
        known: dict[tuple[object, ...], tuple[float, float]] = {}
        for i, partition in enumerate(partitions):
            for j, count in enumerate(rows):
                key = (partition.parts, count)
                if key not in known:
                    time, each = self.share_cost(layer, count, partition)
                    known[key] = time, float(each.sum())
                cycles[i, j], energy[i, j] = known[key]
        table = np.array(
            [(*striped.parts, *striped.steps) for striped in partitions], dtype=np.int64
        ).reshape(-1, 8)
        return table, energy, cycles, tuple(partitions)

    def share_cost(self, layer: int, rows: int, partition: Partition) -> tuple[float, Floats]:
        """Cycles of the largest share of so many rows on its tile, and its pJ by component."""
        striped = self.engine.network.layers[layer]
        if striped.is_summed:
            striped, rows = replace(striped, taps_rows=rows), striped.rows
        k, _, h, w = partition.parts
        cycles, *energy = self.engine.costs.share(
            striped, 1, -(-striped.channels // k), -(-rows // h), -(-striped.columns // w)
        )
        return cycles, np.array(energy, dtype=np.float64)

    def _cost(
        self,
        layer: int,
        borders: Borders,
        first: int,
        stated: StripeStatement,
        flow: Flow,
        partition: Partition,
        streamed: int,
    ) -> LeafCost:
        """Everything of one partition, with the loads of links band by band."""
        engine, striped = self.engine, self.engine.network.layers[layer]
        grid, prices, idle = engine.grid, engine.prices, engine.rules.idle_tiles_receive
        parts = np.array(partition.parts, dtype=np.int64)
        steps = np.array(partition.steps, dtype=np.int64)
        tiles = partition.tiles
        counts = np.zeros(LINKS + 4 * grid.tiles, dtype=np.int64)
        now = np.zeros_like(counts)
        shares_in, shares_weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
        apart = partition.parts[2] == 1 or striped.is_summed
        energy, turns = np.zeros(4), []
        for j, (low, high) in enumerate(itertools.pairwise(borders)):
            band = stripe_of(stated.leaf, low, high, int(stated.known[j]) if apart else 0)
            again = flow if j == 0 or streamed else flow._replace(runs=NEVER)
            leaf_traffic_kernel.traffic(now, band, again, stated.mesh, parts, steps, True)
            leaf_kernel.usage(band, parts, idle, shares_in, shares_weights)
            cycles, share_energy = self.share_cost(layer, high - low, partition)
            energy += share_energy * tiles
            energy[0] += leaf_kernel.buffer_energy(band, shares_in, shares_weights, again.runs, prices)
            turn = max(int(cycles), math.ceil(now[DRAM] / prices.rate))
            if not engine.rules.segment_bounds_only:
                turn = max(turn, math.ceil(int(now[LINKS:].max()) / engine.machine.link_rate))
            turns.append(turn)
            counts += now
        largest_shares(stated.leaf, stated.borders, parts, idle, shares_in, shares_weights)
        at = first + share_tiles(partition)
        inputs, weights = np.zeros(grid.tiles, dtype=np.int64), np.zeros(grid.tiles, dtype=np.int64)
        inputs[at] = shares_in
        weights[at] = np.minimum(shares_weights, streamed) if streamed else shares_weights
        moved = counts[HOPS] * prices.hop + counts[DRAM] * prices.dram
        return LeafCost(
            partition=partition,
            layout=engine.layout(layer, 1, first, partition, borders),
            energy=float(energy.sum() + moved),
            parts=energy,
            cycles=sum(turns),
            counts=counts,
            buffer=inputs + (inputs > 0) * engine.rules.result_bytes,
            inputs=inputs,
            weights=weights,
            streamed=streamed > 0,
            borders=() if striped.is_summed else borders,
            turns=() if striped.is_summed else tuple(turns),
        )
