"""Engines of some rounds from the linear statement's solution, never worse than where they began."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.limits import Limits
from tilewright.solvers.mapping.mip.child import Child
from tilewright.solvers.scheduling.tiled.linear import solve_linear
from tilewright.solvers.scheduling.tiled.placing.problem import Ints
from tilewright.solvers.scheduling.tiled.placing.statement import PlacingStatement


@dataclass(frozen=True, slots=True, eq=False)
class PlacingAnswer:
    """What a solver says of some rounds.

    Parameters
    ----------
    engine : of the window's tasks, never worse than where they began
    cost, bound : bytes times hops; no engines cost less than the bound
    """

    engine: Ints
    cost: int
    bound: int

    @property
    def proven(self) -> bool:
        return self.cost == self.bound


def solve_placing(
    statement: PlacingStatement, begin: Ints, solver: str, limits: Limits, child: Child | None = None
) -> PlacingAnswer:
    """The best engines that a solver finds within limits, and a bound.

    Parameters
    ----------
    begin : engines to begin with
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
