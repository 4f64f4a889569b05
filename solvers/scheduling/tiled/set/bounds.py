"""Lower bounds on the closed form of trees: what no tree of a network undercuts.

Per layer, over every number of tiles, every batch that divides the whole one and every partition that is
tried:

====== =====================================================================================================
energy what the tiles spend on all samples (inputs and weights written and results read included), and DRAM
and
       hops of its weights, each byte over at least the mean distance from DRAM's ports to the best tile
work   cycles times tiles
====== =====================================================================================================

A network spends the energies of its layers and moves its inputs and outputs too; it takes the work of all
layers over all tiles, or what its compulsory traffic takes of DRAM's rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.formulation.scheduling.tiled.set import leaf_kernel
from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.tree import Leaf, Node


@dataclass(frozen=True, slots=True)
class TreeBounds:
    """Lower bounds for one network.

    Parameters
    ----------
    energy : pJ cycles : the larger of ``work`` (all layers over all tiles) and ``dram`` (compulsory traffic
        over the rate) value : of the objective
    """

    energy: float
    work: int
    dram: int
    value: float

    @property
    def cycles(self) -> int:
        return max(self.work, self.dram)


class Floors:
    """What every layer takes at least, by the closed form."""

    def __init__(self, form: ClosedForm) -> None:
        self.form = form
        self._cycles: dict[tuple[int, int, int], float] = {}
        self._trees: dict[tuple[Node, int], float] = {}
        self._batches = [one for one in range(1, form.batch + 1) if form.batch % one == 0]

    @cached_property
    def reach(self) -> float:
        """Hops of a byte from DRAM to the nearest tile, on average over the ports."""
        grid = self.form.engine.grid
        away = np.abs(grid.x[:, None] - grid.ports[None, :, 0]) + np.abs(
            grid.y[:, None] - grid.ports[None, :, 1]
        )
        return float(away.mean(axis=1).min())

    @property
    def byte_energy(self) -> float:
        """pJ of a byte that passes DRAM; a hop less for what rounding over the ports may save."""
        machine = self.form.machine
        return machine.dram_energy + self.reach * machine.hop_energy

    @cached_property
    def tile_energy(self) -> tuple[float, ...]:
        """Per layer, pJ inside tiles for the whole batch."""
        return tuple(self._layer(layer)[0] for layer in range(len(self.form.network)))

    @cached_property
    def work(self) -> tuple[float, ...]:
        """Per layer, cycles times tiles for the whole batch."""
        return tuple(self._layer(layer)[1] for layer in range(len(self.form.network)))

    def _layer(self, layer: int) -> tuple[float, float]:
        engine, form = self.form.engine, self.form
        energy = work = math.inf
        for batch in self._batches:
            runs = form.batch // batch
            leaf = engine.numbers(layer, batch)
            for tiles in range(1, engine.grid.tiles + 1):
                seen = set()
                for partition in engine.menu(layer, batch, tiles):
                    if partition.parts in seen:
                        continue
                    seen.add(partition.parts)
                    cycles, each = engine.share_cost(layer, batch, partition.parts)
                    if not cycles:
                        continue
                    parts = np.array(partition.parts, dtype=np.int64)
                    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
                    leaf_kernel.usage(leaf, parts, form.rules.idle_tiles_receive, inputs, weights)
                    outside = leaf_kernel.buffer_energy(leaf, inputs, weights, runs, engine.prices)
                    energy = min(energy, runs * (float(each.sum()) * tiles + outside))
                    work = min(work, runs * cycles * tiles)
                    floor = (layer, batch, tiles)
                    self._cycles[floor] = min(self._cycles.get(floor, math.inf), cycles)
        return energy, work

    def weight_bytes(self, layer: int) -> int:
        """Stored weights of a layer."""
        one = self.form.network.layers[layer]
        return 0 if one.makes_weights or one.is_summed else one.weight_bytes

    def energy(self, layer: int) -> float:
        """pJ of a layer for the whole batch, without what its inputs and results move."""
        return self.tile_energy[layer] + self.weight_bytes(layer) * self.byte_energy

    def moved(self, tree: Node) -> float:
        """Bytes that one run of a segment reads from DRAM and writes there at least.

        What goes through DRAM follows from the tree alone; strides that leave gaps may leave inputs unread.
        """
        form, layers = self.form, self.form.network.layers
        direct, stored = form.dataflow.flow_bits(tree)
        found = 0.0
        rest = tree.mask
        while rest:
            low = rest & -rest
            rest ^= low
            layer = low.bit_length() - 1
            one = layers[layer]
            found += self.weight_bytes(layer) * tree.batch / form.batch
            if stored & low:
                found += one.stored_bytes(tree.batch) * (tree.batch / form.batch if one.is_summed else 1)
            if one.stride_rows > one.taps_rows or one.stride_columns > one.taps_columns:
                continue
            if one.external:
                found += tree.batch * one.external * one.input_rows * one.input_columns
            for read, producer in zip(form.dataflow.numbers(layer), one.producers, strict=True):
                if not direct >> read.number & 1 and not producer.scattered and not producer.weights:
                    found += tree.batch * producer.channels * one.input_rows * one.input_columns
        return found

    def tree_cycles(self, tree: Node, tiles: int) -> float:
        """Cycles of one run of a tree by its arrays alone; infinite where it gets no tiles."""
        key = (tree, tiles)
        found = self._trees.get(key)
        if found is None:
            found = self._tree(tree, tiles)
            self._trees[key] = found
        return found

    def _tree(self, tree: Node, tiles: int) -> float:
        if isinstance(tree, Leaf):
            assert self.work
            return self._cycles.get((tree.layer, tree.batch, tiles), math.inf)
        if tree.kind == "T":
            return tree.groups * sum(self.tree_cycles(child, tiles) for child in tree.children)
        given = self.form.allocation(tree, tiles)
        if isinstance(given, str):
            return math.inf
        slowest = max(
            self.tree_cycles(child, count) for child, count in zip(tree.children, given, strict=True)
        )
        return slowest * (tree.groups + self.form.dataflow.stages(tree).last)


def tree_bounds(form: ClosedForm) -> TreeBounds:
    """Bounds on every tree of a closed form's network and batch."""
    floors = Floors(form)
    network, machine = form.network, form.machine
    moved = sum(floors.weight_bytes(layer) for layer in range(len(network)))
    for one in network.layers:
        if one.is_output:
            moved += one.stored_bytes(form.batch)
        gaps = one.stride_rows > one.taps_rows or one.stride_columns > one.taps_columns
        if one.external and not gaps:
            moved += form.batch * one.external * one.input_rows * one.input_columns
    energy = sum(floors.tile_energy) + moved * floors.byte_energy
    energy *= 1 - 1e-6
    work = math.ceil(sum(floors.work) / form.engine.grid.tiles - 1e-6)
    dram = math.ceil(moved / machine.dram_rate)
    return TreeBounds(energy, work, dram, form.value(energy, max(work, dram)))
