"""Bounds on chains of segments with two costs, energy and cycles, under an objective ``E^a T^b``.

For weights ``w``, the least ``w E + (1 - w) T`` over all chains through an edge is two shortest paths and the
edge.  The bounds of all weights leave a convex region of pairs ``(E, T)``.  The objective is quasi-concave,
so its minimum lies at a corner of the region, where the lines of two neighbouring weights meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s

SLOPES = (0.0, 0.125, 0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 4.0, 8.0)
"""Weights of energy against cycles, both in units of the best chain known; energy alone comes last."""

WEIGHTS: Floats = np.array([*((slope, 1.0) for slope in SLOPES), (1.0, 0.0)])
"""Weights of energy and of cycles, shape (weights, 2)."""

ROUNDING = 1e-9
"""Relative slack of a bound for the rounding of sums of floats."""


def corners(least: Floats, scale: tuple[float, float], powers: tuple[float, float]) -> Floats:
    """The least objective of all pairs of energy and cycles in an intersection of half-planes.

    Parameters
    ----------
    least : per case and weight, of shape (cases, weights): the weighted sum is at least that, each cost in
        units of ``scale``; infinite where a case is impossible
    powers : of energy and of cycles in the objective
    """
    a, b = WEIGHTS[:-1], WEIGHTS[1:]
    determinant = a[:, 0] * b[:, 1] - b[:, 0] * a[:, 1]
    here = np.isfinite(least).all(axis=1)
    first, second = least[here, :-1], least[here, 1:]
    x = (first * b[:, 1] - second * a[:, 1]) / determinant
    y = (a[:, 0] * second - b[:, 0] * first) / determinant
    x = np.maximum(x, least[here, -1:]) * scale[0]
    y = np.maximum(y, least[here, :1]) * scale[1]
    corner_values = np.full(len(least), np.inf)
    corner_values[here] = (x ** powers[0] * y ** powers[1]).min(axis=1) * (1 - ROUNDING)
    return corner_values


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of an acyclic graph, sorted by where they begin; nodes are numbered in a topological order.

    Parameters
    ----------
    tail, head : nodes
    nodes : how many there are; chains lead from the first to the last
    """

    tail: Int64s
    head: Int64s
    nodes: int


class Relaxation:
    """Bounds of chains through edges for given costs.

    Parameters
    ----------
    energy, cycles : of every edge, or what they are at least; infinite where an edge is gone
    scale : an energy and cycles such as a good chain has
    powers : of energy and of cycles in the objective
    """

    def __init__(
        self,
        edges: Edges,
        energy: Floats,
        cycles: Floats,
        scale: tuple[float, float],
        powers: tuple[float, float],
    ) -> None:
        self.edges, self.scale, self.powers = edges, scale, powers
        x, y = energy / scale[0], cycles / scale[1]
        alive = np.isfinite(x)
        self.costs = np.full((len(x), len(WEIGHTS)), np.inf)
        self.costs[alive] = np.outer(x[alive], WEIGHTS[:, 0]) + np.outer(y[alive], WEIGHTS[:, 1])
        cuts = np.searchsorted(edges.tail, np.arange(edges.nodes + 1))
        self.to_end = np.full((edges.nodes, len(WEIGHTS)), np.inf)
        self.from_start = np.full((edges.nodes, len(WEIGHTS)), np.inf)
        self.to_end[-1], self.from_start[0] = 0.0, 0.0
        self._cuts = cuts
        for node in range(edges.nodes - 2, -1, -1):
            span = slice(cuts[node], cuts[node + 1])
            if span.start < span.stop:
                self.to_end[node] = (self.costs[span] + self.to_end[edges.head[span]]).min(axis=0)
        for node in range(edges.nodes - 1):
            span = slice(cuts[node], cuts[node + 1])
            if span.start < span.stop:
                np.minimum.at(self.from_start, edges.head[span], self.from_start[node] + self.costs[span])

    def bound(self) -> float:
        """The least value that any chain can have."""
        return float(corners(self.to_end[:1], self.scale, self.powers)[0])

    def through(self) -> Floats:
        """Per edge, the least value that a chain through it can have."""
        least = self.from_start[self.edges.tail] + self.costs + self.to_end[self.edges.head]
        return corners(least, self.scale, self.powers)

    def chains(self) -> list[list[int]]:
        """For every weight, the edges of a best chain; empty where there is none."""
        chains = []
        if not np.isfinite(self.to_end[0, 0]):
            return []
        for column in range(len(WEIGHTS)):
            chain, node = [], 0
            while node < self.edges.nodes - 1:
                first, last = self._cuts[node], self._cuts[node + 1]
                rest = self.costs[first:last, column] + self.to_end[self.edges.head[first:last], column]
                edge = int(first + rest.argmin())
                chain.append(edge)
                node = int(self.edges.head[edge])
            chains.append(chain)
        return chains
