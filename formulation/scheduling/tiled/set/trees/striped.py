"""The cost of a segment whose layers run and pass on in row stripes, one sample at a time.

With ``t(l, j)`` the cycles of stripe ``j`` of layer ``l`` on its tiles, ``G`` stripes of all samples together
and ``s(l)`` the stage of a layer,

===== ======================================================================================================
S cut the sum over ``x`` from 0 to ``G + stages - 1`` of ``max over l of t(l, (x - s(l)) mod stripes)``, over
      those layers that have a stripe then
T cut samples times the sum of all ``t(l, j)``
===== ======================================================================================================

and nothing is faster than its DRAM traffic and its busiest link allow.  Energy and traffic are sums.  Every
buffer holds, of the largest stripes,

===== ======================================================================================================
S cut results, inputs twice (of this stripe and of the next), weights
T cut the largest need of two consecutive layers: results and inputs of the former, inputs of the latter;
      what each layer retains of a stripe's inputs for the next one, all weights
===== ======================================================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_cost import LeafCost
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import reach, stripe_borders
from tilewright.formulation.scheduling.tiled.set.trees.instance import TreeInstance
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, leaves
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit


def slot_cycles(turns: Sequence[Sequence[float]], stages: Sequence[int], samples: int) -> Iterator[float]:
    """The cycles of every slot of an S cut: those of the slowest stripe that runs in it.

    Parameters
    ----------
    turns : per layer, the cycles of its stripes
    stages : per layer, the slots after the first in which it begins
    samples : that run one after the other
    """
    stripes = len(turns[0])
    for slot in range(stripes * samples + max(stages)):
        yield max(
            each[(slot - stage) % stripes]
            for each, stage in zip(turns, stages, strict=True)
            if 0 <= slot - stage < stripes * samples
        )


def kept_bytes(layer: SetLayer, borders: Sequence[int], leaf: LeafCost) -> int:
    """Most bytes of inputs that a tile retains from one stripe to the next: the rows that both read."""
    rows = [0]
    for low, middle in itertools.pairwise(borders[:-1]):
        first = max(0, middle * layer.stride_rows - layer.pad_rows)
        if layer.spread:
            first = max(0, -((layer.taps_rows - 1 - middle) // layer.stride_rows))
        rows.append(max(0, reach(layer, middle) - max(first, reach(layer, low) if low else 0)))
    columns = min(
        layer.input_columns,
        (-(-layer.columns // leaf.partition.parts[3]) - 1) * layer.stride_columns + layer.taps_columns,
    )
    return max(rows) * columns * layer.inputs * layer.operands


def striped_cost(instance: TreeInstance, cut: Cut, loads: int) -> NodeCost | Unfit:
    """The cost of a cut of leaves in row stripes, or why it does not fit.

    Parameters
    ----------
    cut : whose children are leaves; a child of a root T cut, or the root
    loads : samples for which weights are loaded once
    """
    network, tiles = instance.network, instance.engine.grid.tiles
    layers = [leaf.layer for leaf in leaves(cut)]
    name = f"{cut.written} of {network.layers[layers[0]].name} to {network.layers[layers[-1]].name}"
    borders = stripe_borders(network, layers, cut.stripes)
    if borders is None:
        return Unfit(f"{name}: its layers cannot run in bands of rows")
    given = instance.allocation(cut, tiles) if cut.kind == "S" else (tiles,) * len(layers)
    if isinstance(given, Unfit):
        return given
    direct, stored = instance.dataflow.flow_bits(cut)
    layouts: dict[int, int] = {}
    children: list[NodeCost] = []
    first = 0
    for leaf, count in zip(cut.children, given, strict=True):
        layer = next(leaves(leaf)).layer
        near = tuple(
            layouts[read.producer] if direct >> read.number & 1 else -1
            for read in instance.dataflow.numbers(layer)
        )
        to_dram = bool(stored >> layer & 1)
        leaf_cost = instance.leaf(
            layer=layer,
            batch=1,
            first=first,
            tiles=count,
            stored=to_dram,
            runs=max(1, loads),
            direct=near,
            borders=borders[layer],
            copies=copies(cut),
        )
        if leaf_cost is None:
            return Unfit(f"{network.layers[layer].name}: no partition over {count} tiles fits their buffers")
        layouts[layer] = leaf_cost.layout
        children.append(NodeCost.of_leaf(leaf, first, count, leaf_cost, leaf_cost.cycles, to_dram))
        first += count if cut.kind == "S" else 0
    return _joined(instance, cut, name, children)


def copies(cut: Cut) -> int:
    """How often a stripe of inputs lies in a leaf's buffers: twice where the next one arrives meanwhile."""
    return 2 if cut.kind == "S" or len(cut.children) == 1 else 1


def _joined(instance: TreeInstance, cut: Cut, name: str, children: list[NodeCost]) -> NodeCost | Unfit:
    samples = cut.groups
    leaf_costs = [child.leaf for child in children if child.leaf is not None]
    nothing = np.zeros(instance.engine.grid.tiles, dtype=np.int64)
    buffer, weights = nothing.copy(), nothing.copy()
    if cut.kind == "S":
        stages = instance.dataflow.stages(cut).of
        cycles = int(sum(slot_cycles([child.turns for child in leaf_costs], stages, samples)))
        for child in children:
            buffer += child.buffer + child.inputs
    else:
        cycles = samples * sum(child.cycles for child in leaf_costs)
        for child, following in itertools.pairwise([*children, children[0]]):
            buffer = np.maximum(buffer, child.buffer + following.inputs)
        if len(children) > 1:
            for leaf, node in zip(leaf_costs, children, strict=True):
                layer = instance.network.layers[next(leaves(node.node)).layer]
                buffer += (node.inputs > 0) * kept_bytes(layer, leaf.borders, leaf)
    for child in children:
        weights += child.weights
    most = int((buffer + weights).max())
    if most > instance.capacity:
        return Unfit(f"{name}: data take {most} bytes, a buffer holds {instance.capacity}")
    counts, parts = nothing.copy(), np.zeros(4)
    counts = sum((child.counts for child in children[1:]), children[0].counts.copy()) * samples
    parts = sum((child.parts for child in children[1:]), children[0].parts.copy()) * samples
    return NodeCost(
        node=cut,
        first=0,
        tiles=instance.engine.grid.tiles,
        energy=sum(child.energy for child in children) * samples,
        parts=parts,
        cycles=instance.bounded(cycles, counts),
        counts=counts,
        buffer=buffer,
        inputs=nothing,
        weights=weights,
        children=tuple(children),
    )
