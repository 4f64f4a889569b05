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
    Fresh,
    LayerBoxes,
    Windows,
    fresh_part,
    visits_of,
    windows_of,
)
from tilewright.formulation.mapping.fused.group import FusedGroup, LoopName
from tilewright.formulation.mapping.fused.needed import is_covered, needed_of
from tilewright.formulation.mapping.fused.placing import PlacedStore, placed_store
from tilewright.formulation.mapping.fused.softmax import RunningRows, obstacle, rows_in_turns
from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, Leaf, SharedLoop, SharedStore
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine

MOST_TURNS = 2**20

Around = tuple[tuple[PlacedStore, ...], tuple[LoopName, ...]]
"""Stores around a place in the tree, and the reader and operand of softmaxes whose rows loops there cut."""


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
    softmaxes : reader and operand of softmaxes whose rows loops around it cut
    """

    leaf: Leaf
    field: str
    trips: tuple[int, ...]
    boxes: LayerBoxes
    stores: tuple[PlacedStore, ...]
    softmaxes: tuple[LoopName, ...] = ()


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
    softmaxes : per reader and operand, the rows that turns take in parts
    """

    leaves: list[LeafTurns] = field(default_factory=list)
    passings: dict[str, Passing] = field(default_factory=dict)
    tiles: dict[SharedStore, int] = field(default_factory=dict)
    softmaxes: dict[LoopName, RunningRows] = field(default_factory=dict)

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
    whole = {name: LayerBoxes.whole(group.operator(name)) for name in leaves}
    walk.branch(tree, whole, (), ((), ()), "nodes")
    return walk.turns


class _TreeWalk:
    """Collects turns on the way from the root to the leaves."""

    def __init__(self, group: FusedGroup, engine: Engine, where: str) -> None:
        self.group = group
        self.engine = engine
        self.where = where
        self.turns = Turns()
        self._first: dict[LoopName, tuple[SharedLoop, int]] = {}

    def branch(
        self,
        branch: Branch,
        boxes: MappingABC[str, LayerBoxes],
        trips: tuple[int, ...],
        around: Around,
        name: str,
    ) -> None:
        """A branch's loops and stores, then its children.

        Parameters
        ----------
        boxes : of every layer below, what the turns around the branch ask of it
        trips, around : what stands around the branch
        name : what errors call its list of nodes
        """
        boxes, since = dict(boxes), len(trips)
        stores, softmaxes = around
        for index, node in enumerate(branch.nodes):
            at = f"{name}[{index}]"
            if isinstance(node, SharedStore):
                outside, where = (stores, len(trips), since), (self.where, at)
                stores = (*stores, placed_store(self.group, self.engine, node, outside, boxes, where))
            else:
                made, cut = self._loop(node, boxes, at)
                if made > 1:
                    softmaxes = self._parted(softmaxes, cut, (node, len(trips)), at)
                trips = (*trips, made)
                if math.prod(trips) > MOST_TURNS:
                    raise InputError(self.where, at, f"more than {MOST_TURNS:,} turns")
        self._sequence(branch, boxes, trips, (stores, softmaxes), f"{name}[{len(branch.nodes)}].sequence")

    def _parted(
        self, softmaxes: tuple[LoopName, ...], cut: Sequence[LoopName], loop: tuple[SharedLoop, int], at: str
    ) -> tuple[LoopName, ...]:
        """The softmaxes whose rows loops cut so far, one more loop included.

        Parameters
        ----------
        softmaxes : those cut around the loop
        cut : layers and dimensions that the loop cuts
        loop : the loop, and how many are outside
        at : what errors call it
        """
        alone = next((name for name, dim in cut if (name, dim) in self.group.own_rows), None)
        if alone is not None:
            raise InputError(self.where, at, f"{alone} needs whole rows, since none of its readers is inside")
        for (reader, operand), along in self.group.online.items():
            for dim in (dim for name, dim in cut if name == reader):
                if (reader, operand) not in softmaxes:
                    if dim == along:
                        softmaxes = (*softmaxes, (reader, operand))
                        self._first[reader, operand] = loop
                elif dim not in self.group.operator(reader).tensor(operand).dims:
                    message = f"{reader} needs all of {dim} at once while rows of its softmax come in parts"
                    raise InputError(self.where, at, message)
        return softmaxes

    def _loop(self, loop: SharedLoop, boxes: dict[str, LayerBoxes], at: str) -> tuple[int, list[LoopName]]:
        """Cut the layers below; the trips that the loop makes, and what it cuts."""
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
        return trips, cut

    def _known(self, layer: str, below: MappingABC[str, LayerBoxes], at: str) -> None:
        if layer not in self.group.operators:
            raise InputError(self.where, at, f"unknown layer {layer!r}, expected one of {self.group.names}")
        if layer not in below:
            raise InputError(self.where, at, f"{layer} does not run inside")

    def _sequence(
        self, branch: Branch, boxes: dict[str, LayerBoxes], trips: tuple[int, ...], around: Around, name: str
    ) -> None:
        """What the children compute in every turn, and the children themselves."""
        stores, softmaxes = around
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
            needed = needed_of(self.group, layer, readings, boxes)
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
                for key in softmaxes:
                    if key[0] == child.layer:
                        self.turns.softmaxes[key] = self._running(key, boxes[child.layer], trips)
                self.turns.leaves.append(LeafTurns(child, at, trips, boxes[child.layer], alive, softmaxes))
            else:
                below = {layer: boxes[layer] for layer in child.layers()}
                self.branch(child, below, trips, (alive, softmaxes), f"{at}.nodes")

    def _running(self, key: LoopName, boxes: LayerBoxes, trips: tuple[int, ...]) -> RunningRows:
        """The running maxima and sums of an operand that comes in parts of rows."""
        reading = self.group.reading(*key)
        home = self.turns.passings[reading.producer].home if reading is not None else None
        tensor = self.group.operator(key[0]).tensor(key[1])
        rows = rows_in_turns(tensor, self.group.online[key], boxes)
        return RunningRows.over(rows, trips, self._first[key], 0 if home is None else home.level)

    def _check_rows(self, boxes: MappingABC[str, LayerBoxes], at: str) -> None:
        """Every turn covers whole rows of what a softmax or a normalisation is applied to."""
        for layer, dim in self.group.whole:
            if layer in boxes:
                sizes = boxes[layer].size[dim][boxes[layer].alive]
                if len(sizes) and int(sizes.min()) < self.group.operator(layer).bounds[dim]:
                    raise InputError(
                        self.where, at, f"{layer} needs all of {dim} at once, {self._why(layer)}"
                    )

    def _why(self, layer: str) -> str:
        """Why a layer's rows may not come in parts."""
        readings = [
            r for r in self.group.readings if layer in (r.reader, r.producer) and self.group.rows_of(r)
        ]
        reasons = [reason for reading in readings if (reason := obstacle(self.group, reading))]
        if not readings or reasons:
            return f"and not a part in each turn{': ' + reasons[0] if reasons else ''}"
        return "and not a part in each turn unless online_softmax is asked for"

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
            fresh = fresh_part(needed, trips, (0, 0), retained=True)
            held = 0
        else:
            fresh = fresh_part(needed, trips, (home.depth, home.since), home.store.halo == RETAINED)
            held = int(visits_of(needed, trips, home.depth).elements.max(initial=0))
            self.turns.tiles[home.store] = held
            if not fresh.outlives:
                for index in range(len(gone)):
                    if not children[0] <= index <= children[1]:
                        gone[index].add(home.store)
        covered = is_covered(result, fresh.windows)
        made = int(fresh.windows.elements.sum())
        self.turns.passings[layer] = Passing(home, held, made, covered, needed, trips)
        return fresh.windows

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
