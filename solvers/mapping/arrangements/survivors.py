"""What two parts of a machine leave of its arrangements of storage, and what of that meets.

A mapping is one decision of the part outside and one of the part inside, and its tile in the last near store
holds the tile that enters the array.  So a decision that no decision of the other part fits is none of a
mapping, nor is one that costs too much with each that fits (``docs/uneven.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.parts.segment_parts import FILLS, Tiles, tiles_at
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Bools, Floats, Indices, Int64s, numbered
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.listed_tiles import ListedTiles
from tilewright.solvers.mapping.tree.nodes import Leaves

_MOST_KEPT = 2_000_000  # decisions of all parts that are known one by one; of others only tiles are
_MOST_TILES = 1 << 20  # combinations of tiles at one boundary, and pairs that are looked at

Wanted = Callable[[Floats, Floats], Bools]
"""Tells which least energies (scaled) and cycles of mappings may be of interest."""


class Decisions:
    """Complete decisions of a part, with what they cost there.

    Parameters
    ----------
    space : of the part
    edges : the boundaries that it decides, increasing
    groups : its axis groups
    rows : of each group, shape (groups, decisions)
    costs : at least: energy spent in the part (scaled), cycles of a mapping, and cycles that come on top of
        those of the other part, shape (3, decisions)
    """

    def __init__(
        self,
        space: MapSpace,
        edges: Sequence[int],
        groups: tuple[AxisGroup, ...],
        rows: Int64s,
        costs: Floats,
    ) -> None:
        self._space, self._edges, self._groups, self._rows = space, edges, groups, rows
        self.costs = costs

    def __len__(self) -> int:
        return len(self.costs[0])

    def take(self, kept: Indices | Bools) -> Decisions:
        """Some of them."""
        rows, costs = self._rows[:, kept], self.costs[:, kept]
        return Decisions(self._space, self._edges, self._groups, rows, costs)

    def tiles(self) -> Tiles:
        """The tiles of all of them."""
        result: Tiles = {}
        for group, rows in zip(self._groups, self._rows, strict=True):
            own = tiles_at(self._space, self._edges, group.having(group.rows[np.unique(rows)]))
            result[group.name] = np.unique(own, axis=0)
        return result

    @cached_property
    def innermost(self) -> Ends | None:
        """Their tiles at the last of the boundaries; ``None`` where these are too many, or none."""
        return self._ends(self._edges[-1])

    @cached_property
    def outermost(self) -> Ends | None:
        """Their tiles at the first of the boundaries; ``None`` where these are too many, or none."""
        return self._ends(self._edges[0])

    def _ends(self, edge: int) -> Ends | None:
        numbers, shape, tiles = np.zeros(len(self), dtype=np.int64), [], []
        for group, rows in zip(self._groups, self._rows, strict=True):
            own = tiles_at(self._space, [edge], group)
            _, first, places = np.unique(numbered(own), return_index=True, return_inverse=True)
            numbers = numbers * len(first) + places[rows]
            shape.append(len(first))
            tiles.append(own[first])
        if not shape or np.prod(shape, dtype=float) > _MOST_TILES:
            return None
        present = np.bincount(numbers, minlength=int(np.prod(shape))) > 0
        each = np.unravel_index(np.flatnonzero(present), shape)
        sizes = np.concatenate([own[index] for own, index in zip(tiles, each, strict=True)], axis=1)
        return Ends(self, sizes, (np.cumsum(present) - 1)[numbers])


@dataclass(frozen=True)
class Ends:
    """The tiles of decisions at one boundary.

    Parameters
    ----------
    sizes : of every dimension, each combination once, shape (tiles, dimensions)
    numbers : which of these each decision has
    """

    decisions: Decisions
    sizes: Int64s
    numbers: Int64s

    @cached_property
    def least(self) -> Floats:
        """The least costs of the decisions with each tile, shape (3, tiles)."""
        least = np.full((3, len(self.sizes)), np.inf)
        for own, costs in zip(least, self.decisions.costs, strict=True):
            np.minimum.at(own, self.numbers, costs)
        return least

    def left(self, fits: Bools, other: Ends, wanted: Wanted) -> Decisions:
        """Those that may be of interest with the cheapest decisions that fit them.

        Parameters
        ----------
        fits : which of the other tiles go with each, shape (tiles, other tiles)
        other : tiles of the other part
        """
        kept = np.flatnonzero(np.logical_or.reduce(fits, axis=1)[self.numbers])
        if len(kept) * len(other.sizes) <= _MOST_TILES:
            costs = self.decisions.costs[:, kept]
            cheap = _wanted_together(costs, other.least, fits[self.numbers[kept]], wanted)
            kept = kept[np.logical_or.reduce(cheap, axis=1)]
        return self.decisions.take(kept)


@dataclass(frozen=True, slots=True)
class Survivors:
    """What a part of the machine leaves of the arrangements that agree in it.

    Parameters
    ----------
    slots : in which they agree
    key : lower bound of their objective keys (scaled)
    energy : lower bound of what is spent in the part (scaled)
    cycles : lower bound
    tiles : those of mappings that may be of interest; ``None`` for any
    decisions : all that may be of interest; ``None`` where they are not known one by one
    """

    slots: Arrangement
    key: float
    energy: float
    cycles: float
    tiles: Tiles | None
    decisions: Decisions | None = None

    @property
    def cycles_apart(self) -> float:
        """Lower bound of the cycles to which those of the other part come on top."""
        return 0.0 if self.decisions is None else float(self.decisions.costs[2].min())

    def having(self, decisions: Decisions) -> Survivors:
        """The same with some of the decisions only."""
        if self.decisions is not None and len(decisions) == len(self.decisions):
            return self
        energy, cycles, _ = decisions.costs.min(axis=1)
        return replace(
            self,
            energy=max(self.energy, float(energy)),
            cycles=max(self.cycles, float(cycles)),
            tiles=decisions.tiles(),
            decisions=decisions,
        )


class ListedDecisions(ListedTiles):
    """The tiles of all that another goal wants, and as far as that is few, its decisions one by one.

    Parameters
    ----------
    part, edges : as :class:`ListedTiles` takes them
    parts : how many such lists there are at once
    """

    def __init__(self, goal: Goal, part: LayerProblem, edges: Sequence[int], parts: int) -> None:
        super().__init__(goal, part, edges)
        self._most_kept = _MOST_KEPT // parts
        self._fills, self._is_inside = part.statement.details[FILLS], bool(part.space.nest.spatial)
        self._kept: list[Leaves] = []

    def take(self, leaves: Leaves) -> None:
        """Note the least bounds, the tiles, and the decisions."""
        super().take(leaves)
        self._kept.append(leaves)
        if self.count > self._most_kept:
            self._kept.clear()

    def decisions(self, own: Callable[[Floats], Floats]) -> Decisions | None:
        """All that was taken; ``None`` where that is too much.

        Parameters
        ----------
        own : what of energies is spent in the part
        """
        if not 0 < self.count <= self._most_kept:
            return None
        groups = tuple(group for group, _ in self._kept[0].rows())
        listed = [[own for _, own in leaves.rows()] for leaves in self._kept]
        rows = np.empty((len(groups), self.count), dtype=np.int64)
        for place in range(len(groups)):
            np.concatenate([own[place] for own in listed], out=rows[place])
        energy, cycles = (
            np.concatenate([getattr(leaves, name) for leaves in self._kept]) for name in ("energy", "cycles")
        )
        sizes: dict[Variable, Floats | int] = {
            variable: group.sizes(variable)[own].astype(np.float64)
            for group, own in zip(groups, rows, strict=True)
            for variable in group.variables
        }
        # First fills of near levels depend on tiles, and on what is stored there, which all have in common.
        fills = BatchReader({**self._kept[0].chosen, **sizes}).read(self._fills)
        apart = cycles - fills if self._is_inside else np.broadcast_to(fills, cycles.shape)
        return Decisions(self._space, self._edges, groups, rows, np.stack([own(energy), cycles, apart]))


def where_they_meet(
    near: Survivors, inner: Survivors, perfect: bool, wanted: Wanted
) -> tuple[Survivors, Survivors] | None:
    """What is left of each part where tiles meet; ``None`` where nothing is.

    Parameters
    ----------
    near, inner : what is left outside and inside
    perfect : whether every tile divides the one around it
    wanted : by energy of both parts together, and cycles
    """
    if near.decisions is None or inner.decisions is None:
        return near, inner
    outer, within = near.decisions.innermost, inner.decisions.outermost
    if outer is None or within is None or len(outer.sizes) * len(within.sizes) > _MOST_TILES:
        return near, inner
    fits = np.ones((len(outer.sizes), len(within.sizes)), dtype=np.bool_)
    for around, inside in zip(outer.sizes.T, within.sizes.T, strict=True):
        fits &= around[:, None] % inside == 0 if perfect else around[:, None] >= inside
    fits = _wanted_together(outer.least, within.least, fits, wanted)
    if not fits.any():
        return None
    left = outer.left(fits, within, wanted), within.left(fits.T, outer, wanted)
    if not all(map(len, left)):
        return None
    return near.having(left[0]), inner.having(left[1])


def _wanted_together(near: Floats, inner: Floats, fits: Bools, wanted: Wanted) -> Bools:
    """Which pairs may be of interest.

    Parameters
    ----------
    near, inner : costs of both parts, each of shape (3, decisions or tiles)
    fits : which pairs are looked at, shape (of the first, of the second)
    """
    first, second = np.nonzero(fits)
    (energy, cycles, apart), others = near[:, first], inner[:, second]
    cheap = wanted(energy + others[0], np.maximum(np.maximum(cycles, others[1]), apart + others[2]))
    result = np.zeros_like(fits)
    result[first[cheap], second[cheap]] = True
    return result
