"""The tiles of all that a goal wants of a part of a machine, which the whole is searched over then."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.formulation.mapping.chains import AxisGroup
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.segment_parts import Tiles, tiles_at
from tilewright.foundation.arrays import Bools
from tilewright.solvers.mapping.cuts import NOTHING, Cut
from tilewright.solvers.mapping.goals import Goal
from tilewright.solvers.mapping.nodes import Leaves


class ListedTiles(Goal):
    """Everything that another goal wants, by its tiles at some boundaries.

    Parameters
    ----------
    part : the problem that is searched
    edges : the boundaries
    most : decisions that are listed; more are too many, and nothing is wanted any more

    Attributes
    ----------
    key, energy, cycles : the least bounds of all that was taken; infinite where nothing was
    count : how many decisions were taken
    """

    def __init__(self, goal: Goal, part: LayerProblem, edges: Sequence[int], most: float = math.inf) -> None:
        self.both = goal.both
        self.key = self.energy = self.cycles = math.inf
        self.count = 0
        self._goal, self._space, self._edges, self._most = goal, part.space, edges, most
        self._taken: dict[str, tuple[AxisGroup, Bools]] = {}  # by group, which of its rows

    @property
    def are_too_many(self) -> bool:
        """Whether there are more than may be listed."""
        return self.count > self._most

    def cut(self) -> Cut:
        """What the other goal wants."""
        return NOTHING if self.are_too_many else self._goal.cut()

    def take(self, leaves: Leaves) -> None:
        """Note the least bounds, and the tiles."""
        self.key = min(self.key, float(leaves.keys.min()))
        self.energy = min(self.energy, float(leaves.energy.min()))
        self.cycles = min(self.cycles, float(leaves.cycles.min()))
        self.count += len(leaves)
        for group, rows in leaves.rows():
            _, taken = self._taken.setdefault(group.name, (group, np.zeros(len(group), dtype=np.bool_)))
            taken[rows] = True

    def tiles(self) -> Tiles:
        """Those of all that were taken."""
        groups = {name: group.having(group.rows[taken]) for name, (group, taken) in self._taken.items()}
        return {
            name: np.unique(tiles_at(self._space, self._edges, group), axis=0)
            for name, group in groups.items()
        }
