"""The trees of a group without residents and leaves: loops, sequences, and homes of intermediates.

Loops run over loops of intermediates that all layers below depend on.  A tile divides the one around it, or
in small groups, if tiles need not divide, is the least that makes as many trips; a loop of one trip is no
loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
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
from tilewright.formulation.mapping.fused.turns import MOST_TURNS
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.turn_engine import shared_levels

NO_MAPPING = Mapping(())
MOST_TILES = 4096
"""Choices of shared tiles of a group outside all sequences, up to which they need not divide."""


@dataclass
class SkeletonSpace:
    """All skeletons of a group on a machine.

    Parameters
    ----------
    home_level : the only home that is tried; ``None`` for every level that can be one
    perfect : whether all shared tiles divide the ones around them
    """

    group: FusedGroup
    engine: Engine
    home_level: str | None = None
    perfect: bool = True

    @cached_property
    def divides(self) -> bool:
        """Whether shared tiles divide: they need not in groups without windows that have few of them."""
        if self.perfect or not all(self.group.is_plain(reading) for reading in self.group.readings):
            return True
        loops = self.loops(tuple(self.group.names)).values()
        return math.prod(len(trip_tiles(self.group.operator(n).bounds[d])) for n, d in loops) > MOST_TILES

    def tiles(self, size: int) -> list[int]:
        """Tiles of a shared loop over so many iterations, the whole first."""
        return divisors(size) if self.divides else trip_tiles(size)

    def homes(self, layer: str) -> list[str]:
        """Levels that can keep a layer's result in both its roles."""
        return [self.engine.levels[level].name for level in self.home_levels(layer)]

    def home_levels(self, layer: str) -> list[int]:
        """The same by their indices."""
        operator = self.group.operator(layer)
        readings = self.group.read_by(layer)
        roles = {operator.output.role}
        roles |= {self.group.operator(r.reader).tensor(r.operand).role for r in readings}
        return [
            index
            for index, level in enumerate(self.engine.levels[: shared_levels(self.engine) + 1])
            if index
            and roles <= level.keeps
            and not roles & level.partitions.keys()
            and len({self.engine.width(level, role) for role in roles}) == 1
            and self.home_level in (None, level.name)
        ]

    def all(self) -> Iterator[Branch]:
        """Every skeleton, once."""
        for stem in self.stems():
            for family in self.families(stem):
                yield from self.members(family)

    def stems(self) -> Iterator[Branch]:
        """One tree for all that agree in the outermost loops and sequence, and in the levels of homes.

        Further sequences stand in it without loops.
        """
        yield from self._families(tuple(self.group.names), self._whole(), 1, root=True)

    def families(self, stem: Branch) -> Iterator[Branch]:
        """One skeleton for all of a stem that differ only in orders of loops, and places and halos of homes.

        Its homes stand inside all loops.
        """
        tile, turns = self._whole(), 1
        for node in stem.nodes:
            if isinstance(node, SharedLoop):
                rank = self.group.ranks[node.layer, node.dim]
                turns *= -(-tile[rank] // node.tile)
                tile[rank] = node.tile
        children: list[list[Branch | Leaf]] = []
        for child in stem.children:
            if isinstance(child, Leaf):
                children.append([child])
                continue
            below = self._families(tuple(child.layers()), tile, turns, root=False)
            children.append([family for family in below if _levels(family) == _levels(child)])
        for chosen in product(*children):
            yield Branch(stem.nodes, tuple(chosen))

    def _whole(self) -> dict[int, int]:
        """Iterations by rank."""
        ranks = self.group.ranks
        return {rank: self.group.operator(name).bounds[dim] for (name, dim), rank in ranks.items()}

    def _families(
        self, layers: tuple[str, ...], tile: dict[int, int], turns: int, root: bool
    ) -> Iterator[Branch]:
        """Families over some layers, or stems of all; inside another sequence there is at least one loop."""
        loops = self.loops(layers)
        for sizes in product(*(self.tiles(tile[rank]) for rank in loops)):
            cut = {rank: size for rank, size in zip(loops, sizes, strict=True) if size < tile[rank]}
            if not cut and not root:
                continue
            made = turns * math.prod(-(-tile[rank] // size) for rank, size in cut.items())
            if made > MOST_TURNS:
                continue
            nodes = tuple(SharedLoop(*loops[rank], size) for rank, size in cut.items())
            for parts in _partitions(layers):
                stores = self._passed_here(layers, parts)
                if stores is None:
                    continue
                children: list[list[Branch | Leaf]] = [
                    [Leaf(part[0], NO_MAPPING)]
                    if len(part) == 1
                    else list(self._unlooped(part) if root else self._families(part, tile | cut, made, False))
                    for part in parts
                ]
                for homes in product(*stores):
                    for below in product(*children):
                        yield Branch((*nodes, *homes), tuple(below))

    def _unlooped(self, layers: tuple[str, ...]) -> Iterator[Branch]:
        """One sequence of some layers, with the home of every result that they pass on."""
        inside = set(layers)
        stores = [
            [SharedStore(layer, self.group.operator(layer).output.name, level) for level in self.homes(layer)]
            for layer in layers
            if any(reading.reader in inside for reading in self.group.read_by(layer))
        ]
        for homes in product(*stores):
            yield Branch(homes, tuple(Leaf(layer, NO_MAPPING) for layer in layers))

    def _passed_here(
        self, layers: tuple[str, ...], parts: tuple[tuple[str, ...], ...]
    ) -> list[list[SharedStore]] | None:
        """Homes of results that are passed between some parts, per level.

        ``None`` where a result has readers both in an inner sequence and outside it.
        """
        child_of = {layer: index for index, part in enumerate(parts) for layer in part}
        passed: list[list[SharedStore]] = []
        for layer in layers:
            readers = [reading.reader for reading in self.group.read_by(layer)]
            across = [r for r in readers if r in child_of and child_of[r] != child_of[layer]]
            if across and len(across) < len(readers):
                return None
            if across:
                output = self.group.operator(layer).output.name
                passed.append([SharedStore(layer, output, level) for level in self.homes(layer)])
        return passed

    def members(self, family: Branch, around: SharedLoop | None = None) -> Iterator[Branch]:
        """All skeletons of a family.

        Parameters
        ----------
        family : or a branch of one
        around : the loop just outside it
        """
        loops = [node for node in family.nodes if isinstance(node, SharedLoop)]
        homes = [node for node in family.nodes if isinstance(node, SharedStore)]
        for order in permutations(loops):
            last = order[-1] if order else around
            children: list[list[Branch | Leaf]] = [
                [child] if isinstance(child, Leaf) else list(self.members(child, last))
                for child in family.children
            ]
            for placed in product(*(self._places(home, order, around) for home in homes)):
                nodes: list[SharedNode] = []
                for place in range(len(order) + 1):
                    nodes += [store for at, store in placed if at == place]
                    nodes += order[place : place + 1]
                for below in product(*children):
                    yield Branch(tuple(nodes), tuple(below))

    def _places(
        self, home: SharedStore, order: tuple[SharedLoop, ...], around: SharedLoop | None
    ) -> list[tuple[int, SharedStore]]:
        """Places among the loops, and halos, of a layer's result.

        Inside all loops, unless halos matter.  Then also behind every loop that slides a window: what it
        needs again is retained there, although loops further inside move on.  Anywhere else the next place
        inwards makes the same in every turn and takes no more room.
        """
        output = self.group.operator(home.layer).output
        own = {
            self.group.ranks[home.layer, term.dim]
            for place, axis in enumerate(output.axes)
            for term in axis.terms
            if all(
                self.group.reads_plainly(reading, reading.axes.index(place))
                for reading in self.group.read_by(home.layer)
            )
        }
        ranks = self.group.ranks
        plain = [loop is None or ranks[loop.layer, loop.dim] in own for loop in (around, *order)]
        depth = len(order)
        options = [(depth, home)]
        if all(self.group.is_plain(reading) for reading in self.group.read_by(home.layer)):
            return options
        options += [(place, home) for place in range(depth) if not plain[place]]
        if not plain[-1]:
            options.append((depth, replace(home, halo=RECOMPUTED)))
        return options

    def loops(self, layers: tuple[str, ...]) -> dict[int, tuple[str, str]]:
        """Loops that may stand around some layers: one dimension of a layer for each."""
        ranks = self.group.ranks
        inside = set(layers)
        sinks = [name for name in layers if not any(r.reader in inside for r in self.group.read_by(name))]
        wanted: set[int] = set()
        for reading in self.group.readings:
            if reading.reader in inside and reading.producer in inside:
                operand = self.group.operator(reading.reader).tensor(reading.operand)
                offsets = self.group.offsets_of_windows(reading.reader)
                wanted |= {ranks[reading.reader, dim] for dim in operand.dims - offsets}
        loops: dict[int, tuple[str, str]] = {}
        for rank in sorted(wanted - {ranks[loop] for loop in self.group.whole}):
            own = {
                name: [dim for dim in self.group.operator(name).bounds if ranks[name, dim] == rank]
                for name in layers
            }
            if any(len(dims) > 1 for dims in own.values()) or not all(own[sink] for sink in sinks):
                continue
            sums = [
                name
                for name, dims in own.items()
                if dims and dims[0] in self.group.operator(name).reduction_dims
            ]
            windows = [n for n, dims in own.items() if dims and dims[0] in self.group.offsets_of_windows(n)]
            if set(sums) <= set(sinks) and not windows:
                loops[rank] = (sinks[0], own[sinks[0]][0])
        return loops


def _levels(branch: Branch) -> dict[str, str]:
    """The levels of all homes inside a branch, by layer."""
    levels = {node.layer: node.level for node in branch.nodes if isinstance(node, SharedStore)}
    for child in branch.children:
        if isinstance(child, Branch):
            levels |= _levels(child)
    return levels


def divisors(number: int) -> list[int]:
    """All divisors, the number itself first."""
    return [size for size in range(number, 0, -1) if number % size == 0]


def trip_tiles(number: int) -> list[int]:
    """The least tile for every number of trips, the number itself first."""
    return sorted({-(-number // trips) for trips in range(1, number + 1)}, reverse=True)


def _partitions(layers: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Into two parts or more that follow each other."""
    count = len(layers)
    for cuts in product((False, True), repeat=count - 1):
        if any(cuts):
            places = [0, *(index + 1 for index, cut in enumerate(cuts) if cut), count]
            yield tuple(layers[a:b] for a, b in pairwise(places))
