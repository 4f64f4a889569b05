"""A lower bound from what the outermost levels of a machine cost together, where tensors part there.

Which loops iterate outside each store decides how often tensors are fetched, far more than the sizes of
tiles do, so that is decided first (:mod:`tilewright.formulation.mapping.outer_levels` states the problem).
"""

from __future__ import annotations

import math

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.outer_levels import first_stores, outer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.best_first import BestFirst
from tilewright.solvers.mapping.goals import LeastEnergy
from tilewright.solvers.mapping.layout import laid_out
from tilewright.solvers.mapping.stages import COARSE, Stage, rough_spreads, spreads

_EFFORT = 8_000_000  # nodes bounded at most


def outer_key(search: LayerSearch) -> float:
    """Lower bound of the key, in pJ and cycles, at most the incumbent's; 0 if none is known.

    Raises ``LimitReachedError`` where a limit strikes.
    """
    problem = search.problem
    firsts = first_stores(problem)
    if firsts is None:
        return 0.0
    last = max(firsts.values())
    part = outer_problem(problem, last)
    scale = problem.key_scale
    # What costs as much as the incumbent is of no interest.
    goal = LeastEnergy(math.inf if search.key is None else float(search.key * scale))
    nest = part.space.nest
    positions = {nest.residency[name].positions[level] for name, level in firsts.items()}
    stages = _stages(nest, sorted(positions))
    tree = BestFirst(
        search, goal, laid_out(part, search.limits, goal=goal, tally=search.tally, stages=stages)
    )
    if tree.empty:
        return 0.0
    tree.limit(_EFFORT)
    left = tree.run()
    search.limits.check()  # a search that it ended knows little
    return min(goal.best, math.inf if left is None else left) / scale


def _stages(nest: Nest, stores: list[int]) -> list[Stage]:
    """Which loops iterate, in what order; the arrays; the tiles of the stores, roughly before exactly.

    Tiles of other stores are left open.

    Parameters
    ----------
    stores : boundaries of the first stores of all tensors, outermost first
    """
    outside = nest.temporal[:-1]
    selectors = (nest.blocks[block].selector for block in outside)
    orders = tuple(selector for selector in selectors if isinstance(selector, Variable))
    exact = [Stage("tile", None, (boundary,), ()) for boundary in stores]
    return [
        Stage("loops", None, (), orders, loops=tuple(outside)),
        *rough_spreads(nest, nest.spatial),
        *spreads(nest, nest.spatial),
        *(Stage("rough tile", None, (boundary,), (), coarse=COARSE) for boundary in stores),
        *exact,
    ]
