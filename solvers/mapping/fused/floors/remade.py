"""How often a layer in an inner sequence runs again, whatever its own loops.

Homes of a sequence inside another one end with each of its runs.  So a result that is passed on there is
made anew for every trip of a loop further out that moves somebody who reads it, or what is made of it, there.
"""

from __future__ import annotations

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.trees.skeletons import PlacedLoop


def made_in(group: FusedGroup, tree: Branch, layer: str) -> frozenset[str]:
    """The layers of the sequence that has a layer's home; empty for one that nobody of the group reads."""
    readers = {reading.reader for reading in group.read_by(layer)}
    if not readers:
        return frozenset()
    branch, inside = tree, set(tree.layers())
    while True:
        inner = [child for child in branch.children if isinstance(child, Branch)]
        own = next((child for child in inner if {layer, *readers} <= {*child.layers()}), None)
        if own is None:
            return frozenset(inside)
        branch, inside = own, set(own.layers())


def times_made(group: FusedGroup, layer: str, inside: frozenset[str], loops: tuple[PlacedLoop, ...]) -> int:
    """How often all of a layer's result is made at least, for a group without windows.

    Parameters
    ----------
    group, layer : whose result
    inside : the layers of the sequence of its home
    loops : around the layer, outermost first
    """
    after = _readers_in(group, layer, inside)
    moving = {group.ranks[name, dim] for name in after for dim in group.operator(name).bounds}
    own = {group.ranks[layer, dim] for dim in group.operator(layer).bounds}
    times, sizes = 1, dict[int, int]()
    for loop, below in loops:
        rank = group.ranks[loop.layer, loop.dim]
        size = sizes.get(rank, group.operator(loop.layer).bounds[loop.dim])
        sizes[rank] = loop.tile
        if rank in moving - own and inside < below:
            times *= size // loop.tile
    return times


def _readers_in(group: FusedGroup, layer: str, inside: frozenset[str]) -> set[str]:
    """Those of some layers that read a layer's result, or a result that is made of it."""
    after: set[str] = set()
    waiting = [layer]
    while waiting:
        new = {r.reader for r in group.read_by(waiting.pop())} & inside - after
        after |= new
        waiting += new
    return after
