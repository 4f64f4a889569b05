"""The intra-layer engine (section 4.2.2): the best partition of a layer over its tiles, cached.

A leaf's cost depends on its layer, its tiles, its batch, whether its results go to DRAM, the layouts of those
producers that pass theirs on directly, and the stripes of rows in which it runs, of which a whole leaf has
one.  Layers of equal shape share what is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf import (
    leaf_kernel,
    leaf_search_kernel,
    leaf_traffic_kernel,
)
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_cost import LeafCost
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow, Prices
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_known_kernel import KINDS
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_rows_kernel import (
    NEVER,
    LeafRows,
    largest_shares,
    leaf_rows,
    stripe_of,
)
from tilewright.formulation.scheduling.tiled.set.leaf.menus import share_cost
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition, row_numbers, share_tiles
from tilewright.formulation.scheduling.tiled.set.leaf.statements import LeafStatement, LeafStatements
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import Borders
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import TileCosts
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, HOPS, LINKS
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine


class IntraLayerEngine(LeafStatements):
    """Finds and caches the costs of leaves on one machine.

    Parameters
    ----------
    costs : of shares on a tile
    rules : the paper's, or with defects of the released program
    energy_power, delay_power : of the objective that each leaf minimizes
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
        super().__init__(network, machine, costs, rules)
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
        self.leaves: dict[tuple[object, ...], LeafCost | None] = {}
        self._links: dict[tuple[int, int], Int32s] = {}

    def leaf(
        self,
        layer: int,
        batch: int,
        first: int,
        tiles: int,
        stored: bool,
        runs: int,
        direct: tuple[int, ...],
        borders: Borders = (),
        copies: int = 1,
    ) -> LeafCost | None:
        """One run of a layer on the tiles from ``first`` on; ``None`` where no partition fits the buffers.

        Parameters
        ----------
        layer : its number in the network
        batch : samples of the run
        first, tiles : its first tile in the order of the grid, and their number
        stored : whether its results go to DRAM
        runs : runs that share one load of its weights
        direct : per producer, the number of the layout that it passes on directly, or -1
        borders : of its row stripes; none where it runs as a whole
        copies : how often the inputs of a stripe lie in a buffer
        """
        key = (self.shapes[layer], batch, first, tiles, stored, runs, direct, borders, copies)
        try:
            return self.leaves[key]
        except KeyError:
            shape = self.shapes[layer]
            stated = self.statement(shape, batch, first, tiles, borders)
            cost = self.best(
                shape,
                stated,
                batch=batch,
                first=first,
                stored=stored,
                runs=runs,
                direct=direct,
                borders=borders,
                copies=copies,
            )
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
        borders: Borders = (),
        copies: int = 1,
    ) -> LeafCost | None:
        """One run of a layer with a given partition; ``None`` where it cannot be mapped or does not fit.

        Parameters
        ----------
        layer, batch, first, stored, runs, direct, borders, copies : as for `leaf`
        partition : of the results over the tiles from ``first`` on, as many as it has shares
        """
        shape = self.shapes[layer]
        stated = self.statement(shape, batch, first, partition.tiles, borders, partition)
        if borders:
            return self.best(
                shape,
                stated,
                batch=batch,
                first=first,
                stored=stored,
                runs=runs,
                direct=direct,
                borders=borders,
                copies=copies,
            )
        if not stated.menu.cycles.all():
            return None
        for streamed, flow in self.flows(shape, stored, runs, direct):
            cost = self._cost(shape, stated, batch, first, flow, partition, streamed, borders)
            if cost is not None:
                return cost
        return None

    def rows(
        self, stated: LeafStatement, flow: Flow, streamed: int, copies: int = 1, passed: Flow | None = None
    ) -> LeafRows:
        """What every partition of a menu moves and spends that fits the buffers.

        Parameters
        ----------
        flow : what comes from DRAM, and from layers whose layouts are known
        streamed : bytes of a buffer that weights pass through; 0 where they stay
        copies : how often the inputs of a stripe lie in a buffer
        passed : what comes directly from layers whose layouts are not known, as if it came from DRAM
        """
        return LeafRows(*leaf_rows(**self.row_arguments(stated, flow, streamed, copies, passed)))

    def row_arguments(
        self, stated: LeafStatement, flow: Flow, streamed: int, copies: int = 1, passed: Flow | None = None
    ) -> dict[str, Any]:
        """The arguments of `leaf_rows` by name.

        Parameters
        ----------
        stated : the leaf on its tiles, with its menu
        flow, streamed, copies, passed : as of `rows`
        """
        return {
            "leaf": stated.leaf,
            "borders": stated.borders,
            "known": stated.known,
            "flow": flow,
            "passed": flow._replace(producers=flow.producers[:0]) if passed is None else passed,
            "mesh": stated.mesh,
            "prices": self.prices,
            "menu": stated.menu.rows,
            "tile_energy": stated.menu.energy,
            "tile_cycles": stated.menu.cycles,
            "capacity": self.capacity,
            "result_bytes": self.rules.result_bytes,
            "streamed": streamed,
            "copies": copies,
        }

    def may_stream(self, layer: int) -> bool:
        """Whether a layer's weights may pass through the buffers at every run."""
        layer_shape = self.network.layers[layer]
        stored = layer_shape.weight_bytes > 0 and not layer_shape.makes_weights
        return self.rules.streamed_bytes > 0 and (stored or layer_shape.is_summed)

    def stream_bytes(self, layer: int) -> tuple[int, ...]:
        """Bytes of a buffer that a layer's weights may pass through; 0 where they stay, which comes first."""
        return (0, self.rules.streamed_bytes) if self.may_stream(layer) else (0,)

    def flows(
        self, layer: int, stored: bool, runs: int, direct: tuple[int, ...]
    ) -> Iterator[tuple[int, Flow]]:
        """Bytes of a buffer that weights pass through, and the flow then.

        Parameters
        ----------
        layer : its number in the network
        stored : whether its results go to DRAM
        runs : runs that share one load of weights that stay; streamed ones are loaded at every run
        direct : per producer, the number of the layout that it passes on directly, or -1
        """
        for streamed in self.stream_bytes(layer):
            yield streamed, self.flow(layer, stored, 1 if streamed else runs, direct)

    def best(
        self,
        layer: int,
        stated: LeafStatement,
        *,
        batch: int,
        first: int,
        stored: bool,
        runs: int,
        direct: tuple[int, ...],
        borders: Borders,
        copies: int,
    ) -> LeafCost | None:
        """One run of a layer with the best partition of a menu; weights stay where any fits so.

        Parameters
        ----------
        layer : its number in the network
        stated : the leaf on its tiles, with its menu
        batch, first, stored, runs, direct, borders, copies : as for `leaf`
        """
        if not stated.menu.partitions:
            return None
        for streamed, flow in self.flows(layer, stored, runs, direct):
            if borders:
                best = self._cheapest(stated, flow, streamed, copies)
            else:
                best = self._search(stated, flow, streamed, first)
            if best >= 0:
                partition = stated.menu.partitions[best]
                return self._cost(layer, stated, batch, first, flow, partition, streamed, borders)
        return None

    def _cheapest(self, stated: LeafStatement, flow: Flow, streamed: int, copies: int) -> int:
        """The row of a menu that costs least, every one of them counted; -1 where none fits."""
        rows = self.rows(stated, flow, streamed, copies)
        if not len(rows.row):
            return -1
        prices = self.prices
        cycles = rows.cycles.sum(axis=1)
        value = rows.energy(prices) ** prices.energy_power * cycles**prices.delay_power
        return int(rows.row[int(value.argmin())])

    def _search(self, stated: LeafStatement, flow: Flow, streamed: int, first: int) -> int:
        """The same of a whole leaf, where bounds avoid counting most rows exactly."""
        menu = stated.menu
        best: int = leaf_search_kernel.search(
            leaf=stated.leaf,
            flow=flow,
            mesh=stated.mesh,
            prices=self.prices,
            menu=menu.rows,
            rows=menu.numbers,
            links=self._links_on(first, len(stated.mesh.x)),
            tile_energy=menu.energy[:, 0],
            tile_cycles=menu.cycles[:, 0],
            capacity=self.capacity,
            result_bytes=self.rules.result_bytes,
            streamed=streamed,
        )
        return best

    def _cost(
        self,
        layer: int,
        stated: LeafStatement,
        batch: int,
        first: int,
        flow: Flow,
        partition: Partition,
        streamed: int,
        borders: Borders,
    ) -> LeafCost | None:
        """Everything of one partition, stripe by stripe, with the loads of links; ``None`` where it overflows
        a buffer.
        """
        divided, grid, prices, tiles = self.network.layers[layer], self.grid, self.prices, partition.tiles
        idle = self.rules.idle_tiles_receive
        parts = np.array(partition.parts, dtype=np.int64)
        steps = np.array(partition.steps, dtype=np.int64)
        counts = np.zeros(LINKS + 4 * grid.tiles, dtype=np.int64)
        now = np.zeros_like(counts)
        shares_in, shares_weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
        apart = partition.parts[2] == 1 or divided.is_summed
        energy, turns = np.zeros(4), []
        for j, (low, high) in enumerate(itertools.pairwise(stated.borders.tolist())):
            stripe = stated.leaf
            if borders:
                stripe = stripe_of(stripe, low, high, int(stated.known[j]) if apart else 0)
            again = flow if j == 0 or streamed else flow._replace(runs=NEVER)
            leaf_traffic_kernel.traffic(now, stripe, again, stated.mesh, parts, steps, True)
            leaf_kernel.usage(stripe, parts, idle, shares_in, shares_weights)
            height = high - low if borders else None
            cycles, share_energy = share_cost(self.costs, divided, batch, partition.parts, height)
            energy += share_energy * tiles
            energy[0] += leaf_kernel.buffer_energy(stripe, shares_in, shares_weights, again.runs, prices)
            turn = max(int(cycles), ceil(now[DRAM] / prices.rate))
            if borders and not self.rules.segment_bounds_only:
                turn = max(turn, ceil(int(now[LINKS:].max()) / self.machine.link_rate))
            turns.append(turn)
            counts += now
        if borders:
            largest_shares(stated.leaf, stated.borders, parts, idle, shares_in, shares_weights)
        at = first + share_tiles(partition)
        inputs, weights = np.zeros(grid.tiles, dtype=np.int64), np.zeros(grid.tiles, dtype=np.int64)
        inputs[at] = shares_in
        weights[at] = np.minimum(shares_weights, streamed) if streamed else shares_weights
        if stated.leaf.made:
            inputs, weights = inputs + weights, np.zeros_like(weights)
        buffer = inputs + (inputs > 0) * self.rules.result_bytes
        if int((buffer + weights).max()) > self.capacity:
            return None
        moved = counts[HOPS] * prices.hop + counts[DRAM] * prices.dram
        passes_stripes = bool(borders) and not divided.is_summed
        return LeafCost(
            partition=partition,
            layout=self.layout(layer, batch, first, partition, borders),
            energy=float(energy.sum() + moved),
            parts=energy,
            cycles=sum(turns),
            counts=counts,
            buffer=buffer,
            inputs=inputs,
            weights=weights,
            streamed=streamed > 0,
            borders=borders if passes_stripes else (),
            turns=tuple(turns) if passes_stripes else (),
        )

    def _links_on(self, first: int, tiles: int) -> Int32s:
        """Links of multicasts on some tiles, see `leaf_search_kernel.search`; -1 at first."""
        links = self._links.get((first, tiles))
        if links is None:
            shape = row_numbers(tiles)[1], KINDS
            links = self._links[first, tiles] = np.full(shape, -1, dtype=np.int32)
        return links
