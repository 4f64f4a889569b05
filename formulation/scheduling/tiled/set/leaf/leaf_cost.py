"""What one run of a leaf costs and holds."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition
from tilewright.foundation.arrays import Floats, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class LeafCost:
    """One run of a leaf.

    Parameters
    ----------
    partition : the shares and their order
    layout : number of its layout
    energy : pJ; ``parts``: those at the tiles' buffers, inside arrays, on their buses, in multipliers
    cycles : of the slowest of array and DRAM; of a leaf in stripes, of the busiest link too
    counts : bytes times links, bytes of DRAM, bytes of every link
    buffer, inputs, weights : bytes per tile of the machine
    streamed : whether weights pass through the buffers at every run
    borders : rows between which the stripes lie in which the leaf runs, where it makes its results in stripes
    turns : cycles of every such stripe; everything else is of all of them
    """

    partition: Partition
    layout: int
    energy: float
    parts: Floats
    cycles: int
    counts: Int64s
    buffer: Int64s
    inputs: Int64s
    weights: Int64s
    streamed: bool = False
    borders: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
