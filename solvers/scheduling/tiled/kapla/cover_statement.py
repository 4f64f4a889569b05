"""The choice of segments as an exact cover: one linear statement for CP-SAT and MIP.

Every segment ``s`` is a choice ``x[s]`` with an energy and cycles.  With ``p[l]`` the place of a layer's
segment in the chain

    sum of x[s] over s with l                     = 1           every layer l
    p[v] - p[u] + sum of x[s] over s with u and v >= 1          every v that reads u
    |p[u] - p[v]|                                 <= n (1 - sum of x[s] over s with u and v)
                                                                neighbours u and v in a segment's row

so that segments have an order in which each comes behind all that it reads.  ``E^a T^b`` is small where
``a log E + b log T`` is.  Each logarithm is replaced by chords between some values (``pieces``), which lie
below it, with one choice per piece: chords of a sum are at most its logarithm.  Sums count whole units,
rounded down, so that no chain has an objective below the statement's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import floor, log

from tilewright.formulation.scheduling.tiled.kapla.segments import members
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.solvers.scheduling.tiled.linear import LinearStatement

UNITS = 1 << 24
"""Units in an energy, or in cycles, such as a good chain has."""

LOGARITHM = 1 << 40
"""By which the statement's objective is larger than a logarithm."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two costs.

    Parameters
    ----------
    costs : per segment, in units
    power : in the objective, above 0
    pieces : rising values, in units, between which the sum's logarithm is replaced by chords; a chain with a
        sum outside them is none of the statement's
    """

    costs: Sequence[int]
    power: float
    pieces: Sequence[int]


@dataclass
class CoverStatement:
    """The linear statement of some segments.

    Parameters
    ----------
    segments : sets of layers as bits; the same set may stand there several times, with other costs
    sides : the costs that count
    """

    network: SetNetwork
    segments: Sequence[int]
    sides: Sequence[Side]
    linear: LinearStatement = field(init=False, default_factory=LinearStatement)
    chosen: list[int] = field(init=False)
    places: list[int] = field(init=False)
    chords: list[list[tuple[int, int]]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        layers = len(self.network)
        self.chosen = [self.linear.choice() for _ in self.segments]
        self.places = [self.linear.choice(layers - 1) for _ in range(layers)]
        self._cover()
        for side in self.sides:
            self._logarithm(side)

    def _cover(self) -> None:
        layers = len(self.network)
        having: list[dict[int, int]] = [{} for _ in range(layers)]
        beside: set[tuple[int, int]] = set()
        for column, segment in zip(self.chosen, self.segments, strict=True):
            row = members(segment)
            beside.update(pairwise(row))
            for layer in row:
                having[layer][column] = 1
        for columns in having:
            self.linear.row(columns, 1, 1)
        for reader, (reads, _) in enumerate(self.network.masks):
            for layer in members(reads):
                both = dict.fromkeys(having[layer].keys() & having[reader].keys(), 1)
                self.linear.row({self.places[reader]: 1, self.places[layer]: -1} | both, 1)
        for first_layer, other in sorted(beside):
            both = dict.fromkeys(having[first_layer].keys() & having[other].keys(), layers)
            for sign in (1, -1):
                step = {self.places[first_layer]: sign, self.places[other]: -sign}
                self.linear.row(step | both, None, layers)

    def _logarithm(self, side: Side) -> None:
        linear = self.linear
        total = {column: cost for column, cost in zip(self.chosen, side.costs, strict=True) if cost}
        chords = []
        for low, high in pairwise(side.pieces):
            here, sum_here = linear.choice(), linear.column(high)
            linear.row({sum_here: 1, here: -low}, 0)
            linear.row({sum_here: 1, here: -high}, None, 0)
            slope, height = chord(low, high, side.power)
            linear.objective[here], linear.objective[sum_here] = height, slope
            total[sum_here] = -1
            chords.append((here, sum_here))
        linear.row({here: 1 for here, _ in chords}, 1, 1)
        linear.row(total, 0, 0)
        self.chords.append(chords)

    def values_of(self, chain: Sequence[int]) -> list[int] | None:
        """All columns for a chain of segments by number; ``None`` for a sum outside the pieces."""
        values = [0] * len(self.linear.most)
        for place, number in enumerate(chain):
            values[self.chosen[number]] = 1
            for layer in members(self.segments[number]):
                values[self.places[layer]] = place
        for side, chords in zip(self.sides, self.chords, strict=True):
            total = sum(side.costs[number] for number in chain)
            for (here, sum_here), (low, high) in zip(chords, pairwise(side.pieces), strict=True):
                if low <= total <= high:
                    values[here], values[sum_here] = 1, total
                    break
            else:
                return None
        return values

    def chain_of(self, values: Sequence[int]) -> list[int]:
        """The segments that are chosen, by number, in their order."""
        chosen = [number for number, column in enumerate(self.chosen) if values[column]]
        return sorted(chosen, key=lambda number: values[self.places[members(self.segments[number])[0]]])


def chord(low: int, high: int, power: float) -> tuple[int, int]:
    """Slope and height of a line that lies nowhere above ``LOGARITHM power log x`` between two values."""
    least, most = (power * log(x) * LOGARITHM for x in (low, high))
    slope = floor((most - least) / max(1, high - low))
    give = 2**-40 * max(abs(least), abs(most), 1.0)  # what floats may have added
    return slope, floor(min(least - slope * low, most - slope * high) - give) - 1
