"""What two parts of a machine leave of its arrangements of storage, and what of that meets.

A mapping is one decision of the part outside and one of the part inside, and its tile in the last near store
holds the tile that enters the array.  So a decision that no decision of the other part fits is none of a
mapping, nor is one that costs too much with each that fits (``docs/uneven.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from tilewright.formulation.expression import Expr, Variable, maximum, total
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.parts.entering import Entering, moved_by
from tilewright.formulation.mapping.parts.segment_cycles import APART, FILLS, cycles_on_port, port_bits
from tilewright.formulation.mapping.parts.segment_parts import OWN
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tiles.boundary_tiles import Tiles, tiles_at
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Bools, Floats, Indices, Int64s, distinct, distinct_rows, numbered
from tilewright.solvers.mapping.arrangements.outside_front import OutsideFront
from tilewright.solvers.mapping.compiled.cuts import Cut
from tilewright.solvers.mapping.tree.goals import BAND, Goal
from tilewright.solvers.mapping.tree.listed_tiles import ListedTiles
from tilewright.solvers.mapping.tree.nodes import Leaves

_MOST_KEPT = 2_000_000  # decisions of all parts that are known one by one; of others only tiles are
_MOST_TILES = 1 << 20  # combinations of tiles at one boundary, and pairs that are looked at
_MOST_PAIRS = 1 << 16  # of decisions: to look at so many takes less than to state one arrangement
_MOST_TOLD = 3  # tensors that the outside tells of together
_PLAIN_COSTS = 3  # of decisions, before those of tensors that enter the array

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
        those of the other part; where tensors enter the array also the energy without moving these, and that
        of moving each, as far as the part tells, and bits on the outermost port besides; shape
        (costs, decisions)
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

    @property
    def dims(self) -> list[str]:
        """The dimensions whose tiles they decide, as :class:`Ends` have them."""
        return [dim for group in self._groups for dim in group.dims]

    def take(self, kept: Indices | Bools) -> Decisions:
        """Some of them."""
        rows, costs = self._rows[:, kept], self.costs[:, kept]
        return Decisions(self._space, self._edges, self._groups, rows, costs)

    def tiles(self) -> Tiles:
        """The tiles of all of them."""
        result: Tiles = {}
        for group, rows in zip(self._groups, self._rows, strict=True):
            own = tiles_at(self._space, self._edges, group.having(group.rows[distinct(rows)]))
            result[group.name] = distinct_rows(own)
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

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def least(self) -> Floats:
        """The least costs of the decisions with each tile, shape (costs, tiles)."""
        costs = self.decisions.costs
        least = np.full((len(costs), len(self)), np.inf)
        for own, each in zip(least, costs, strict=True):
            np.minimum.at(own, self.numbers, each)
        return least


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
        energy, cycles = decisions.costs[:2].min(axis=1)
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
    front : of the outside, if that bounds what is inside besides
    """

    def __init__(
        self,
        goal: Goal,
        part: LayerProblem,
        edges: Sequence[int],
        parts: int,
        front: OutsideFront | None = None,
    ) -> None:
        super().__init__(goal, part, edges)
        self._front = front
        self._most_kept = _MOST_KEPT // parts
        self._part = part
        self._own = part.statement.details[OWN]
        self._fills, self._is_inside = part.statement.details[FILLS], bool(part.space.nest.spatial)
        self._kept: list[Leaves] = []

    def cut(self) -> Cut:
        """What the other goal wants, with what is outside."""
        return super().cut() if self._front is None else self._front.cut(super().cut())

    def take(self, leaves: Leaves) -> None:
        """Note the least bounds, the tiles, and the decisions."""
        super().take(leaves)
        self._kept.append(leaves)
        if self.count > self._most_kept:
            self._kept.clear()

    def decisions(self, entered: Sequence[Entering]) -> Decisions | None:
        """All that was taken; ``None`` where that is too much.

        Parameters
        ----------
        entered : tensors that enter the array
        """
        if not 0 < self.count <= self._most_kept:
            return None
        groups = tuple(group for group, _ in self._kept[0].rows())
        listed = [[own for _, own in leaves.rows()] for leaves in self._kept]
        rows = np.empty((len(groups), self.count), dtype=np.int64)
        for place in range(len(groups)):
            np.concatenate([own[place] for own in listed], out=rows[place])
        sizes: dict[Variable, Floats | int] = {
            variable: group.sizes(variable)[own].astype(np.float64)
            for group, own in zip(groups, rows, strict=True)
            for variable in group.variables
        }
        reader = BatchReader({**self._chosen(), **sizes})
        fills = reader.read(self._fills)
        cycles = np.concatenate([leaves.cycles for leaves in self._kept])
        if self._part.statement.cycles is self._part.statement.details.get(APART):
            cycles = cycles + fills
        spent = reader.read(self._own) * (1 - BAND)
        costs = [spent, cycles, cycles - fills if self._is_inside else fills]
        if entered:
            every = moved_by(self._part, entered)
            counted = [reader.read(own.energy(*counts)) for own, counts in every.items()]
            shared = [reader.read(own.energy(*counts, own.share)) for own, counts in every.items()]
            for energy, share in zip(counted, shared, strict=True):
                spent = spent - (energy - share if self._is_inside else share)
            costs.append(spent)
            costs += counted
            costs.append(reader.read(port_bits(self._part, entered)))
        stacked = np.stack([np.broadcast_to(row, cycles.shape) for row in costs])
        return Decisions(self._space, self._edges, groups, rows, stacked)

    def _chosen(self) -> dict[Variable, Floats | int]:
        """The options of choices that decisions have; an array where they differ."""
        chosen: dict[Variable, Floats | int] = {**self._kept[0].chosen}
        for variable, option in chosen.items():
            options = [leaves.chosen[variable] for leaves in self._kept]
            if any(other != option for other in options):
                lengths = [*map(len, self._kept)]
                chosen[variable] = np.repeat(np.array(options, dtype=np.float64), lengths)
        return chosen


class EnergyInside:
    """What is spent inside at least, told by how often the outside has tensors enter the array.

    Parameters
    ----------
    least : energy (scaled) of all that is left inside
    left : that, of every sequence of points
    entered : tensors that enter the array, as decisions know them
    """

    def __init__(self, least: int, left: Sequence[Survivors], entered: Sequence[Entering]) -> None:
        self._terms: list[tuple[int, tuple[Entering, ...]]] = [(least, ())]
        listed = [inner.decisions.costs for inner in left if inner.decisions is not None]
        if len(listed) < len(left):
            return
        for size in range(1, min(len(entered), _MOST_TOLD) + 1):
            for told in combinations(range(len(entered)), size):
                rest = math.inf
                for costs in listed:
                    spent = costs[_PLAIN_COSTS].copy()
                    for place, own in enumerate(entered):
                        if place not in told:
                            spent += float(1 - own.share) * costs[_PLAIN_COSTS + 1 + place]
                    rest = min(rest, float(spent.min()))
                self._terms.append((math.floor(rest * (1 - BAND)), tuple(entered[place] for place in told)))

    def given(self, part: LayerProblem) -> Expr:
        """Energy (scaled) by the decisions of a part outside.

        For any tensors it is what their loops around near stores tell, and the least of all else in the list.
        """
        terms = []
        for rest, told in self._terms:
            shares = (own.energy(*counts, 1 - own.share) for own, counts in moved_by(part, told).items())
            terms.append(total([rest, *shares]))
        return maximum(terms)


class Meeting:
    """What two parts cost together, by their tiles on both sides of the boundary where they meet.

    Parameters
    ----------
    outer, within : the tiles outside and inside
    problem : the whole
    entered : its tensors that enter the array
    wanted : by energy of both parts together, and cycles
    """

    def __init__(
        self, outer: Ends, within: Ends, problem: LayerProblem, entered: Sequence[Entering], wanted: Wanted
    ) -> None:
        self._outer, self._within, self._wanted = outer, within, wanted
        self._problem = problem
        self._fits = np.ones((len(outer), len(within)), dtype=np.bool_)
        perfect = problem.space.nest.perfect
        for around, inside in zip(outer.sizes.T, within.sizes.T, strict=True):
            self._fits &= around[:, None] % inside == 0 if perfect else around[:, None] >= inside
        self._cycles = [cycles_on_port(problem, own) for own in entered]
        self._moved = [self._energy_where_moved(own, problem.operator.iterations) for own in entered]

    def left(self) -> tuple[Indices, Indices]:
        """Which decisions of each part may be of interest with some of the other."""
        outer, within = self._outer, self._within
        tiles, others = np.arange(len(outer)), np.arange(len(within))
        self._fits = self._pairs(outer.least, within.least, tiles, others)
        near = np.flatnonzero(np.logical_or.reduce(self._fits, axis=1)[outer.numbers])
        inner = np.flatnonzero(np.logical_or.reduce(self._fits, axis=0)[within.numbers])
        costs, inner_costs = outer.decisions.costs, within.decisions.costs
        if len(near) * len(within) <= _MOST_TILES:
            near = near[self._pairs(costs[:, near], within.least, outer.numbers[near], others).any(axis=1)]
        if len(inner) * len(outer) <= _MOST_TILES:
            pairs = self._pairs(outer.least, inner_costs[:, inner], tiles, within.numbers[inner])
            inner = inner[pairs.any(axis=0)]
        if len(near) * len(inner) <= _MOST_PAIRS:
            places = outer.numbers[near], within.numbers[inner]
            pairs = self._pairs(costs[:, near], inner_costs[:, inner], *places)
            near, inner = near[pairs.any(axis=1)], inner[pairs.any(axis=0)]
        return near, inner

    def _pairs(self, near: Floats, inner: Floats, tiles: Indices, others: Indices) -> Bools:
        """Which pairs may be of interest.

        Parameters
        ----------
        near, inner : costs of both parts, each of shape (costs, decisions or tiles)
        tiles, others : which tiles these have outside and inside
        """
        result = self._fits[np.ix_(tiles, others)]
        first, second = np.nonzero(result)
        own, other = near[:, first], inner[:, second]
        energy, cycles = own[0] + other[0], np.maximum(np.maximum(own[1], other[1]), own[2] + other[2])
        if self._moved:
            apart = own[_PLAIN_COSTS] + other[_PLAIN_COSTS]
            place = tiles[first], others[second]
            busy = (own[-1] + other[-1]) * self._cycles[0][0]
            for index, (moved, (_, each)) in enumerate(
                zip(self._moved, self._cycles, strict=True), _PLAIN_COSTS + 1
            ):
                most = np.maximum(np.maximum(own[index], other[index]), moved[place])
                apart += most
                if each:
                    busy += most * each
            energy = np.maximum(energy, apart)
            cycles = np.maximum(cycles, busy * (1 - BAND) + own[2])
        cheap = self._wanted(energy, cycles)
        result[first, second] = cheap
        return result

    def _energy_where_moved(self, own: Entering, iterations: int) -> Floats:
        """Least energy of handing a tensor inwards that loops between both boundaries move; else 0.

        All loops further out fetch it again then (``docs/proofs.md``).

        Returns it by tiles outside and inside.
        """
        dims = self._outer.decisions.dims
        first = own.tensor.footprint(self._problem.operator.bounds) if own.tensor.is_output else 0
        moves = [place for place, dim in enumerate(dims) if dim in own.tensor.dims]
        still = [place for place, dim in enumerate(dims) if dim not in own.tensor.dims]
        around, inside = self._outer.sizes, self._within.sizes
        count = iterations / np.prod(around[:, still], axis=1, dtype=float)
        anew = own.read * (count - first) + own.write * count
        moved = np.zeros(self._fits.shape, dtype=np.bool_)
        for place in moves:
            moved |= around[:, place, None] > inside[:, place]
        return np.where(moved, anew[:, None], 0.0)


def where_they_meet(
    near: Survivors, inner: Survivors, problem: LayerProblem, entered: Sequence[Entering], wanted: Wanted
) -> tuple[Survivors, Survivors] | None:
    """What is left of each part where tiles meet; ``None`` where nothing is.

    Parameters
    ----------
    near, inner : what is left outside and inside
    problem : the whole
    entered : its tensors that enter the array, as decisions know them
    wanted : by energy of both parts together, and cycles
    """
    if near.decisions is None or inner.decisions is None:
        return near, inner
    outer, within = near.decisions.innermost, inner.decisions.outermost
    if outer is None or within is None or len(outer) * len(within) > _MOST_TILES:
        return near, inner
    left = Meeting(outer, within, problem, entered, wanted).left()
    if not all(map(len, left)):
        return None
    return near.having(near.decisions.take(left[0])), inner.having(inner.decisions.take(left[1]))
