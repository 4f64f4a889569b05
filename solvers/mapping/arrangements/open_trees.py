"""Trees that are open beside each other in one search, within its memory.

The tree with the least bound goes on until another one's is less.  Trees of a layer's arrangements read the
same tables; these are forgotten where they grow too large.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import partial
from itertools import count

from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.tables.shared_tables import MOST_SHARED_ROWS, SharedTables
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import LegalTables, laid_out
from tilewright.solvers.mapping.tree.small_spaces import is_small, take_all
from tilewright.solvers.mapping.tree.tree import Tree

_AHEAD = 0.02  # by which a tree's bound may pass the others' before they go on
_TINY = 500  # rows of tiles that are searched before a dive ends
_LOOKS = 16  # small trees that are open more when memory is looked at again
_MOST_BYTES = 600_000_000  # of trees that are open at once; what a search has besides takes as much again
_MOST_SHARED = 200_000_000  # of values that the next tree may read, too


class OpenTrees:
    """Trees whose least bound may still be of interest, and the tables that they read.

    Parameters
    ----------
    on_hard : called once where a tree does not end soon
    """

    def __init__(self, search: LayerSearch, on_hard: Callable[[], None]) -> None:
        self._search, self.on_hard = search, on_hard
        self._tick = count()
        self._bank, self._tables = TableBank(), SharedTables()
        self._open: list[tuple[float, int, Tree, float]] = []
        self._held = 0.0  # bytes that open trees take, as last looked at
        self._row_bytes = 0.0  # that a tree took at most, for each row of tiles

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def least(self) -> float:
        """Lower bound of the objective key (scaled) of all that is open; infinite where nothing is."""
        return self._open[0][0] if self._open else math.inf

    def put(self, tree: Tree, lower_bound: float) -> None:
        """Keep a tree open, of whose part a lower bound (scaled) is known."""
        if not math.isinf(tree.least):
            heapq.heappush(self._open, (max(tree.least, lower_bound), next(self._tick), tree, lower_bound))

    def look(self) -> None:
        """Look at what memory all trees take."""
        staged = {id(staged): staged for _, _, tree, _ in self._open for staged in tree.layout.staged}
        values = sum(own.bytes + own.table.values.bytes for own in staged.values())
        self._held = float(self._bank.bytes + values)

    def are_too_many_with(self, part: LayerProblem) -> bool:
        """Whether they would take too much memory with the tree of another part."""
        return self._held + _rows(part) * self._row_bytes > _MOST_BYTES

    def forget(self) -> None:
        """Forget what trees have read that are not open any more."""
        self._bank.clear()
        self._held = 0.0

    def state(self, part: LayerProblem, goal: Goal, lower_bound: float) -> None:
        """Keep a tree of a part open, of which a lower bound (scaled) is known; a small part is searched."""
        if is_small(part):
            self._search.limits.check()
            take_all(part, goal, self._search.tally)
            return
        tree, rows, before = self.new(part, goal), _rows(part), self._held
        if tree is None:
            return
        self.put(tree, lower_bound)
        # Looking at all tables takes longer than small ones tell.
        if rows > _TINY or not self._row_bytes or len(self._open) % _LOOKS == 0:
            self.look()
        else:
            self._held += rows * self._row_bytes
        self._row_bytes = max(self._row_bytes, (self._held - before) / rows)

    def search(
        self, on_bound: Callable[[float], None], apart: float, cutoff: float, until: float = math.inf
    ) -> None:
        """Search what is open until its bounds pass ``until``, nothing is, or a limit strikes.

        Parameters
        ----------
        on_bound : called with lower bounds of the objective key of all that is still open
        apart : lower bound (scaled) of what is not open here
        cutoff : key (scaled) from which on nothing is looked for yet
        """
        while self._open and self.least < until and not self._search.done:
            _, _, tree, lower_bound = heapq.heappop(self._open)
            others = min(until, self.least if self._open else cutoff)
            report = partial(_report_bound, on_bound, min(apart, self.least), lower_bound)
            tree.go_on(report, max(lower_bound, others) * (1 + _AHEAD))
            self.put(tree, lower_bound)

    def new(self, problem: LayerProblem, goal: Goal, most: int | None = None) -> Tree | None:
        """A tree with its first stage open; ``None`` where there is nothing to choose.

        Raises `TablesTooLargeError` where memory does not suffice for it, ``LimitReachedError`` where a limit
        strikes.

        Parameters
        ----------
        most : nodes that it may bound
        """
        self._search.limits.check()
        if self._tables.bytes > _MOST_SHARED:
            self._tables.clear()
            for _, _, tree, _ in self._open:  # the next trees read others
                tree.layout.drop_values()
        limits, tally = self._search.limits, self._search.tally
        # Very many rows are kept for no other tree: with these, its own take too much memory.
        shared: SharedTables | None = self._tables
        bank: TableBank | None = self._bank
        if problem.space.rows > MOST_SHARED_ROWS:
            shared, bank = None, None
        legal = LegalTables(problem, limits, shared).wanted(goal)
        layout = laid_out(problem, limits, goal=goal, bank=bank, tally=tally, legal=legal)
        del legal  # its memory serves the tree's program
        tree = Tree(self._search, goal, layout=layout)
        if tree.empty:
            return None
        tree.on_hard = self._hard
        tree.limit(most)
        tree.begin(dive=problem.space.rows > _TINY)
        return tree

    def _hard(self) -> None:
        ask, self.on_hard = self.on_hard, lambda: None
        ask()


def _rows(part: LayerProblem) -> int:
    return max(1, sum(len(group) for group in part.space.groups))


def _report_bound(on_bound: Callable[[float], None], others: float, lower_bound: float, least: float) -> None:
    """Report the bound of all trees, with that of the tree that goes on and what is known of it besides."""
    on_bound(min(max(least, lower_bound), others))
