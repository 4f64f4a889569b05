"""The quadratic assignment as a linear model, for CP-SAT and for MIP alike.

Hops on a mesh, a ring or a tree are a sum of *cuts*: each cut divides the engines in two, and two engines are
as many hops apart as cuts separate them (on a torus, half as many).  So with ``x[i, e]`` (task i on engine e)
and ``side[i, c] = sum of x[i, e] over the engines on one side of cut c``

    bytes times hops of a pair = bytes * sum over c of |side[i, c] - side[j, c]|
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.placing.cuts import hop_cuts
from tilewright.solvers.scheduling.tiled.placing.problem import Ints, RoundPlacing


@dataclass(eq=False)
class LinearStatement:
    """Columns between 0 and 1, the first ``whole`` of which are choices; rows; what is to be small.

    Parameters
    ----------
    rows : (columns, coefficients, least, most)
    objective : coefficient per column
    scale : by which the objective is larger than bytes times hops
    """

    whole: int = 0
    columns: int = 0
    rows: list[tuple[list[int], list[int], int | None, int | None]] = field(default_factory=list)
    objective: dict[int, int] = field(default_factory=dict)
    scale: int = 1


class PlacingStatement:
    """The linear model of some rounds.

    Parameters
    ----------
    machine : whose hops the problem counts
    """

    def __init__(self, problem: RoundPlacing, machine: TiledMachine) -> None:
        self.problem = problem
        self.count, self.engines = (int(one) for one in problem.single.shape)
        self.scale, self.cuts = hop_cuts(machine)
        self.linear = LinearStatement(self.count * self.engines, self.count * self.engines, scale=self.scale)
        self.sides: dict[tuple[int, int], int] = {}
        self._assignment()
        self._costs()

    def choice(self, i: int, e: int) -> int:
        """The column of task i on engine e."""
        return i * self.engines + e

    def _assignment(self) -> None:
        """Every task has an engine; an engine has one task of a round at most."""
        rows = self.linear.rows
        for i in range(self.count):
            rows.append(([self.choice(i, e) for e in range(self.engines)], [1] * self.engines, 1, 1))
        for r in np.unique(self.problem.rounds):
            mine = np.flatnonzero(self.problem.rounds == r).tolist()
            if len(mine) > 1:
                for e in range(self.engines):
                    rows.append(([self.choice(i, e) for i in mine], [1] * len(mine), None, 1))

    def _costs(self) -> None:
        linear = self.linear
        for i in range(self.count):
            for e in range(self.engines):
                cost = int(self.problem.single[i, e])
                if cost:
                    linear.objective[self.choice(i, e)] = cost * self.scale
        for i, j, size in self.problem.pairs:
            for c in range(len(self.cuts)):
                apart = self._column()
                linear.objective[apart] = size
                for a, b in ((i, j), (j, i)):
                    linear.rows.append(([apart, self._side(a, c), self._side(b, c)], [1, -1, 1], 0, None))

    def _side(self, i: int, c: int) -> int:
        if (i, c) not in self.sides:
            side = self.sides[i, c] = self._column()
            inside = [self.choice(i, int(e)) for e in np.flatnonzero(self.cuts[c])]
            self.linear.rows.append(([side, *inside], [1, *[-1] * len(inside)], 0, 0))
        return self.sides[i, c]

    def _column(self) -> int:
        self.linear.columns += 1
        return self.linear.columns - 1

    def values_of(self, engine: Ints) -> list[int]:
        """The value of every column for engines of the tasks."""
        values = [0] * self.linear.columns
        for i, e in enumerate(engine.tolist()):
            values[self.choice(i, e)] = 1
        for (i, c), side in self.sides.items():
            values[side] = int(self.cuts[c][engine[i]])
        apart = self.linear.whole
        for columns, _, low, high in self.linear.rows:
            if len(columns) == 3 and low == 0 and high is None:
                apart, one, other = columns
                values[apart] = max(values[apart], values[one] - values[other])
        return values

    def engines_of(self, values: list[float] | list[int]) -> Ints:
        """The engine of every task."""
        table = np.array(values[: self.linear.whole]).reshape(self.count, self.engines)
        found: Ints = table.argmax(axis=1).astype(np.int32)
        return found
