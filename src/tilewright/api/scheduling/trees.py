"""Resource allocation trees: what no tree of a network costs less than, and what their plans rest on."""

from __future__ import annotations

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.task_prices import priced


def tree_bound(form: ClosedForm) -> float:
    """The least value that any tree may have.

    Parameters
    ----------
    form : the closed form that judges trees
    """
    return tree_bounds(form).value


def mapped(problem: TiledProblem) -> TiledProblem:
    """The problem with the best mapping of each task that a plan has, where tiles are machine files."""
    return priced(problem, Limits())
