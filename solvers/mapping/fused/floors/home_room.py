"""What homes of intermediates take at least in every layer's turns, before these are listed.

A home stands inside all loops of its sequence or further out, where it holds more.  What its readers need in
the first turn is new whatever halos are retained.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.floors.needs import Needs
from tilewright.solvers.mapping.fused.trees.skeletons import Cut
from tilewright.solvers.mapping.fused.trees.turn_engine import (
    Rooms,
    TurnEngines,
    left_of,
    places_of,
    shared_levels,
)

Tiles = dict[int, int]
"""Iterations by rank that one turn of a sequence has."""


class HomeRooms:
    """What homes leave to the turns of a group's layers at most.

    Parameters
    ----------
    group, engines : the layers, and what turns see of the machine
    needs : of readers
    """

    def __init__(self, group: FusedGroup, engines: TurnEngines, needs: Needs) -> None:
        self.group, self.needs = group, needs
        self._known: dict[tuple[Reading, int, tuple[int, ...], bool], int] = {}
        self.engine: Engine = engines.engine
        self.whole = engines.whole_rooms()
        self.levels = [level.name for level in self.engine.levels]
        self.places = places_of(self.engine, shared_levels(self.engine))

    def left(self, tree: Branch, cuts: tuple[Cut, ...] = ()) -> dict[str, Rooms] | None:
        """Rooms per layer; ``None`` where homes do not fit.

        Parameters
        ----------
        tree : with homes in place; inside all loops of a sequence whose loops are in any order
        cuts : loops that inner sequences may have beside those that they have, of any tile
        """
        rooms: dict[str, Rooms] = {}
        for layer, homes in self._leaves(tree, cuts, {}, {}):
            taken: dict[int, int] = {}
            for place, bits in homes.values():
                taken[place] = taken.get(place, 0) + bits
            left = left_of(self.whole, taken)
            if left is None:
                return None
            rooms[layer] = left
        return rooms

    def taken_by_others(self, tree: Branch) -> dict[str, int]:
        """Bits per layer that homes take, in whatever levels, of which the layer makes and reads nothing."""
        others: dict[str, int] = {}
        for layer, homes in self._leaves(tree, (), {}, {}):
            own = {layer, *(r.producer for r in self.group.readings if r.reader == layer)}
            others[layer] = sum(bits for home, (_, bits) in homes.items() if home not in own)
        return others

    def _leaves(
        self, branch: Branch, cuts: tuple[Cut, ...], tiles: Tiles, around: dict[str, tuple[int, int]]
    ) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
        """Every layer with the homes in its turns: of whose results, and place and bits of each.

        Parameters
        ----------
        branch, cuts : of the tree, and the cuts from there
        tiles : of the loops outside
        around : homes outside
        """
        tiles = tiles | {cut.rank: 1 for cut in cuts if not cut.place}
        child_of = {
            layer: index
            for index, child in enumerate(branch.children)
            for layer in ([child.layer] if isinstance(child, Leaf) else child.layers())
        }
        alive = [dict(around) for _ in branch.children]
        for home in branch.nodes:
            if isinstance(home, SharedLoop):
                rank = self.group.ranks[home.layer, home.dim]
                tiles[rank] = min(home.tile, tiles.get(rank, home.tile))
                continue
            last = max(child_of[reading.reader] for reading in self.group.read_by(home.layer))
            level = self.levels.index(home.level)
            role = self.group.operator(home.layer).output.role
            bits = bits_of_tile(self.engine, self.engine.levels[level], role, self._held(home.layer, tiles))
            place = self.places.index((level, None))
            for index in range(child_of[home.layer], last + 1):
                alive[index][home.layer] = place, bits
        for index, (child, homes) in enumerate(zip(branch.children, alive, strict=True)):
            if isinstance(child, Leaf):
                yield child.layer, homes
            else:
                below = tuple(Cut(cut.place[1:], cut.rank) for cut in cuts if cut.place[:1] == (index,))
                yield from self._leaves(child, below, tiles, homes)

    def _held(self, layer: str, tiles: Tiles) -> int:
        """Elements of a result that its readers need at once."""
        elements = 1
        for place, axis in enumerate(self.group.operator(layer).output.axes):
            for term in axis.terms:
                if not self.needs.is_windowed(layer, term.dim):
                    elements *= self.first(layer, term.dim, tiles)
                else:
                    elements *= max(
                        self._needed(reading, place, tiles, anywhere=True)
                        for reading in self.group.read_by(layer)
                    )
        return elements

    def first(self, layer: str, dim: str, tiles: Tiles) -> int:
        """Iterations of a dimension in the first turn, where nothing is retained yet.

        Parameters
        ----------
        layer, dim : whose iterations
        tiles : of the loops around
        """
        operator = self.group.operator(layer)
        if not self.needs.is_windowed(layer, dim):
            bound = operator.bounds[dim]
            return min(bound, tiles.get(self.group.ranks[layer, dim], bound))
        place = next(
            place
            for place, axis in enumerate(operator.output.axes)
            if any(term.dim == dim for term in axis.terms)
        )
        needed = max(
            self._needed(reading, place, tiles, anywhere=False) for reading in self.group.read_by(layer)
        )
        # A loop that none of its readers is inside may cut it further.
        return min(needed, tiles.get(self.group.ranks[layer, dim], needed))

    def _needed(self, reading: Reading, place: int, tiles: Tiles, anywhere: bool) -> int:
        """Elements along an axis of a result that a reader needs in one turn.

        Parameters
        ----------
        reading, place : of the result, and which of its axes
        tiles : of the loops around
        anywhere : whether the turn that needs most counts, where that is known; else the first one
        """
        axis, _ = self.needs.axis(reading, place)
        sizes = tuple(self.first(reading.reader, term.dim, tiles) for term in axis.terms)
        # What a reader retains of its own result, it need not make again.
        dims = self.group.operator(reading.reader).bounds
        anywhere = anywhere and not any(self.needs.is_windowed(reading.reader, dim) for dim in dims)
        key = reading, place, sizes, anywhere
        if key not in self._known:
            self._known[key] = self._most_needed(*key)
        return self._known[key]

    def _most_needed(self, reading: Reading, place: int, sizes: tuple[int, ...], anywhere: bool) -> int:
        """The same for iterations per term of the reader's axis."""
        axis, offset = self.needs.axis(reading, place)
        extent = 1 + sum(term.stride * (size - 1) for term, size in zip(axis.terms, sizes, strict=True))
        whole = self.group.operator(reading.producer).output.axes[place].size
        reader = self.group.operator(reading.reader)
        lows = [-offset]
        if anywhere:
            for term, size in zip(axis.terms, sizes, strict=True):
                places = range(0, reader.bounds[term.dim] // size * size, size)
                lows = [low + term.stride * place for low in lows for place in places]
        return max(min(max(low + extent, 0), whole) - min(max(low, 0), whole) for low in lows)
