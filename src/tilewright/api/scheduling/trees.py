"""Resource allocation trees: what no tree of a network costs less than."""

from __future__ import annotations

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds


def tree_bound(form: ClosedForm) -> float:
    """The least value that any tree may have.

    Parameters
    ----------
    form : the closed form that judges trees
    """
    return tree_bounds(form).value
