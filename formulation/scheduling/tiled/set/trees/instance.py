"""What trees are evaluated on: a network and its batch, a machine, rules and an objective.

Leaves, the data flow between layers and the allocation of tiles to the children of S cuts depend on nothing
else, so each is cached here, whatever tree asks for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tilewright.formulation.scheduling.tiled.set.leaf.intra_layer import IntraLayerEngine
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_cost import LeafCost
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import Borders
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import TileCosts
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, LINKS
from tilewright.formulation.scheduling.tiled.set.trees.allocation import allocate, utilization
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.foundation.arrays import Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

HUGE = 1e300
"""More pJ or cycles than any tree takes."""


@dataclass(eq=False)
class TreeInstance:
    """One network, batch, machine, rules and objective.

    Parameters
    ----------
    costs : of shares on a tile
    energy_power, delay_power : of the objective, which every leaf minimizes for itself
    partitions : per layer, a partition that is not searched for

    Attributes
    ----------
    engine : costs of leaves
    dataflow : who reads whom, and which results pass on directly
    capacity : bytes of a buffer
    """

    network: SetNetwork
    machine: TiledMachine
    batch: int
    costs: TileCosts
    rules: Rules = Rules()  # noqa: RUF009 - frozen
    energy_power: float = field(default=1.0, kw_only=True)
    delay_power: float = field(default=1.0, kw_only=True)
    partitions: dict[int, Partition] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self.energy_power, self.delay_power = float(self.energy_power), float(self.delay_power)
        self.engine = IntraLayerEngine(
            self.network, self.machine, self.costs, self.rules, self.energy_power, self.delay_power
        )
        times = tuple(self.costs.processing_time(layer) for layer in self.network.layers)
        self.dataflow = DataFlow(self.network, times)
        self.capacity = self.machine.engine.buffer_bytes
        self._allocations: dict[tuple[object, ...], tuple[int, ...] | Unfit] = {}

    def value(self, energy: float, cycles: float) -> float:
        """The objective; of bounds below nothing, that of nothing."""
        return float(max(energy, 0.0) ** self.energy_power * max(cycles, 0.0) ** self.delay_power)

    def most(self, value: float, energy: float, cycles: float) -> tuple[float, float]:
        """The most energy and the most cycles that come to a value with no fewer cycles, and with no less
        energy, than given; huge where any do.
        """
        a, b = self.energy_power, self.delay_power
        spend = (value / cycles**b) ** (1 / a) if a and value < math.inf and cycles > 0 else HUGE
        last = (value / energy**a) ** (1 / b) if b and value < math.inf and energy > 0 else HUGE
        return min(spend, HUGE), min(last, HUGE)

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
        """One run of a layer with its given or its best partition; ``None`` where none fits.

        Parameters
        ----------
        layer, batch, first, tiles, stored, runs, direct, borders, copies : as for `IntraLayerEngine.leaf`
        """
        fixed, run = self.partitions.get(layer), (stored, runs, direct)
        if fixed is None:
            return self.engine.leaf(layer, batch, first, tiles, *run, borders, copies)
        if fixed.tiles != tiles:
            return None
        return self.engine.partitioned(layer, batch, first, *run, fixed, borders, copies)

    def allocation(self, cut: Cut, tiles: int) -> tuple[int, ...] | Unfit:
        """Tiles for the children of an S cut, or why it does not get them."""
        times = tuple(self.dataflow.processing_time(child) for child in cut.children)
        key = (times, tiles)
        allocated = self._allocations.get(key)
        if allocated is None:
            given = allocate(times, tiles)
            if given is None:
                allocated = Unfit(f"{len(times)} children of an S cut on {tiles} tiles")
            elif utilization(times, given) < self.rules.least_utilization:
                allocated = Unfit(
                    f"{tiles} tiles divided as {given} are used to {utilization(times, given):.0%}"
                )
            else:
                allocated = given
            self._allocations[key] = allocated
        return allocated

    def bounded(self, cycles: int, counts: Int64s) -> int:
        """Cycles, but no less than DRAM and the busiest link need."""
        dram = math.ceil(int(counts[DRAM]) / self.machine.dram_rate)
        link = math.ceil(int(counts[LINKS:].max()) / self.machine.link_rate)
        return max(cycles, dram, link)
