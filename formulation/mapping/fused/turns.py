"""The turns of a fused mapping: what every layer computes in each of them, and what lives around it.

The tree is walked from its root.  Loops cut the layers below whose results nobody below reads, and sums;
what the others compute follows from what their readers need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.formulation.mapping.fused.boxes import (
    FAR,
    Fresh,
    LayerBoxes,
    Windows,
    fresh_part,
    visits_of,
    windows_of,
)
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, Leaf, SharedLoop, SharedStore
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine

MOST_TURNS = 2**20


@dataclass(frozen=True, slots=True)
class PlacedStore:
    """A shared store and where it stands.

    Parameters
    ----------
    store : the node
    level : index of its memory level
    depth : loops outside it on the way to every leaf below
    """

    store: SharedStore
    level: int
    depth: int


@dataclass(frozen=True)
class LeafTurns:
    """One layer's turns.

    Parameters
    ----------
    leaf : the layer and its mapping
    field : what errors call it
    trips : of the loops around it, outermost first
    boxes : what it computes in every turn
    stores : shared stores around it, of all layers, outermost first; tiles of intermediates that are not
        alive in this leaf's turns are left out
    """

    leaf: Leaf
    field: str
    trips: tuple[int, ...]
    boxes: LayerBoxes
    stores: tuple[PlacedStore, ...]


@dataclass(frozen=True)
class Passing:
    """How an intermediate gets from its producer to its readers.

    Parameters
    ----------
    home : the store on chip; ``None`` where it goes through the outermost level
    elements : what the home holds at most
    made : elements that are computed, those that are computed again included
    covered : whether every element of the tensor is computed
    needed, trips : what its readers need in every turn, and the trips of the loops around them
    """

    home: PlacedStore | None
    elements: int
    made: int
    covered: bool
    needed: Windows
    trips: tuple[int, ...]


@dataclass
class Turns:
    """All turns of a fused mapping.

    Parameters
    ----------
    leaves : in the order in which they run
    passings : per layer whose result is read inside the group
    tiles : what every shared store holds at most, in elements
    """

    leaves: list[LeafTurns] = field(default_factory=list)
    passings: dict[str, Passing] = field(default_factory=dict)
    tiles: dict[SharedStore, int] = field(default_factory=dict)

    def outline(self) -> Turns:
        """The same without what each turn has of its own: leaves, and what readers need."""
        nothing = Windows((), (), np.zeros(0, np.bool_))
        passings = {name: replace(own, needed=nothing) for name, own in self.passings.items()}
        return Turns([], passings, self.tiles)


def turns_of(group: FusedGroup, engine: Engine, tree: Branch, where: str = "mapping") -> Turns:
    """Walk through a tree.

    Parameters
    ----------
    group, engine : the layers and the machine
    tree : what is walked
    where : what errors call the mapping

    Raises
    ------
    InputError : naming the node at which the tree makes no sense
    """
    leaves = tree.layers()
    for name in leaves:
        if name not in group.operators:
            raise InputError(where, "nodes", f"unknown layer {name!r}, expected one of {group.names}")
        if leaves.count(name) > 1:
            raise InputError(where, "nodes", f"{name} is in {leaves.count(name)} leaves, expected one")
    for name in group.names:
        if name not in leaves:
            raise InputError(where, "nodes", f"{name} is in no leaf")
    walk = _TreeWalk(group, engine, where)
    walk.branch(tree, {name: LayerBoxes.whole(group.operator(name)) for name in leaves}, (), (), "nodes")
    return walk.turns


class _TreeWalk:
    """Collects turns on the way from the root to the leaves."""

    def __init__(self, group: FusedGroup, engine: Engine, where: str) -> None:
        self.group = group
        self.engine = engine
        self.where = where
        self.turns = Turns()
        self.levels = [level.name for level in engine.levels]

    def branch(
        self,
        branch: Branch,
        boxes: MappingABC[str, LayerBoxes],
        trips: tuple[int, ...],
        stores: tuple[PlacedStore, ...],
        name: str,
    ) -> None:
        """A branch's loops and stores, then its children.

        Parameters
        ----------
        boxes : of every layer below, what the turns around the branch ask of it
        trips, stores : what stands around the branch
        name : what errors call its list of nodes
        """
        boxes = dict(boxes)
        for index, node in enumerate(branch.nodes):
            at = f"{name}[{index}]"
            if isinstance(node, SharedStore):
                stores = (*stores, self._store(node, stores, len(trips), boxes, at))
            else:
                made = self._loop(node, boxes, at)
                trips = (*trips, made)
                if math.prod(trips) > MOST_TURNS:
                    raise InputError(self.where, at, f"more than {MOST_TURNS:,} turns")
        self._sequence(branch, boxes, trips, stores, f"{name}[{len(branch.nodes)}].sequence")

    def _loop(self, loop: SharedLoop, boxes: dict[str, LayerBoxes], at: str) -> int:
        """Cut the layers below; the trips that the loop makes."""
        self._known(loop.layer, boxes, at)
        operator = self.group.operator(loop.layer)
        if loop.dim not in operator.bounds:
            raise InputError(
                self.where,
                at,
                f"unknown dimension {loop.dim!r} of {loop.layer}, expected {[*operator.bounds]}",
            )
        rank = self.group.ranks[loop.layer, loop.dim]
        cut: list[tuple[str, str]] = []
        for name in boxes:
            dims = [dim for dim in self.group.operator(name).bounds if self.group.ranks[name, dim] == rank]
            if len(dims) > 1:
                raise InputError(
                    self.where, at, f"{loop.name} moves {dims[0]} and {dims[1]} of {name} at once"
                )
            read_below = [reading for reading in self.group.read_by(name) if reading.reader in boxes]
            sums = bool(dims) and dims[0] in self.group.operator(name).reduction_dims
            if sums and read_below:
                raise InputError(
                    self.where,
                    at,
                    f"{read_below[0].reader} would read {name}'s sums before they are complete",
                )
            if sums and dims[0] in self.group.offsets_of_windows(name):
                raise InputError(self.where, at, f"{loop.name} moves inside {name}'s window")
            if not read_below and not dims:
                raise InputError(
                    self.where, at, f"{name} does not depend on {loop.name} and would be repeated"
                )
            if not read_below:
                cut.append((name, dims[0]))
        if not cut:
            raise InputError(
                self.where,
                at,
                f"{loop.name} follows from what its readers need; loop over a reader's dimension",
            )
        sizes = [boxes[name].size[dim] for name, dim in cut]
        lows = [boxes[name].low[dim] for name, dim in cut]
        for (name, _), low, size in zip(cut, lows, sizes, strict=True):
            if not (np.array_equal(low, lows[0]) and np.array_equal(size, sizes[0])):
                raise InputError(
                    self.where, at, f"{cut[0][0]} and {name} need different parts of {loop.name}"
                )
        most = int(sizes[0].max(initial=1))
        if loop.tile > max(most, 1):
            raise InputError(
                self.where, at, f"tile {loop.tile} of {loop.name}, expected 1 to {most} (the enclosing tile)"
            )
        trips = -(-most // loop.tile)
        turns = len(sizes[0])
        if turns * trips > MOST_TURNS:
            raise InputError(self.where, at, f"more than {MOST_TURNS:,} turns")
        index = np.tile(np.arange(trips), turns)
        for name, box in boxes.items():
            boxes[name] = box.repeated(trips)
        for name, dim in cut:
            sums = dim in self.group.operator(name).reduction_dims
            boxes[name] = boxes[name].cut(dim, index, loop.tile, sums)
        return trips

    def _known(self, layer: str, below: MappingABC[str, LayerBoxes], at: str) -> None:
        if layer not in self.group.operators:
            raise InputError(self.where, at, f"unknown layer {layer!r}, expected one of {self.group.names}")
        if layer not in below:
            raise InputError(self.where, at, f"{layer} does not run inside")

    def _store(
        self,
        store: SharedStore,
        stores: Sequence[PlacedStore],
        depth: int,
        below: MappingABC[str, LayerBoxes],
        at: str,
    ) -> PlacedStore:
        self._known(store.layer, below, at)
        operator = self.group.operator(store.layer)
        if store.level not in self.levels:
            raise InputError(self.where, at, f"unknown level {store.level!r}, expected one of {self.levels}")
        names = [tensor.name for tensor in operator.tensors]
        if store.tensor not in names:
            raise InputError(
                self.where, at, f"unknown tensor {store.tensor!r} of {store.layer}, expected one of {names}"
            )
        reading = self.group.reading(store.layer, store.tensor)
        if reading is not None:
            result = f"{reading.producer}.{self.group.operator(reading.producer).output.name}"
            raise InputError(self.where, at, f"{store.name} is {result}, store that")
        level = self.levels.index(store.level)
        memory = self.engine.levels[level]
        if any(outer.fanout is not None for outer in self.engine.levels[:level]):
            raise InputError(
                self.where, at, f"{store.level} is inside an array, where nothing is shared by turns"
            )
        before = [placed for placed in stores if placed.store.name == store.name]
        readers = self.group.read_by(store.layer) if operator.tensor(store.tensor).is_output else ()
        if before and before[-1].level >= level:
            raise InputError(
                self.where,
                at,
                f"{store.name} stored in {store.level} inside a store of {before[-1].store.level}",
            )
        roles = {operator.tensor(store.tensor).role}
        roles |= {self.group.operator(reader.reader).tensor(reader.operand).role for reader in readers}
        if not roles <= memory.keeps:
            absent = ", ".join(sorted(role.value for role in roles - memory.keeps))
            raise InputError(self.where, at, f"{store.level} keeps no {absent}, which {store.name} needs")
        if readers:
            away = [reader.reader for reader in readers if reader.reader not in below]
            if away and level:
                raise InputError(
                    self.where, at, f"{store.name} ends with this turn, but {away[0]} reads it in another one"
                )
            if any(placed.level for placed in before):
                raise InputError(self.where, at, f"{store.name} has a home already, {before[-1].store.level}")
            if level and roles & memory.partitions.keys():
                raise InputError(
                    self.where, at, f"{store.level} has a partition per role and keeps no intermediate"
                )
            if level and len({self.engine.width(memory, role) for role in roles}) > 1:
                raise InputError(self.where, at, f"{store.level} keeps {store.name} in several widths")
        elif store.halo != RETAINED:
            raise InputError(self.where, at, f"{store.name} is no intermediate and has no halo to recompute")
        if level and not readers and not before:
            raise InputError(self.where, at, f"{store.name} is not stored in {self.levels[0]} first")
        return PlacedStore(store, level, depth)

    def _sequence(
        self,
        branch: Branch,
        boxes: dict[str, LayerBoxes],
        trips: tuple[int, ...],
        stores: tuple[PlacedStore, ...],
        name: str,
    ) -> None:
        """What the children compute in every turn, and the children themselves."""
        child_of = {
            layer: index
            for index, child in enumerate(branch.children)
            for layer in ([child.layer] if isinstance(child, Leaf) else child.layers())
        }
        gone: list[set[SharedStore]] = [set() for _ in branch.children]
        for layer in reversed(self.group.names):
            readings = [reading for reading in self.group.read_by(layer) if reading.reader in child_of]
            if layer not in child_of or not readings:
                continue
            needed = self._needed(layer, readings, boxes)
            places = {child_of[reading.reader] for reading in readings}
            if places != {child_of[layer]}:
                if child_of[layer] in places:
                    near = next(r.reader for r in readings if child_of[r.reader] == child_of[layer])
                    far = next(r.reader for r in readings if child_of[r.reader] != child_of[layer])
                    raise InputError(
                        self.where, name, f"{near} reads {layer} in an inner sequence, {far} outside it"
                    )
                early = next((r.reader for r in readings if child_of[r.reader] < child_of[layer]), None)
                if early is not None:
                    raise InputError(self.where, name, f"{early} runs before {layer}, which it reads")
                needed = self._pass_on(layer, needed, trips, stores, (child_of[layer], max(places)), gone)
            boxes[layer] = self._asked(layer, boxes[layer], needed)
        self._check_rows(boxes, name)
        for index, child in enumerate(branch.children):
            alive = tuple(placed for placed in stores if placed.store not in gone[index])
            at = f"{name}[{index}]"
            if isinstance(child, Leaf):
                self._note_tiles(child.layer, boxes[child.layer], trips, stores)
                self.turns.leaves.append(LeafTurns(child, at, trips, boxes[child.layer], alive))
            else:
                below = {layer: boxes[layer] for layer in child.layers()}
                self.branch(child, below, trips, alive, f"{at}.nodes")

    def _check_rows(self, boxes: MappingABC[str, LayerBoxes], at: str) -> None:
        """Every turn covers whole rows of what a softmax or a normalisation is applied to."""
        for layer, dim in self.group.whole:
            if layer in boxes:
                sizes = boxes[layer].size[dim][boxes[layer].alive]
                if len(sizes) and int(sizes.min()) < self.group.operator(layer).bounds[dim]:
                    raise InputError(
                        self.where, at, f"{layer} needs all of {dim} at once, and not a part in each turn"
                    )

    def _needed(
        self, producer: str, readings: Sequence[Reading], boxes: MappingABC[str, LayerBoxes]
    ) -> Windows:
        """The elements of a result that its readers need in every turn: the hull over all of them."""
        result = self.group.operator(producer).output
        parts = [self._read_part(reading, boxes[reading.reader]) for reading in readings]
        if len(parts) == 1:
            return parts[0]
        alive: Bools = np.logical_or.reduce([part.alive for part in parts])
        low: list[Int64s] = []
        high: list[Int64s] = []
        for axis in range(len(result.axes)):
            first = np.minimum.reduce([np.where(part.alive, part.low[axis], FAR) for part in parts])
            end = np.maximum.reduce([np.where(part.alive, part.high[axis], -FAR) for part in parts])
            # Turns in which nobody needs anything go on as their loops do, so that no axis seems to move.
            low.append(np.where(alive, first, parts[0].low[axis]))
            high.append(np.where(alive, end, parts[0].high[axis]))
        return Windows(tuple(low), tuple(high), alive)

    def _read_part(self, reading: Reading, boxes: LayerBoxes) -> Windows:
        """What one reader needs of a result, in the result's coordinates and without padding."""
        result = self.group.operator(reading.producer).output
        operand = self.group.operator(reading.reader).tensor(reading.operand)
        touched = windows_of(operand, boxes)
        low: list[Int64s] = [np.zeros(0, np.int64)] * len(result.axes)
        high = list(low)
        alive = touched.alive.copy()
        for axis, (place, offset) in enumerate(zip(reading.axes, reading.offsets, strict=True)):
            size = result.axes[place].size
            low[place] = np.clip(touched.low[axis] - offset, 0, size)
            high[place] = np.clip(touched.high[axis] - offset, 0, size)
            alive &= high[place] > low[place]
        return Windows(tuple(low), tuple(high), alive)

    def _pass_on(
        self,
        layer: str,
        needed: Windows,
        trips: tuple[int, ...],
        stores: Sequence[PlacedStore],
        children: tuple[int, int],
        gone: list[set[SharedStore]],
    ) -> Windows:
        """What a producer makes in every turn, given what its readers need; notes how it is passed on."""
        result = self.group.operator(layer).output
        own = [placed for placed in stores if placed.store.name == f"{layer}.{result.name}"]
        home = next((placed for placed in own if placed.level), None)
        if home is None and not trips:
            # Nothing is shared, so the layer runs as it would alone.
            low = tuple(np.zeros(1, np.int64) for _ in result.axes)
            high = tuple(np.full(1, axis.size, np.int64) for axis in result.axes)
            needed = Windows(low, high, np.ones(1, np.bool_))
        fresh: Fresh
        if home is None:
            fresh = fresh_part(needed, trips, 0, retained=True)
            held = 0
        else:
            fresh = fresh_part(needed, trips, home.depth, home.store.halo == RETAINED)
            held = int(visits_of(needed, trips, home.depth).elements.max(initial=0))
            self.turns.tiles[home.store] = held
            if not fresh.outlives:
                for index in range(len(gone)):
                    if not children[0] <= index <= children[1]:
                        gone[index].add(home.store)
        covered = self._is_covered(layer, fresh.windows)
        made = int(fresh.windows.elements.sum())
        self.turns.passings[layer] = Passing(home, held, made, covered, needed, trips)
        return fresh.windows

    def _is_covered(self, layer: str, made: Windows) -> bool:
        """Whether all elements of a result are made; along every axis alone, since parts are products."""
        for axis, low, high in zip(self.group.operator(layer).output.axes, made.low, made.high, strict=True):
            seen = np.zeros(axis.size + 1, np.int64)
            np.add.at(seen, low[made.alive], 1)
            np.add.at(seen, high[made.alive], -1)
            if np.any(np.cumsum(seen)[: axis.size] <= 0):
                return False
        return bool(made.alive.any())

    def _asked(self, layer: str, box: LayerBoxes, needed: Windows) -> LayerBoxes:
        """The iterations that make some elements of a layer's result."""
        low, size = dict(box.low), dict(box.size)
        axes = self.group.operator(layer).output.axes
        for axis, first, end in zip(axes, needed.low, needed.high, strict=True):
            for term in axis.terms:
                low[term.dim], size[term.dim] = first, np.maximum(end - first, 0)
        return replace(box, low=low, size=size, alive=box.alive & needed.alive)

    def _note_tiles(
        self, layer: str, boxes: LayerBoxes, trips: tuple[int, ...], stores: Sequence[PlacedStore]
    ) -> None:
        """What the shared stores of a layer's own tensors hold."""
        operator = self.group.operator(layer)
        for placed in stores:
            if placed.store.layer == layer and placed.store not in self.turns.tiles:
                touched = windows_of(operator.tensor(placed.store.tensor), boxes)
                held = visits_of(touched, trips, placed.depth).elements
                self.turns.tiles[placed.store] = int(held.max(initial=0))
