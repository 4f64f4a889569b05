"""Partial decisions opened in the order of their bounds, until a goal wants nothing that is open."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from itertools import count
from types import MappingProxyType

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.solvers.mapping.tree.nodes import Leaves, Nodes
from tilewright.solvers.mapping.tree.refinement import Refinement
from tilewright.solvers.mapping.tree.team import Team

_DIVE_WIDTHS = (128, 1024)  # nodes kept after every group; wider where a narrow dive ends nowhere
_FIRST = 500_000  # nodes of the first stage that are bounded at once
_LONG = 2_000_000  # nodes bounded from which on several threads search side by side
_DIVE_LINES = 3  # choices of orders and residencies followed from stage to stage


class BestFirst:
    """One search of a layout for one goal.

    Parameters
    ----------
    given : choices that are made before it begins

    Attributes
    ----------
    empty : whether tile sizes and array leave nothing to choose
    """

    def __init__(
        self,
        search: LayerSearch,
        goal: Goal,
        layout: Layout,
        given: MappingABC[Variable, int] = MappingProxyType({}),
    ) -> None:
        self.search, self.goal, self.layout = search, goal, layout
        self.empty = not layout.fits
        self._given = given
        self._tick = count()
        self._open: list[tuple[float, int, Nodes]] = []
        self._size = 1  # nodes that are opened together
        self._is_long = False
        self._threads = 1 if search.limits.deterministic else search.limits.threads
        if not self.empty:
            layout.tally.trees += 1
            self._refinement = Refinement(layout, goal, search.limits)

    def limit(self, most: float | None) -> None:
        """End once so many nodes have been bounded, if at all."""
        self._refinement.most = most

    def run(self, on_bound: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        on_bound : called with lower bounds of the objective key of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        self.begin(on_bound)
        return self.go_on(on_bound)

    @property
    def bounded(self) -> int:
        """Nodes that have been bounded."""
        return 0 if self.empty else self._refinement.bounded

    @property
    def open_parts(self) -> int:
        """How many parts are to be opened, as far as is known now."""
        wanted = (self.goal.wanted(nodes.energy, nodes.cycles, nodes.keys) for *_, nodes in self._open)
        return sum(int(np.count_nonzero(own)) for own in wanted)

    @property
    def least(self) -> float:
        """Lower bound of the objective key of all that is still open; infinite where nothing is."""
        first = min((_least_key(nodes) for *_, nodes in self._open[:1]), default=math.inf)
        return min(first, self._below.least) if self._is_begun else first

    @property
    def least_energy(self) -> float:
        """Lower bound of the energy of all that is still open; infinite where nothing is."""
        least = min((float(nodes.energy.min()) for *_, nodes in self._open), default=math.inf)
        return min(least, self._below.least_energy) if self._is_begun else least

    @property
    def _below(self) -> Team:
        """What was opened last, searched depth first before anything else is opened."""
        return self._refinement.below

    @property
    def _is_begun(self) -> bool:
        return not self.empty and bool(self._below)

    def dive(self) -> None:
        """Look for a mapping, and open nothing."""
        self._dive(self._refinement.root(self._given))

    def begin(self, on_bound: Callable[[float], None] = lambda _least: None, dive: bool = True) -> None:
        """Bound the whole, dive for a first incumbent if ``dive``, and open the first stage."""
        root = self._root(on_bound)
        if dive:
            self._dive(root)
        self._open_first(root)

    def go_on(
        self,
        on_bound: Callable[[float], None] = lambda _least: None,
        until: float = math.inf,
        over: Callable[[], bool] = lambda: False,
    ) -> float | None:
        """Search on what is open, as :meth:`run`, until bounds pass ``until`` or something is over.

        What was stopped since so many nodes had been bounded goes on where more may be now.
        """
        self._refinement.stopped = False
        try:
            while (self._open or self._below) and not self._refinement.stopped:
                if over() or self.search.done:
                    break
                if not self._below:
                    if self.least > until:
                        break
                    self._weigh_effort(self._refinement.bounded)
                    self._is_long = self._refinement.bounded > _LONG
                if self._begins_another(until) and not self._begin_next(on_bound):
                    break
                if self._below:
                    self._explore_further()
                    self._weigh_search(self._refinement.bounded)
        finally:
            for leaves in self._below.rest():
                self.goal.take(Leaves.of(self.layout, leaves))
        return self.least if self._open or self._below else None

    def _begins_another(self, until: float) -> bool:
        """Whether to open a part: where nothing is searched, or a hard search has a thread to spare."""
        if not self._below:
            return bool(self._open)
        is_open = bool(self._open) and self._open[0][0] <= until
        return self._is_long and is_open and self._below.has_idle(self._threads)

    def _begin_next(self, on_bound: Callable[[float], None]) -> bool:
        """Open the part of the least bound; whether that was not cut short."""
        least, _, nodes = heapq.heappop(self._open)
        on_bound(min(least, self._below.least))
        if self._opened(nodes):
            return True
        self._push(nodes)
        return False

    def _weigh_effort(self, bounded: int) -> None:
        """Called before a part is opened, with the nodes bounded so far."""

    def _weigh_search(self, bounded: int) -> None:
        """Called after every block of nodes, with those bounded so far."""

    def _learned(self, _nodes: Nodes) -> bool:
        """Whether more is known now of what a part costs, and the part is open again with better bounds."""
        return False

    def _root(self, on_bound: Callable[[float], None]) -> Nodes:
        root = self._refinement.root(self._given)
        on_bound(_least_key(root))
        return root

    def _open_first(self, root: Nodes) -> None:
        """Open the first stage, or where it is very large the whole, whose search takes turns with others."""
        most = self._refinement.most
        if not self.layout.owners:
            self.limit(min(self.bounded + _FIRST, math.inf if most is None else most))
        for nodes in self._refinement.children(root):
            self._push(nodes)
        if self._refinement.stopped:
            self._push(root)
        self.limit(most)

    def _push(self, nodes: Nodes) -> None:
        """Keep nodes, in the order of their bounds."""
        heapq.heappush(self._open, (_least_key(nodes), next(self._tick), nodes))

    def _opened(self, nodes: Nodes) -> bool:
        """Whether what is wanted of a part has been searched, or is open in smaller parts."""
        if self.search.done:
            return False
        nodes = self._refinement.wanted(nodes)
        if not len(nodes) or self._learned(nodes):
            return True
        if nodes.stage == 0 and self.layout.owners and len(self.layout.stages) > 1:
            left = self._refinement.children(nodes)
            if self.search.done or self._refinement.stopped:
                return False
        else:
            self._below.begin(nodes.between(0, self._size), self._head)
            rest = nodes.between(self._size, None)
            left = [rest] if len(rest) else []
            self._size = min(4 * self._size, 1024)
        for part in left:
            self._push(part)
        return True

    @property
    def _head(self) -> int:
        """Nodes that are expanded together at first, before others of their part."""
        return 1 if self.search.key is None else 256

    def _explore_further(self) -> None:
        """Search on for a block of nodes, depth first."""
        if self._refinement.is_spent():
            self._refinement.stopped = True
            return
        most = self._refinement.most
        most = None if most is None else int(most) - self.bounded
        for leaves in self._below.go_on(self.goal, self._head, most):
            self.goal.take(Leaves.of(self.layout, leaves))

    def _dive(self, nodes: Nodes) -> None:
        """Walk down to complete decisions along the most promising parts only."""
        for width in _DIVE_WIDTHS:
            lines = [nodes] if len(nodes) else []
            for _ in range(nodes.stage + 1, len(self.layout.stages)):
                inner = [part for line in lines for part in self._refinement.children(line, width)]
                lines = sorted(inner, key=_least_key)[:_DIVE_LINES]
            if lines or self._refinement.stopped:
                break
        for leaves in lines:
            self.goal.take(Leaves.of(self.layout, leaves))


def _least_key(nodes: Nodes) -> float:
    """That of nodes which stand in the order of their keys."""
    return float(nodes.keys[0])
