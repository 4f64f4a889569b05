"""What a tree costs in closed form (section 4.3): cycles, energy, traffic and buffers of every node.

===== ======================================================================================================
leaf  ``max(array, DRAM bytes / rate)``
T cut ``g`` times the sum of its children
S cut ``(g + stages)`` times its slowest child
===== ======================================================================================================

and nothing is faster than its DRAM traffic and its busiest link allow.  Energy and traffic are ``g`` times
the sum of the children.  In every buffer lie

===== ======================================================================================================
leaf  its inputs, room for results, its weights
T cut the most of two children that follow each other: what the former holds and the inputs of the latter,
      the last and the first too where ``g > 1``; all weights, unless they shift (`Rules.weight_shift`)
S cut what its children hold, their inputs a second time where ``g > 1``, all weights
===== ======================================================================================================

and a cut that is no child of the root keeps room for all of its inputs.  Children of a root T cut know
nothing of each other, so each is kept once evaluated.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.leaf.intra_layer import IntraLayerEngine
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition
from tilewright.formulation.scheduling.tiled.set.leaf.striped_leaf import StripeEngine
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import EngineTile, ProgramTile, TileCosts
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import LINKS
from tilewright.formulation.scheduling.tiled.set.trees.allocation import allocate, utilization
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import Floats as Floats
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost as NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.striped import striped_cost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, leaves
from tilewright.foundation.errors import TilewrightError
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

Longs = npt.NDArray[np.int64]

HUGE = 1e300
"""More pJ or cycles than any tree takes."""


class UnfitTreeError(TilewrightError, ValueError):
    """A valid tree that a machine cannot run: too few tiles, a poor allocation, or full buffers."""


class ClosedForm:
    """Evaluates trees of one network, batch and machine; segments and leaves are kept.

    Parameters
    ----------
    costs : of shares on a tile
    energy_power, delay_power : of the objective, which every leaf keeps small for itself
    partitions : per layer, a partition that is not searched for
    """

    def __init__(
        self,
        network: SetNetwork,
        machine: TiledMachine,
        batch: int,
        costs: TileCosts,
        rules: Rules = Rules(),  # noqa: B008 - frozen
        *,
        energy_power: float = 1.0,
        delay_power: float = 1.0,
        partitions: dict[int, Partition] | None = None,
    ) -> None:
        self.network, self.machine, self.batch, self.rules = network, machine, batch, rules
        self.energy_power, self.delay_power = float(energy_power), float(delay_power)
        self.engine = IntraLayerEngine(network, machine, costs, rules, energy_power, delay_power)
        self.striped = StripeEngine(self.engine)
        self.dataflow = DataFlow(network, tuple(costs.processing_time(layer) for layer in network.layers))
        self.partitions = partitions or {}
        self.room = machine.engine.buffer_bytes
        self.kept: dict[tuple[Node, int], NodeCost | str] = {}
        self.subtrees: dict[tuple[object, ...], tuple[NodeCost | str, tuple[tuple[int, int], ...]]] = {}
        self.evaluations = 0
        self._allocations: dict[tuple[object, ...], tuple[int, ...] | str] = {}

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

    def evaluate(self, tree: Node) -> NodeCost:
        """The cost of a tree.

        Raises
        ------
        UnfitTreeError : naming the node that the machine cannot run, and why
        """
        cost = self.attempt(tree)
        if isinstance(cost, str):
            raise UnfitTreeError(cost)
        return cost

    def attempt(self, tree: Node) -> NodeCost | str:
        """The cost of a tree, or why the machine cannot run it."""
        if isinstance(tree, Leaf) or tree.kind == "S":
            return self.segment(tree, tree.batch)
        children = []
        loads = self.batch if self.rules.split_root_weights_once else tree.batch // tree.groups
        for child in tree.children:
            cost = self.segment(child, loads)
            if isinstance(cost, str):
                return cost
            children.append(cost)
        return self._joined(tree, 0, self.engine.grid.tiles, children)

    def segment(self, tree: Node, loads: int) -> NodeCost | str:
        """The cost of a child of a root T cut, or of a root that is none.

        Parameters
        ----------
        loads : samples for which weights are loaded once
        """
        key = (tree, loads)
        cost = self.kept.get(key)
        if cost is None:
            self.evaluations += 1
            if isinstance(tree, Cut) and tree.bands > 1:
                cost = striped_cost(self, tree, loads)
            else:
                cost = _Segment(self, tree, loads).cost()
            self.kept[key] = cost
        return cost

    def allocation(self, cut: Cut, tiles: int) -> tuple[int, ...] | str:
        """Tiles for the children of an S cut, or why it does not get them."""
        times = tuple(self.dataflow.processing_time(child) for child in cut.children)
        key = (times, tiles)
        allocated = self._allocations.get(key)
        if allocated is None:
            given = allocate(times, tiles)
            if given is None:
                allocated = f"{len(times)} children of an S cut on {tiles} tiles"
            elif utilization(times, given) < self.rules.least_utilization:
                allocated = f"{tiles} tiles divided as {given} are used to {utilization(times, given):.0%}"
            else:
                allocated = given
            self._allocations[key] = allocated
        return allocated

    def bounded(self, cycles: int, counts: Longs) -> int:
        """Cycles, but no less than DRAM and the busiest link need."""
        dram = math.ceil(int(counts[1]) / self.machine.dram_rate)
        link = math.ceil(int(counts[LINKS:].max()) / self.machine.link_rate)
        return max(cycles, dram, link)

    def _joined(self, tree: Cut, first: int, tiles: int, children: list[NodeCost]) -> NodeCost:
        """A root T cut."""
        groups = tree.groups
        counts, parts = children[0].counts.copy(), children[0].parts.copy()
        for child in children[1:]:
            counts += child.counts
            parts += child.parts
        nothing = np.zeros(self.engine.grid.tiles, dtype=np.int64)
        buffer = children[0].buffer + children[0].weights
        for child in children[1:]:
            buffer = np.maximum(buffer, child.buffer + child.weights)
        return NodeCost(
            node=tree,
            first=first,
            tiles=tiles,
            energy=sum(segment.energy for segment in children) * groups,
            parts=parts * groups,
            cycles=sum(segment.cycles for segment in children) * groups,
            counts=counts * groups,
            buffer=buffer,
            inputs=nothing,
            weights=nothing,
            children=tuple(children),
        )


class _Segment:
    """Evaluates one child of the root; leaves from left to right, so that layouts of producers are known."""

    def __init__(self, form: ClosedForm, tree: Node, loads: int) -> None:
        self.form, self.tree, self.loads = form, tree, loads
        self.direct, self.stored = form.dataflow.flow_bits(tree)
        self.layouts: dict[int, int] = {}

    def cost(self) -> NodeCost | str:
        return self._node(self.tree, 0, self.form.engine.grid.tiles, True)

    def _node(self, node: Node, first: int, tiles: int, top: bool) -> NodeCost | str:
        if isinstance(node, Leaf):
            return self._leaf(node, first, tiles, top)
        if top:
            return self._of_kind(node, first, tiles, top)
        outside = tuple(
            self.layouts[read.producer] if self.direct >> read.number & 1 else -1
            for read in self.form.dataflow.reads(node).crossing
        )
        key = (node, first, tiles, self.loads, self.stored & node.mask, outside)
        priced = self.form.subtrees.get(key)
        if priced is None:
            cost = self._of_kind(node, first, tiles, top)
            made = tuple((leaf.layer, self.layouts.get(leaf.layer, -1)) for leaf in leaves(node))
            priced = cost, made
            self.form.subtrees[key] = priced
        else:
            self.layouts.update(priced[1])
        return priced[0]

    def _of_kind(self, node: Cut, first: int, tiles: int, top: bool) -> NodeCost | str:
        if node.kind == "T":
            return self._in_turn(node, first, tiles, top)
        return self._at_once(node, first, tiles, top)

    def _leaf(self, node: Leaf, first: int, tiles: int, top: bool) -> NodeCost | str:
        form, layer = self.form, node.layer
        direct = tuple(
            self.layouts[read.producer] if self.direct >> read.number & 1 else -1
            for read in form.dataflow.numbers(layer)
        )
        stored, runs = bool(self.stored >> layer & 1), max(1, self.loads // node.batch)
        fixed = form.partitions.get(layer)
        if fixed is None:
            leaf_cost = form.engine.leaf(layer, node.batch, first, tiles, stored, runs, direct)
        elif fixed.tiles != tiles:
            return f"{form.network.layers[layer].name}: partition {fixed} on {tiles} tiles"
        else:
            leaf_cost = form.engine.partitioned(layer, node.batch, first, stored, runs, direct, fixed)
        if leaf_cost is None:
            return f"{form.network.layers[layer].name}: no partition over {tiles} tiles fits their buffers"
        self.layouts[layer] = leaf_cost.layout
        cycles = leaf_cost.cycles
        if top or not form.rules.segment_bounds_only:
            cycles = form.bounded(cycles, leaf_cost.counts)
        return NodeCost.of_leaf(node, first, tiles, leaf_cost, cycles, stored)

    def _in_turn(self, node: Cut, first: int, tiles: int, top: bool) -> NodeCost | str:
        shift = top and node.groups == 1 and self.form.rules.weight_shift
        children: list[NodeCost] = []
        buffer = np.zeros(self.form.engine.grid.tiles, dtype=np.int64)
        for child in node.children:
            cost = self._node(child, first, tiles, False)
            if isinstance(cost, str):
                return cost
            if children:
                last = children[-1]
                both = cost.inputs + last.buffer
                if shift:
                    both = both + last.weights + cost.weights
                buffer = np.maximum(buffer, both)
            children.append(cost)
        last = children[-1]
        rest = last.buffer + last.weights if shift else last.buffer
        if node.groups > 1:
            rest = rest + children[0].inputs
        buffer = np.maximum(buffer, rest)
        weights = np.zeros_like(buffer)
        if not shift:
            for child_cost in children:
                weights = weights + child_cost.weights
        cycles = sum(child_cost.cycles for child_cost in children) * node.groups
        return self._cut(node, first, tiles, top, children, cycles, buffer, weights)

    def _at_once(self, node: Cut, first: int, tiles: int, top: bool) -> NodeCost | str:
        given = self.form.allocation(node, tiles)
        if isinstance(given, str):
            return given
        children: list[NodeCost] = []
        buffer = np.zeros(self.form.engine.grid.tiles, dtype=np.int64)
        weights = np.zeros_like(buffer)
        at = first
        for child, count in zip(node.children, given, strict=True):
            cost = self._node(child, at, count, False)
            if isinstance(cost, str):
                return cost
            at += count
            buffer += cost.buffer
            if node.groups > 1:
                buffer += cost.inputs
            weights += cost.weights
            children.append(cost)
        stages = self.form.dataflow.stages(node).last
        cycles = max(child_cost.cycles for child_cost in children) * (node.groups + stages)
        return self._cut(node, first, tiles, top, children, cycles, buffer, weights)

    def _cut(
        self,
        node: Cut,
        first: int,
        tiles: int,
        top: bool,
        children: list[NodeCost],
        cycles: int,
        buffer: Longs,
        weights: Longs,
    ) -> NodeCost | str:
        form, groups = self.form, node.groups
        counts, parts = children[0].counts.copy(), children[0].parts.copy()
        energy = children[0].energy
        for child in children[1:]:
            counts += child.counts
            parts += child.parts
            energy += child.energy
        inputs = np.zeros_like(buffer)
        if not top:
            for child in children:
                inputs = inputs + child.inputs
            inputs *= groups
        for what, held in (("data", buffer + weights), ("inputs", inputs)):
            if int(held.max()) > form.room:
                return f"{self._name(node)}: {what} take {int(held.max())} bytes, a buffer holds {form.room}"
        counts *= groups
        if top or not form.rules.segment_bounds_only:
            cycles = form.bounded(cycles, counts)
        return NodeCost(
            node=node,
            first=first,
            tiles=tiles,
            energy=energy * groups,
            parts=parts * groups,
            cycles=cycles,
            counts=counts,
            buffer=buffer,
            inputs=inputs,
            weights=weights,
            children=tuple(children),
        )

    def _name(self, node: Node) -> str:
        names = [self.form.network.layers[leaf.layer].name for leaf in leaves(node)]
        kind = node.written if isinstance(node, Cut) else "leaf"
        return f"{kind} of {names[0]} to {names[-1]}"


def program_form(
    network: SetNetwork,
    machine: TiledMachine,
    batch: int,
    rules: Rules,
    *,
    energy: float = 1.0,
    delay: float = 1.0,
) -> ClosedForm:
    """Trees with the figures of the released program's tile."""
    costs = ProgramTile(energy, delay)
    return ClosedForm(network, machine, batch, costs, rules, energy_power=energy, delay_power=delay)


def engine_form(
    network: SetNetwork,
    machine: TiledMachine,
    batch: int,
    rules: Rules,
    *,
    energy: float = 1.0,
    delay: float = 1.0,
) -> ClosedForm:
    """Trees with the costs of atoms on the machine's engines; bytes are elements where those are longer."""
    costs = EngineTile(machine.engine)
    return ClosedForm(
        network, machine.in_elements(), batch, costs, rules, energy_power=energy, delay_power=delay
    )
