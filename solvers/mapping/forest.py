"""Branch and bound over uneven storage: one tree per arrangement, one incumbent for all of them.

The even tree comes first.  Where parts of the machine bound many arrangements at once
(:mod:`tilewright.solvers.mapping.segment_bounds`), those that cannot beat the incumbent are never stated, and
the most promising ones come first.  Each tree dives for a mapping, and keeps open what may still beat the
best one found in any.  Then the tree with the least bound goes on until another one's is less, so the bound
of the whole is always that of the cheapest open part of any tree, or of what has not been stated yet.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import count, islice

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.arrangements import Arrangement, Reduction
from tilewright.formulation.mapping.compulsory import least_key
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.segment_parts import has_parts, storages
from tilewright.solvers.mapping.goals import BAND, Goal
from tilewright.solvers.mapping.tree import Tree

_AHEAD = 0.02  # by which a tree's bound may pass the others' before they go on
_FIRST = 3  # trees, of those whose bounds are known, after which a better incumbent begins the bounds anew
_BETTER = Fraction(999, 1000)  # of its key
_SHARE = 0.6  # of the time that is left, for the optimum of even storage


class Forest:
    """The trees of one search over all arrangements of storage.

    Parameters
    ----------
    on_hard : called once where the even part, or else another one, does not end soon
    """

    def __init__(self, search: LayerSearch, goal: Goal, on_hard: Callable[[], None] = lambda: None) -> None:
        self._search = search
        self._goal = goal
        self._on_hard = on_hard
        self._tick = count()
        self._open: list[tuple[float, int, Tree, float]] = []
        self._unstated = 0.0  # lower bound of what has not been stated; infinite where all has been

    def run(self, tell: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        tell : called with lower bounds of the objective key of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        problem = self._search.problem
        self._unstated = float(least_key(problem) * problem.key_scale) * (1 - BAND)
        if not self._begun() or self._search.done:
            tell(self._least)
            return self._least
        while self._open:
            _, _, tree, floor = heapq.heappop(self._open)
            others = self._least
            left = tree.go_on(partial(_told, tell, others, floor), max(floor, others) * (1 + _AHEAD))
            if left is not None:
                self._add(tree, floor)
            if self._search.done:
                return self._least if self._open else None
        return None

    @property
    def _least(self) -> float:
        return min(self._unstated, self._open[0][0] if self._open else float("inf"))

    def _add(self, tree: Tree, floor: float) -> None:
        """Keep a tree open, of which ``floor`` is a lower bound, too."""
        heapq.heappush(self._open, (max(tree.least, floor), next(self._tick), tree, floor))

    def _hard(self) -> None:
        ask, self._on_hard = self._on_hard, lambda: None
        ask()

    def _begun(self) -> bool:
        """Whether all is open before a limit strikes; what is not stated then has its bound."""
        try:
            self._begin()
        except LimitReachedError:
            return False
        return True

    def _begin(self) -> None:
        """Open every tree's first stage; raises ``LimitReachedError`` where a limit strikes before."""
        problem = self._search.problem
        even = self._planted(problem)
        if even is not None:
            share = self._search.limits.share(_SHARE)
            even.go_on(over=partial(_is_over, share))
        spanned = problem.reduction is Reduction.FORMS  # the others' forms hold all even ones
        if even is not None and even.least < float("inf") and not spanned:
            self._add(even, self._unstated)
        for part in self._parts(problem):
            tree = self._planted(part)
            if tree is not None and tree.least < float("inf"):
                self._add(tree, self._unstated)
        self._unstated = float("inf")

    def _planted(self, problem: LayerProblem) -> Tree | None:
        """A tree with its first stage open; ``None`` where there is nothing to choose."""
        self._search.limits.heed()
        tree = Tree(self._search, self._goal, problem)
        if tree.empty:
            return None
        tree.on_hard = self._hard
        tree.begin()
        return tree

    def _parts(self, problem: LayerProblem) -> Iterator[LayerProblem]:
        """The problem over each arrangement but the even one, without those that cannot be better."""
        if not has_parts(problem):
            yield from islice(problem.parts(self._search.limits.heed), 1, None)
            return
        from tilewright.solvers.mapping.segment_bounds import SegmentBounds

        machines = list(storages(problem))
        given: list[set[Arrangement]] = [set() for _ in machines]
        for last in (False, True):
            before = self._search.key
            found = [
                SegmentBounds(self._search, self._goal, one, out)
                for one, out in zip(machines, given, strict=True)
            ]
            ordered = sorted(found, key=lambda bounds: bounds.least)
            for number, part in enumerate(part for bounds in ordered for part in bounds.parts()):
                self._unstated = max(self._unstated, min(one.least for one in found))
                yield part
                key = self._search.key
                better = key is not None and (before is None or key < before * _BETTER)
                if number == _FIRST and better and not last:
                    break  # with a better incumbent fewer tiles survive
            else:
                return


def _told(tell: Callable[[float], None], others: float, floor: float, least: float) -> None:
    """Tell the bound of all trees, with that of the one that goes on and what is known of it besides."""
    tell(min(max(least, floor), others))


def _is_over(limits: Limits) -> bool:
    return limits.expired
