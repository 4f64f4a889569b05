"""The trees of a group without residents and leaves: loops, sequences, and homes of intermediates.

Loops run over loops of intermediates that all layers below depend on.  A tile divides the one around it; a
loop of one trip is no loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass
class SkeletonSpace:
    """All skeletons of a group on a machine.

    Parameters
    ----------
    home_level : the only home that is tried; ``None`` for every level that can be one
    """

    group: FusedGroup
    engine: Engine
    home_level: str | None = None

    def homes(self, layer: str) -> list[str]:
        """Levels that can keep a layer's result in both its roles."""
        operator = self.group.operator(layer)
        readings = self.group.read_by(layer)
        roles = {operator.output.role}
        roles |= {self.group.operator(r.reader).tensor(r.operand).role for r in readings}
        return [
            level.name
            for level in self.engine.levels[1 : shared_levels(self.engine) + 1]
            if roles <= level.keeps
            and not roles & level.partitions.keys()
            and len({self.engine.width(level, role) for role in roles}) == 1
            and self.home_level in (None, level.name)
        ]

    def all(self) -> Iterator[Branch]:
        """Every skeleton, once."""
        ranks = self.group.ranks
        tile = {rank: self.group.operator(name).bounds[dim] for (name, dim), rank in ranks.items()}
        yield from self._branches(tuple(self.group.names), tile, 1, root=True)

    def _branches(
        self, layers: tuple[str, ...], tile: dict[int, int], turns: int, root: bool
    ) -> Iterator[Branch]:
        """Branches over some layers; one inside another has at least one loop."""
        loops = self.loops(layers)
        ranks = list(loops)
        for sizes in product(*(divisors(tile[rank]) for rank in ranks)):
            cut = {rank: size for rank, size in zip(ranks, sizes, strict=True) if size < tile[rank]}
            if not cut and not root:
                continue
            made = turns * math.prod(tile[rank] // size for rank, size in cut.items())
            if made > MOST_TURNS:
                continue
            inner = tile | cut
            for order in permutations(cut):
                nodes = [SharedLoop(*loops[rank], cut[rank]) for rank in order]
                for parts in _partitions(layers):
                    yield from self._with_children(nodes, parts, inner, made, layers)

    def _with_children(
        self,
        loops: list[SharedLoop],
        parts: tuple[tuple[str, ...], ...],
        tile: dict[int, int],
        turns: int,
        layers: tuple[str, ...],
    ) -> Iterator[Branch]:
        child_of = {layer: index for index, part in enumerate(parts) for layer in part}
        passed: list[list[tuple[int, SharedStore]]] = []
        for layer in layers:
            readers = [r.reader for r in self.group.read_by(layer) if r.reader in child_of]
            across = [reader for reader in readers if child_of[reader] != child_of[layer]]
            if not across:
                continue
            if len(across) < len(self.group.read_by(layer)):
                return  # a reader in an inner sequence, or outside this one
            passed.append(self._homes_here(layer, len(loops)))
        children: list[list[Branch | Leaf]] = [
            [Leaf(part[0], NO_MAPPING)]
            if len(part) == 1
            else list(self._branches(part, tile, turns, root=False))
            for part in parts
        ]
        for homes in product(*passed):
            nodes: list[SharedNode] = []
            for place in range(len(loops) + 1):
                nodes += [store for at, store in homes if at == place]
                nodes += loops[place : place + 1]
            for below in product(*children):
                yield Branch(tuple(nodes), tuple(below))

    def _homes_here(self, layer: str, depth: int) -> list[tuple[int, SharedStore]]:
        """Places among the loops, levels and halos of a layer's result; inside all loops where no halo is."""
        output = self.group.operator(layer).output.name
        windowed = any(not self.is_plain(r.reader, r.operand) for r in self.group.read_by(layer))
        options: list[tuple[int, SharedStore]] = []
        for level in self.homes(layer):
            options.append((depth, SharedStore(layer, output, level)))
            if windowed:
                for place in range(depth):
                    options.append((place, SharedStore(layer, output, level)))
                options += [
                    (place, SharedStore(layer, output, level, RECOMPUTED)) for place in range(1, depth + 1)
                ]
        return options

    def is_plain(self, reader: str, operand: str) -> bool:
        """Whether an operand is read element by element, without windows and padding."""
        reading = self.group.reading(reader, operand)
        assert reading is not None
        operator, producer = self.group.operator(reader), self.group.operator(reading.producer)
        ranks = self.group.ranks
        for axis, place in zip(operator.tensor(operand).axes, reading.axes, strict=True):
            theirs = producer.output.axes[place].terms
            dims = [term.dim for term in axis.terms]
            if theirs and not any(
                ranks[reader, dim] == ranks[reading.producer, theirs[0].dim] for dim in dims
            ):
                return False
        return True

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
        for rank in sorted(wanted):
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


def divisors(number: int) -> list[int]:
    """All divisors, the number itself first."""
    return [size for size in range(number, 0, -1) if number % size == 0]


def _partitions(layers: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Into two parts or more that follow each other."""
    count = len(layers)
    for cuts in product((False, True), repeat=count - 1):
        if any(cuts):
            places = [0, *(index + 1 for index, cut in enumerate(cuts) if cut), count]
            yield tuple(layers[a:b] for a, b in pairwise(places))
