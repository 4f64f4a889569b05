"""Floors of the layers of one group in its trees (`solvers/mapping/fused/floors/layer_floors.py`).

They take a while, so a search asks for them once it turns out to be a long one, and only for those of the
tree that it would open next.
"""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.floors.first_bound import FirstBounds, LayerRuns
from tilewright.solvers.mapping.fused.floors.layer_floors import Asked, LayerFloors
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace

AskedOf = tuple[Asked, int] | None
"""A layer as it stands in a tree, with the level of its homes; ``None`` if it has no floor."""


class TreeFloors:
    """Floors of a group's layers.

    Parameters
    ----------
    group, first, trees : the layers, bounds of their turns from trip counts, and what they may be
    layers : floors of layers on the machine, of other groups too
    """

    def __init__(
        self, group: FusedGroup, first: FirstBounds, trees: SkeletonSpace, layers: LayerFloors
    ) -> None:
        self.group, self.first, self.layers = group, first, layers
        # In one nest all turns are alike only where nothing is read through windows.
        may_know = any(layers.may_know(operator) for operator in group.operators.values())
        self.applies = may_know and not group.has_windows
        self.begun = False
        self._shared = _shared_dims(group, trees)

    def begin(self) -> None:
        """Know floors from now on."""
        self.begun = self.applies

    def known(self, tree: Branch, *, is_whole: bool) -> list[Fraction]:
        """What each layer of a tree takes at least, as far as is known without solving anything.

        Parameters
        ----------
        tree : whose layers
        is_whole : whether all of its loops are decided, so that tiles of homes are known
        """
        return self._known(self._asked(tree, is_whole=is_whole))

    def bound(self, tree: Branch, *, is_whole: bool) -> Fraction:
        """What a tree takes at least by what is known and by trip counts; parameters as of :meth:`known`."""
        return self._bound(self._asked(tree, is_whole=is_whole), self._plain(tree))

    def raised(self, tree: Branch, most: Fraction, *, is_whole: bool) -> Fraction:
        """The same by floors of all layers, or of as many as it takes to reach ``most``.

        Parameters
        ----------
        tree, is_whole : as of :meth:`known`
        most : pJ; what takes as much is of no interest
        """
        asked, plain = self._asked(tree, is_whole=is_whole), self._plain(tree)
        for index in sorted(range(len(plain)), key=lambda index: plain[index], reverse=True):
            own = asked[index]
            if own is not None and not self.layers.is_settled(own[0], most):
                if self._bound(asked, plain) >= most:
                    break
                self.layers.floor(*own, most)
        return self._bound(asked, plain)

    def _known(self, asked: list[AskedOf]) -> list[Fraction]:
        return [Fraction(0) if own is None else self.layers.known(own[0]) for own in asked]

    def _bound(self, asked: list[AskedOf], plain: list[Fraction]) -> Fraction:
        """The greater of what is known and of trip counts, layer by layer."""
        return sum(map(max, self._known(asked), plain), Fraction(0))

    def _plain(self, tree: Branch) -> list[Fraction]:
        """What each layer takes at least by trip counts."""
        return [self.first.least(runs) for runs in self.first.runs(tree)]

    def _asked(self, tree: Branch, *, is_whole: bool) -> list[AskedOf]:
        """Every layer of a tree."""
        all_runs = self.first.runs(tree)
        if not self.begun:
            return [None] * len(all_runs)
        others = self.first.homes.taken_by_others(tree) if is_whole else {}
        return [self._asked_of(runs, others.get(runs.layer, 0)) for runs in all_runs]

    def _asked_of(self, runs: LayerRuns, others: int) -> AskedOf:
        operator = self.group.operator(runs.layer)
        home = self.layers.home_of(operator, runs.passed)
        if home is None:
            return None
        passed = tuple(name for name, _ in runs.passed)
        return Asked(operator, passed, self._shared[runs.layer], self.layers.steps(home, others)), home


def _shared_dims(group: FusedGroup, trees: SkeletonSpace) -> dict[str, frozenset[str]]:
    """Per layer, the dimensions that loops of some sequence may cut."""
    names = group.names
    shared: dict[str, set[str]] = {name: set() for name in names}
    for start in range(len(names)):
        for end in range(start + 2, len(names) + 1):
            ranks = trees.loops(tuple(names[start:end]))
            for name in names[start:end]:
                dims = group.operator(name).bounds
                shared[name] |= {dim for dim in dims if group.ranks[name, dim] in ranks}
    return {name: frozenset(dims) for name, dims in shared.items()}
