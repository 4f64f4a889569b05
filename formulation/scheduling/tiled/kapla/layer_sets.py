"""Sets of layers that a segment may hold where a network has too many down-sets to enumerate.

A set is *convex* where no path from one of its layers to another leaves it, so that all that it reads can
come before it.  Unconnected layers gain nothing from a common segment except the capacity that each leaves to
the others, so sets grow from single layers by one neighbour at a time and stay convex.
"""

from __future__ import annotations

from tilewright.formulation.scheduling.tiled.kapla.segments import members
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork


class Reach:
    """Layers before and behind each layer, as sets of bits."""

    def __init__(self, network: SetNetwork) -> None:
        count = len(network)
        self.reads = [reads for reads, _ in network.masks]
        self.read_by = [0] * count
        self.before, self.behind = [0] * count, [0] * count
        for layer, reads in enumerate(self.reads):
            for other in members(reads):
                self.read_by[other] |= 1 << layer
                self.before[layer] |= self.before[other] | 1 << other
        for layer in reversed(range(count)):
            for other in members(self.read_by[layer]):
                self.behind[layer] |= self.behind[other] | 1 << other

    def before_all(self, layers: int) -> int:
        """What has to be done before a set of layers."""
        return _union(self.before, layers) & ~layers

    def is_convex(self, layers: int) -> bool:
        """Whether no way from one of the layers to another leaves the set."""
        return not _union(self.before, layers) & _union(self.behind, layers) & ~layers

    def neighbours(self, layers: int) -> int:
        """Layers outside a set that read one of it, or that one of it reads."""
        return (_union(self.reads, layers) | _union(self.read_by, layers)) & ~layers


def grown_sets(network: SetNetwork, longest: int, most: int) -> tuple[list[int], int]:
    """Convex sets that grow by one neighbour at a time, smallest first.

    Parameters
    ----------
    longest : layers of a set
    most : sets; sizes that would exceed it are left out as a whole

    Returns
    -------
    the sets, and the size up to which all of them are there
    """
    reach = Reach(network)
    level = {1 << layer for layer in range(len(network))}
    sets = sorted(level)
    for size in range(2, longest + 1):
        larger: set[int] = set()
        for small in level:
            for layer in members(reach.neighbours(small)):
                grown = small | 1 << layer
                if grown not in larger and reach.is_convex(grown):
                    larger.add(grown)
            if len(sets) + len(larger) > most:
                return sets, size - 1
        level = larger
        sets.extend(sorted(level))
    return sets, longest


def _union(sets: list[int], layers: int) -> int:
    union = 0
    for layer in members(layers):
        union |= sets[layer]
    return union
