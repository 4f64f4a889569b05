"""The trees of a group without residents and leaves: loops, sequences, and homes of intermediates.

Loops run over loops of intermediates that all layers below depend on.  A tile divides the one around it, or
in small groups, if tiles need not divide, is the least that makes as many trips; a loop of one trip is no
loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from tilewright.solvers.mapping.fused.trees.home_places import HomePlaces
from tilewright.solvers.mapping.fused.trees.turn_engine import shared_levels
from tilewright.workloads.mapping.operator import Role

NO_MAPPING = Mapping(())
PlacedLoop = tuple[SharedLoop, frozenset[str]]
"""A shared loop and the layers below it."""
OuterOrder = tuple[SharedNode, ...]
"""The outermost loops in some order, and homes among them."""
MOST_TILES = 4096
"""Choices of shared tiles of a group outside all sequences, up to which they need not divide."""


@dataclass(frozen=True)
class Cut:
    """A loop that a sequence inside others may have.

    Parameters
    ----------
    place : which children lead to the sequence
    rank : of the loop
    """

    place: tuple[int, ...]
    rank: int


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
    _loops: dict[tuple[str, ...], dict[int, tuple[str, str]]] = field(default_factory=dict)

    @cached_property
    def places(self) -> HomePlaces:
        """Where homes may stand."""
        return HomePlaces(self.group)

    @cached_property
    def divides(self) -> bool:
        """Whether shared tiles divide: they need not in groups without windows that have few of them."""
        if self.perfect or self.group.has_windows:
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
        roles = self._roles(layer)
        return [
            index
            for index in self._keeping(layer)
            if len({self.engine.width(self.engine.levels[index], role) for role in roles}) == 1
        ]

    def _keeping(self, layer: str) -> list[int]:
        """Levels that keep all roles of a layer's result, in whatever widths."""
        roles = self._roles(layer)
        return [
            index
            for index, level in enumerate(self.engine.levels[: shared_levels(self.engine) + 1])
            if index
            and roles <= level.keeps
            and not roles & level.partitions.keys()
            and self.home_level in (None, level.name)
        ]

    def _roles(self, layer: str) -> set[Role]:
        """What a layer's result is to it and to its readers."""
        readings = self.group.read_by(layer)
        roles = {self.group.operator(r.reader).tensor(r.operand).role for r in readings}
        return {self.group.operator(layer).output.role, *roles}

    def homeless(self) -> str:
        """Why an intermediate has no home; empty where all may have some."""
        for layer in self.group.names:
            if self.group.read_by(layer) and not self.homes(layer):
                output = self.group.operator(layer).output.name
                kept = self._keeping(layer)
                roles = "both its roles" + (" at one width" if kept else "")
                return f"no level can keep {layer}.{output} in {roles}"
        return ""

    def all(self) -> Iterator[Branch]:
        """Every skeleton, once."""
        for stem in self.stems():
            for family in self.families(stem):
                yield from self.members(family)

    def stems(self) -> Iterator[Branch]:
        """One tree for all that agree in the outermost loops and sequence, and in the levels of homes.

        Further sequences stand in it without loops.
        """
        layers, tile = tuple(self.group.names), self._whole()
        loops = self.loops(layers)
        for sizes in product(*(self.tiles(tile[rank]) for rank in loops)):
            cut = {rank: size for rank, size in zip(loops, sizes, strict=True) if size < tile[rank]}
            if math.prod(-(-tile[rank] // size) for rank, size in cut.items()) <= MOST_TURNS:
                for inside in self.shapes(layers):
                    yield replace(
                        inside,
                        nodes=(*(SharedLoop(*loops[r], size) for r, size in cut.items()), *inside.nodes),
                    )

    def families(self, stem: Branch) -> Iterator[Branch]:
        """One skeleton for all of a stem that differ only in orders of loops, and places and halos of homes.

        Its homes stand inside all loops.
        """
        families = [stem]
        for cut in self.cuts(stem):
            families = [tree for family in families for tree in self.cut(family, cut)]
        yield from filter(self.is_whole, families)

    def cuts(self, stem: Branch) -> tuple[Cut, ...]:
        """The loops that families may have in sequences inside others, outer sequences first."""
        cuts: list[Cut] = []

        def note(branch: Branch, place: tuple[int, ...]) -> None:
            for index, child in enumerate(branch.children):
                if isinstance(child, Branch):
                    cuts.extend(Cut((*place, index), rank) for rank in self.loops(tuple(child.layers())))
                    note(child, (*place, index))

        note(stem, ())
        return tuple(cuts)

    def cut(self, tree: Branch, cut: Cut) -> Iterator[Branch]:
        """A tree with one more loop in a sequence, of every tile; the first one has none."""
        yield from self._cut(tree, cut, self._whole(), 1)

    def _cut(self, branch: Branch, cut: Cut, tile: dict[int, int], turns: int) -> Iterator[Branch]:
        """The same for the branch at which a cut's place begins.

        Parameters
        ----------
        branch, cut : where, and which loop
        tile, turns : iterations by rank, and turns, of the loops outside
        """
        for node in branch.nodes:
            if isinstance(node, SharedLoop):
                rank = self.group.ranks[node.layer, node.dim]
                turns *= -(-tile[rank] // node.tile)
                tile[rank] = node.tile
        if cut.place:
            index, *rest = cut.place
            child = branch.children[index]
            assert isinstance(child, Branch)
            for below in self._cut(child, Cut(tuple(rest), cut.rank), tile, turns):
                yield replace(
                    branch, children=(*branch.children[:index], below, *branch.children[index + 1 :])
                )
            return
        loop = self.loops(tuple(branch.layers()))[cut.rank]
        whole = tile[cut.rank]
        for size in self.tiles(whole):
            if size == whole:
                yield branch
            elif turns * -(-whole // size) <= MOST_TURNS:
                outside = sum(isinstance(node, SharedLoop) for node in branch.nodes)
                nodes = (*branch.nodes[:outside], SharedLoop(*loop, size), *branch.nodes[outside:])
                yield replace(branch, nodes=nodes)

    def is_whole(self, family: Branch) -> bool:
        """Whether every sequence inside another one has a loop."""
        return all(
            any(isinstance(node, SharedLoop) for node in child.nodes) and self.is_whole(child)
            for child in family.children
            if isinstance(child, Branch)
        )

    def _whole(self) -> dict[int, int]:
        """Iterations by rank."""
        ranks = self.group.ranks
        return {rank: self.group.operator(name).bounds[dim] for (name, dim), rank in ranks.items()}

    def shapes(self, layers: tuple[str, ...]) -> Iterator[Branch]:
        """All sequences of some layers, within each other too, with homes but without loops."""
        for parts in _partitions(layers):
            stores = self._passed_here(layers, parts)
            if stores is None:
                continue
            children: list[list[Branch | Leaf]] = [
                [Leaf(part[0], NO_MAPPING)] if len(part) == 1 else list(self.shapes(part)) for part in parts
            ]
            for homes in product(*stores):
                for below in product(*children):
                    yield Branch(homes, tuple(below))

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

    def keeps_columns(self, loops: Sequence[PlacedLoop]) -> bool:
        """Whether no loop cuts a reader's result again while rows of its softmax come in parts."""
        for (reader, operand), along in self.group.online.items():
            tensor, parted = self.group.operator(reader).tensor(operand), False
            for loop, below in loops:
                if reader in below and not any(r.reader in below for r in self.group.read_by(reader)):
                    dims = self.group.operator(reader).bounds
                    rank = self.group.ranks[loop.layer, loop.dim]
                    cut = [dim for dim in dims if self.group.ranks[reader, dim] == rank]
                    if parted and not tensor.dims.issuperset(cut):
                        return False
                    parted |= along in cut
        return True

    def members(self, family: Branch) -> Iterator[Branch]:
        """All skeletons of a family."""
        for ordered in self.orders(family):
            yield from self.halos(ordered)

    def orders(self, family: Branch, around: tuple[PlacedLoop, ...] = ()) -> Iterator[Branch]:
        """A family with its loops in every order and homes at every place among them.

        Parameters
        ----------
        family, around : or a branch of one, and the loops outside it
        """
        for nodes in self.outer_orders(family, around):
            yield from self.inner_orders(replace(family, nodes=nodes), around)

    def outer_orders(self, family: Branch, around: tuple[PlacedLoop, ...] = ()) -> Iterator[OuterOrder]:
        """A family's outermost loops in every order, with the homes among them; parameters as above."""
        below = frozenset(family.layers())
        homes = [node for node in family.nodes if isinstance(node, SharedStore)]
        for order in permutations(node for node in family.nodes if isinstance(node, SharedLoop)):
            placed = *around, *((loop, below) for loop in order)
            if self.keeps_columns(placed):
                loops = (around[-1][0] if around else None, *order)
                for places in product(*(self.places.places(home.layer, loops) for home in homes)):
                    nodes: list[SharedNode] = []
                    for at in range(len(order) + 1):
                        nodes += [home for home, place in zip(homes, places, strict=True) if place == at]
                        nodes += order[at : at + 1]
                    yield tuple(nodes)

    def inner_orders(self, tree: Branch, around: tuple[PlacedLoop, ...] = ()) -> Iterator[Branch]:
        """A tree whose outermost loops are in order, with the others in every order; parameters as above."""
        below = frozenset(tree.layers())
        around = (*around, *((node, below) for node in tree.nodes if isinstance(node, SharedLoop)))
        children: list[Iterable[Branch | Leaf]] = [
            self.orders(c, around) if isinstance(c, Branch) else (c,) for c in tree.children
        ]
        for inside in product(*children):
            yield replace(tree, children=inside)

    def halos(self, ordered: Branch, around: SharedLoop | None = None) -> Iterator[Branch]:
        """All skeletons with loops in order and homes in place, which differ in halos.

        What is retained inside all loops may also be made anew, if the innermost of them slides a window.

        Parameters
        ----------
        ordered, around : or a branch of one, and the loop just outside it
        """
        loops = [around, *(node for node in ordered.nodes if isinstance(node, SharedLoop))]
        passed = 0
        options: list[tuple[SharedNode, ...]] = []
        for node in ordered.nodes:
            passed += isinstance(node, SharedLoop)
            is_last = passed == len(loops) - 1
            if isinstance(node, SharedStore) and is_last and self.places.slides(node.layer, loops[-1]):
                options.append((node, replace(node, halo=RECOMPUTED)))
            else:
                options.append((node,))
        children: list[list[Branch | Leaf]] = [
            [child] if isinstance(child, Leaf) else list(self.halos(child, loops[-1]))
            for child in ordered.children
        ]
        for nodes in product(*options):
            for below in product(*children):
                yield Branch(nodes, tuple(below))

    def loops(self, layers: tuple[str, ...]) -> dict[int, tuple[str, str]]:
        """Loops that may stand around some layers: one dimension of a layer for each."""
        if layers not in self._loops:
            self._loops[layers] = self._listed_loops(layers)
        return self._loops[layers]

    def _listed_loops(self, layers: tuple[str, ...]) -> dict[int, tuple[str, str]]:
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
        uncut = {ranks[loop] for loop in self.group.whole if loop[0] in inside}
        for rank in sorted(wanted - uncut):
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
            whole = [n for n, dims in own.items() if dims and dims[0] in self.group.offsets_of_windows(n)]
            whole += [sink for sink in sinks if (sink, own[sink][0]) in self.group.own_rows]
            if set(sums) <= set(sinks) and not whole:
                loops[rank] = (sinks[0], own[sinks[0]][0])
        return loops


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
