"""Floors of the layers of one group in its trees (`solvers/mapping/fused/layer_floors.py`).

They take a while, so a search asks for them once it turns out to be a long one.
"""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.first_bound import FirstBounds, LayerRuns
from tilewright.solvers.mapping.fused.layer_floors import Asked, LayerFloors
from tilewright.solvers.mapping.fused.skeletons import SkeletonSpace


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
        self.applies = layers.applies and all(group.is_plain(reading) for reading in group.readings)
        self.most: Fraction | None = None
        self._shared = _shared_dims(group, trees)
        self._known: dict[tuple[LayerRuns, int], Fraction] = {}

    def begin(self, most: Fraction) -> bool:
        """Ask for floors from now on; whether there are any, and none were asked for before.

        Parameters
        ----------
        most : pJ; what takes as much is of no interest
        """
        if self.most is not None or not self.applies:
            return False
        self.most = most
        return True

    def of(self, tree: Branch, *, is_whole: bool) -> list[Fraction]:
        """What each layer of a tree takes at least; nothing is known where floors were not asked for.

        Parameters
        ----------
        tree : whose layers
        is_whole : whether all of its loops are decided, so that tiles of homes are known
        """
        all_runs = self.first.runs(tree)
        if self.most is None:
            return [Fraction(0)] * len(all_runs)
        others = self.first.homes.taken_by_others(tree) if is_whole else {}
        return [self._floor(runs, others.get(runs.layer, 0)) for runs in all_runs]

    def bound(self, tree: Branch, *, is_whole: bool) -> Fraction:
        """What a tree takes at least by floors and trip counts; parameters as of :meth:`of`."""
        floors = self.of(tree, is_whole=is_whole)
        runs = self.first.runs(tree)
        return sum((max(f, self.first.least(r)) for f, r in zip(floors, runs, strict=True)), Fraction(0))

    def _floor(self, runs: LayerRuns, others: int) -> Fraction:
        operator = self.group.operator(runs.layer)
        home = self.layers.home_of(operator, runs.passed)
        if home is None or self.most is None:
            return Fraction(0)
        taken = self.layers.steps(home, others)
        if (runs, taken) not in self._known:
            passed = tuple(name for name, _ in runs.passed)
            asked = Asked(operator, passed, self._shared[runs.layer], taken)
            self._known[runs, taken] = self.layers.floor(asked, home, self.most)
        return self._known[runs, taken]


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
