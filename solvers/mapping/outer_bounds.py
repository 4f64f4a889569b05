"""What the outermost levels of a machine cost together, where tensors part there.

Which loops iterate outside each store decides how often tensors are fetched, far more than the sizes of
tiles do, so that is decided first (:mod:`tilewright.formulation.mapping.outer_levels` states the problem).
Its least key bounds all mappings; where few of its tiles cost less than some key, only mappings with these
have to be searched.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.formulation.mapping.outer_levels import edges_of, first_stores, outer_problem
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.segment_parts import restricted, tiles_at
from tilewright.solvers.mapping.best_first import BestFirst
from tilewright.solvers.mapping.goals import Below, Goal, LeastEnergy, Minimum
from tilewright.solvers.mapping.layout import LegalTables, laid_out
from tilewright.solvers.mapping.listed_tiles import ListedTiles
from tilewright.solvers.mapping.shared_tables import SharedTables
from tilewright.solvers.mapping.stages import outer_stages

_EFFORT = 8_000_000  # nodes bounded at most in one search
_LOOK = 1_000_000  # nodes bounded before a search shows whether it gets above what is known
_MOST = 20_000  # decisions that are listed
_STEP = 0.1  # by which the first cutoff passes what is known
_SOURCE = "outer levels"


class OuterLevels:
    """The problem of the outermost levels, up to the last one that some tensor reaches first.

    Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    search : of the whole

    Attributes
    ----------
    exist : whether there is such a problem
    """

    def __init__(self, search: LayerSearch) -> None:
        self._search = search
        firsts = first_stores(search.problem)
        self.exist = firsts is not None
        if firsts is not None:
            self._part = outer_problem(search.problem, max(firsts.values()))
            self._nest = self._part.space.nest
            self._edges = edges_of(self._part, firsts)
            # Every search reads them, each with other rows.
            self._legal = LegalTables(self._part, search.limits, SharedTables())

    def least_key(self) -> float:
        """Lower bound of the key, in pJ and cycles, at most the incumbent's; 0 if none is known.

        Raises ``LimitReachedError`` where a limit strikes.
        """
        if not self.exist:
            return 0.0
        key, scale = self._search.key, self._search.problem.key_scale
        # What costs as much as the incumbent is of no interest; far fewer nodes are below what is hardly more
        # than is known already.
        most = math.inf if key is None else float(key * scale)
        least, step = float((self._search.bound or 0) * scale), _STEP
        known = least  # the first search shows whether there is more to know
        while True:
            goal = LeastEnergy(min(most, least * (1 + step)) if least else most)
            cutoff = goal.best
            left = self._searched(goal, dives=True, known=known)
            if left is not None:
                return max(least, min(goal.best, left)) / scale
            if goal.best < cutoff or cutoff >= most:
                return goal.best / scale
            least, step, known = cutoff, 2 * step, 0.0

    def below(self, key: float) -> LayerProblem | None:
        """The whole over the tiles of first stores with which mappings may have less than some key.

        ``None`` if they are too many to be listed.  Raises ``LimitReachedError`` where a limit strikes.

        Parameters
        ----------
        key : in pJ and cycles; what the incumbent leaves to gain counts as well
        """
        problem = self._search.problem
        goal = Below(Minimum(self._search, _SOURCE), key * float(problem.key_scale))
        listed = ListedTiles(goal, self._part, self._edges, _MOST)
        if self._searched(listed, dives=False) is not None or listed.are_too_many:
            return None
        none = {group.name: tiles_at(problem.space, self._edges, group)[:0] for group in problem.space.groups}
        return replace(problem, space=restricted(problem.space, self._edges, none | listed.tiles()))

    def _searched(self, goal: Goal, dives: bool, known: float = 0.0) -> float | None:
        """Lower bound, scaled, of what a search for a goal leaves open; ``None`` where that is nothing.

        Infinite where nothing is legal.

        Parameters
        ----------
        known : a lower bound, scaled; the search ends soon where it does not get above
        """
        stages = outer_stages(self._nest, self._edges)
        limits, tally = self._search.limits, self._search.tally
        legal = self._legal.wanted(goal)
        layout = laid_out(self._part, limits, goal=goal, tally=tally, legal=legal, stages=stages)
        tree = BestFirst(self._search, goal, layout)
        if tree.empty:
            return math.inf
        tree.limit(_LOOK)
        tree.begin(dive=dives)
        left = tree.go_on()
        if left is None or left <= known:
            return left
        tree.limit(_EFFORT)
        return tree.go_on()
