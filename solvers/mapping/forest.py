"""Branch and bound over uneven storage: one tree per arrangement, one incumbent for all of them.

The trees are opened one after the other, the even one first; each dives for a mapping, and keeps open what
may still beat the best one found in any.  Then the tree with the least bound goes on until another one's is
less, so the bound of the whole is always that of the cheapest open part of any tree.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from itertools import count

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.arrangements import Reduction
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.branch import Goal, Tree

_AHEAD = 0.02  # by which a tree's bound may pass the others' before they go on
_SHARE = 0.6  # of the time that is left, for the optimum of even storage


class Forest:
    """The trees of one search over all arrangements of storage.

    Parameters
    ----------
    on_hard : called once where the even part, or else another one, does not end soon
    """

    def __init__(self, search: LayerSearch, goal: Goal, on_hard: Callable[[], None]) -> None:
        self._search = search
        self._goal = goal
        self._on_hard = on_hard
        self._tick = count()
        self._open: list[tuple[float, int, Tree]] = []

    def run(self, tell: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        tell : called with lower bounds of the objective key of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is (0 where some tree
        has not been begun).
        """
        try:
            self._begin()
        except LimitReachedError:
            return 0.0
        if self._search.done:
            return self._least
        while self._open:
            _, _, tree = heapq.heappop(self._open)
            others = self._least
            left = tree.go_on(partial(_told, tell, others), others * (1 + _AHEAD))
            if left is not None:
                self._add(tree)
            if self._search.done:
                return self._least if self._open else None
        return None

    @property
    def _least(self) -> float:
        return self._open[0][0] if self._open else float("inf")

    def _add(self, tree: Tree) -> None:
        heapq.heappush(self._open, (tree.least, next(self._tick), tree))

    def _hard(self) -> None:
        ask, self._on_hard = self._on_hard, _nothing
        ask()

    def _begin(self) -> None:
        """Open every tree's first stage; raises ``LimitReachedError`` where a limit strikes before."""
        for index, problem in enumerate(self._search.problem.parts()):
            self._search.limits.heed()
            tree = Tree(self._search, self._goal, problem)
            if tree.empty:
                continue
            tree.on_hard = self._hard
            tree.begin()
            if index == 0:
                share = self._search.limits.share(_SHARE)
                tree.go_on(over=partial(_is_over, share))
            spanned = (
                index == 0 and problem.reduction is Reduction.FORMS
            )  # the others' forms hold all even ones
            if tree.least < float("inf") and not spanned:
                self._add(tree)


def _nothing() -> None:
    """All that helps has been done."""


def _told(tell: Callable[[float], None], others: float, least: float) -> None:
    """Tell the bound of all trees, with that of the one that goes on."""
    tell(min(least, others))


def _is_over(limits: Limits) -> bool:
    return limits.expired
