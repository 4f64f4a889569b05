"""Trees that decide outer tiles first, and know of each what is inside at least.

Where tensors part at their first stores, the tiles there decide most of what a mapping costs, which no order
of levels sees.  Neither do intervals see what scratchpads of single tensors cost together: each keeps its own
tensor in place by loops that move the others'.
"""

from __future__ import annotations

from tilewright.formulation.mapping.parts.outer_levels import (
    edges_of,
    first_levels,
    first_stores,
    knowing_inside,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.tables.stages import has_scratchpads, last_array
from tilewright.solvers.mapping.tree.layout import Deciding, orders_of_decisions


def seen_from_outside(problem: LayerProblem, behind: float = 0.0) -> tuple[LayerProblem, Deciding] | None:
    """The problem knowing what is inside, and its order of decisions; ``None`` where others are better.

    Parameters
    ----------
    behind : as for :func:`~tilewright.formulation.mapping.parts.outer_levels.knowing_inside`, around
        scratchpads
    """
    energy, cycles = problem.objective.key_powers
    if not energy:
        return None
    if not cycles and has_scratchpads(problem.engine) and first_levels(problem) is not None:
        return _around_array(problem, behind)
    firsts = first_stores(problem)
    if firsts is None:
        return None
    last = max(firsts.values())
    # Where cycles count and one level is left, spatial splits decide as much.
    if cycles and len(problem.engine.levels) - 1 - last <= 1:
        return None
    return knowing_inside(problem, last), Deciding(stores=tuple(edges_of(problem, firsts)))


def ways_of_deciding(problem: LayerProblem) -> list[tuple[LayerProblem, Deciding]]:
    """The orders of decisions of which trees may take turns, the most promising first, each with its problem.

    Problems differ in what intervals know; mappings and their costs are the same.
    """
    known = seen_from_outside(problem)
    if known is not None:
        return [known]
    ways = [(problem, deciding) for deciding in orders_of_decisions(problem)]
    if problem.objective.key_powers == (1, 0) and problem.space.nest.spatial and first_levels(problem):
        ways.append(_around_array(problem))
    return ways


def deciding_around_array(problem: LayerProblem) -> Deciding:
    """Tiles outside an array and the next one come first."""
    nest, end = problem.space.nest, last_array(problem.engine) + 1
    return Deciding(stores=tuple(block for block in nest.temporal if 0 < nest.blocks[block].level <= end))


def _around_array(problem: LayerProblem, behind: float = 0.0) -> tuple[LayerProblem, Deciding]:
    """The problem knowing what is inside every tile, and its order of decisions."""
    return knowing_inside(problem, 1, behind), deciding_around_array(problem)
