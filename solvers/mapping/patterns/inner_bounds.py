"""What the innermost levels of a machine cost together, where nothing may be bypassed.

Their tiles decide most of what a mapping costs, and most of its cycles.  So mappings with the tiles that are
cheapest there are good ones, and where all tiles that may be better than the best known mapping are few, no
others need to be searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tilewright.formulation.limits import TablesTooLargeError
from tilewright.formulation.mapping.nests.exchange import counts_places_alike
from tilewright.formulation.mapping.parts.inner_levels import firsts, inner_key_problem, inner_problem
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.levels.levels_together import LevelsTogether, inner_edges
from tilewright.solvers.mapping.patterns.part_costs import least_energy
from tilewright.solvers.mapping.patterns.pattern_bounds import BoundedPattern, PatternBounds
from tilewright.solvers.mapping.tables.stages import Stage, stages_of
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.listed_tiles import CheapestTiles

EFFORT, _TILES_EFFORT = 4_000_000, 100_000_000  # nodes bounded for what some levels cost, and for tiles
_MOST, _MOST_ROWS = 20_000, 300_000  # decisions that are listed, and rows of tiles that are tabulated
_BETTER, _NEAR = 0.995, 1.002  # of the least key of those: what is clearly cheaper, and what is as cheap
_SAFE = 1 - 1e-9  # far above the rounding of sums
_SOURCE = "inner levels"


class InnerLevels(LevelsTogether):
    """The problem of some level and all inside it.

    Raises ``LimitReachedError`` where a limit strikes, `TablesTooLargeError` where tiles are too many.

    Parameters
    ----------
    search : of the whole
    first : the level, of :func:`~tilewright.formulation.mapping.parts.inner_levels.firsts`
    bounds : know what each level costs at least

    Attributes
    ----------
    others : lower bound of the keys, in pJ and cycles, of mappings that are better than the incumbent and
        have none of the tiles that were listed; infinite where there are none
    """

    def __init__(self, search: LayerSearch, first: int, bounds: PatternBounds) -> None:
        outside = bounds.outside(first)
        part, chosen = inner_key_problem(search.problem, first, bounds.known().parts, outside)
        if part.space.rows > _MOST_ROWS:
            raise TablesTooLargeError(f"{part.space.rows:,} rows of tiles take longer than a part may")
        edges = inner_edges(part, search.problem)
        counts_cycles = bool(search.problem.objective.key_powers[1])
        space = replace(part.space, selectors=part.space.selectors[len(chosen) :])
        stages = stages_of(space, spread_first=counts_cycles, inner_first=not counts_cycles)
        if chosen:
            stages = [Stage("levels outside", None, (), chosen), *stages]
        super().__init__(search, part, edges, stages, _TILES_EFFORT, _TILES_EFFORT)
        goal = Minimum(search, _SOURCE)
        # What changes places in the part does so in the whole: tiles outside are as many in both.
        goal.once = counts_places_alike(search.problem)
        self._listed = CheapestTiles(goal, part, edges[0], _MOST)
        self.others = 0.0

    def least_key(self, on_better: Callable[[LayerProblem], object] = lambda _part: None) -> float:
        """Lower bound of the keys, in pJ and cycles, of all mappings that are better than the incumbent.

        Infinite where there are none.

        Parameters
        ----------
        on_better : called with the whole over the cheapest tiles so far, whenever these are clearly cheaper
            than before; what becomes the incumbent then leaves less to be searched
        """
        listed, known = self._listed, math.inf

        def is_better() -> bool:
            return listed.least < known * _BETTER

        tree = self.tree(listed)
        left: float | None = None
        if not tree.empty:
            tree.limit(_TILES_EFFORT)
            tree.begin()
            left = tree.go_on(over=is_better)
            while is_better():
                known = listed.least
                on_better(self.having(listed.tiles(known * _NEAR)))
                left = tree.go_on(over=is_better)
        scale = self.search.problem.key_scale
        self.others = min(listed.below, math.inf if left is None else left) / scale
        return min(listed.least / scale, self.others)

    def below(self, key: float) -> LayerProblem:
        """The whole over the tiles with which mappings may have some key at most, as :meth:`least_key` found.

        Parameters
        ----------
        key : in pJ and cycles, at most :attr:`others`
        """
        return self.having(self._listed.tiles(key * float(self.search.problem.key_scale)))


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
