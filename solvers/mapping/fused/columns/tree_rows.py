"""What a tree fixes for each of its layers: turns by size, ways of tensors from outside, room of homes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from tilewright.formulation.mapping.fused.boxes import visits_of, windows_of
from tilewright.formulation.mapping.fused.evaluator import shapes_of, sized, stored_around
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile, room_bits
from tilewright.formulation.mapping.fused.running_rows import SCALED, scaling_of, sums_scaled
from tilewright.formulation.mapping.fused.shared_traffic import elements_moved, movement_energy, movements_of
from tilewright.formulation.mapping.fused.tree import Branch, SharedLoop, SharedStore
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns, turns_of
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.foundation.errors import InputError
from tilewright.solvers.mapping.fused.columns.space import Listed
from tilewright.workloads.mapping.operator import Operator, Role, Tensor

Bits = tuple[int, ...]
"""Per place of the machine."""


@dataclass(frozen=True)
class Place:
    """A place among the nodes of a sequence on the way to a layer.

    Parameters
    ----------
    sequences : outside the one that it belongs to
    since : loops outside that sequence
    loops : of the sequence, outside the place
    layers : that run inside
    """

    sequences: int
    since: int
    loops: int
    layers: frozenset[str]

    @property
    def depth(self) -> int:
        """All loops outside."""
        return self.since + self.loops


@dataclass(frozen=True)
class Way:
    """How a tensor from outside gets to its layer's turns.

    Parameters
    ----------
    start : the level in which turns find it
    traffic : pJ of moving its tiles
    bits : the room that it takes in the turns of all layers inside
    store, place : its shared store, and where that stands; ``None`` where every turn streams it
    """

    start: int
    traffic: Fraction
    bits: Bits
    store: SharedStore | None = None
    place: Place | None = None

    @property
    def around(self) -> frozenset[str]:
        """Layers in whose turns it takes room."""
        return frozenset() if self.place is None else self.place.layers


@dataclass(frozen=True)
class Kind:
    """Turns of one size: what one computes, how many begin sums, and how many go on with some."""

    sizes: tuple[int, ...]
    operator: Operator
    first: int
    more: int


@dataclass(frozen=True)
class LayerRow:
    """One layer below some loops and homes; equal rows have the same columns.

    Parameters
    ----------
    layer : its name
    kinds : its turns
    homes : per role of an intermediate, its home
    ways : per tensor from outside
    """

    layer: str
    kinds: tuple[Kind, ...]
    homes: tuple[tuple[Role, int], ...]
    ways: tuple[tuple[Way, ...], ...]


@dataclass(frozen=True)
class TreeRow:
    """A tree that the evaluator takes, without residents and mappings.

    Parameters
    ----------
    tree : with homes, and copies of what leaves
    fixed : pJ of those copies
    layers : in the order in which they run
    homes : per layer, the room that homes take in its turns
    """

    tree: Branch
    fixed: Fraction
    layers: tuple[LayerRow, ...]
    homes: tuple[Bits, ...]


class TreeRows:
    """Rows of the trees of one group."""

    def __init__(self, group: FusedGroup, listed: Listed) -> None:
        self.group, self.listed, self.engine = group, listed, listed.engine
        outermost = self.engine.levels[0].name
        self.copies = tuple(
            SharedStore(name, group.operator(name).output.name, outermost)
            for name in group.names
            if name in group.leaving and group.read_by(name)
        )
        self._rows: dict[object, LayerRow] = {}

    @cached_property
    def rooms(self) -> tuple[int | None, ...]:
        """Bits per place; ``None`` without a limit."""
        levels = self.engine.levels
        return tuple(room_bits(self.engine, levels[index], part) for index, part in self.listed.places)

    def of(self, bare: Branch) -> TreeRow | None:
        """A tree's row; ``None`` where it is not legal or its homes do not fit."""
        tree = replace(bare, nodes=(*self.copies, *bare.nodes))
        try:
            turns = turns_of(self.group, self.engine, tree)
        except InputError:
            return None
        if any(n in self.group.leaving and not p.covered for n, p in turns.passings.items()):
            return None
        layers: list[LayerRow] = []
        homes: list[Bits] = []
        for leaf in turns.leaves:
            held = [0] * len(self.rooms)
            for placed in leaf.stores:
                if placed.level:
                    role = self.group.operator(placed.store.layer).tensor(placed.store.tensor).role
                    bits = self._bits(placed.level, role, turns.tiles[placed.store])
                    held[self.listed.place(placed.level, role)] += bits
            for running in (turns.softmaxes[key] for key in leaf.softmaxes):
                if running.level:
                    bits = self._bits(running.level, Role.OUTPUT, running.words)
                    held[self.listed.place(running.level, Role.OUTPUT)] += bits
            if not self.fits(held):
                return None
            homes.append(tuple(held))
            layers.append(self._layer(bare, leaf, self._scaled(turns, leaf)))
        # Where sums that leave are scaled depends on their way, which counts it.
        leaving = {f"{n}.{o.output.name}" for n, o in self.group.layers if not self.group.read_by(n)}
        moves = movements_of(self.group, self.engine, turns)
        kept = [move for move in moves if not (move.purpose == SCALED and move.tensor in leaving)]
        fixed = sum((move.energy for move in kept), Fraction(0))
        return TreeRow(tree, fixed, tuple(layers), tuple(homes))

    def fits(self, bits: Bits | list[int]) -> bool:
        """Whether so much room is there."""
        return all(room is None or own <= room for own, room in zip(bits, self.rooms, strict=True))

    def _bits(self, level: int, role: Role, elements: int) -> int:
        return bits_of_tile(self.engine, self.engine.levels[level], role, elements)

    def _scaled(self, turns: Turns, leaf: LeafTurns) -> int:
        """Sums that the reader of a softmax in parts scales anew, turn by turn."""
        output = self.group.operator(leaf.leaf.layer).output
        running = [own for (reader, _), own in turns.softmaxes.items() if reader == leaf.leaf.layer]
        return sum(scaling_of(output, leaf.boxes, own).scaled for own in running)

    def _layer(self, tree: Branch, leaf: LeafTurns, scaled: int) -> LayerRow:
        layer = leaf.leaf.layer
        places = tuple(_places(tree, layer))
        homes: dict[str, int] = {}
        for tensor, levels in stored_around(self.group, leaf).items():
            passed = tensor == self.group.operator(layer).output.name and self.group.read_by(layer)
            if passed or self.group.reading(layer, tensor) is not None:
                homes[tensor] = levels[-1]
        key = layer, leaf.trips, leaf.boxes.key, places, tuple(homes.items()), scaled
        if key not in self._rows:
            operator = self.group.operator(layer)
            outside = [tensor for tensor in operator.tensors if tensor.name not in homes]
            roles = {(operator.tensor(tensor).role, level) for tensor, level in homes.items()}
            anew = [scaled if tensor.is_output else 0 for tensor in outside]
            ways = tuple(
                tuple(self._ways(leaf, tensor, places, sums))
                for tensor, sums in zip(outside, anew, strict=True)
            )
            self._rows[key] = LayerRow(layer, self._kinds(leaf), tuple(sorted(roles)), ways)
        return self._rows[key]

    def _kinds(self, leaf: LeafTurns) -> tuple[Kind, ...]:
        operator = self.group.operator(leaf.leaf.layer)
        counts = shapes_of(operator, leaf)
        kinds: list[Kind] = []
        for sizes in dict.fromkeys(sizes for sizes, _ in counts):
            own = sized(operator, dict(zip(operator.bounds, sizes, strict=True)))
            kinds.append(Kind(sizes, own, counts[sizes, False], counts[sizes, True]))
        return tuple(kinds)

    def _ways(self, leaf: LeafTurns, tensor: Tensor, places: tuple[Place, ...], scaled: int) -> Iterator[Way]:
        """Streamed, or resident in a level at a place with a loop inside, or where sums are scaled.

        Parameters
        ----------
        leaf, tensor, places : whose, and where its stores may stand
        scaled : sums of it that are scaled anew, wherever turns find them
        """
        nothing = (0,) * len(self.rooms)
        yield Way(0, self._scaling(0, scaled), nothing)
        if len(self.group.names) == 1:
            return  # a layer alone is mapped as `map` does it
        operator = self.group.operator(leaf.leaf.layer)
        windows = windows_of(tensor, leaf.boxes)
        # A streamed tensor may have a tile of one turn as well, for the same energy, but no other start than
        # the rest of its role.
        alone = sum(other.role is tensor.role for other in operator.tensors) == 1
        streamed = alone and not self.engine.leak and not scaled
        for place in places:
            if streamed and place.depth and place.depth == len(leaf.trips):
                continue
            visits = visits_of(windows, leaf.trips, place.depth, place.since)
            for index in self.listed.shared:
                if not self.listed.may_start(tensor.role, index):
                    continue
                level = self.engine.levels[index]
                moved = elements_moved(self.engine, operator, tensor, visits, (0, index))
                bits = [0] * len(self.rooms)
                size = int(visits.elements.max(initial=0))
                bits[self.listed.place(index, tensor.role)] = self._bits(index, tensor.role, size)
                if self.fits(bits):
                    traffic = movement_energy(self.engine, tensor, (0, index), moved)
                    traffic += self._scaling(index, scaled)
                    store = SharedStore(leaf.leaf.layer, tensor.name, level.name)
                    yield Way(index, traffic, tuple(bits), store, place)

    def _scaling(self, level: int, scaled: int) -> Fraction:
        """pJ of scaling sums in a level."""
        return sums_scaled(self.engine, "", level, scaled).energy if scaled else Fraction(0)

    def least(self, row: LayerRow) -> Fraction:
        """pJ that a layer takes at least: what it must move once a turn, or keep, and its operations."""
        operator = self.group.operator(row.layer)
        homes = dict(row.homes)
        total = Fraction(0)
        for kind in row.kinds:
            total += (kind.first + kind.more) * kind.operator.iterations * self.engine.mac_energy
        outside = iter(row.ways)
        for tensor in operator.tensors:
            homed = self.is_passed(row.layer, tensor)
            ways = () if homed else next(outside)
            starts = [(homes[tensor.role], Fraction(0))] if homed else [(w.start, w.traffic) for w in ways]
            total += min(traffic + self._once(row, tensor, level) for level, traffic in starts)
        return total

    def is_passed(self, layer: str, tensor: Tensor) -> bool:
        """Whether a tensor is passed on within the group."""
        made = tensor.is_output and bool(self.group.read_by(layer))
        return made or self.group.reading(layer, tensor.name) is not None

    def _once(self, row: LayerRow, tensor: Tensor, level: int) -> Fraction:
        """pJ of moving what is touched once in every turn out of a level, or into it."""
        memory = self.engine.levels[level]
        cost = memory.write_energy_of if tensor.is_output else memory.read_energy_of
        elements = sum(
            (kind.first + kind.more) * touched(kind.operator, kind.operator.tensor(tensor.name))
            for kind in row.kinds
        )
        return elements * cost(tensor.role)


def _places(tree: Branch, layer: str) -> Iterator[Place]:
    """All places for stores on the way to a layer: in each sequence outside its loops and behind each."""
    branch: Branch | None = tree
    sequences = since = 0
    while branch is not None:
        layers = frozenset(branch.layers())
        loops = sum(isinstance(node, SharedLoop) for node in branch.nodes)
        for outside in range(loops + 1):
            yield Place(sequences, since, outside, layers)
        inner = (child for child in branch.children if isinstance(child, Branch))
        branch = next((child for child in inner if layer in child.layers()), None)
        sequences, since = sequences + 1, since + loops
