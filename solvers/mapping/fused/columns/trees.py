"""All trees of a group without residents and mappings, listed plainly: loops, orders, sequences and homes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, permutations, product

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import (
    RECOMPUTED,
    Branch,
    Leaf,
    SharedLoop,
    SharedNode,
    SharedStore,
)
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.solvers.mapping.fused.columns.space import Listed

EMPTY = Mapping(())
FEW = 4096
"""Choices of shared tiles outside all sequences, up to which they need not divide."""
Layers = tuple[str, ...]
Tiles = dict[int, int]


class Trees:
    """The trees of one group, legal or not; what is legal the evaluator says."""

    def __init__(self, group: FusedGroup, listed: Listed) -> None:
        self.group, self.listed = group, listed
        self.windowed = group.has_windows
        self.divides = listed.divides or self.windowed
        if not self.divides:
            sizes = [group.operator(n).bounds[d] for n, d in self._loops(tuple(group.names)).values()]
            self.divides = math.prod(len(self._tiles(size)) for size in sizes) > FEW

    def __iter__(self) -> Iterator[Branch]:
        group = self.group
        if len(group.names) == 1:
            yield Branch((), (Leaf(group.names[0], EMPTY),))
            return
        whole = {rank: group.operator(name).bounds[dim] for (name, dim), rank in group.ranks.items()}
        yield from self._branches(tuple(group.names), whole, None)

    def _branches(self, layers: Layers, tiles: Tiles, around: int | None) -> Iterator[Branch]:
        """All branches over some layers.

        Parameters
        ----------
        layers, tiles : and the iterations that each of their loops still has, by rank
        around : the rank of the loop just outside; ``None`` at the root, which needs no loop of its own
        """
        loops = self._loops(layers)
        for sizes in product(*(self._tiles(tiles[rank]) for rank in loops)):
            cut = {rank: size for rank, size in zip(loops, sizes, strict=True) if size < tiles[rank]}
            if not cut and len(layers) < len(self.group.names):
                continue
            for order in permutations(cut):
                nodes = [SharedLoop(*loops[rank], cut[rank]) for rank in order]
                for parts in _divided(layers):
                    yield from self._filled(parts, nodes, tiles | cut, (around, *order))

    def _filled(
        self, parts: list[Layers], loops: list[SharedLoop], tiles: Tiles, ranks: tuple[int | None, ...]
    ) -> Iterator[Branch]:
        """Homes at their levels and places, and children of every kind.

        Parameters
        ----------
        parts, loops : the children's layers, and the loops around them
        tiles : iterations inside the loops
        ranks : of the loop outside the branch and of its own
        """
        child_of = {layer: index for index, part in enumerate(parts) for layer in part}
        homes: list[list[tuple[int, SharedStore]]] = []
        for layer, child in child_of.items():
            if any(child_of.get(reading.reader, child) != child for reading in self.group.read_by(layer)):
                homes.append(list(self._homes(layer, ranks)))
        last = ranks[-1]
        children: list[list[Branch | Leaf]] = [
            [Leaf(part[0], EMPTY)] if len(part) == 1 else list(self._branches(part, tiles, last))
            for part in parts
        ]
        for placed in product(*homes):
            nodes: list[SharedNode] = []
            for place in range(len(loops) + 1):
                nodes += [store for at, store in placed if at == place]
                nodes += loops[place : place + 1]
            for below in product(*children):
                yield Branch(tuple(nodes), tuple(below))

    def _homes(self, layer: str, ranks: tuple[int | None, ...]) -> Iterator[tuple[int, SharedStore]]:
        """Inside all loops; with windows also behind loops that do not just step through the result."""
        readings = self.group.read_by(layer)
        output = self.group.operator(layer).output
        steps: set[int | None] = {None}
        for index, axis in enumerate(output.axes):
            if all(self.group.reads_plainly(reading, reading.axes.index(index)) for reading in readings):
                steps |= {self.group.ranks[layer, term.dim] for term in axis.terms}
        windowed = not all(self.group.is_plain(reading) for reading in readings)
        for level in self.listed.shared:
            name = self.listed.engine.levels[level].name
            if self.listed.home not in (None, name):
                continue
            inside = len(ranks) - 1
            yield inside, SharedStore(layer, output.name, name)
            if windowed:
                for place in range(inside):
                    if ranks[place] not in steps:
                        yield place, SharedStore(layer, output.name, name)
                if ranks[-1] not in steps:
                    yield inside, SharedStore(layer, output.name, name, RECOMPUTED)

    def _loops(self, layers: Layers) -> dict[int, tuple[str, str]]:
        """By rank, loops that may stand around some layers, as a last layer among them calls them."""
        group = self.group
        passed = {
            (reading.reader, dim)
            for reading in group.readings
            if {reading.reader, reading.producer} <= set(layers)
            for dim in group.operator(reading.reader).tensor(reading.operand).dims
            if dim not in group.offsets_of_windows(reading.reader)
        }
        loops: dict[int, tuple[str, str]] = {}
        for rank in sorted({group.ranks[loop] for loop in passed}):
            own = {n: [d for d in group.operator(n).bounds if group.ranks[n, d] == rank] for n in layers}
            if all(self._may_move(name, dims, layers) for name, dims in own.items()):
                name = next(name for name in reversed(layers) if own[name])
                loops[rank] = (name, own[name][0])
        return loops

    def _may_move(self, name: str, dims: list[str], layers: Layers) -> bool:
        """Whether a layer among others has one loop of a rank, or none where what it makes is read below."""
        read = any(reading.reader in layers for reading in self.group.read_by(name))
        if not dims:
            return read
        sums = dims[0] in self.group.operator(name).reduction_dims
        held = {(name, dims[0])} & self.group.whole
        return len(dims) == 1 and not held and not (sums and read) and dims[0] not in self._offsets(name)

    def _offsets(self, name: str) -> frozenset[str]:
        return self.group.offsets_of_windows(name)

    def _tiles(self, size: int) -> list[int]:
        """Tiles of a shared loop over so many iterations."""
        tiles = range(1, size + 1)
        if self.divides:
            return [tile for tile in tiles if size % tile == 0]
        return sorted({-(-size // tile) for tile in tiles})


def _divided(layers: Layers) -> Iterator[list[Layers]]:
    """Some layers in two parts or more that follow each other."""
    for cuts in product((False, True), repeat=len(layers) - 1):
        if any(cuts):
            edges = [0, *(place for place, cut in enumerate(cuts, 1) if cut), len(layers)]
            yield [layers[a:b] for a, b in pairwise(edges)]
