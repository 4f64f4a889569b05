"""What one node of an evaluated tree costs and holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.set.leaf.leaf_cost import LeafCost
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, HOPS, LINKS
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.foundation.arrays import Floats, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class NodeCost:
    """One node of an evaluated tree.

    Parameters
    ----------
    node : of the tree
    first, tiles : its tiles, in the order of stripes
    energy : pJ of one run
    parts : of these at tiles' buffers, inside arrays, on their buses and in multipliers
    cycles : of one run
    counts : bytes times links, bytes of DRAM, bytes of every link
    buffer, inputs, weights : bytes per tile that it holds while it runs, that wait for it, that are pinned
    children : in the order of the tree
    leaf : of a leaf, its partition and layout
    stored : of a leaf, whether its results go to DRAM
    """

    node: Node
    first: int
    tiles: int
    energy: float
    parts: Floats
    cycles: int
    counts: Int64s
    buffer: Int64s
    inputs: Int64s
    weights: Int64s
    children: tuple[NodeCost, ...] = ()
    leaf: LeafCost | None = None
    stored: bool = False

    @classmethod
    def of_leaf(
        cls, node: Node, first: int, tiles: int, leaf: LeafCost, cycles: int, stored: bool
    ) -> NodeCost:
        """The cost of a leaf's node.

        Parameters
        ----------
        node : of the tree
        first, tiles : its first tile in the order of the grid, and their number
        leaf : what one run costs and holds
        cycles : of one run; links and DRAM may bound them more tightly than ``leaf`` alone
        stored : whether its results go to DRAM
        """
        return cls(
            node=node,
            first=first,
            tiles=tiles,
            energy=leaf.energy,
            parts=leaf.parts,
            cycles=cycles,
            counts=leaf.counts,
            buffer=leaf.buffer,
            inputs=leaf.inputs,
            weights=leaf.weights,
            children=(),
            leaf=leaf,
            stored=stored,
        )

    @property
    def hops(self) -> int:
        """Bytes times links."""
        return int(self.counts[HOPS])

    @property
    def dram(self) -> int:
        """Bytes of DRAM."""
        return int(self.counts[DRAM])

    @property
    def busiest_link(self) -> int:
        """Bytes of the link that carries most."""
        return int(self.counts[LINKS:].max())

    def walk(self) -> Iterator[NodeCost]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()
