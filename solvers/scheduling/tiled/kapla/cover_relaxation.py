"""Bounds on covers of a network's layers by segments: linear programs over fractions of segments.

For weights ``w`` of energy against cycles and any prices ``p`` of layers, a chain costs

    sum of c[s] = sum of p[l] + sum over its segments of (c[s] - sum of p[l] over the layers l of s)

The bracket is the *reduced cost* of a segment.  At most ``n`` segments cover ``n`` layers, so
``sum of p + n min(0, least reduced cost)`` is at most the cost of every chain, and that plus a segment's own
reduced cost at most that of every chain with it.  The best prices are the duals of the linear program.  It
contains only segments with a negative reduced cost so far; rounded prices weaken the bound but keep it valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from ortools.linear_solver import pywraplp

from tilewright.formulation.scheduling.tiled.kapla.segments import members
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.solvers.scheduling.tiled.kapla.relaxation import WEIGHTS, corners

UNCOVERED = 1e2
"""Cost of a layer that a linear program leaves uncovered; a good chain costs about 1."""

AT_ONCE = 256
"""Most segments that are added to a linear program between two solutions."""

EXACT = 1e-9
"""Tolerance for negative reduced costs."""

SHARE = 1e-6
"""Least fraction with which a segment counts as part of a linear program's answer."""

NEAR = 0.01
"""Segments with a larger reduced cost are left out of the next program."""


class CoverRelaxation:
    """The linear programs of some segments, solved again as costs become known.

    Parameters
    ----------
    segments : sets of layers as bits
    layers : of the network
    powers : of energy and of cycles in the objective
    """

    def __init__(self, segments: Sequence[int], layers: int, powers: tuple[float, float]) -> None:
        self.layers, self.powers = layers, powers
        self.rows = [members(segment) for segment in segments]
        self._layer = np.array([layer for row in self.rows for layer in row], dtype=np.int64)
        self._begin = np.cumsum([0, *(len(row) for row in self.rows[:-1])])
        self.programs = [_Program(self) for _ in WEIGHTS]
        self.bound = 0.0
        self.least = (0.0, 0.0)
        self.through = np.zeros(len(segments))
        self.used: Int64s = np.zeros(0, dtype=np.int64)

    def solve(
        self, energy: Floats, cycles: Floats, scale: tuple[float, float], stop: Callable[[], bool]
    ) -> bool:
        """Bound chains by the costs of segments; returns whether that was done in time.

        Afterwards ``bound`` is at most the objective of every chain and ``through`` of every chain with each
        segment, ``least`` at most its energy and cycles, and ``used`` are segments of the programs' answers.

        Parameters
        ----------
        energy, cycles : per segment, pJ and cycles; infinite where a segment is excluded
        scale : pJ and cycles by which both are divided in the linear programs
        stop : whether the time is up
        """
        alive = np.isfinite(energy)
        x, y = (np.where(alive, cost, 0.0) / of for cost, of in zip((energy, cycles), scale, strict=True))
        least = np.full((len(x) + 1, len(WEIGHTS)), np.inf)
        used = np.zeros(len(x), dtype=np.bool_)
        for column, (program, weights) in enumerate(zip(self.programs, WEIGHTS, strict=True)):
            if stop():
                return False
            costs = np.where(alive, weights[0] * x + weights[1] * y, np.inf)
            bound, rest = program.solve(alive, costs)
            least[-1, column] = bound
            least[:-1, column] = bound + rest
            used[program.used] = True
        bounds = corners(least, scale, self.powers)
        self.through, self.bound = bounds[:-1], float(bounds[-1])
        self.least = float(least[-1, -1]) * scale[0], float(least[-1, 0]) * scale[1]
        self.used = np.flatnonzero(used)
        return True

    def rest(self, costs: Floats, prices: Floats) -> Floats:
        """The reduced cost of every segment: its cost less the prices of its layers."""
        reduced: Floats = costs - np.add.reduceat(prices[self._layer], self._begin)
        return reduced


class _Program:
    """The linear program of one weight, over the segments that had a negative reduced cost."""

    def __init__(self, relaxation: CoverRelaxation) -> None:
        self.relaxation = relaxation
        self.kept: list[int] = []
        self.prices = np.zeros(relaxation.layers)
        self.used: list[int] = []

    def solve(self, alive: Bools, costs: Floats) -> tuple[float, Floats]:
        """A bound on every chain, and the reduced costs of all segments."""
        program = pywraplp.Solver.CreateSolver("GLOP")
        program.Objective().SetMinimization()
        covered = [program.Constraint(1.0, 1.0) for _ in range(self.relaxation.layers)]

        def add(layers: Sequence[int], cost: float) -> pywraplp.Variable:
            share = program.NumVar(0.0, program.infinity(), "")
            program.Objective().SetCoefficient(share, cost)
            for layer in layers:
                covered[layer].SetCoefficient(share, 1.0)
            return share

        for layer in range(self.relaxation.layers):
            add([layer], UNCOVERED)
        new = [number for number in self.kept if alive[number]]
        there: dict[int, pywraplp.Variable] = {}
        while True:
            for number in new:
                there[number] = add(self.relaxation.rows[number], float(costs[number]))
            solved = program.Solve() == pywraplp.Solver.OPTIMAL
            if solved:  # else the last prices stand, as any prices give a valid bound
                self.prices = np.array([row.dual_value() for row in covered])
                self.used = [column for column, share in there.items() if share.solution_value() > SHARE]
            rest = self.relaxation.rest(costs, self.prices)
            cheap = np.flatnonzero(rest < -EXACT)
            cheapest = (int(column) for column in cheap[np.argsort(rest[cheap])])
            new = [column for column in cheapest if column not in there][:AT_ONCE] if solved else []
            if not new:
                self.kept = [number for number in there if rest[number] <= NEAR]
                return self.prices.sum() + self.relaxation.layers * min(0.0, float(rest.min())), rest
