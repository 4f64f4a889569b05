"""The quadratic assignment as a linear model, for CP-SAT and for MIP alike.

Hops on a mesh, a ring or a tree are a sum of *cuts*: each cut divides the engines in two, and two engines are
as many hops apart as cuts separate them (on a torus, half as many).  So with ``x[i, e]`` (task i on engine e)
and ``side[i, c] = sum of x[i, e] over the engines on one side of cut c``

    bytes times hops of a pair = bytes * sum over c of |side[i, c] - side[j, c]|
"""

from __future__ import annotations

import numpy as np

from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.linear import LinearStatement
from tilewright.solvers.scheduling.tiled.placing.cuts import hop_cuts
from tilewright.solvers.scheduling.tiled.placing.problem import Ints, RoundPlacing


class PlacingStatement:
    """The linear model of some rounds.

    Parameters
    ----------
    machine : whose hops the problem counts

    The objective is ``scale`` times bytes times hops.
    """

    def __init__(self, problem: RoundPlacing, machine: TiledMachine) -> None:
        self.problem = problem
        self.count, self.engines = (int(side) for side in problem.single.shape)
        self.scale, self.cuts = hop_cuts(machine)
        self.linear = LinearStatement()
        self.choices = [self.linear.choice() for _ in range(self.count * self.engines)]
        self.sides: dict[tuple[int, int], int] = {}
        self._assignment()
        self._costs()

    def choice(self, i: int, e: int) -> int:
        """The column of task i on engine e."""
        return i * self.engines + e

    def _assignment(self) -> None:
        """Every task has an engine; an engine has one task of a round at most."""
        linear = self.linear
        for i in range(self.count):
            linear.row({self.choice(i, e): 1 for e in range(self.engines)}, 1, 1)
        for r in np.unique(self.problem.rounds):
            mine = np.flatnonzero(self.problem.rounds == r).tolist()
            if len(mine) > 1:
                for e in range(self.engines):
                    linear.row({self.choice(i, e): 1 for i in mine}, None, 1)

    def _costs(self) -> None:
        linear = self.linear
        for i in range(self.count):
            for e in range(self.engines):
                cost = int(self.problem.single[i, e])
                if cost:
                    linear.objective[self.choice(i, e)] = cost * self.scale
        for i, j, size in self.problem.pairs:
            for c in range(len(self.cuts)):
                apart = linear.column()
                linear.objective[apart] = size
                for a, b in ((i, j), (j, i)):
                    linear.row({apart: 1, self._side(a, c): -1, self._side(b, c): 1}, 0)

    def _side(self, i: int, c: int) -> int:
        if (i, c) not in self.sides:
            side = self.sides[i, c] = self.linear.column()
            inside = {self.choice(i, int(e)): -1 for e in np.flatnonzero(self.cuts[c])}
            self.linear.row({side: 1} | inside, 0, 0)
        return self.sides[i, c]

    def values_of(self, engine: Ints) -> list[int]:
        """The value of every column for engines of the tasks."""
        values = [0] * len(self.linear.most)
        for i, e in enumerate(engine.tolist()):
            values[self.choice(i, e)] = 1
        for (i, c), side in self.sides.items():
            values[side] = int(self.cuts[c][engine[i]])
        for columns, _, low, high in self.linear.rows:
            if len(columns) == 3 and low == 0 and high is None:
                apart, minuend, subtrahend = columns
                values[apart] = max(values[apart], values[minuend] - values[subtrahend])
        return values

    def engines_of(self, values: list[float] | list[int]) -> Ints:
        """The engine of every task."""
        table = np.array(values[: len(self.choices)]).reshape(self.count, self.engines)
        engines: Ints = table.argmax(axis=1).astype(np.int32)
        return engines
