"""Access counts of the ``hierarchy`` model by walking through the loop nest step by step.

Nothing is shared with the formulation but the operator, the engine and the mapping.  Every instance of
every store has a tile: a box of element coordinates.  One time step advances the odometer of all temporal
loops by one.  The rules:

- A store's tile is fetched at the first step, and whenever the loop that advances is, or lies outside, the
  innermost temporal loop outside the store that moves the tensor.
- Where that innermost loop itself advances and the store keeps windows, only elements that were not in the
  tile before are fetched; at every other fetch (a wrap-around) the whole tile is.
- Instances that have the same tile at a step share one access of the outer store where they differ only in
  arrays that multicast (outputs: reduce); the most that one of them misses is read.  The arrays are all
  those between the two stores, with or without loops in time between.  Where a tensor has a loop on two of
  its axes, instances that differ in loops of such an axis do not share.
- An output's old tile is written back when the next one comes, and at the end; every write-back of an element
  but its first one at the outer store costs a read there, and a tile is filled but for elements that the
  instance has never held.
- Without a store inside, every PE accesses one element of every tensor at every step, as a store would.
- Where buffers share, those that differ only in loops of their array that an input or weight does not depend
  on form a ring.  A tile is fetched once for the ring, its elements dealt out one by one.  Whatever the first
  buffer of the ring hands to its inside goes round, one hop to each of the others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from types import MappingProxyType

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Role, Tensor

Box = tuple[tuple[int, int], ...]
Index = tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """One loop: its dimension, the iterations that one step covers, its steps, its fan-out's level."""

    dim: str
    step: int
    trips: int
    level: int | None

    @property
    def is_temporal(self) -> bool:
        return self.level is None


@dataclass
class Counts:
    """Accesses of one tensor at one level, by instance; ``arrived`` are all elements of output tiles."""

    reads: Counter[Index] = field(default_factory=Counter)
    fills: Counter[Index] = field(default_factory=Counter)
    updates: Counter[Index] = field(default_factory=Counter)
    arrived: Counter[Index] = field(default_factory=Counter)
    tile: int = 0
    passed: int = 0

    @property
    def totals(self) -> tuple[int, int, int, int, int]:
        return self.reads.total(), self.fills.total(), self.updates.total(), self.tile, self.passed


@dataclass
class Simulation:
    """What the walk counted.

    Parameters
    ----------
    counts : per (level, tensor)
    hops : elements that crossed the network below a level, at each of its ends
    left : those of them that went outwards
    steps : iterations that the busiest PE executes
    first : per (outer level, level, tensor), elements of the first tiles that one outer instance hands in
    below : per (level, tensor), the level of the next inner store, if there is one
    """

    counts: dict[tuple[str, str], Counts] = field(default_factory=lambda: defaultdict(Counts))
    hops: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    first: dict[tuple[str, str, str], int] = field(default_factory=dict)
    below: dict[tuple[str, str], str] = field(default_factory=dict)


class Nest:
    """A mapping as loops and stores with positions among them."""

    def __init__(self, operator: Operator, engine: Engine, mapping: Mapping) -> None:
        names = [level.name for level in engine.levels]
        fan = {axis.name: i for i, m in enumerate(engine.levels) if m.fanout for axis in m.fanout.axes}
        self.engine = engine
        self.bounds = dict(operator.bounds)
        self.loops: list[Loop] = []
        self.stores: dict[str, list[tuple[int, int]]] = {tensor.name: [] for tensor in operator.tensors}
        tile = dict(operator.bounds)
        for node in mapping.nodes:
            if isinstance(node, Storage):
                self.stores[node.tensor].append((names.index(node.level), len(self.loops)))
                continue
            level = fan[node.axis] if isinstance(node, Spatial) else None
            self.loops.append(Loop(node.dim, node.tile, -(-tile[node.dim] // node.tile), level))
            tile[node.dim] = node.tile

    def temporal(self, position: int) -> list[int]:
        return [i for i in range(position) if self.loops[i].is_temporal]

    def spatial(self, position: int) -> list[int]:
        return [i for i in range(position) if not self.loops[i].is_temporal]

    def ring(self, tensor: Tensor, level: int | None) -> list[int]:
        """Spatial loops among whose instances the buffers of a level share a tensor."""
        fan = self.engine.levels[level - 1].fanout if level else None
        if level is None or fan is None or not fan.sharing or tensor.is_output:
            return []
        loops = enumerate(self.loops)
        return [i for i, loop in loops if loop.level == level - 1 and loop.dim not in tensor.dims]

    def indices(self, places: Sequence[int]) -> Iterator[Index]:
        """All indices of some loops, the last one fastest."""
        return product(*(range(self.loops[i].trips) for i in places))

    def box(self, tensor: Tensor, position: int, at: MappingABC[int, int]) -> Box | None:
        """Coordinates of a tensor's tile: (first, extent) along every axis; ``None`` past the end.

        The last tile of a loop is what remains.
        """
        offset = dict.fromkeys(self.bounds, 0)
        rest = dict(self.bounds)
        for i, loop in enumerate(self.loops[:position]):
            passed = at[i] * loop.step
            if passed >= rest[loop.dim]:
                return None
            offset[loop.dim] += passed
            rest[loop.dim] = min(loop.step, rest[loop.dim] - passed)
        return tuple(
            (
                sum(term.stride * offset[term.dim] for term in axis.terms),
                1 + sum(term.stride * (rest[term.dim] - 1) for term in axis.terms),
            )
            for axis in tensor.axes
        )


def size(box: Box) -> int:
    return math.prod(extent for _, extent in box)


def overlap(box: Box, other: Box) -> int:
    """Elements that two boxes share."""
    return math.prod(max(0, min(a + m, b + n) - max(a, b)) for (a, m), (b, n) in zip(box, other, strict=True))


def elements(box: Box) -> Iterator[Index]:
    return product(*(range(first, first + extent) for first, extent in box))


def simulate(operator: Operator, engine: Engine, mapping: Mapping, continued: bool = False) -> Simulation:
    """Walk through a small nest; ``continued`` if its outputs have partial sums when it begins."""
    nest = Nest(operator, engine, mapping)
    result = Simulation()
    everything = nest.temporal(len(nest.loops))
    busiest = dict.fromkeys(nest.spatial(len(nest.loops)), 0)
    for values in nest.indices(everything):
        at = {**busiest, **dict(zip(everything, values, strict=True))}
        result.steps += nest.box(operator.output, len(nest.loops), at) is not None
    for tensor in operator.tensors:
        chain = nest.stores[tensor.name]
        for depth, (level, position) in enumerate(chain):
            first = nest.box(tensor, position, defaultdict(int))
            assert first is not None
            members = math.prod(nest.loops[i].trips for i in nest.ring(tensor, level))
            result.counts[engine.levels[level].name, tensor.name].tile = -(-size(first) // members)
            inner = chain[depth + 1] if depth + 1 < len(chain) else (None, len(nest.loops))
            edge = _Edge(nest, tensor, (level, position), inner, result)
            if continued and tensor.is_output:
                edge.begin_with_sums(operator)
            edge.walk()
    return result


def walk_between(
    operator: Operator,
    engine: Engine,
    mapping: Mapping,
    tensor: Tensor,
    outer: tuple[int, int],
    inner: tuple[int | None, int],
) -> Simulation:
    """What moves between two stores of a tensor: each its level (``None``: the PEs) and loops outside it."""
    result = Simulation()
    _Edge(Nest(operator, engine, mapping), tensor, outer, inner, result).walk()
    return result


class _Edge:
    """One tensor's traffic between two neighbouring stores, or between the innermost one and the PEs."""

    def __init__(
        self,
        nest: Nest,
        tensor: Tensor,
        outer: tuple[int, int],
        inner: tuple[int | None, int],
        result: Simulation,
    ) -> None:
        self.nest, self.tensor, self.result = nest, tensor, result
        self.level, position = outer
        self.inner, self.target = inner
        levels = nest.engine.levels
        self.above = result.counts[levels[self.level].name, tensor.name]
        self.below = None
        if self.inner is not None:
            self.below = result.counts[levels[self.inner].name, tensor.name]
            result.below[levels[self.level].name, tensor.name] = levels[self.inner].name
        self.spatial = nest.spatial(self.target)
        self.between = [i for i in self.spatial if i >= position]
        self.diagonal = self._diagonal()
        self.ring, self.ring_outside = nest.ring(tensor, self.inner), nest.ring(tensor, self.level)
        self.dealt: Counter[Index] = Counter()
        moving = [i for i in nest.temporal(self.target) if self._moves(i)]
        self.innermost = max(moving, default=-1)
        self.slides = self.inner is not None and levels[self.inner].sliding_window
        self.shares = {
            i: (m.fanout.reduction if tensor.is_output else m.fanout.multicast)
            for i, m in enumerate(levels)
            if m.fanout
        }
        self.tile: dict[Index, Box] = {}
        self.clock: dict[Index, Index] = {}
        self.touched: dict[Index, set[Index]] = defaultdict(set)
        self.held: dict[Index, set[Index]] = defaultdict(set)

    def begin_with_sums(self, operator: Operator) -> None:
        """Every output has been held and written back before."""
        whole = set(product(*(range(axis.extent(operator.bounds)) for axis in self.tensor.axes)))
        self.touched = defaultdict(lambda: set(whole))
        self.held = defaultdict(lambda: set(whole))

    def _diagonal(self) -> set[str]:
        """Loops of axes of which one loop is on another axis, too."""
        axes = [{term.dim for term in axis.terms} for axis in self.tensor.axes]
        seen = Counter(dim for axis in axes for dim in axis)
        return {dim for axis in axes if any(seen[other] > 1 for other in axis) for dim in axis}

    def _moves(self, place: int) -> bool:
        loop = self.nest.loops[place]
        return loop.trips > 1 and loop.dim in self.tensor.dims

    def walk(self) -> None:
        """All steps; an output's last tile goes back at the end."""
        loops = self.nest.temporal(self.target)
        for now in self.nest.indices(loops):
            arriving: dict[Index, Box] = {}
            idle: set[Index] = set()
            consecutive: set[Index] = set()
            for place in self.nest.indices(self.spatial):
                at = dict(zip(loops, now, strict=True)) | dict(zip(self.spatial, place, strict=True))
                box = self.nest.box(self.tensor, self.target, at)
                if box is None or not self._is_inside(at):
                    idle.add(place)
                    continue
                before = self.clock.get(place)
                self.clock[place] = now
                if before is not None:
                    advanced = next(loop for loop, a, b in zip(loops, before, now, strict=True) if a != b)
                    if self.inner is not None and advanced > self.innermost:
                        continue
                    if advanced == self.innermost:
                        consecutive.add(place)
                arriving[place] = box
            if not self.tile and self.inner is not None:
                self._note_first(arriving)
            if self.tensor.is_output:
                leaving = {*arriving, *idle} if arriving else set()  # without work left, too
                self._write_back({place: self.tile.pop(place) for place in leaving & self.tile.keys()})
                self._start(arriving)
            else:
                self._fetch(arriving, consecutive)
            self.tile.update(arriving)
        if self.tensor.is_output:
            self._write_back(self.tile)

    def _is_inside(self, at: MappingABC[int, int]) -> bool:
        """Whether loops that the tensor does not depend on have work left at these indices, too."""
        rest = dict(self.nest.bounds)
        for i, loop in enumerate(self.nest.loops[: self.target]):
            if at[i] * loop.step >= rest[loop.dim]:
                return False
            rest[loop.dim] = min(loop.step, rest[loop.dim] - at[i] * loop.step)
        return True

    def _fetch(self, tiles: MappingABC[Index, Box], consecutive: set[Index]) -> None:
        wanted = {}
        for place, box in tiles.items():
            known = overlap(box, self.tile[place]) if place in consecutive and self.slides else 0
            wanted[place] = (box, size(box) - known)
            self._fill(place, wanted[place][1])
        outside = [i for i in self.spatial if i not in self.between]
        for outer, _, count in self._arriving(wanted, self.between):
            self.above.reads[outer] += count
            if not any(k for k, i in zip(outer, outside, strict=True) if i in self.ring_outside):
                others = math.prod(self.nest.loops[i].trips for i in self.ring_outside) - 1
                self.above.passed += count * others
        self._cross(wanted)

    def _fill(self, place: Index, count: int) -> None:
        """A tile arrives at a buffer, or at the ring whose first buffer it is."""
        at = dict(zip(self.spatial, place, strict=True))
        if self.below is None or any(at[i] for i in self.ring):
            return
        members = [
            tuple((at | dict(zip(self.ring, indices, strict=True))).values())
            for indices in self.nest.indices(self.ring)
        ]
        for _ in range(count):
            self.below.fills[members[self.dealt[place] % len(members)]] += 1
            self.dealt[place] += 1

    def _start(self, tiles: MappingABC[Index, Box]) -> None:
        """New output tiles: elements that the instance has held before come back from outside."""
        if self.below is None:
            return
        again = {}
        for place, box in tiles.items():
            known = sum(element in self.held[place] for element in elements(box))
            self.held[place].update(elements(box))
            self.below.fills[place] += known
            self.below.arrived[place] += size(box)
            again[place] = (box, known)
        self._cross(again)

    def _write_back(self, tiles: MappingABC[Index, Box]) -> None:
        wanted = {place: (box, size(box)) for place, box in tiles.items()}
        if self.inner is not None and self.nest.engine.levels[self.inner].timing.drained:
            assert self.below is not None
            for place, (_, number) in wanted.items():
                self.below.reads[place] += number
        for outer, box, _ in self._arriving(wanted, self.between):
            inside = set(elements(box))
            self.above.updates[outer] += len(inside)
            self.above.reads[outer] += len(inside & self.touched[outer])
            self.touched[outer] |= inside
        before = self.result.hops.copy()
        self._cross(wanted)
        self.result.left += self.result.hops - before

    def _arriving(
        self, wanted: MappingABC[Index, tuple[Box, int]], below: Collection[int]
    ) -> Iterator[tuple[Index, Box, int]]:
        """Accesses left after the networks below have merged equal tiles: (outer instance, tile, elements).

        Parameters
        ----------
        wanted : per instance, its tile and the elements that it moves
        below : spatial loops inside the network's outer end
        """
        apart = [
            i
            for i in self.spatial
            if i not in self.ring
            and (
                i not in below
                or not self.shares[self.nest.loops[i].level or 0]
                or self.nest.loops[i].dim in self.diagonal
            )
        ]
        merged: dict[tuple[Index, Box], tuple[Index, Box, int]] = {}
        for place, (box, count) in wanted.items():
            at = dict(zip(self.spatial, place, strict=True))
            outer = tuple(at[i] for i in self.spatial if i not in below)
            key = tuple(at[i] for i in apart), box
            most = max(count, merged[key][2]) if key in merged else count
            merged[key] = outer, box, most
        yield from merged.values()

    def _cross(self, wanted: MappingABC[Index, tuple[Box, int]]) -> None:
        """Count the elements at the inner ends of every network that lies between the two stores."""
        last = len(self.nest.engine.levels) if self.inner is None else self.inner
        for level in range(self.level, last):
            if self.nest.engine.levels[level].fanout is not None:
                deeper = [i for i in self.spatial if (self.nest.loops[i].level or 0) > level]
                crossing = sum(count for _, _, count in self._arriving(wanted, deeper))
                self.result.hops[self.nest.engine.levels[level].name] += crossing

    def _note_first(self, tiles: MappingABC[Index, Box]) -> None:
        """Elements of the first tiles below the first instance of the outer store."""
        assert self.inner is not None
        wanted = {place: (box, size(box)) for place, box in tiles.items()}
        moved = sum(n for outer, _, n in self._arriving(wanted, self.between) if not any(outer))
        names = [level.name for level in self.nest.engine.levels]
        self.result.first[names[self.level], names[self.inner], self.tensor.name] = moved


def bits(engine: Engine, level: MemoryLevel, tensor: Tensor) -> int:
    """Of one element of a tensor in a level."""
    return level.widths.get(tensor.role, engine.element_bits)


def times(width: int, counts: Counter[Index]) -> Counter[Index]:
    """Bits of so many elements of one width."""
    return Counter({place: width * count for place, count in counts.items()})


def energy(engine: Engine, operator: Operator, simulation: Simulation) -> Fraction:
    """pJ of all accesses, hops and operations."""
    total = engine.mac_energy * operator.iterations
    hop_energies = [level.fanout.hop_energy if level.fanout else Fraction(0) for level in engine.levels]
    for level, hop_energy in zip(engine.levels, [Fraction(0), *hop_energies], strict=False):
        for tensor in operator.tensors:
            reads, fills, updates, _, hops = simulation.counts[level.name, tensor.name].totals
            read = level.read_energies.get(tensor.role, level.read_energy)
            write = level.write_energies.get(tensor.role, level.write_energy)
            total += read * reads + write * fills + write * updates + hop_energy * hops
        if level.fanout is not None:
            total += level.fanout.energy * simulation.hops[level.name]
    return total


def overfull(engine: Engine, operator: Operator, simulation: Simulation) -> list[str]:
    """Levels of which the first instance holds more bits than it has room for, with the roles at fault."""
    overfull = []
    for level in engine.levels:
        held: dict[str, int] = {}
        banks: dict[str, int] = {}
        rooms = {role.value: size * bits_of(engine, level, {role}) for role, size in level.partitions.items()}
        shared = level.keeps - level.partitions.keys()
        if level.capacity is not None:
            rooms[""] = level.capacity * bits_of(engine, level, shared)
        for tensor in operator.tensors:
            part = tensor.role.value if tensor.role in level.partitions else ""
            size = simulation.counts[level.name, tensor.name].tile * bits(engine, level, tensor)
            held[part] = held.get(part, 0) + size
            if level.bank is not None:
                whole = math.ceil(Fraction(size, level.bank * bits_of(engine, level, shared)))
                banks[part] = banks.get(part, 0) + whole * level.bank * bits_of(engine, level, shared)
        sizes = held if level.bank is None else banks
        overfull += [
            f"{level.name} {part}".strip() for part, room in rooms.items() if sizes.get(part, 0) > room
        ]
    return overfull


def bits_of(engine: Engine, level: MemoryLevel, roles: Collection[Role]) -> int:
    """Of the elements that a room for some roles is counted in."""
    widths = {level.widths.get(role, engine.element_bits) for role in roles}
    return min(widths) if len(widths) == 1 else engine.element_bits


def cycles(
    engine: Engine,
    operator: Operator,
    simulation: Simulation,
    begun: MappingABC[tuple[str, bool], Fraction] = MappingProxyType({}),
) -> int:
    """Latency from the simulated counts: transfers of the busiest port, in bits, against compute.

    Parameters
    ----------
    begun : set-up cycles by level, and whether they hide
    """
    hidden, exposed = [simulation.steps], 0
    for index, level in enumerate(engine.levels):
        for behind in (True, False):
            reads: Counter[Index] = Counter()
            writes: Counter[Index] = Counter()
            for tensor in operator.tensors:
                counts = simulation.counts[level.name, tensor.name]
                below = simulation.below.get((level.name, tensor.name))
                inner = None if below is None else engine.level(below)
                if (inner is None or inner.double_buffered) is behind:
                    width = bits(engine, level, tensor)
                    reads += times(width, counts.reads)
                    writes += times(width, counts.fills + counts.updates)
            busy = 0
            for moved, bandwidth in (
                (reads, level.read_bandwidth),
                (writes, level.write_bandwidth),
                (reads + writes, level.shared_bandwidth),
            ):
                if bandwidth is not None:
                    rate = bandwidth * engine.element_bits
                    busy = max(busy, math.ceil(max(moved.values(), default=0) / rate))
            busy += math.ceil(begun.get((level.name, behind), 0))
            if behind:
                hidden.append(busy)
            else:
                exposed += busy
        if level.double_buffered:
            for output in (False, True):
                waits = [0]
                for outer in engine.levels[:index]:
                    own = outer.write_bandwidth if output else outer.read_bandwidth
                    size = sum(
                        simulation.first.get((outer.name, level.name, tensor.name), 0)
                        * bits(engine, outer, tensor)
                        for tensor in operator.tensors
                        if tensor.is_output is output
                    )
                    rates = [rate for rate in (own, outer.shared_bandwidth) if rate is not None]
                    waits += [math.ceil(size / (rate * engine.element_bits)) for rate in rates]
                exposed += max(waits)
    return max(hidden) + exposed
