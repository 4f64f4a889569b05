"""The data flow of a tree (section 3.3.1): which results pass on directly, which go through DRAM.

A dependency is direct where, below the lowest common cut of both leaves, the children that hold them follow
each other: their positions under a T cut differ by one, their stages under an S cut by one at most.  Under a
root T cut everything goes through DRAM.  A child of an S cut is one stage behind the last sibling that it
reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.formulation.scheduling.tiled.set.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node


@dataclass(frozen=True, slots=True)
class Stages:
    """Per child of an S cut, how many subbatches after the first it begins; and the last one's."""

    of: tuple[int, ...]
    last: int


@dataclass
class DataFlow:
    """What follows from the trees of one network alone; stages are kept.

    Parameters
    ----------
    times : NPT of every layer
    """

    network: SetNetwork
    times: tuple[float, ...]
    _stages: dict[Cut, Stages] = field(default_factory=dict)
    _times: dict[Cut, float] = field(default_factory=dict)

    def stages(self, cut: Cut) -> Stages:
        """When the children of an S cut begin; all at once under a T cut."""
        found = self._stages.get(cut)
        if found is None:
            of: list[int] = []
            reads = [_reads(child, self.network) for child in cut.children]
            for position in range(len(cut.children)):
                stage = 0
                for before, sibling in zip(of, cut.children[:position], strict=True):
                    if before >= stage and sibling.mask & reads[position]:
                        stage = before + 1
                of.append(stage)
            found = Stages(tuple(of), max(of))
            self._stages[cut] = found
        return found

    def processing_time(self, node: Node) -> float:
        """NPT: of a T cut the sum, of an S cut the sum over ``g / (g + stages)``."""
        if isinstance(node, Leaf):
            return self.times[node.layer]
        found = self._times.get(node)
        if found is None:
            found = 0.0
            for child in node.children:
                found += self.processing_time(child)
            if node.kind == "S":
                found = found * (node.groups + self.stages(node).last) / node.groups
            self._times[node] = found
        return found

    def flow(self, tree: Node) -> tuple[dict[int, tuple[bool, ...]], set[int]]:
        """Of a child of a root T cut, or of a root that is none: per layer whether each producer is direct,
        and the layers whose results go to DRAM.
        """
        masks, layers = self.network.masks, self.network.layers
        direct: dict[int, tuple[bool, ...]] = {}
        stored: set[int] = set()
        above: list[tuple[Cut, int]] = []
        inside = tree.mask

        def visit(node: Node) -> None:
            if isinstance(node, Cut):
                for position, child in enumerate(node.children):
                    above.append((node, position))
                    visit(child)
                    above.pop()
                return
            layer = node.layer
            if masks[layer][1] & ~inside or layers[layer].is_output:
                stored.add(layer)
            found = []
            for producer in layers[layer].producers:
                near = bool(inside >> producer.layer & 1) and self._is_direct(producer.layer, above)
                found.append(near)
                if not near:
                    stored.add(producer.layer)
            direct[layer] = tuple(found)

        visit(tree)
        return direct, stored

    def _is_direct(self, producer: int, above: list[tuple[Cut, int]]) -> bool:
        bit = 1 << producer
        for cut, position in reversed(above):
            if not cut.mask & bit:
                continue
            other = next(i for i, child in enumerate(cut.children) if child.mask & bit)
            if cut.kind == "T":
                return position - other <= 1
            stages = self.stages(cut).of
            return stages[position] - stages[other] <= 1
        return False


def _reads(node: Node, network: SetNetwork) -> int:
    """Layers that some leaf of a node reads, as a set of bits."""
    masks = network.masks
    found, rest = 0, node.mask
    while rest:
        low = rest & -rest
        found |= masks[low.bit_length() - 1][0]
        rest ^= low
    return found
