"""What a tree costs in closed form (section 4.3): cycles, energy, traffic and buffers of every node.

===== ======================================================================================================
leaf  ``max(array, DRAM bytes / rate)``
T cut ``g`` times the sum of its children
S cut ``(g + stages)`` times its slowest child
===== ======================================================================================================

and nothing is faster than its DRAM traffic and its busiest link allow.  Energy and traffic are ``g`` times
the sum of the children.  Every buffer holds

===== ======================================================================================================
leaf  its inputs, capacity for results, its weights
T cut the largest need of two consecutive children: what the former holds and the inputs of the latter, the
      last and the first too where ``g > 1``; all weights, unless they shift (`Rules.weight_shift`)
S cut what its children hold, their inputs a second time where ``g > 1``, all weights
===== ======================================================================================================

and a cut that is no child of the root reserves capacity for all of its inputs.  Children of a root T cut are
independent of each other, so each is cached once evaluated.
"""

from __future__ import annotations

import numpy as np

from tilewright.formulation.scheduling.tiled.set.trees.instance import TreeInstance
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, leaves
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.foundation.arrays import Int64s

Subtrees = dict[tuple[object, ...], tuple[NodeCost | Unfit, tuple[tuple[int, int], ...]]]
"""Nodes below a child of the root by all that their costs depend on: the cost, and the layouts of the results
of their layers.
"""


def segment_cost(instance: TreeInstance, subtrees: Subtrees, tree: Node, loads: int) -> NodeCost | Unfit:
    """The cost of a child of a root T cut, or of a root that is none, or why it does not fit.

    Parameters
    ----------
    subtrees : those whose cost is known already; others are added
    loads : samples for which weights are loaded once
    """
    return _Segment(instance, subtrees, tree, loads).cost()


class _Segment:
    """Evaluates one child of the root; leaves from left to right, so that layouts of producers are known."""

    def __init__(self, instance: TreeInstance, subtrees: Subtrees, tree: Node, loads: int) -> None:
        self.instance, self.subtrees, self.tree, self.loads = instance, subtrees, tree, loads
        self.direct, self.stored = instance.dataflow.flow_bits(tree)
        self.layouts: dict[int, int] = {}

    def cost(self) -> NodeCost | Unfit:
        return self._node(self.tree, 0, self.instance.engine.grid.tiles, True)

    def _node(self, node: Node, first: int, tiles: int, top: bool) -> NodeCost | Unfit:
        if isinstance(node, Leaf):
            return self._leaf(node, first, tiles, top)
        if top:
            return self._of_kind(node, first, tiles, top)
        outside = tuple(
            self.layouts[read.producer] if self.direct >> read.number & 1 else -1
            for read in self.instance.dataflow.reads(node).crossing
        )
        key = (node, first, tiles, self.loads, self.stored & node.mask, outside)
        priced = self.subtrees.get(key)
        if priced is None:
            cost = self._of_kind(node, first, tiles, top)
            made = tuple((leaf.layer, self.layouts.get(leaf.layer, -1)) for leaf in leaves(node))
            priced = cost, made
            self.subtrees[key] = priced
        else:
            self.layouts.update(priced[1])
        return priced[0]

    def _of_kind(self, node: Cut, first: int, tiles: int, top: bool) -> NodeCost | Unfit:
        if node.kind == "T":
            return self._in_turn(node, first, tiles, top)
        return self._at_once(node, first, tiles, top)

    def _leaf(self, node: Leaf, first: int, tiles: int, top: bool) -> NodeCost | Unfit:
        instance, layer = self.instance, node.layer
        direct = tuple(
            self.layouts[read.producer] if self.direct >> read.number & 1 else -1
            for read in instance.dataflow.numbers(layer)
        )
        stored, runs = bool(self.stored >> layer & 1), max(1, self.loads // node.batch)
        fixed = instance.partitions.get(layer)
        if fixed is not None and fixed.tiles != tiles:
            return Unfit(f"{instance.network.layers[layer].name}: partition {fixed} on {tiles} tiles")
        leaf_cost = instance.leaf(layer, node.batch, first, tiles, stored, runs, direct)
        if leaf_cost is None:
            return Unfit(
                f"{instance.network.layers[layer].name}: no partition over {tiles} tiles fits their buffers"
            )
        self.layouts[layer] = leaf_cost.layout
        cycles = leaf_cost.cycles
        if top or not instance.rules.segment_bounds_only:
            cycles = instance.bounded(cycles, leaf_cost.counts)
        return NodeCost.of_leaf(node, first, tiles, leaf_cost, cycles, stored)

    def _in_turn(self, node: Cut, first: int, tiles: int, top: bool) -> NodeCost | Unfit:
        shift = top and node.groups == 1 and self.instance.rules.weight_shift
        children: list[NodeCost] = []
        buffer = np.zeros(self.instance.engine.grid.tiles, dtype=np.int64)
        for child in node.children:
            cost = self._node(child, first, tiles, False)
            if isinstance(cost, Unfit):
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

    def _at_once(self, node: Cut, first: int, tiles: int, top: bool) -> NodeCost | Unfit:
        given = self.instance.allocation(node, tiles)
        if isinstance(given, Unfit):
            return given
        children: list[NodeCost] = []
        buffer = np.zeros(self.instance.engine.grid.tiles, dtype=np.int64)
        weights = np.zeros_like(buffer)
        at = first
        for child, count in zip(node.children, given, strict=True):
            cost = self._node(child, at, count, False)
            if isinstance(cost, Unfit):
                return cost
            at += count
            buffer += cost.buffer
            if node.groups > 1:
                buffer += cost.inputs
            weights += cost.weights
            children.append(cost)
        stages = self.instance.dataflow.stages(node).last
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
        buffer: Int64s,
        weights: Int64s,
    ) -> NodeCost | Unfit:
        instance, groups = self.instance, node.groups
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
            if int(held.max()) > instance.capacity:
                size, capacity = int(held.max()), instance.capacity
                return Unfit(f"{self._name(node)}: {what} take {size} bytes, a buffer holds {capacity}")
        counts *= groups
        if top or not instance.rules.segment_bounds_only:
            cycles = instance.bounded(cycles, counts)
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
        names = [self.instance.network.layers[leaf.layer].name for leaf in leaves(node)]
        kind = node.written if isinstance(node, Cut) else "leaf"
        return f"{kind} of {names[0]} to {names[-1]}"
