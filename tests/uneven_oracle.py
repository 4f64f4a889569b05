"""The least cost of the uneven space by plain enumeration: every loop sequence, tile and point of storage.

Nothing is shared with the formulation but operators, engines and objectives.  Loops in time and over one
array axis are written out in every sequence; for each of them every tensor begins to live anywhere, in every
level, whatever the others do.  Accesses are counted here a second time, from the rules in
``docs/cost-models.md``: for tensors whose axes have one loop each (products of matrices and their like), on
levels without windows or sharing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as cartesian
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Tensor

Numbers = NDArray[np.int64]
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

    ``energy`` in pJ; per level the bits of the tile, and of the (reads, writes) of one instance that hide and
    that do not; ``first`` is per (outer level, level) the bits that the first tiles take.
    """

    points: tuple[int, ...]
    energy: Fraction
    tiles: tuple[int, ...]
    ports: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    first: dict[tuple[int, int], int]


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
    """

    def __init__(self, operator: Operator, engine: Engine, kind: str) -> None:
        self.operator, self.engine, self.kind = operator, engine, kind
        self.levels = engine.levels
        self.array = next((i for i, level in enumerate(engine.levels) if level.fanout), None)
        self.scale = math.lcm(
            engine.mac_energy.denominator, *(e.denominator for m in engine.levels for e in m.energies)
        )

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
        for loops, begin, end in self.nests():
            options = [self.options(tensor, loops, begin, end) for tensor in self.operator.tensors]
            if not all(options):
                continue
            best = self._combined(loops, begin, end, options, powers, best)
        return best

    def bits(self, level: int, tensor: Tensor) -> int:
        """Bits of an element of a tensor at a level."""
        return self.levels[level].widths.get(tensor.role, self.engine.element_bits)

    def room(self, level: int) -> Any:
        """Bits that a level holds; its size is in elements of the one width that all kept there have."""
        memory = self.levels[level]
        widths = {memory.widths.get(role, self.engine.element_bits) for role in memory.keeps}
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
        found = []
        for points in cartesian(*ranges):
            held = [point for point in points if point >= 0]
            if held == sorted(held):
                option = self._option(tensor, loops, points)
                if all(
                    self.room(level) is None or tile <= self.room(level)
                    for level, tile in enumerate(option.tiles)
                ):
                    found.append(option)
        return found

    def _option(self, tensor: Tensor, loops: Sequence[Loop], points: tuple[int, ...]) -> Option:
        chain = [(level, point) for level, point in enumerate(points) if point >= 0]
        energy = Fraction(0)
        tiles = [0] * len(self.levels)
        ports = [((0, 0), (0, 0))] * len(self.levels)
        first: dict[tuple[int, int], int] = {}
        for depth, (level, point) in enumerate(chain):
            memory = self.levels[level]
            inner = chain[depth + 1] if depth + 1 < len(chain) else None
            width = self.bits(level, tensor)
            read = memory.read_energies.get(tensor.role, memory.read_energy)
            write = memory.write_energies.get(tensor.role, memory.write_energy)
            tiles[level] = width * self._tile(tensor, loops, point)
            for whole in (True, False):
                reads, fills, updates = self._counts(tensor, loops, point, inner, depth, whole)
                if whole:
                    energy += read * reads + write * (fills + updates)
                else:
                    hides = inner is None or self.levels[inner[0]].double_buffered
                    pair = (width * reads, width * (fills + updates))
                    ports[level] = (pair, (0, 0)) if hides else ((0, 0), pair)
            if inner is not None:
                pieces = 1
                for dim in self.operator.bounds:
                    own = dim in tensor.dims
                    counted = {
                        i
                        for i in range(point, inner[1])
                        if loops[i].spatial and (own or not self._shares(tensor))
                    }
                    pieces *= (
                        sum(self._pieces(loops, inner[1], dim, counted))
                        if own
                        else len(self._pieces(loops, inner[1], dim, counted))
                    )
                first[level, inner[0]] = width * pieces
        return Option(points, energy, tuple(tiles), tuple(ports), first)

    def _shares(self, tensor: Tensor) -> bool:
        if self.array is None:
            return True
        fan = self.levels[self.array].fanout
        assert fan is not None
        return fan.reduction if tensor.is_output else fan.multicast

    def _pieces(self, loops: Sequence[Loop], point: int, dim: str, counted: set[int]) -> list[int]:
        """The pieces of a dimension at a point; of a loop that does not count the first one only."""
        pieces = [self.operator.bounds[dim]]
        for index, loop in enumerate(loops[:point]):
            if loop.dim == dim:
                if index in counted:
                    pieces = [
                        min(loop.tile, size - at) for size in pieces for at in range(0, size, loop.tile)
                    ]
                else:
                    pieces = [min(loop.tile, size) for size in pieces]
        return pieces

    def _tile(self, tensor: Tensor, loops: Sequence[Loop], point: int) -> int:
        return math.prod(self._pieces(loops, point, dim, set())[0] for dim in tensor.dims)

    def _run(self, tensor: Tensor, loops: Sequence[Loop], point: int) -> set[int]:
        """The innermost loops in time outside a point that leave the tensor in place."""
        run: set[int] = set()
        for index in reversed(range(point)):
            if not loops[index].spatial:
                if loops[index].dim in tensor.dims:
                    break
                run.add(index)
        return run

    def _moved(
        self, tensor: Tensor, loops: Sequence[Loop], point: int, instances: set[int], pes: bool = False
    ) -> tuple[int, int]:
        """Elements of the tensor that counting instances ever hold at a point, and how often each comes."""
        run = set() if pes else self._run(tensor, loops, point)
        times = {i for i in range(point) if not loops[i].spatial}
        elements = visits = 1
        for dim in self.operator.bounds:
            if dim in tensor.dims:
                elements *= sum(self._pieces(loops, point, dim, times | instances))
            else:
                visits *= len(
                    self._pieces(loops, point, dim, (times - run) | self._alike(tensor, instances, loops))
                )
        return elements, visits

    @staticmethod
    def _alike(tensor: Tensor, instances: set[int], loops: Sequence[Loop]) -> set[int]:
        return {i for i in instances if loops[i].dim not in tensor.dims}

    def _counts(
        self,
        tensor: Tensor,
        loops: Sequence[Loop],
        point: int,
        inner: tuple[int, int] | None,
        depth: int,
        whole: bool,
    ) -> tuple[int, int, int]:
        """Reads, fills and updates at a store, over all instances or of the first one."""
        outside = {i for i in range(point) if loops[i].spatial} if whole else set[int]()
        target = len(loops) if inner is None else inner[1]
        between = {i for i in range(point, target) if loops[i].spatial}
        below = outside | {i for i in between if loops[i].dim in tensor.dims or not self._shares(tensor)}
        elements, visits = self._moved(tensor, loops, target, below, pes=inner is None)
        if not tensor.is_output:
            filled = math.prod(self._moved(tensor, loops, point, outside)) if depth else 0
            return elements * visits, filled, 0
        partners = math.prod(
            len(self._pieces(loops, point, dim, outside))
            for dim in self.operator.bounds
            if dim not in tensor.dims
        )
        own, comes = self._moved(tensor, loops, point, outside)
        fills = own * (comes - partners) if depth else 0
        updates = elements * visits
        return updates - own * partners, fills, updates

    # -- all tensors ---------------------------------------------------------------------------------

    def _combined(
        self,
        loops: tuple[Loop, ...],
        begin: int,
        end: int,
        options: list[list[Option]],
        powers: tuple[int, int],
        best: Fraction | None,
    ) -> Fraction | None:
        shape = tuple(len(own) for own in options)

        def spread(index: int, values: Sequence[int]) -> Numbers:
            view = [1] * len(shape)
            view[index] = shape[index]
            return np.array(values, dtype=np.int64).reshape(view)

        def summed(of: list[list[int]]) -> Numbers:
            result = np.zeros(shape, dtype=np.int64)
            for index, values in enumerate(of):
                result = result + spread(index, values)
            return result

        legal = np.ones(shape, dtype=bool)
        for level, memory in enumerate(self.levels):
            if memory.capacity is not None:
                legal &= summed([[o.tiles[level] for o in own] for own in options]) <= self.room(level)
        legal &= self._in_space(loops, begin, end, options, shape, spread)
        if not legal.any():
            return best
        mac = int(self.engine.mac_energy * self.scale) * self.operator.iterations
        energy = mac + summed([[int(o.energy * self.scale) for o in own] for own in options])
        cycles = self._cycles(loops, options, summed, shape)
        keys = (
            energy.astype(object) ** powers[0] * cycles.astype(object) ** powers[1]
            if sum(powers) > 1
            else (energy if powers[0] else cycles)
        )
        if self.kind == LEAST:
            return self._least_of_rule(loops, begin, options, keys, legal, powers, best)
        least = Fraction(int(keys[legal].min()), self.scale ** powers[0])
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
        if dim not in tensors[index].dims:
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
        for one, loop in enumerate(loops):
            for other in range(one + 1, len(loops)):
                apart = loop.spatial != loops[other].spatial or (one < begin <= other)
                if loops[other].dim == loop.dim and not apart:
                    between = np.zeros(shape, dtype=bool)
                    for index in range(count):
                        split = [int(any(one < point <= other for point in o.points)) for o in options[index]]
                        between |= spread(index, split).astype(bool)
                    legal &= between
        return legal

    def _cycles(self, loops, options, summed, shape):  # type: ignore[no-untyped-def]
        times = {i for i, loop in enumerate(loops) if not loop.spatial}
        compute = math.prod(len(self._pieces(loops, len(loops), dim, times)) for dim in self.operator.bounds)
        hidden, exposed = np.full(shape, compute), np.zeros(shape, dtype=np.int64)

        def time(bits: Numbers, rate: Fraction | None) -> Numbers:
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
