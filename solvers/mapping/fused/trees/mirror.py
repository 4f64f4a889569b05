"""Rows and columns of square groups: a tree whose loops over both are exchanged costs the same.

Where every layer, every reading and the arrays stay what they are when rows and columns change places (P
with Q, R with S), so does the cost of every tree.  Of two such trees a search needs one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, SharedLoop
from tilewright.formulation.mapping.nests.exchange import carries_alike, exchanged_axes
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator

EXCHANGED = {"P": "Q", "Q": "P", "R": "S", "S": "R"}
"""Rows and columns by what loops are like."""


@dataclass
class Mirror:
    """Which of two trees with rows and columns exchanged a search needs.

    Parameters
    ----------
    group, engine : the layers and the machine
    """

    group: FusedGroup
    engine: Engine

    def __post_init__(self) -> None:
        self.ranks = mirrored_ranks(self.group, self.engine)

    def is_needed(self, tree: Branch, *, decided: bool = True, ordered: bool = False) -> bool:
        """Whether a tree is the first of the two, or both are one.

        Parameters
        ----------
        tree : whose loops are decided
        decided : whether those of inner sequences are, too
        ordered : whether they are in order; trees that differ in that alone count as one otherwise
        """
        if not self.ranks:
            return True
        branches = list(_branches(tree)) if decided else [tree]
        loops = [
            [(self.group.ranks[n.layer, n.dim], n.tile) for n in branch.nodes if isinstance(n, SharedLoop)]
            for branch in branches
        ]
        mirrored = [[(self.ranks.get(rank, rank), tile) for rank, tile in own] for own in loops]
        unordered, others = [sorted(own) for own in loops], [sorted(own) for own in mirrored]
        return (unordered, loops) <= (others, mirrored) if ordered else unordered <= others


def _branches(branch: Branch) -> Iterator[Branch]:
    yield branch
    for child in branch.children:
        if isinstance(child, Branch):
            yield from _branches(child)


def mirrored_ranks(group: FusedGroup, engine: Engine) -> dict[int, int]:
    """For each loop the one that it changes places with; empty where something would not stay what it is."""
    if group.rows or group.online or any(reading.rows for reading in group.readings):
        return {}
    if any(level.timing.set_up for level in engine.levels):
        return {}  # ports begin rows, which run along columns
    if not all(carries_alike(engine, like, other) for like, other in EXCHANGED.items()):
        return {}
    ranks: dict[int, int] = {}
    places: dict[tuple[str, str], tuple[int, ...]] = {}
    for name, operator in group.layers:
        dims = exchanged_dims(operator)
        if dims is None:
            return {}
        for dim, other in dims.items():
            if ranks.setdefault(group.ranks[name, dim], group.ranks[name, other]) != group.ranks[name, other]:
                return {}
        for tensor in operator.tensors:
            own = exchanged_axes(tensor, dims)
            if own is None:
                return {}
            places[name, tensor.name] = own
    for reading in group.readings:
        reads = places[reading.reader, reading.operand]
        made = places[reading.producer, group.operator(reading.producer).output.name]
        for place, result in enumerate(reading.axes):
            if (
                reading.axes[reads[place]] != made[result]
                or reading.offsets[reads[place]] != reading.offsets[place]
            ):
                return {}
    return {rank: other for rank, other in ranks.items() if rank != other}


def exchanged_dims(operator: Operator) -> dict[str, str] | None:
    """Each dimension's partner, itself for most; ``None`` where a row's has none of the same bound."""
    by_like = {dimension.like: dimension for dimension in operator.dimensions if dimension.like in EXCHANGED}
    if len(by_like) < sum(dimension.like in EXCHANGED for dimension in operator.dimensions):
        return None
    dims: dict[str, str] = {}
    for dimension in operator.dimensions:
        partner = dimension
        if dimension.like in EXCHANGED:
            if EXCHANGED[dimension.like] not in by_like:
                return None
            partner = by_like[EXCHANGED[dimension.like]]
        if (partner.bound, partner.upto) != (dimension.bound, dimension.upto):
            return None
        dims[dimension.name] = partner.name
    return dims
