"""Trees that may be good, drawn before a search comes to them, so that a limit finds an answer."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.room_bounds import RoomBounds
from tilewright.solvers.mapping.fused.skeletons import Cut, SkeletonSpace

DIVE = 2
"""Trees that are drawn at a time."""


@dataclass
class Dives:
    """Draws trees of one group.

    Parameters
    ----------
    trees, rooms : the trees and their bounds
    check : called on the way; raises where the search must end
    """

    trees: SkeletonSpace
    rooms: RoomBounds
    check: Callable[[], None]
    _chance: Random = field(default_factory=lambda: Random(0))

    def best(self, known: Iterable[tuple[Branch, tuple[Cut, ...]]], most: Fraction | None) -> list[Branch]:
        """The trees of the least bounds, with their loops in order.

        Parameters
        ----------
        known : trees, and the loops that are not decided yet, which are drawn
        most : pJ; what takes as much is of no interest
        """
        bounded: list[tuple[Fraction, int, Branch]] = []
        for tree, cuts in known:
            for cut in cuts:
                tree = self._chance.choice(list(self.trees.cut(tree, cut)))
            if self.trees.is_whole(tree):
                for ordered in self.trees.orders(tree):
                    self.check()
                    least = self.rooms.bound(ordered, most)
                    if least is not None:
                        bounded.append((least.least, len(bounded), ordered))
        return [ordered for _, _, ordered in heapq.nsmallest(DIVE, bounded)]
