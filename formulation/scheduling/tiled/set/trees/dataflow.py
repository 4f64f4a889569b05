"""The data flow of a tree (section 3.3.1): which results pass on directly, which go through DRAM.

A dependency is direct where, below the lowest common cut of both leaves, the children that hold them follow
each other: their positions under a T cut differ by one, their stages under an S cut by one at most.  Under a
root T cut everything goes through DRAM.  A child of an S cut is one stage behind the last sibling that it
reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node


@dataclass(frozen=True, slots=True)
class Stages:
    """Per child of an S cut, how many subbatches after the first it begins; and the last one's."""

    of: tuple[int, ...]
    last: int


@dataclass(frozen=True, slots=True)
class Read:
    """A read: its number, the reader, the place among its producers, the producer."""

    number: int
    layer: int
    place: int
    producer: int


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads below a node: those across its border; direct ones inside; layers stored for others."""

    crossing: tuple[Read, ...]
    direct: int
    stored: int


@dataclass
class DataFlow:
    """What follows from the trees of one network alone; stages are cached.

    Parameters
    ----------
    times : NPT of every layer
    """

    network: SetNetwork
    times: tuple[float, ...]
    _stages: dict[Cut, Stages] = field(default_factory=dict)
    _times: dict[Cut, float] = field(default_factory=dict)
    _reads: dict[Cut, Reads] = field(default_factory=dict)
    _leaf_reads: list[Reads] = field(default_factory=list)

    def __post_init__(self) -> None:
        number = 0
        for layer, reader in enumerate(self.network.layers):
            reads = []
            for place, producer in enumerate(reader.producers):
                reads.append(Read(number, layer, place, producer.layer))
                number += 1
            self._leaf_reads.append(Reads(tuple(reads), 0, 0))

    def numbers(self, layer: int) -> tuple[Read, ...]:
        """The reads of one layer."""
        return self._leaf_reads[layer].crossing

    def stages(self, cut: Cut) -> Stages:
        """When the children of an S cut begin; all at once under a T cut."""
        stages = self._stages.get(cut)
        if stages is None:
            of: list[int] = []
            reads = [_needed(child, self.network) for child in cut.children]
            for position in range(len(cut.children)):
                stage = 0
                for before, sibling in zip(of, cut.children[:position], strict=True):
                    if before >= stage and sibling.mask & reads[position]:
                        stage = before + 1
                of.append(stage)
            stages = Stages(tuple(of), max(of))
            self._stages[cut] = stages
        return stages

    def processing_time(self, node: Node) -> float:
        """NPT: of a T cut the sum, of an S cut the sum over ``g / (g + stages)``."""
        if isinstance(node, Leaf):
            return self.times[node.layer]
        time = self._times.get(node)
        if time is None:
            time = 0.0
            for child in node.children:
                time += self.processing_time(child)
            if node.kind == "S":
                time = time * (node.groups + self.stages(node).last) / node.groups
            self._times[node] = time
        return time

    def reads(self, node: Node) -> Reads:
        """The reads of a node's leaves: those that cross its border, and what becomes of the others."""
        if isinstance(node, Leaf):
            return self._leaf_reads[node.layer]
        reads = self._reads.get(node)
        if reads is None:
            reads = self._cut_reads(node)
            self._reads[node] = reads
        return reads

    def _cut_reads(self, cut: Cut) -> Reads:
        places = self.stages(cut).of if cut.kind == "S" else tuple(range(len(cut.children)))
        crossing: list[Read] = []
        direct = stored = 0
        for position, (child, place) in enumerate(zip(cut.children, places, strict=True)):
            inner = self.reads(child)
            direct |= inner.direct
            stored |= inner.stored
            for read in inner.crossing:
                bit = 1 << read.producer
                if not cut.mask & bit:
                    crossing.append(read)
                    continue
                before = position - 1  # producers mostly stand near
                while not cut.children[before].mask & bit:
                    before -= 1
                if place - places[before] <= 1:
                    direct |= 1 << read.number
                else:
                    stored |= bit
        return Reads(tuple(crossing), direct, stored)

    def flow_bits(self, tree: Node) -> tuple[int, int]:
        """Of a child of a root T cut, or of a root that is none: reads that are direct, and layers whose
        results go to DRAM, as sets of bits.
        """
        reads = self.reads(tree)
        stored = reads.stored
        masks, layers, rest = self.network.masks, self.network.layers, tree.mask
        while rest:
            low = rest & -rest
            layer = low.bit_length() - 1
            if masks[layer][1] & ~tree.mask or layers[layer].is_output:
                stored |= low
            rest ^= low
        return reads.direct, stored


def _needed(node: Node, network: SetNetwork) -> int:
    """Layers that some leaf of a node reads, as a set of bits."""
    masks = network.masks
    needed, rest = 0, node.mask
    while rest:
        low = rest & -rest
        needed |= masks[low.bit_length() - 1][0]
        rest ^= low
    return needed
