"""The tiles of all that a goal wants of a part of a machine, which the whole is searched over then."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.boundary_tiles import Tiles, tiles_at
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Bools, Floats, Int64s, distinct, distinct_rows
from tilewright.solvers.mapping.compiled.cuts import NOTHING, Cut
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves


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
            name: distinct_rows(tiles_at(self._space, self._edges, group)) for name, group in groups.items()
        }


class CheapestTiles(Goal):
    """The cheapest decisions that another goal wants, by their tiles at some boundaries.

    Parameters
    ----------
    part : the problem that is searched
    edges : the boundaries
    most : decisions that are kept

    Attributes
    ----------
    least : key (scaled) of all that was taken; infinite where nothing was
    below : keys (scaled) from which on decisions are left out, since too many are cheaper; infinite where
        none are
    """

    def __init__(self, goal: Goal, part: LayerProblem, edges: Sequence[int], most: int) -> None:
        self.both, self.once = goal.both, goal.once
        self.least = self.below = math.inf
        self._goal, self._space, self._edges, self._most = goal, part.space, edges, most
        self._groups: list[AxisGroup] = []
        self._count = 0
        self._keys: list[Floats] = [np.zeros(0)]
        self._rows: list[Int64s] = [np.zeros((len(part.space.groups), 0), dtype=np.int64)]

    def cut(self) -> Cut:
        """What the other goal wants and is cheaper than all that is left out."""
        cut = self._goal.cut()
        return cut._replace(below=min(cut.below, self.below))

    def take(self, leaves: Leaves) -> None:
        """Keep decisions and their keys; leave out the dearest ones where there are twice too many."""
        self.least = min(self.least, float(leaves.keys.min()))
        rows = leaves.rows()
        self._groups = [group for group, _ in rows]
        self._keys.append(leaves.keys)
        self._rows.append(np.array([own for _, own in rows], np.int64).reshape(len(rows), len(leaves)))
        self._count += len(leaves)
        if self._count > 2 * self._most:
            keys, places = self._kept()
            self.below = float(np.partition(keys, self._most)[self._most])
            kept = keys < self.below
            self._keys, self._rows, self._count = [keys[kept]], [places[:, kept]], int(kept.sum())

    def tiles(self, most: float = math.inf) -> Tiles:
        """Those of all that were kept, with keys (scaled) up to some number."""
        keys, rows = self._kept()
        return {
            group.name: distinct_rows(
                tiles_at(self._space, self._edges, group.having(group.rows[distinct(own)]))
            )
            for group, own in zip(self._groups, rows[:, keys <= most] if self._groups else (), strict=True)
        }

    def _kept(self) -> tuple[Floats, Int64s]:
        """Keys, shape (decisions,), and rows of all groups, shape (groups, decisions)."""
        return np.concatenate(self._keys), np.concatenate(self._rows, axis=1)
