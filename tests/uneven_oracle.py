"""The least cost of the uneven space by plain enumeration: every loop sequence, tile and point of storage.

Nothing is shared with the formulation but operators, engines and objectives.  Loops in time and over one
array axis are written out in every sequence; for each of them every tensor begins to live anywhere, in every
level, whatever the others do.  Accesses are counted by walking through the loops step by step
(:mod:`simulator`), those of outputs whose tiles may overlap by the convention of ``docs/cost-models.md``.
Strides, dilations, windows, partitions and levels that keep them all count; buffers that share and banks do
not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as cartesian
from typing import Any

import numpy as np
from simulator import walk_between

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Temporal
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role, Tensor

DIVISORS, LEAST, EVERY = "divisors", "least of a trip count", "every integer"


@dataclass(frozen=True)
class Loop:
    """A loop: its dimension, the tile inside it, and whether it runs over the array."""

    dim: str
    tile: int
    spatial: bool = False


@dataclass(frozen=True)
class Option:
    """One tensor's points of storage (one per level, -1 where it bypasses the level), and what they come to.

    ``energy`` in the oracle's unit; per level the bits of the tile, and of the (reads, writes) of one
    instance that hide and that do not; ``first`` is per (outer level, level) the bits of the first tiles.
    """

    points: tuple[int, ...]
    energy: int
    tiles: tuple[int, ...]
    ports: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    first: dict[tuple[int, int], int]


@dataclass(frozen=True)
class Tally:
    """Elements that all instances move, and those of the first one, which is the busiest."""

    all: int
    one: int

    @staticmethod
    def of(counts: Counter[tuple[int, ...]]) -> Tally:
        """From counts by instance."""
        return Tally(counts.total(), sum(n for place, n in counts.items() if not any(place)))


@dataclass(frozen=True)
class Edge:
    """What moves between a store and the next inner one of a tensor, or the PEs.

    ``reads`` and ``updates`` of the outer one, ``fills`` and ``drains`` of the inner one, elements of the
    ``first`` tiles, and what crosses the networks of the levels between.
    """

    reads: Tally
    fills: Tally
    updates: Tally
    drains: Tally
    first: int
    crossing: tuple[int, ...]


@dataclass(frozen=True)
class Costs:
    """All combinations of the points of storage of one nest: an axis for every tensor.

    ``energy`` in the oracle's unit, ``cycles``, and whether each is ``legal``.
    """

    options: list[list[Option]]
    legal: Bools
    energy: Int64s
    cycles: Int64s


def inner_tiles(outer: int, kind: str) -> list[int]:
    """Tiles smaller than the one around them."""
    smaller = range(1, outer)
    if kind == DIVISORS:
        return [tile for tile in smaller if outer % tile == 0]
    if kind == LEAST:
        return [tile for tile in smaller if math.ceil(outer / math.ceil(outer / tile)) == tile]
    return list(smaller)


def sequences(
    left: dict[str, int], kind: str, ends: bool
) -> Iterator[tuple[tuple[Loop, ...], dict[str, int]]]:
    """All sequences of loops in time from some tiles on, with the tiles left; ``ends`` with none left."""
    if not ends or all(tile == 1 for tile in left.values()):
        yield (), left
    for dim, outer in left.items():
        for tile in inner_tiles(outer, kind):
            for rest, last in sequences({**left, dim: tile}, kind, ends):
                yield (Loop(dim, tile), *rest), last


def spreads(
    left: dict[str, int], size: int, dims: Sequence[str], kind: str
) -> Iterator[tuple[tuple[Loop, ...], dict[str, int]]]:
    """All ways to spread some dimensions over an axis."""
    if not dims:
        yield (), left
        return
    dim, *others = dims
    for tile in [left[dim], *inner_tiles(left[dim], kind)]:
        trips = math.ceil(left[dim] / tile)
        if trips <= size:
            own = (Loop(dim, tile, spatial=True),) if trips > 1 else ()
            for rest, last in spreads({**left, dim: tile}, size // trips, others, kind):
                yield (*own, *rest), last


class Oracle:
    """Enumerates one operator on one engine with at most one array, of one axis.

    Parameters
    ----------
    kind : which tiles a tile may be cut into
    like : an oracle of the same operator on an engine that differs in sizes, rates and energies alone
    """

    def __init__(self, operator: Operator, engine: Engine, kind: str, like: Oracle | None = None) -> None:
        self.operator, self.engine, self.kind = operator, engine, kind
        self.levels = engine.levels
        self.array = next((i for i, level in enumerate(engine.levels) if level.fanout), None)
        fans = [level.fanout for level in engine.levels if level.fanout]
        self.axis = fans[0].axes[0].name if fans else ""
        self.scale = math.lcm(
            engine.mac_energy.denominator,
            engine.leak.denominator,
            *(fan.energy.denominator for fan in fans),
            *(e.denominator for m in engine.levels for e in m.energies),
        )
        self._network = int(fans[0].energy * self.scale) if fans else 0
        self._weights = {
            (index, tensor.name): (
                self.bits(index, tensor),
                int(level.read_energies.get(tensor.role, level.read_energy) * self.scale),
                int(level.write_energies.get(tensor.role, level.write_energy) * self.scale),
            )
            for index, level in enumerate(engine.levels)
            for tensor in operator.tensors
        }
        self._edges: dict[Hashable, Edge] = {} if like is None else like._edges

    def nests(self) -> Iterator[tuple[tuple[Loop, ...], int, int]]:
        """All sequences of loops, and where the array's begin and end."""
        bounds = dict(self.operator.bounds)
        if self.array is None:
            for loops, _ in sequences(bounds, self.kind, ends=True):
                yield loops, len(loops), len(loops)
            return
        [axis] = self.levels[self.array].fanout.axes  # type: ignore[union-attr]
        dims = [d.name for d in self.operator.dimensions if axis.carries is None or d.like in axis.carries]
        for outer, left in sequences(bounds, self.kind, ends=False):
            for side, inside in spreads(left, axis.size, dims, self.kind):
                if self.array + 1 == len(self.levels):
                    if all(tile == 1 for tile in inside.values()):
                        yield (*outer, *side), len(outer), len(outer) + len(side)
                    continue
                for inner, _ in sequences(inside, self.kind, ends=True):
                    yield (*outer, *side, *inner), len(outer), len(outer) + len(side)

    def least(self, powers: tuple[int, int]) -> Fraction | None:
        """The least energy^a * cycles^b of a legal mapping."""
        best: Fraction | None = None
        for nest in self.nests():
            costs = self._costs(*nest)
            if costs is not None:
                best = self._least_of(*nest, costs, powers, best)
        return best

    def front(self) -> set[tuple[Fraction, int]]:
        """The undominated pairs of energy and cycles of legal mappings, where tiles divide each other."""
        pairs: set[tuple[int, int]] = set()
        for nest in self.nests():
            costs = self._costs(*nest)
            if costs is not None:
                energy, cycles = (values[costs.legal].tolist() for values in (costs.energy, costs.cycles))
                pairs |= set(zip(energy, cycles, strict=True))
                pairs = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
        return {(Fraction(energy, self.scale), cycles) for energy, cycles in pairs}

    def bits(self, level: int, tensor: Tensor) -> int:
        """Bits of an element of a tensor at a level."""
        return self.levels[level].widths.get(tensor.role, self.engine.element_bits)

    def room(self, level: int) -> Any:
        """Bits that a level holds beside its partitions; in elements of the one width that all these have."""
        memory = self.levels[level]
        shared = memory.keeps - memory.partitions.keys()
        widths = {memory.widths.get(role, self.engine.element_bits) for role in shared}
        unit = min(widths) if len(widths) == 1 else self.engine.element_bits
        return None if memory.capacity is None else memory.capacity * unit

    # -- one tensor ----------------------------------------------------------------------------------

    def options(self, tensor: Tensor, loops: Sequence[Loop], begin: int, end: int) -> list[Option]:
        """All points of storage of one tensor."""
        ranges: list[list[int]] = []
        for index, level in enumerate(self.levels):
            outside = self.array is None or index <= self.array
            places = list(range(begin + 1)) if outside else list(range(end, len(loops) + 1))
            if index == 0:
                places = [0]
            if tensor.role not in level.keeps:
                places = [-1]
            elif tensor.role in level.may_bypass:
                places = [-1, *places]
            ranges.append(places)
        options = []
        for points in cartesian(*ranges):
            held = [point for point in points if point >= 0]
            if held == sorted(held):
                option = self._option(tensor, loops, points)
                if all(
                    self.room(level) is None or tile <= self.room(level)
                    for level, tile in enumerate(option.tiles)
                ):
                    options.append(option)
        return options

    def _option(self, tensor: Tensor, loops: Sequence[Loop], points: tuple[int, ...]) -> Option:
        chain = [(level, point) for level, point in enumerate(points) if point >= 0]
        energy = 0
        tiles = [0] * len(self.levels)
        ports = [((0, 0), (0, 0))] * len(self.levels)
        first: dict[tuple[int, int], int] = {}
        fills = drains = Tally(0, 0)
        for depth, (level, point) in enumerate(chain):
            inner = chain[depth + 1] if depth + 1 < len(chain) else (None, len(loops))
            width, read, write = self._weights[level, tensor.name]
            tiles[level] = width * self._tile(tensor, loops, point)
            edge = self._edge(tensor, loops, (level, point), inner)
            energy += read * (edge.reads.all + drains.all) + write * (fills.all + edge.updates.all)
            if self.array is not None:
                energy += self._network * edge.crossing[self.array]
            pair = (width * (edge.reads.one + drains.one), width * (fills.one + edge.updates.one))
            hides = inner[0] is None or self.levels[inner[0]].double_buffered
            ports[level] = (pair, (0, 0)) if hides else ((0, 0), pair)
            if inner[0] is not None:
                first[level, inner[0]] = width * edge.first
            fills, drains = edge.fills, edge.drains
        return Option(points, energy, tuple(tiles), tuple(ports), first)

    def _edge(
        self, tensor: Tensor, loops: Sequence[Loop], outer: tuple[int, int], inner: tuple[int | None, int]
    ) -> Edge:
        """What moves between two neighbouring stores; walked through once for all nests that agree on it."""
        around = tuple(loops[: inner[1]])
        outside = sum(loop.spatial for loop in around[: outer[1]])
        place = outer[1] if self._overlaps(tensor) else outside  # all else depends on instances alone
        key = tensor.name, around, outer[0], place, inner[0]
        cached = self._edges.get(key)
        if cached is None:
            cached = self._edges[key] = self._walked(tensor, around, outer, inner)
        return cached

    def _walked(
        self, tensor: Tensor, loops: tuple[Loop, ...], outer: tuple[int, int], inner: tuple[int | None, int]
    ) -> Edge:
        nodes = [
            Spatial(loop.dim, loop.tile, self.axis) if loop.spatial else Temporal(loop.dim, loop.tile)
            for loop in loops
        ]
        names = [level.name for level in self.levels]
        result = walk_between(self.operator, self.engine, Mapping(tuple(nodes)), tensor, outer, inner)
        above = result.counts[names[outer[0]], tensor.name]
        below = result.counts["" if inner[0] is None else names[inner[0]], tensor.name]
        hops = result.hops
        reads, fills = Tally.of(above.reads), Tally.of(below.fills)
        if self._overlaps(tensor):
            reads = self._again(tensor, loops, outer[1], len(loops), above.updates)
            fills = self._again(tensor, loops, len(loops), len(loops), below.arrived)
            if inner[0] is not None:
                hops = result.left + result.left
        started = 0 if inner[0] is None else result.first[names[outer[0]], names[inner[0]], tensor.name]
        drains = Tally.of(below.reads) if inner[0] is not None else Tally(0, 0)
        crossing = tuple(hops[name] for name in names)
        return Edge(reads, fills, Tally.of(above.updates), drains, started, crossing)

    @staticmethod
    def _overlaps(tensor: Tensor) -> bool:
        """Whether tiles of an output may overlap: then every element of a tile is a partial sum."""
        return tensor.is_output and any(len(axis.terms) > 1 for axis in tensor.axes)

    def _again(
        self, tensor: Tensor, loops: Sequence[Loop], point: int, target: int, moved: Counter[tuple[int, ...]]
    ) -> Tally:
        """Elements of output tiles that overlap, but for as many as the stores at a point ever hold."""
        new = [self._different(tensor, loops, point, target, whole) for whole in (True, False)]
        tally = Tally.of(moved)
        return Tally(max(0, tally.all - new[0]), max(0, tally.one - new[1]))

    def _different(self, tensor: Tensor, loops: Sequence[Loop], point: int, target: int, whole: bool) -> int:
        """By axis, the extents of all tiles at a point, at most the whole; of all instances or the first."""
        count = 1
        for axis in tensor.axes:
            alone = len(axis.terms) == 1
            until = target if alone else point
            pieces = [self._cut(loops[:until], term.dim, whole, point) for term in axis.terms]
            strides = [term.stride for term in axis.terms]
            walked = sum(
                1 + sum(stride * (size - 1) for stride, size in zip(strides, sizes, strict=True))
                for sizes in cartesian(*pieces)
            )
            full = 1 + sum(term.stride * (self.operator.bounds[term.dim] - 1) for term in axis.terms)
            count *= walked if alone else min(walked, full)
        for dim in self.operator.bounds:
            if dim not in tensor.dims and whole:
                count *= self._instances(loops[:point], dim)
        return count

    def _instances(self, loops: Sequence[Loop], dim: str) -> int:
        """How many instances the first piece of a dimension is spread over."""
        size, number = self.operator.bounds[dim], 1
        for loop in loops:
            if loop.dim == dim:
                number *= -(-size // loop.tile) if loop.spatial else 1
                size = min(size, loop.tile)
        return number

    def _cut(self, loops: Sequence[Loop], dim: str, whole: bool, point: int) -> list[int]:
        """All pieces of a dimension; of an array's loops outside a point the first, unless ``whole``."""
        pieces = [self.operator.bounds[dim]]
        for index, loop in enumerate(loops):
            if loop.dim == dim:
                every = whole or not loop.spatial or index >= point
                pieces = [
                    min(loop.tile, size - at)
                    for size in pieces
                    for at in range(0, size if every else loop.tile, loop.tile)
                ]
        return pieces

    def _pieces(self, loops: Sequence[Loop], dim: str) -> int:
        """How many pieces the loops in time cut of the first one on the array."""
        pieces = [self.operator.bounds[dim]]
        for loop in loops:
            if loop.dim == dim:
                pieces = [
                    min(loop.tile, size - at)
                    for size in pieces
                    for at in range(0, loop.tile if loop.spatial else size, loop.tile)
                ]
        return len(pieces)

    def _first_piece(self, loops: Sequence[Loop], point: int, dim: str) -> int:
        tiles = (loop.tile for loop in reversed(loops[:point]) if loop.dim == dim)
        return next(tiles, self.operator.bounds[dim])

    def _tile(self, tensor: Tensor, loops: Sequence[Loop], point: int) -> int:
        pieces = {dim: self._first_piece(loops, point, dim) for dim in tensor.dims}
        return math.prod(
            1 + sum(term.stride * (pieces[term.dim] - 1) for term in axis.terms) for axis in tensor.axes
        )

    # -- all tensors ---------------------------------------------------------------------------------

    def _costs(self, loops: tuple[Loop, ...], begin: int, end: int) -> Costs | None:
        """What all combinations of the tensors' points cost; ``None`` where none is legal."""
        options = [self.options(tensor, loops, begin, end) for tensor in self.operator.tensors]
        if not all(options):
            return None
        shape = tuple(len(own) for own in options)

        def spread(index: int, values: Sequence[int]) -> Int64s:
            view = [1] * len(shape)
            view[index] = shape[index]
            return np.array(values, dtype=np.int64).reshape(view)

        def summed(of: list[list[int]]) -> Int64s:
            result = np.zeros(shape, dtype=np.int64)
            for index, values in enumerate(of):
                result = result + spread(index, values)
            return result

        legal = np.ones(shape, dtype=bool)
        for level, memory in enumerate(self.levels):
            if memory.capacity is not None:
                roles = [tensor.role for tensor in self.operator.tensors]
                rooms: dict[Role | None, Any] = {None: self.room(level)}
                for role, size in memory.partitions.items():
                    rooms[role] = size * memory.widths.get(role, self.engine.element_bits)
                for place, room in rooms.items():
                    inside = [(role if role in memory.partitions else None) is place for role in roles]
                    tiles = zip(options, inside, strict=True)
                    legal &= summed([[o.tiles[level] * here for o in own] for own, here in tiles]) <= room
        legal &= self._in_space(loops, begin, end, options, shape, spread)
        if not legal.any():
            return None
        mac = int(self.engine.mac_energy * self.scale) * self.operator.iterations
        cycles = self._cycles(loops, options, summed, shape)
        leakage = int(self.engine.leak * self.scale) * cycles
        energy = mac + summed([[o.energy for o in own] for own in options]) + leakage
        return Costs(options, legal, energy, cycles)

    def _least_of(
        self,
        loops: tuple[Loop, ...],
        begin: int,
        _end: int,
        costs: Costs,
        powers: tuple[int, int],
        best: Fraction | None,
    ) -> Fraction | None:
        energy, cycles = costs.energy, costs.cycles
        keys = (
            energy.astype(object) ** powers[0] * cycles.astype(object) ** powers[1]
            if sum(powers) > 1
            else (energy if powers[0] else cycles)
        )
        if self.kind == LEAST:
            return self._least_of_rule(loops, begin, costs.options, keys, costs.legal, powers, best)
        least = Fraction(int(keys[costs.legal].min()), self.scale ** powers[0])
        return least if best is None or least < best else best

    def _least_of_rule(self, loops, begin, options, keys, legal, powers, best):  # type: ignore[no-untyped-def]
        """The cheapest combination that is even, or has useful loops only between its points."""
        places = np.argwhere(legal)
        own = [int(keys[tuple(place)]) for place in places]
        for rank in sorted(range(len(own)), key=own.__getitem__):
            key = Fraction(own[rank], self.scale ** powers[0])
            if best is not None and key >= best:
                return best
            points = [options[i][at].points for i, at in enumerate(places[rank])]
            if self._follows_rule(loops, begin, points):
                return key
        return best

    def _follows_rule(self, loops: Sequence[Loop], begin: int, points: Sequence[tuple[int, ...]]) -> bool:
        """Whether the points are even, or no loop just inside a point moves its tensor to no use."""
        tensors = self.operator.tensors
        held = [{p[level] for p in points if p[level] >= 0} for level in range(len(self.levels))]
        single = [point for own in held for point in own]
        if all(len(own) <= 1 for own in held) and single == sorted(single):
            return True
        split = len(self.levels) if self.array is None else self.array + 1
        for levels, until, fed in (
            (range(1, split), begin, self.array == 0),
            (range(split, len(self.levels)), len(loops), True),
        ):
            places: dict[int, list[tuple[int, int]]] = {}  # point: level and tensor, level by level
            for level in levels:
                for index, own in enumerate(points):
                    if own[level] >= 0:
                        places.setdefault(own[level], []).append((level, index))
            fixed = not any(self._is_free(level, index) for level in levels for index in range(len(tensors)))
            moved: set[str] | None = None
            ends = sorted(places)
            if not ends:
                continue
            for rank, (point, end) in enumerate(zip(ends, [*ends[1:], until], strict=True)):
                here = places[point]
                if fixed and moved is not None and not moved & tensors[here[0][1]].dims:
                    return False
                moved = {loop.dim for loop in loops[point:end]}
                if fed and rank == 0:
                    continue
                for _, index in here[-1:] if fixed else here:
                    if all(self._useful(levels, point, index, dim, points) for dim in moved):
                        break
                else:
                    return False
        return True

    def _is_free(self, level: int, index: int) -> bool:
        role = self.operator.tensors[index].role
        return role in self.levels[level].keeps and role in self.levels[level].may_bypass

    def _useful(
        self, levels: range, point: int, index: int, dim: str, points: Sequence[tuple[int, ...]]
    ) -> bool:
        """Whether a loop leaves a tensor in place, or another one beyond the array, not stored in between."""
        tensors = self.operator.tensors
        if not self._moves_alone(tensors[index], dim) or self._slides(levels, dim):
            return True
        for other, tensor in enumerate(tensors):
            deeper = any(tensor.role in inner.keeps for inner in self.levels[levels[-1] + 1 :])
            if other == index or dim in tensor.dims or not deeper:
                continue
            stands = all(
                self._is_free(level, other) or points[other][level] <= point
                for level in levels
                if tensor.role in self.levels[level].keeps
            )
            if stands:
                return True
        return False

    def _moves_alone(self, tensor: Tensor, dim: str) -> bool:
        """Whether a loop moves a tensor along one axis of its own; an output element by element."""
        axes = [axis for axis in tensor.axes if any(term.dim == dim for term in axis.terms)]
        if len(axes) != 1:
            return False
        others = [term for term in axes[0].terms if self.operator.bounds[term.dim] > 1 and term.dim != dim]
        strides = [term.stride for term in axes[0].terms]
        return not others and (not tensor.is_output or strides == [1])

    def _slides(self, levels: range, dim: str) -> bool:
        """Whether a loop slides a window that some level from these on keeps."""
        for tensor in self.operator.tensors:
            for axis in tensor.axes:
                strides = {term.dim: term.stride for term in axis.terms}
                spans = [term.stride * (self.operator.bounds[term.dim] - 1) for term in axis.terms]
                own = strides.get(dim, 0) * (self.operator.bounds[dim] - 1)
                keeps = any(m.sliding_window and tensor.role in m.keeps for m in self.levels[levels[0] :])
                if keeps and dim in strides and len(strides) > 1 and 1 + sum(spans) - own > strides[dim]:
                    return True
        return False

    def _in_space(self, loops, begin, end, options, shape, spread):  # type: ignore[no-untyped-def]
        """An array is followed by a store, and no dimension has two loops with no store between."""
        count, legal = len(options), np.ones(shape, dtype=bool)
        big = len(loops) + 1
        if self.array is not None and end < len(loops):
            first = np.full(shape, big)
            for index in range(count):
                inside = [[p for p in o.points[self.array + 1 :] if p >= 0] for o in options[index]]
                first = np.minimum(first, spread(index, [min(own, default=big) for own in inside]))
            legal &= first == end
        if self.kind == DIVISORS:
            return legal
        for place, loop in enumerate(loops):
            for other in range(place + 1, len(loops)):
                apart = loop.spatial != loops[other].spatial or (place < begin <= other)
                if loops[other].dim == loop.dim and not apart:
                    between = np.zeros(shape, dtype=bool)
                    for index in range(count):
                        split = [
                            int(any(place < point <= other for point in o.points)) for o in options[index]
                        ]
                        between |= spread(index, split).astype(bool)
                    legal &= between
        return legal

    def _cycles(self, loops, options, summed, shape):  # type: ignore[no-untyped-def]
        compute = math.prod(self._pieces(loops, dim) for dim in self.operator.bounds)
        hidden, exposed = np.full(shape, compute), np.zeros(shape, dtype=np.int64)

        def time(bits: Int64s, rate: Fraction | None) -> Int64s:
            if rate is None:
                return np.zeros(shape, dtype=np.int64)
            per_cycle = rate * self.engine.element_bits
            return -(-(bits * per_cycle.denominator) // per_cycle.numerator)

        for level, memory in enumerate(self.levels):
            for side in (0, 1):
                reads = summed([[o.ports[level][side][0] for o in own] for own in options])
                writes = summed([[o.ports[level][side][1] for o in own] for own in options])
                busy = np.maximum(time(reads, memory.read_bandwidth), time(writes, memory.write_bandwidth))
                busy = np.maximum(busy, time(reads + writes, memory.shared_bandwidth))
                if side == 0:
                    hidden = np.maximum(hidden, busy)
                else:
                    exposed = exposed + busy
            if level and memory.double_buffered:
                for output in (False, True):
                    worst = np.zeros(shape, dtype=np.int64)
                    for outer in range(level):
                        rate = (
                            self.levels[outer].write_bandwidth
                            if output
                            else self.levels[outer].read_bandwidth
                        )
                        moved = summed(
                            [
                                [
                                    o.first.get((outer, level), 0) if tensor.is_output is output else 0
                                    for o in own
                                ]
                                for tensor, own in zip(self.operator.tensors, options, strict=True)
                            ]
                        )
                        worst = np.maximum(worst, time(moved, rate))
                        worst = np.maximum(worst, time(moved, self.levels[outer].shared_bandwidth))
                    exposed = exposed + worst
        return hidden + exposed
