"""How many iterations all turns of a layer make at least along what is read of its result through windows.

A home keeps what a window needs again only where, from one visit to the next, nothing but that window moved,
and forward.  So every loop outside the home that slides a window over it has a halo in each of its tiles that
is made anew, unless no loop between it and the home moves what is held.  Nothing stays in a home from one run
of its sequence to the next, so of loops outside the sequence all have one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, SharedLoop, SharedStore
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.mapping.fused.floors.needs import Needs
from tilewright.solvers.mapping.fused.trees.skeletons import divisors

Tiles = dict[int, int]
"""Iterations by rank that one turn of a sequence has."""


class Halos:
    """Counts what the layers of a group make along windows, with what is made anew.

    Parameters
    ----------
    group, needs : the layers, and what their readers need at least
    """

    def __init__(self, group: FusedGroup, needs: Needs) -> None:
        self.group, self.needs = group, needs
        self._parts: dict[tuple[Reading, int, int, int], list[Int64s]] = {}
        self._windowed = {
            name: tuple(dim for dim in operator.output.dims if self.slides(name, dim))
            for name, operator in group.layers
        }

    def slides(self, layer: str, dim: str) -> bool:
        """Whether windows slide over a dimension of a layer's result."""
        is_read = bool(self.group.read_by(layer)) and self.group.operator(layer).bounds[dim] > 1
        return is_read and self.needs.is_windowed(layer, dim)

    def made(self, tree: Branch, in_order: int) -> dict[str, dict[str, int]]:
        """Per layer and dimension that windows slide over, iterations in all turns.

        Along other dimensions that loops cut, so many are made for every tile of these.

        Parameters
        ----------
        tree : with its homes
        in_order : sequences within each other whose loops are in order, with homes in place among them; in
            those further inside homes may stand anywhere
        """
        made: dict[str, dict[str, int]] = {}
        if any(self._windowed.values()):
            self._walk(tree, {}, in_order, made)
        return made

    def _walk(self, branch: Branch, tiles: Tiles, in_order: int, made: dict[str, dict[str, int]]) -> None:
        """The same for a branch.

        Parameters
        ----------
        branch, in_order : and sequences in order from there
        tiles : of the loops outside
        made : what is filled
        """
        outside: list[SharedLoop] = []
        for node in branch.nodes:
            if isinstance(node, SharedLoop):
                outside.append(node)
            elif self._windowed[node.layer]:
                anew = self._anew(node, outside if in_order > 0 else [], tiles)
                made[node.layer] = {dim: self._made(node, dim, anew) for dim in self._windowed[node.layer]}
        tiles = tiles | {self._rank(loop): loop.tile for loop in outside}
        for child in branch.children:
            if isinstance(child, Branch):
                self._walk(child, tiles, in_order - 1, made)

    def _anew(self, home: SharedStore, outside: list[SharedLoop], tiles: Tiles) -> Tiles:
        """Tiles of loops that retain nothing in a home.

        Parameters
        ----------
        home, outside : and the loops of its sequence outside it
        tiles : of the loops outside the sequence
        """
        for at in reversed(range(len(outside))):
            if self._moves(home.layer, outside[at], tiles):
                return tiles | {self._rank(loop): loop.tile for loop in outside[:at]}
        return tiles

    def _moves(self, layer: str, loop: SharedLoop, tiles: Tiles) -> bool:
        """Whether a loop's last trip needs other elements of a result than its first one, in every run.

        Parameters
        ----------
        layer, loop : whose result, and the loop
        tiles : of the loops outside the sequence
        """
        rank = self._rank(loop)
        for dim in self.group.operator(layer).output.dims:
            if self.group.ranks[layer, dim] == rank and not self.needs.is_windowed(layer, dim):
                return len(self.needs.elements[layer, dim]) == self.group.operator(layer).bounds[dim]
        readings = self.group.read_by(layer)
        for place in range(len(self.group.operator(layer).output.axes)):
            if len(readings) == 1 and (parts := self.parts(readings[0], place, rank, loop.tile)):
                trips = tiles.get(rank, self.group.operator(loop.layer).bounds[loop.dim]) // loop.tile
                runs = [parts[start : start + trips] for start in range(0, len(parts), trips)]
                return all(_differs([part for part in run if len(part)]) for run in runs)
        return False

    def _made(self, home: SharedStore, dim: str, anew: Tiles) -> int:
        """Iterations of a dimension in all turns, where loops of some tiles retain nothing."""
        layer = home.layer
        most = len(self.needs.elements[layer, dim])
        for place, axis in enumerate(self.group.operator(layer).output.axes):
            if any(term.dim == dim for term in axis.terms):
                for reading in self.group.read_by(layer):
                    for rank, tile in anew.items():
                        most = max(most, sum(map(len, self.parts(reading, place, rank, tile))))
        return most

    def sizes(self, layer: str, dim: str) -> frozenset[int] | None:
        """Iterations of a dimension over which windows slide that a turn may have; ``None`` if not known.

        A turn has what its readers need in some tile, all of it or what lies behind the tile before.
        """
        readings = self.group.read_by(layer)
        if len(readings) != 1 or any(reading.reader == layer for reading in self.group.readings):
            return None
        reader, whole = readings[0].reader, self.group.operator(readings[0].reader)
        offsets = self.group.offsets_of_windows(reader)
        place = next(
            place
            for place, axis in enumerate(self.group.operator(layer).output.axes)
            if any(term.dim == dim for term in axis.terms)
        )
        axis, offset = self.needs.axis(readings[0], place)
        moving = [term for term in axis.terms if whole.bounds[term.dim] > 1 and term.dim not in offsets]
        if len(moving) != 1 or self.needs.is_windowed(reader, moving[0].dim):
            return None
        own, end = moving[0], self.group.operator(layer).output.axes[place].size
        bound = whole.bounds[own.dim]
        if len(self.needs.elements[reader, own.dim]) != bound:
            return None
        rest = sum(term.stride * (whole.bounds[term.dim] - 1) for term in axis.terms if term is not own)
        sizes: set[int] = set()
        for tile in divisors(bound):
            firsts = [own.stride * first - offset for first in range(0, bound, tile)]
            lows = [min(max(low, 0), end) for low in firsts]
            highs = [min(max(low + own.stride * (tile - 1) + rest + 1, 0), end) for low in firsts]
            sizes |= {high - low for low, high in zip(lows, highs, strict=True)}
            sizes |= {
                high - max(low, past) for low, high, past in zip(lows[1:], highs[1:], highs, strict=False)
            }
        return frozenset(size for size in sizes if size > 0)

    def parts(self, reading: Reading, place: int, rank: int, tile: int) -> list[Int64s]:
        """Elements along an axis of a result that a reader needs in each tile of a loop.

        Nothing where the loop does not move the reader there, or what the reader makes depends on more.

        Parameters
        ----------
        reading, place : of the result, and which of its axes
        rank, tile : of the loop
        """
        key = reading, place, rank, tile
        if key not in self._parts:
            self._parts[key] = list(self._listed(*key))
        return self._parts[key]

    def _listed(self, reading: Reading, place: int, rank: int, tile: int) -> Iterator[Int64s]:
        reader = reading.reader
        axis, _ = self.needs.axis(reading, place)
        own = [term.dim for term in axis.terms if self.group.ranks[reader, term.dim] == rank]
        if len(own) != 1 or self.needs.is_windowed(reader, own[0]):
            return
        needed = self.needs.elements[reader, own[0]]
        for low in range(0, self.group.operator(reader).bounds[own[0]], tile):
            inside = needed[(needed >= low) & (needed < low + tile)]
            elements = self.needs.elements | {(reader, own[0]): inside}
            yield self.needs.touched(reading, place, elements)

    def _rank(self, loop: SharedLoop) -> int:
        return self.group.ranks[loop.layer, loop.dim]


def _differs(parts: list[Int64s]) -> bool:
    """Whether the first and the last of some elements begin or end elsewhere."""
    if len(parts) < 2:
        return False
    first, last = parts[0], parts[-1]
    return bool(first.min() != last.min() or first.max() != last.max())
