"""Searches of parts of a machine: what they cost at least, in steps that each tell a lower bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.tree.goals import BAND, Goal, LeastEnergy
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.solvers.mapping.tree.tree import Tree

_LITTLE_EFFORT, _EFFORT = 200_000, 20_000_000  # nodes bounded in looking for the least energy of a part
_STEP = 0.02  # by which a first cutoff passes what is known, where little effort left something open
_HARDLY = 0.01  # relative, by which a value is hardly more than its lower bound
_SLACK = 0.003  # relative, in the least values of parts where tiles need not divide: many cost hardly more


class PartSearches:
    """The searches of the parts of one machine.  All raise ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    tables : what searches of parts read

    Attributes
    ----------
    objective : of the whole
    best : what a little effort found in the parts that were searched last
    """

    def __init__(self, search: LayerSearch, tables: PartTables) -> None:
        self._search, self._tables = search, tables
        self._perfect = search.problem.space.nest.perfect
        self.objective = search.problem.objective
        self.best = LeastEnergy()

    def least(self, parts: Iterable[LayerProblem], known_least: int = 0) -> Iterator[int]:
        """What every mapping spends in a part of the machine at least, of what the parts minimise.

        What little effort leaves open is searched for what costs hardly more than is known already, then for
        what costs a little more, and so on: far fewer nodes are below such a cutoff than below the best value
        found.  Each step tells a lower bound, the last one the highest.

        Parameters
        ----------
        known_least : lower bound; where one of the first values found is hardly more, nothing is searched
        """
        goal = LeastEnergy(slack=0.0 if self._perfect else _SLACK)
        trees: list[Tree] = []
        for part in parts:
            tree = self.tree(goal, part, _LITTLE_EFFORT)
            if tree is not None:
                tree.begin()  # the best of all first mappings serves every search
                trees.append(tree)
                if goal.best <= known_least * (1 + _HARDLY):
                    return
        for tree in trees:
            tree.go_on()
        self.best = goal
        known = [(tree.layout, tree.least) for tree in trees]
        least = min([goal.enough, *(own for _, own in known)])
        yield 0 if math.isinf(least) else rounded_down(least)
        step = _STEP
        while 0 < least < goal.enough:
            self._search.limits.check()
            cutoff, step = min(goal.enough, least * (1 + step)), 2 * step
            below = LeastEnergy(cutoff)
            known = [(layout, self._least_below(below, layout, own)) for layout, own in known]
            risen = min([below.best, *(own for _, own in known)])
            least = max(least, risen)
            yield rounded_down(least)
            if risen < cutoff:  # the least value, or what effort did not suffice to pass
                break

    def _least_below(self, goal: LeastEnergy, layout: Layout, known: float) -> float:
        """What a part costs at least, or the goal's value where it is not below that.

        Parameters
        ----------
        known : lower bound
        """
        if known >= goal.enough:
            return known
        tree = Tree(self._search, goal, layout=layout)
        tree.limit(_EFFORT)
        tree.begin(dive=False)
        tree.go_on()
        return max(known, min(tree.least, goal.enough))

    def tree(self, goal: Goal, part: LayerProblem, most: int) -> Tree | None:
        """A search of a part that bounds so many nodes at most; ``None`` where nothing is legal."""
        self._search.limits.check()
        tree = Tree(self._search, goal, layout=self._tables.layout(part, self._search, goal))
        if tree.empty:
            return None
        tree.limit(most)
        return tree


def rounded_down(energy: float) -> int:
    """A whole number of units that is surely no more."""
    return int(energy if energy < EXACT_LIMIT else energy * (1 - BAND))
