"""Columns: what one layer can do below some loops and homes, as a cost and the room that it takes from all.

A column is a way of every tensor from outside with a mapping for every size of turn.  Those that cost and
take no less than another one, in the layer's own turns and in those of others, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.solvers.mapping.fused.columns.fronts import Front, Fronts, Starts, undominated
from tilewright.solvers.mapping.fused.columns.space import MOST_COLUMNS, TooLargeError
from tilewright.solvers.mapping.fused.columns.tree_rows import Kind, LayerRow, TreeRows, Way
from tilewright.workloads.mapping.operator import Role

LARGEST = 2**60
"""Energies, in scaled units, that a model counts with."""


@dataclass(frozen=True)
class Column:
    """One thing that a layer can do.

    Parameters
    ----------
    cost : in units of ``1 / scale`` pJ
    takes : per layer of the group, bits per place that are taken in that layer's turns
    ways : of tensors from outside
    picks : per kind of turns, which mapping of its front
    starts : where tensors of the turns start
    """

    cost: int
    takes: tuple[tuple[str, tuple[int, ...]], ...]
    ways: tuple[Way, ...]
    picks: tuple[int, ...]
    starts: Starts


class Columns:
    """Columns of the layers of one group; those of equal rows are made once.

    Parameters
    ----------
    rows, fronts : of the group, and of its turns
    scale : by which every pJ is a whole number
    """

    def __init__(self, rows: TreeRows, fronts: Fronts, scale: int) -> None:
        self.rows, self.fronts, self.scale = rows, fronts, scale
        self.number = 0
        self._known: dict[int, list[Column]] = {}

    def of(self, row: LayerRow) -> list[Column]:
        """All columns of a row, the cheapest first; raises ``TooLargeError``."""
        if id(row) not in self._known:
            self._known[id(row)] = self._made(row)
            self.number += len(self._known[id(row)])
            if self.number > MOST_COLUMNS:
                raise TooLargeError(f"more than {MOST_COLUMNS:,} columns")
        return self._known[id(row)]

    def _made(self, row: LayerRow) -> list[Column]:
        made = [column for ways, starts in self._combined(row) for column in self._below(row, ways, starts)]
        if not made:
            return []
        names = self.rows.group.names
        table = [
            [column.cost, *(bits for name in names for bits in dict(column.takes).get(name, self._nothing))]
            for column in made
        ]
        return [made[at] for at in undominated(np.array(table, np.int64))]

    @property
    def _nothing(self) -> tuple[int, ...]:
        return (0,) * len(self.rows.rooms)

    def _combined(self, row: LayerRow) -> Iterator[tuple[tuple[Way, ...], Starts]]:
        """Ways of all tensors from outside by which tensors of one role start in one level."""
        operator = self.rows.group.operator(row.layer)
        outside = [t for t in operator.tensors if not self.rows.is_passed(row.layer, t)]
        for ways in product(*row.ways):
            starts: dict[Role, int] = {}
            own = [(t.role, way.start) for t, way in zip(outside, ways, strict=True)]
            if all(starts.setdefault(role, level) == level for role, level in (*row.homes, *own)):
                yield ways, tuple(sorted((role, level) for role, level in starts.items() if level))

    def _below(self, row: LayerRow, ways: tuple[Way, ...], starts: Starts) -> Iterator[Column]:
        """Columns with some ways, one for every useful choice of mappings."""
        takes: dict[str, list[int]] = {row.layer: [*self._nothing]}
        for way in ways:
            for layer in way.around:
                own = takes.setdefault(layer, [*self._nothing])
                own[:] = [a + b for a, b in zip(own, way.bits, strict=True)]
        if not all(self.rows.fits(own) for own in takes.values()):
            return
        traffic = self.scaled(sum((way.traffic for way in ways), Fraction(0)))
        residents = np.array(takes[row.layer], np.int64)
        for cost, bits, picks in zip(*self._turns(row.kinds, starts), strict=True):
            mine = tuple((residents + bits).tolist())
            if self.rows.fits(mine):
                others = tuple((n, tuple(own)) for n, own in takes.items() if n != row.layer)
                yield Column(traffic + int(cost), ((row.layer, mine), *others), ways, picks, starts)

    def _turns(self, kinds: tuple[Kind, ...], starts: Starts) -> tuple[Int64s, Int64s, list[tuple[int, ...]]]:
        """Of mappings of all kinds of turns: costs, the most room that one needs, and which they are."""
        costs, bits = np.zeros(1, np.int64), np.zeros((1, len(self.rows.rooms)), np.int64)
        picks: list[tuple[int, ...]] = [()]
        for kind in kinds:
            front = self.front(kind, starts)
            numbers = np.array([kind.first, kind.more], np.int64)
            if int(front.energies.max(initial=0)) * int(numbers.sum()) > LARGEST:
                raise TooLargeError("energies beyond 2**60 are not listed")
            own = front.energies @ numbers
            costs = (costs[:, None] + own[None, :]).ravel()
            bits = np.maximum(bits[:, None, :], front.bits[None, :, :]).reshape(len(costs), -1)
            both = [(*earlier, at) for earlier in picks for at in range(len(own))]
            kept = undominated(np.column_stack([costs, bits]))
            costs, bits, picks = costs[kept], bits[kept], [both[at] for at in kept]
        return costs, bits, picks

    def front(self, kind: Kind, starts: Starts) -> Front:
        """Mappings of turns of one kind."""
        return self.fronts.of(kind.operator, starts, kind.more > 0)

    def scaled(self, energy: Fraction) -> int:
        """An energy as a whole number."""
        number = energy * self.scale
        assert number.denominator == 1
        return int(number)
