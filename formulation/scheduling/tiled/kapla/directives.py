"""Tensor-centric directives of whole pipelines (KAPLA, section III-B): a chain of segments as tensors, stacks
and updates.

Every layer of a segment declares what one tile's buffer holds: its inputs under the names of the layers that
make them, its weights, its results under its own name.  Stacks lay these out over its tiles, the outermost
first.  One update moves on by the samples of a subbatch; in row stripes, by one sample and within it by the
rows of a stripe (the largest: borders of stripes follow from the readers' windows).  Inside a segment, equal
tensor names and matching updates mean a direct passage from tiles to tiles; what cannot pass directly goes
through DRAM, which the directive states.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, loads_of
from tilewright.formulation.scheduling.tiled.kapla.segments import Kind, SegmentScheme
from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION, GROUPED, SetLayer, SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import stripe_borders
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Leaf
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.foundation.errors import InputError

Place = Literal["from tiles", "from DRAM", "to tiles", "to DRAM", "to tiles and DRAM"]

STACKED = ("K", "N", "Yo", "Xo")
"""Dimensions over which tiles share a layer, in the order in which partitions have them."""


@dataclass(frozen=True, slots=True)
class TensorPart:
    """``tensor``: what one tile's buffer holds.

    Parameters
    ----------
    name : of the layer that makes it, or of the layer with ``.input`` or ``.weights`` behind it
    sizes : by dimension, for the largest share
    place : where it comes from or goes to
    """

    name: str
    sizes: tuple[tuple[str, int], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class TileStack:
    """``stack``: ``copies`` tiles side by side, each ``shift`` further along a dimension."""

    dim: str
    shift: int
    copies: int


@dataclass(frozen=True, slots=True)
class LayerDirectives:
    """One layer of a segment.

    Parameters
    ----------
    name : of the layer
    tensors : what one tile's buffer holds
    stacks : how these lie on its tiles, the outermost first
    step : samples by which its update moves on
    rows : rows by which it moves on within a sample; 0 where it has no row stripes
    """

    name: str
    tensors: tuple[TensorPart, ...]
    stacks: tuple[TileStack, ...]
    step: int
    rows: int = 0


@dataclass(frozen=True, slots=True)
class SegmentDirectives:
    """Layers that are pipelined, spatially or temporally, over samples in ``stripes`` row stripes."""

    kind: Kind
    batch: int
    layers: tuple[LayerDirectives, ...]
    stripes: int = 1


@dataclass(frozen=True, slots=True)
class ChainDirectives:
    """A whole network: ``splits`` times all segments in turn."""

    network: str
    splits: int
    segments: tuple[SegmentDirectives, ...]


def directives_of(form: ClosedForm, chain: Chain) -> ChainDirectives:
    """The directives of an evaluated chain.

    Raises
    ------
    InputError : for a segment that the machine cannot run
    """
    written = []
    for scheme in chain.segments:
        cost = form.segment(scheme.tree, loads_of(form, chain.splits))
        if isinstance(cost, Unfit):
            raise InputError(form.network.name, "segment", cost.reason)
        written.append(segment_directives(form.network, form.dataflow, scheme, _partitions(cost)))
    return ChainDirectives(form.network.name, chain.splits, tuple(written))


def segment_directives(
    network: SetNetwork, dataflow: DataFlow, scheme: SegmentScheme, partitions: MappingABC[int, Partition]
) -> SegmentDirectives:
    """What a segment's layers declare with given partitions.

    Parameters
    ----------
    network : whose layers the segment has
    dataflow : which reads of the segment are direct, and whose results go to DRAM
    scheme : the segment: its layers, kind, batch, groups and row stripes
    partitions : by layer, how its results are divided over its tiles

    Raises
    ------
    InputError : where its layers cannot run in its row stripes
    """
    borders = stripe_borders(network, scheme.layers, scheme.stripes) if scheme.stripes > 1 else {}
    if borders is None:
        reported = f"cannot run in {scheme.stripes} bands of rows"
        raise InputError(network.name, network.layers[scheme.layers[0]].name, reported)
    direct, stored = dataflow.flow_bits(scheme.tree)
    share = scheme.batch // scheme.groups
    passed = {
        read.producer
        for layer in scheme.layers
        for read in dataflow.numbers(layer)
        if direct >> read.number & 1
    }
    written = []
    for layer in scheme.layers:
        part, partition = network.layers[layer], partitions[layer]
        rows = max((high - low for low, high in pairwise(borders.get(layer, ()))), default=0)
        if part.is_summed and rows:
            held = min(part.input_rows, (rows - 1) * part.hop_rows + part.stride_rows)
            part = replace(part, taps_rows=rows, input_rows=held)
        sizes = (part.channels, share, part.rows if part.is_summed else rows or part.rows, part.columns)
        box = [-(-size // count) for size, count in zip(sizes, partition.parts, strict=True)]
        stacks = tuple(
            TileStack(STACKED[at], box[at], partition.parts[at])
            for at in partition.order
            if partition.parts[at] > 1
        )
        tensors = []
        for read, producer in zip(dataflow.numbers(layer), part.producers, strict=True):
            place: Place = "from tiles" if direct >> read.number & 1 else "from DRAM"
            role = producer.role
            shape = (
                _weights(part, box) if role == 1 else _results(part, box) if role == 2 else _inputs(part, box)
            )
            tensors.append(TensorPart(network.layers[producer.layer].name, shape, place))
        if part.external:
            tensors.append(TensorPart(f"{part.name}.input", _inputs(part, box), "from DRAM"))
        if part.weight_bytes and not part.makes_weights:
            tensors.append(TensorPart(f"{part.name}.weights", _weights(part, box), "from DRAM"))
        to: Place = "to DRAM"
        if layer in passed:
            to = "to tiles and DRAM" if stored >> layer & 1 else "to tiles"
        tensors.append(TensorPart(part.name, _results(part, box), to))
        written.append(LayerDirectives(part.name, tuple(tensors), stacks, share, rows))
    return SegmentDirectives(scheme.kind, scheme.batch, tuple(written), scheme.stripes)


def _inputs(layer: SetLayer, box: list[int]) -> tuple[tuple[str, int], ...]:
    """Inputs of a box of results (channels, samples, rows, columns)."""
    k, n, h, w = box
    channels = layer.inputs if layer.window == CONVOLUTION else k
    if layer.window == GROUPED:
        channels = min(layer.inputs, -(-k * layer.groups // layer.channels) * (layer.inputs // layer.groups))
    if layer.is_summed:
        channels, rows, columns = (
            min(layer.inputs, -(-h // layer.stride_rows)),
            layer.input_rows,
            layer.input_columns,
        )
    elif layer.spread:
        rows = min(layer.input_rows, (h + layer.taps_rows - 2) // layer.stride_rows + 1)
        columns = min(layer.input_columns, (w + layer.taps_columns - 2) // layer.stride_columns + 1)
    else:
        rows = min(layer.input_rows, (h - 1) * layer.stride_rows + layer.taps_rows)
        columns = min(layer.input_columns, (w - 1) * layer.stride_columns + layer.taps_columns)
    return ("N", n), ("C", channels), ("Yi", rows), ("Xi", columns)


def _weights(layer: SetLayer, box: list[int]) -> tuple[tuple[str, int], ...]:
    """Weights of a box, or the gradient that stands for them in a weight update."""
    if layer.is_summed:
        return ("N", box[1]), ("K", box[0]), ("Yo", layer.taps_rows), ("Xo", layer.taps_columns)
    return ("K", box[0]), ("C", layer.depth), ("R", layer.taps_rows), ("S", layer.taps_columns)


def _results(layer: SetLayer, box: list[int]) -> tuple[tuple[str, int], ...]:
    """A box of results; those of a weight update have no samples."""
    k, n, h, w = box
    return (("K", k), ("Yo", h), ("Xo", w)) if layer.is_summed else (("N", n), ("K", k), ("Yo", h), ("Xo", w))


def _partitions(cost: NodeCost) -> dict[int, Partition]:
    leaves = [cost_node for cost_node in cost.walk() if isinstance(cost_node.node, Leaf)]
    return {cost_node.node.layer: cost_node.leaf.partition for cost_node in leaves if cost_node.leaf}  # type: ignore[union-attr]
