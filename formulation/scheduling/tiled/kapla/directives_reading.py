"""Chains of segments from the directives of whole pipelines, checked against network, stacks and updates."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.kapla.directives import (
    STACKED,
    ChainDirectives,
    LayerDirectives,
    SegmentDirectives,
    segment_directives,
)
from tilewright.formulation.scheduling.tiled.kapla.segments import Kind, SegmentScheme
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node, rooted
from tilewright.foundation.errors import InputError


@dataclass(frozen=True, slots=True)
class ReadChain:
    """What directives say: the segments, and the partition of every layer by its number."""

    segments: tuple[SegmentScheme, ...]
    splits: int
    partitions: dict[int, Partition]

    @property
    def tree(self) -> Node:
        """The chain as a resource allocation tree."""
        batch = self.segments[0].batch * self.splits
        return rooted([segment.tree for segment in self.segments], batch, self.splits)


def read_chain(network: SetNetwork, directives: ChainDirectives, where: str = "directives") -> ReadChain:
    """The chain that directives describe.

    Raises
    ------
    InputError : naming segment and layer, where layers are missing, repeated, unknown or out of order,
        updates do not match, or a size is not what network, stacks and updates make
    """
    done, schemes, partitions = 0, [], {}
    if directives.network != network.name:
        raise InputError(where, "chain", f"{directives.network!r}, expected {network.name!r}")
    if directives.splits < 1:
        raise InputError(where, "chain", f"splits={directives.splits}, expected at least 1")
    dataflow = DataFlow(network, (1.0,) * len(network))
    for number, segment in enumerate(directives.segments, 1):
        field = f"segment {number}"
        layers = []
        end = done
        for entry in segment.layers:
            at = network.index.get(entry.name)
            if at is None or end >> at & 1:
                raise InputError(
                    where, f"{field}, {entry.name}", "expected a layer of the network, each once"
                )
            if network.masks[at][0] & ~end:
                raise InputError(where, f"{field}, {entry.name}", "precedes a layer that it reads")
            layers.append(at)
            end |= 1 << at
            partitions[at] = _partition(entry, f"{where}: {field}, {entry.name}")
        step = segment.layers[0].step
        for entry in segment.layers:
            if entry.step != step:
                reported = (
                    f"update(N+={entry.step}) does not match update(N+={step}) of {segment.layers[0].name}"
                )
                raise InputError(where, f"{field}, {entry.name}", reported)
        if step < 1 or segment.batch % step:
            raise InputError(where, field, f"update(N+={step}) does not divide {segment.batch} samples")
        if len({entry.batch for entry in directives.segments}) > 1:
            raise InputError(where, field, "all segments run on as many samples")
        kind: Kind = "T" if len(layers) == 1 else segment.kind
        if segment.stripes < 1 or (segment.stripes > 1 and step > 1):
            raise InputError(where, field, f"bands={segment.stripes} with update(N+={step}), expected N+=1")
        groups = segment.batch // step
        scheme = SegmentScheme(done, end, tuple(layers), kind, groups, segment.batch, segment.stripes)
        wanted = segment_directives(network, dataflow, scheme, partitions)
        _check(segment, wanted, where, field)
        schemes.append(scheme)
        done = end
    left = [entry.name for at, entry in enumerate(network.layers) if not done >> at & 1]
    if left:
        raise InputError(
            where, "chain", f"lacks {left[0]}" + (f" and {len(left) - 1} more" if left[1:] else "")
        )
    return ReadChain(tuple(schemes), directives.splits, partitions)


def _partition(layer: LayerDirectives, where: str) -> Partition:
    counts = dict.fromkeys(STACKED, 1)
    for stack in layer.stacks:
        if stack.dim not in counts or counts[stack.dim] > 1 or stack.copies < 2:
            reported = f"expected {', '.join(STACKED)} at most once each, over 2 tiles or more"
            raise InputError(where, f"stack({stack.dim}+={stack.shift}, {stack.copies})", reported)
        counts[stack.dim] = stack.copies
    front = [STACKED.index(stack.dim) for stack in layer.stacks]
    a, b, c, d = (*front, *(at for at in reversed(range(4)) if at not in front))
    k, n, h, w = counts.values()
    return Partition((k, n, h, w), (a, b, c, d))


def _check(segment: SegmentDirectives, wanted: SegmentDirectives, where: str, field: str) -> None:
    """Every declared tensor and shift is what network, stacks and updates make."""
    for given, other in zip(segment.layers, wanted.layers, strict=True):
        place = f"{field}, {given.name}"
        if given.rows != other.rows:
            expected = f"expected {other.rows} rows, the largest of {segment.stripes} bands"
            reported = f"update(Yo+={given.rows}), {expected}"
            raise InputError(where, place, reported)
        for stack, right in zip(given.stacks, other.stacks, strict=True):
            if stack != right:
                reported = (
                    f"stack({stack.dim}+={stack.shift}, {stack.copies}), expected a shift of {right.shift}"
                )
                raise InputError(where, place, reported)
        if len(given.tensors) != len(other.tensors):
            names = ", ".join(part.name for part in other.tensors)
            raise InputError(where, place, f"{len(given.tensors)} tensors, expected {names}")
        for part, right_part in zip(given.tensors, other.tensors, strict=True):
            if part != right_part:
                sizes = ", ".join(f"{dim}={size}" for dim, size in right_part.sizes)
                reported = f"tensor {part.name}: expected {right_part.name}({sizes}) {right_part.place}"
                raise InputError(where, place, reported)
