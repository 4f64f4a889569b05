"""What some levels of a machine cost together: a bound of all mappings, and the tiles of the cheapest ones.

A problem of these levels alone has far fewer rows of tiles than the whole, and no mapping of the whole costs
less than one of the part with its tiles.  Where few of the part's tiles cost less than some key, only
mappings with these have to be searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.boundary_tiles import Tiles, restricted
from tilewright.solvers.mapping.tables.shared_tables import SharedTables
from tilewright.solvers.mapping.tables.stages import Stage
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import Goal, LeastEnergy
from tilewright.solvers.mapping.tree.layout import LegalTables, laid_out

_STEP = 0.1  # by which the first cutoff passes what is known


class LevelsTogether:
    """The problem of some levels.

    Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    search : of the whole
    part : the problem
    edges : boundaries of the part whose tiles are listed, and the same ones of the whole
    stages : in which decisions are made
    look, effort : nodes bounded before a search shows whether it gets above what is known, and at most
    every_order : as for `LegalTables`
    """

    def __init__(
        self,
        search: LayerSearch,
        part: LayerProblem,
        edges: tuple[Sequence[int], Sequence[int]],
        stages: Sequence[Stage],
        look: int,
        effort: int,
        every_order: bool = False,
    ) -> None:
        self.search, self.part, self.edges = search, part, edges
        self._stages, self._look, self._effort = stages, look, effort
        # Every search reads them, each with other rows.
        self._legal = LegalTables(part, search.limits, SharedTables(), every_order)

    def least_key(self) -> float:
        """Lower bound of the key, in pJ and cycles, at most the incumbent's."""
        key, scale = self.search.key, self.search.problem.key_scale
        # What costs as much as the incumbent is of no interest; far fewer nodes are below what is hardly more
        # than is known already.
        most = math.inf if key is None else float(key * scale)
        least, step = float((self.search.bound or 0) * scale), _STEP
        known = least  # the first search shows whether there is more to know
        while True:
            goal = LeastEnergy(min(most, least * (1 + step)) if least else most)
            cutoff = goal.best
            left = self.searched(goal, known=known)
            if left is not None:
                return max(least, min(goal.best, left)) / scale
            if goal.best < cutoff or cutoff >= most:
                return goal.best / scale
            least, step, known = cutoff, 2 * step, 0.0

    def having(self, tiles: Tiles) -> LayerProblem:
        """The whole over some tiles at the listed boundaries, by axis group; groups without any keep none."""
        return over_tiles(self.search.problem, self.edges[1], tiles)

    def tree(self, goal: Goal) -> BestFirst:
        """A search of the part for some goal."""
        limits, tally = self.search.limits, self.search.tally
        legal = self._legal.wanted(goal)
        layout = laid_out(self.part, limits, goal=goal, tally=tally, legal=legal, stages=self._stages)
        return BestFirst(self.search, goal, layout)

    def searched(self, goal: Goal, dives: bool = True, known: float = 0.0) -> float | None:
        """Lower bound, scaled, of what a search for a goal leaves open; ``None`` where that is nothing.

        Infinite where nothing is legal.

        Parameters
        ----------
        known : a lower bound, scaled; the search ends soon where it does not get above
        """
        tree = self.tree(goal)
        if tree.empty:
            return math.inf
        tree.limit(self._look)
        tree.begin(dive=dives)
        left = tree.go_on()
        if left is None or left <= known:
            return left
        tree.limit(self._effort)
        return tree.go_on()


def inner_edges(part: LayerProblem, problem: LayerProblem) -> tuple[range, range]:
    """The boundaries inside the outermost block of a problem of innermost levels, and those of the whole."""
    last = len(part.space.nest.blocks)
    outside = len(problem.space.nest.blocks) - last
    return range(1, last), range(1 + outside, last + outside)


def over_tiles(problem: LayerProblem, edges: Sequence[int], tiles: Tiles) -> LayerProblem:
    """A problem over some tiles at some boundaries, by axis group; groups without any keep none."""
    nest = problem.space.nest
    sizes: dict[Variable, frozenset[int]] = {}
    listed: Tiles = {}
    for group in problem.space.groups:
        places = [nest.boundaries[edge][dim] for dim in group.dims for edge in edges]
        listed[group.name] = tiles.get(group.name, np.zeros((0, len(places)), dtype=np.int64))
        for tile, column in zip(places, listed[group.name].T, strict=True):
            if isinstance(tile, Variable):
                sizes[tile] = sizes.get(tile, frozenset()) | {*column.tolist()}
    narrowed = problem.having(sizes)
    return replace(problem, space=restricted(narrowed.space, edges, listed))
