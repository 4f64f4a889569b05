"""The quadratic assignment as a linear model, for CP-SAT and for MIP alike.

Hops on a mesh, a ring or a tree are distances along lines (`hop_positions`).  With ``x[i, e]`` (task i on
engine e) and ``at[i, p] = sum over e of p[e] * x[i, e]`` for the positions p of weight w

    bytes times hops of a pair = bytes * sum over p of w * |at[i, p] - at[j, p]|, divided by the scale
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.mapping.mip.child import Child
from tilewright.solvers.scheduling.tiled.linear import LinearStatement, solve_linear
from tilewright.solvers.scheduling.tiled.placing.positions import hop_positions
from tilewright.solvers.scheduling.tiled.placing.problem import RoundPlacing


class PlacingStatement:
    """The linear model of some rounds.

    Parameters
    ----------
    problem : whose engines are sought
    machine : whose hops the problem counts

    The objective is ``scale`` times bytes times hops.
    """

    def __init__(self, problem: RoundPlacing, machine: TiledMachine) -> None:
        hops = hop_positions(machine)
        self.problem = problem
        self.scale, self.terms = hops.scale, hops.terms
        self.linear = LinearStatement()
        # the column of each task on each engine, -1 where it may not run
        self.choices = np.full(problem.allowed.shape, -1)
        for i, e in np.argwhere(problem.allowed).tolist():
            self.choices[i, e] = self.linear.choice()
        self._at: dict[tuple[int, int], int] = {}
        self._apart: list[tuple[int, int, int]] = []
        self._assignment()
        self._costs()

    def _assignment(self) -> None:
        """Every task has an engine; an engine has one task of a round at most."""
        for row in self.choices:
            self.linear.row(dict.fromkeys(row[row >= 0].tolist(), 1), 1, 1)
        for r in np.unique(self.problem.rounds):
            columns = self.choices[self.problem.rounds == r]
            # as many engines as tasks: each has one, which solvers know an exchange by
            full = np.count_nonzero((columns >= 0).any(axis=0)) == len(columns)
            for column in columns.T:
                rivals = column[column >= 0].tolist()
                if len(rivals) > 1:
                    self.linear.row(dict.fromkeys(rivals, 1), 1 if full else None, 1)

    def _costs(self) -> None:
        linear, problem = self.linear, self.problem
        for i, e in np.argwhere(problem.allowed & (problem.single != 0)).tolist():
            linear.objective[int(self.choices[i, e])] = int(problem.single[i, e]) * self.scale
        for i, j, size in problem.pairs.rows():
            for p, (weight, place) in enumerate(self.terms):
                apart, a, b = linear.column(int(place.max())), self._position(i, p), self._position(j, p)
                linear.objective[apart] = size * weight
                linear.row({apart: 1, a: -1, b: 1}, 0)
                linear.row({apart: 1, a: 1, b: -1}, 0)
                self._apart.append((apart, a, b))

    def _position(self, i: int, p: int) -> int:
        """The column of where task i lies on a line."""
        if (i, p) not in self._at:
            place = self.terms[p][1]
            at = self._at[i, p] = self.linear.column(int(place.max()))
            engines = np.flatnonzero(self.problem.allowed[i] & (place > 0)).tolist()
            self.linear.row({at: 1} | {int(self.choices[i, e]): -int(place[e]) for e in engines}, 0, 0)
        return self._at[i, p]

    def values_of(self, engine: Int32s) -> list[int]:
        """The value of every column for engines of the tasks."""
        values = [0] * len(self.linear.most)
        for i, e in enumerate(engine.tolist()):
            values[int(self.choices[i, e])] = 1
        for (i, p), at in self._at.items():
            values[at] = int(self.terms[p][1][engine[i]])
        for apart, a, b in self._apart:
            values[apart] = abs(values[a] - values[b])
        return values

    def engines_of(self, values: list[int]) -> Int32s:
        """The engine of every task."""
        chosen = np.where(self.problem.allowed, np.array(values)[self.choices], -1)
        engines: Int32s = chosen.argmax(axis=1).astype(np.int32)
        return engines


@dataclass(frozen=True, slots=True, eq=False)
class PlacingAnswer:
    """What a solver says of some rounds.

    Parameters
    ----------
    engine : of the window's tasks, never worse than where they began
    cost, bound : bytes times hops; no engines cost less than the bound
    """

    engine: Int32s
    cost: int
    bound: int


def solve_placing(
    statement: PlacingStatement, begin: Int32s, solver: str, limits: Limits, child: Child | None = None
) -> PlacingAnswer:
    """The best engines that a solver finds within limits, and a bound.

    Parameters
    ----------
    statement : of some rounds
    begin : engine of each of their tasks to begin with
    solver : ``cpsat``, ``highs`` or ``cbc``
    limits : of this call
    child : the running worker of ``highs`` or ``cbc``

    Raises
    ------
    ChildError : where a worker dies
    """
    answer = solve_linear(statement.linear, statement.values_of(begin), solver, limits, child)
    engine = begin if answer.values is None else statement.engines_of(answer.values)
    best = min((begin, engine), key=statement.problem.cost)
    bound = 0 if answer.bound is None else -(-answer.bound // statement.scale)
    return PlacingAnswer(best, statement.problem.cost(best), max(0, bound))
