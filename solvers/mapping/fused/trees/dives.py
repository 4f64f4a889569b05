"""Trees that may be good, looked for before a search comes to them, so that a limit finds an answer.

A dive decides one thing after the other, always in the way that has the least bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.floors.room_bounds import RoomBounds
from tilewright.solvers.mapping.fused.floors.stem_rooms import StemRooms
from tilewright.solvers.mapping.fused.trees.items import Family, Item, Ordered, Stem
from tilewright.solvers.mapping.fused.trees.skeletons import Cut, SkeletonSpace

KEPT = 2
"""Trees of a dive."""


@dataclass(frozen=True)
class Dives:
    """Looks for trees of one group.

    Parameters
    ----------
    trees, stems, rooms : the trees, and their bounds before and after all their loops are decided
    check : called on the way; raises where the search must end
    """

    trees: SkeletonSpace
    stems: StemRooms
    rooms: RoomBounds
    check: Callable[[], None]

    def best(self, items: Iterable[Item], most: Fraction | None) -> list[Branch]:
        """The trees of the least bounds that are met below some items, with their loops in order.

        Parameters
        ----------
        items : where dives begin
        most : pJ; what takes as much is of no interest
        """
        bounded: list[tuple[Fraction, int, Branch]] = []
        for number, item in enumerate(items):
            least = self._least((self._bound(tree, most), tree) for tree in self._below(item, most))
            if least is not None:
                bounded.append((least[0], number, least[1]))
        return [ordered for _, _, ordered in heapq.nsmallest(KEPT, bounded)]

    def _below(self, item: Item, most: Fraction | None) -> Iterator[Branch]:
        """Trees of an item with their loops in order, that differ in inner orders alone."""
        if isinstance(item, Ordered):
            yield item.tree
        elif isinstance(item, Stem | Family):
            cuts = item.cuts if isinstance(item, Stem) else ()
            orders = self.stems.orders(item.tree, cuts, item.orders, most)
            begun = self._least((least, replace(item.tree, nodes=nodes)) for least, nodes in orders)
            tree = None if begun is None else begun[1]
            for at, cut in enumerate(cuts):
                tree = None if tree is None else self._cut(tree, cut, cuts[at + 1 :], most)
            if tree is not None and self.trees.is_whole(tree):
                yield from self.trees.inner_orders(tree)

    def _cut(self, tree: Branch, cut: Cut, rest: tuple[Cut, ...], most: Fraction | None) -> Branch | None:
        """A tree with one more loop decided; ``None`` where all take too much.

        Parameters
        ----------
        tree, cut : with its outermost loops in order, and the loop
        rest : loops that are not decided then
        most : pJ; what takes as much is of no interest
        """
        below = (own for own in self.trees.cut(tree, cut) if rest or self.trees.is_whole(own))
        least = self._least((self.stems.bound(own, rest, most), own) for own in below)
        return None if least is None else least[1]

    def _bound(self, ordered: Branch, most: Fraction | None) -> Fraction | None:
        bound = self.rooms.bound(ordered, most)
        return None if bound is None else bound.least

    def _least(self, bounded: Iterable[tuple[Fraction | None, Branch]]) -> tuple[Fraction, Branch] | None:
        """The least of some bounds, with its tree."""
        best: tuple[Fraction, Branch] | None = None
        for least, tree in bounded:
            self.check()
            if least is not None and (best is None or least < best[0]):
                best = least, tree
        return best
