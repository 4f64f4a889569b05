"""Lower bounds from what the innermost levels of a machine cost together, where nothing may be bypassed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.formulation.mapping.inner_levels import firsts, inner_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.part_costs import least_energy
from tilewright.solvers.mapping.pattern_bounds import BoundedPattern, PatternBounds

EFFORT = 4_000_000  # nodes bounded for the cost of some levels
_SAFE = 1 - 1e-9  # far above the rounding of sums


def inner_keys(
    search: LayerSearch, bounds: PatternBounds, pattern: BoundedPattern, effort: int = EFFORT
) -> Iterator[float]:
    """Lower bounds of the objective key, in pJ and cycles, from two levels together, then three and so on.

    It ends with levels that are too many to be searched.  Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    bounds : of the one pattern that there is
    pattern : what they know of it
    effort : nodes bounded at most for the cost of some levels
    """
    costs, inside = pattern.costs, len(search.problem.engine.levels)
    together = [0.0] * len(costs)  # what the levels looked at cost, for every weight of a cycle
    for first in firsts(search.problem):
        are_exact = True
        for place, known in enumerate(costs):
            together[place] += sum(known[level] for level in range(first, inside))
        inside = first
        for place, known in enumerate(costs):
            rest = together[place] - known[first]
            weight = bounds.weights[place]
            part = inner_problem(search.problem, first, weight, known, rest, bounds.alike)
            answer = least_energy(search, part, effort)
            bounds.innermost.append(answer)
            are_exact &= answer.is_exact
            together[place] = max(together[place], answer.least * _SAFE)
            outside = [sum(other[level] for level in range(1, first)) for other in costs]
            yield float(bounds.least_keys(np.add(together, outside)))
        if not are_exact:
            return
