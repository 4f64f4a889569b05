"""All segments of a kind, behind every down-set: what exact chains choose from.

``ls``: layers in turn on all tiles, a T cut of leaves.  ``lp``: layers side by side, an S cut of leaves.
``all``: every tree whose cuts have at least two children.  Leaves alone are segments of each kind.

With one sample and the paper's rules an LS segment is a path: a leaf's cost depends on the layout of the leaf
before it and on whether anyone but the next one reads it.  Leaves that do not read the one before them gain
nothing from its company, since every node is bounded by its own traffic, so only those that do continue a
path; paths that end in the same leaf with the same past are compared by energy and cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.intra_layer import LeafCost
from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments
from tilewright.heuristics.scheduling.tiled.set.growing import ready_layers
from tilewright.solvers.scheduling.tiled.set.bounds import Floors
from tilewright.solvers.scheduling.tiled.set.enumeration import trees_over

SPACES = ("ls", "lp", "all")


@dataclass
class SegmentMaker:
    """Fills a set of segments.

    Parameters
    ----------
    samples : of one run of a segment
    loads : samples for which weights are loaded once
    stop : whether the time is up
    known : the value of a tree of the space; segments that cannot be part of a better one are left out
    """

    form: ClosedForm
    samples: int
    loads: int
    stop: Callable[[], bool]
    known: float = inf
    floors: Floors | None = None

    def __post_init__(self) -> None:
        self._rest: dict[int, tuple[float, float]] = {}

    def fill(self, segments: Segments, sets: list[int], space: str) -> bool:
        """Add every segment of a space; returns whether these are all."""
        rules = self.form.rules
        by_paths = (
            space == "ls" and self.samples == 1 and rules.weight_shift and not rules.segment_bounds_only
        )
        for start in sets[:-1]:
            made = self._paths(start) if by_paths else self._sequences(start, space)
            for one in made:
                segments.add(one)
                if self.stop():
                    return False
        return True

    def _hopeless(self, tree: Node) -> bool:
        """Whether the least that a segment and all other layers take is no better than what is known."""
        if self.floors is None or self.known == inf:
            return False
        form, floors, tiles = self.form, self.floors, self.form.engine.grid.tiles
        runs = form.batch // self.samples
        rate = form.machine.dram_rate
        if tree.mask not in self._rest:
            others = [layer for layer in range(len(form.network)) if not tree.mask >> layer & 1]
            energy = (
                sum(floors.tile_energy) + sum(floors.weight_bytes(one) for one in others) * floors.byte_energy
            )
            cycles = max(
                sum(floors.work[one] for one in others) / tiles,
                sum(floors.weight_bytes(one) for one in others) / rate,
            )
            self._rest[tree.mask] = energy, cycles
        energy, cycles = self._rest[tree.mask]
        moved = runs * floors.moved(tree)
        sends = len(form.network) + form.batch * tree.mask.bit_count() * 3
        energy = (energy + moved * floors.byte_energy) * (1 - 1e-9) - sends * floors.rounding
        cycles += max(runs * floors.tree_cycles(tree, tiles), moved / rate)
        return form.value(energy, cycles) >= self.known

    def _segment(self, start: int, tree: Node) -> Segment | None:
        if self._hopeless(tree):
            return None
        cost = self.form.segment(tree, self.loads)
        if isinstance(cost, str):
            return None
        return Segment(start, start | tree.mask, cost.energy, cost.cycles, tree)

    def _sequences(self, start: int, space: str) -> Iterator[Segment]:
        """Every sequence of layers from a down-set on, as every tree of the space."""
        before = [mask for mask, _ in self.form.network.masks]
        longest = self.form.engine.grid.tiles if space == "lp" else len(before)

        def grow(order: tuple[int, ...], done: int) -> Iterator[Segment]:
            for tree in self._trees(order, space) if order else ():
                found = self._segment(start, tree)
                if found is not None:
                    yield found
            if len(order) < longest:
                for layer in ready_layers(before, done, False):
                    yield from grow((*order, layer), done | 1 << layer)

        return grow((), start)

    def _trees(self, order: tuple[int, ...], space: str) -> Iterator[Node]:
        if len(order) == 1:
            yield Leaf(order[0], self.samples)
        elif space == "all":
            whole = len(order) == len(self.form.network)
            for tree in trees_over(order, self.samples):
                if not (
                    whole and ((isinstance(tree, Cut) and tree.kind == "T") or self.samples < self.form.batch)
                ):
                    yield tree
        else:
            for groups in range(1, self.samples + 1):
                if self.samples % groups == 0:
                    inner = tuple(Leaf(layer, self.samples // groups) for layer in order)
                    yield Cut("T" if space == "ls" else "S", self.samples, groups, inner)

    def _paths(self, start: int) -> Iterator[Segment]:
        """LS segments of one sample as paths; see the module."""
        form, network = self.form, self.form.network
        before = [mask for mask, _ in network.masks]
        level: dict[_Past, list[_Path]] = {}
        for layer in ready_layers(before, start, False):
            direct = (-1,) * len(network.layers[layer].producers)
            level[_Past(start | 1 << layer, layer, direct, None)] = [_Path(0.0, 0, (layer,))]
        while level:
            following: dict[_Past, list[_Path]] = {}
            for past, rivals in level.items():
                last = self._leaf(past, stored=True)
                if last is not None and past.fits(last, form.room):
                    for path in rivals:
                        yield self._ended(start, past, path, last)
                for layer in ready_layers(before, past.done, False):
                    if not before[layer] >> past.layer & 1:
                        continue
                    others = network.masks[past.layer][1] & ~(1 << layer)
                    stored = bool(others) or network.layers[past.layer].is_output
                    here = last if stored else self._leaf(past, stored=False)
                    if here is None or not past.fits(here, form.room):
                        continue
                    producers = network.layers[layer].producers
                    direct = tuple(here.layout if one.layer == past.layer else -1 for one in producers)
                    key = _Past(past.done | 1 << layer, layer, direct, here)
                    cycles = form.bounded(here.cycles, here.counts)
                    for path in rivals:
                        grown = _Path(path.energy + here.energy, path.cycles + cycles, (*path.order, layer))
                        _keep(following.setdefault(key, []), grown)
            level = following

    def _leaf(self, past: _Past, *, stored: bool) -> LeafCost | None:
        tiles = self.form.engine.grid.tiles
        return self.form.engine.leaf(past.layer, 1, 0, tiles, stored, self.loads, past.direct)

    def _ended(self, start: int, past: _Past, path: _Path, last: LeafCost) -> Segment:
        cycles = path.cycles + self.form.bounded(last.cycles, last.counts)
        order = path.order
        inner = tuple(Leaf(layer, 1) for layer in order)
        tree: Node = inner[0] if len(inner) == 1 else Cut("T", 1, 1, inner)
        return Segment(start, past.done, path.energy + last.energy, cycles, tree)


@dataclass(frozen=True, slots=True)
class _Path:
    """Energy and cycles of all leaves of a path but the last, and the layers."""

    energy: float
    cycles: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Past:
    """What the costs to come know of a path: layers done, the last one, its direct layouts, the leaf before
    it.
    """

    done: int
    layer: int
    direct: tuple[int, ...]
    previous: LeafCost | None

    def fits(self, last: LeafCost, room: int) -> bool:
        """Whether the last leaf fits the buffers beside the one before it."""
        if self.previous is None:
            return True
        both = last.inputs + last.weights + self.previous.buffer + self.previous.weights
        return int(both.max()) <= room


def _keep(rivals: list[_Path], new: _Path) -> None:
    if any(one.energy <= new.energy and one.cycles <= new.cycles for one in rivals):
        return
    rivals[:] = [one for one in rivals if one.energy < new.energy or one.cycles < new.cycles]
    rivals.append(new)
