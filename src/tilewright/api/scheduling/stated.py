"""Problems on tiled machines that are stated already: one search at a time, and the least cost of a plan."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledResult
from tilewright.solvers.scheduling.tiled import joint_bounds
from tilewright.solvers.scheduling.tiled.running import claimed_space, plan_run, prepare


def prepare_planning(method: str) -> None:
    """Compile and load what a method needs, before a clock starts."""
    prepare(method)


def searched_plan(problem: TiledProblem, method: str, limits: Limits) -> tuple[TiledResult, str]:
    """What a method finds within limits, and over which plans its bound holds; empty for all.

    Raises
    ------
    InputError : for an unknown method
    """
    run = plan_run(lambda: problem, method, limits)
    return run.run(), claimed_space(run)


def least_key(problem: TiledProblem) -> Fraction:
    """The key below which no plan lies, whatever its sizes of atoms."""
    return joint_bounds.least_key(problem)
