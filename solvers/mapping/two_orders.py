"""One problem searched by two trees in turn, which decide in different orders, with one incumbent for both.

Where cycles count, neither order of decisions is the better one everywhere.  Spatial splits first settle the
cycles of computing; the innermost tile first settles most of the energy and what the array's ports move.
Either tree alone proves the whole, so the higher of their bounds holds, and the search ends with the first
one that closes.  They take turns of growing length: no search takes much more than twice what the better
order takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tilewright.formulation.limits import LimitReachedError, TablesTooLargeError
from tilewright.formulation.mapping.nests.idle_levels import loose_levels
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.axis_groups import perfect_rows
from tilewright.formulation.mapping.tiles.chains import MANY_ROWS
from tilewright.solvers.mapping.beside import Beside
from tilewright.solvers.mapping.compiled import bound_program
from tilewright.solvers.mapping.levels.outside_first import ways_of_deciding
from tilewright.solvers.mapping.part_search import PartSearch
from tilewright.solvers.mapping.problem_kinds import PERFECT
from tilewright.solvers.mapping.tables.shared_tables import MOST_SHARED_ROWS, tables_beside
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.layout import MOST_TOGETHER, LegalTables, laid_out
from tilewright.solvers.mapping.tree.tree import Tree

_TURN = 200_000  # nodes bounded in the first turn
_GROWTH = 1.5  # of every further one
_LONGER, _FEW_PARTS = 3, 8  # times the first turn, where so few parts are left at most
_AHEAD = 1  # turns more for the tree with the higher bound
_SOON = 10_000  # rows of all axis groups, whose tables take some hundredths of a second
_SHORT = 0.5  # seconds of a search that tables of more rows, a tenth of a second or two, may use up


class TwoOrders:
    """A search of a problem for the best mapping; it serves where one `Tree` does.

    Parameters
    ----------
    source : what finds mappings

    Attributes
    ----------
    empty : whether tile sizes and array leave nothing to choose
    on_hard : called once, where the search does not end soon
    """

    def __init__(self, search: LayerSearch, source: str) -> None:
        self._search, self._goal = search, Minimum(search, source)
        self._beside = _small_machines(search, source)
        self._orders = ways_of_deciding(search.problem)
        _look_at_perfect_factors(search)
        # Trees read the same values, which are dropped once the last one has its own.
        self._legal: LegalTables | None = None
        self._trees: list[Tree] = []
        self._trees.append(self._next_tree())
        self.empty = self._trees[0].empty
        self.on_hard: Callable[[], None] = lambda: None

    def _legal_tables(self, problem: LayerProblem) -> LegalTables:
        if self._legal is not None and self._legal.problem is problem:
            return self._legal
        # Very many rows are kept for nobody else: with these, a tree's own take too much memory.
        shared = tables_beside(problem) if problem.space.rows <= MOST_SHARED_ROWS else None
        return LegalTables(problem, self._search.limits, shared)

    def _next_tree(self) -> Tree:
        """A tree of the next order; one whose tables are too large is passed by while others are left."""
        while True:
            problem, deciding = self._orders.pop(0)
            # What the goal does not want for one tree it will not want for the next.
            legal: LegalTables | None = self._legal_tables(problem).wanted(self._goal)
            assert legal is not None
            has_room = sum(legal.tables.sizes) <= MOST_TOGETHER
            self._legal = legal if self._orders and has_room else None
            try:
                layout = laid_out(
                    problem,
                    self._search.limits,
                    goal=self._goal,
                    deciding=deciding,
                    tally=self._search.tally,
                    legal=legal,
                    room=self._room,
                )
                legal = None  # its memory serves the tree's program
                return Tree(self._search, self._goal, layout=layout)
            except TablesTooLargeError:
                if not self._orders:
                    raise

    @property
    def _room(self) -> int:
        """Bytes that are left for what another tree reads."""
        return bound_program.MOST_BYTES - sum(tree.layout.bound_program.bytes for tree in self._trees)

    @property
    def least(self) -> float:
        """Lower bound of the objective key of all that is still open; infinite where nothing is."""
        return max(tree.least for tree in self._trees)

    def run(self, on_bound: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        on_bound : called with lower bounds of the objective key of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        self._trees[0].on_hard = self.on_hard
        self._trees[0].begin(on_bound)
        turn = _TURN
        if self._ended(self._trees[0], turn, on_bound):
            return None
        # Few parts are large ones, most of which close once the first is searched; another tree takes long to
        # lay out.
        is_near = bool(self._orders) and self._trees[0].open_parts <= _FEW_PARTS
        if is_near and self._ended(self._trees[0], _LONGER * turn, on_bound):
            return None
        # Tables that are too large take long to be known as such; an order takes half as much as another.
        while self._legal is not None and self._room > bound_program.MOST_BYTES // 3:
            if self._search.done:
                break
            try:
                self._trees.append(self._next_tree())
            except TablesTooLargeError:
                break
            if self._trees[-1].empty:  # nothing of what is wanted now fits the array
                return None
            self._trees[-1].begin(dive=False)
            if self._ended(self._trees[-1], turn, on_bound):
                return None
        self._legal = None  # its memory serves the trees
        while not self._search.done:
            # What one tree bounds better it will mostly prove sooner.
            ahead, *others = sorted(self._trees, key=lambda tree: -tree.least)
            if any(self._ended(tree, turn, on_bound) for tree in (ahead, *others)):
                return None
            if self._ended(ahead, _AHEAD * turn, on_bound):
                return None
            turn = int(turn * _GROWTH)
        return self.least

    def _ended(self, tree: Tree, turn: int, on_bound: Callable[[float], None]) -> bool:
        """Whether nothing is open in a tree after a turn of its own."""
        end = math.inf if len(self._trees) == 1 and not self._orders else tree.bounded + turn
        others = max((other.least for other in self._trees if other is not tree), default=0.0)

        def go_on(over: Callable[[], bool]) -> float | None:
            return tree.go_on(
                lambda least: on_bound(max(least, others)), over=lambda: tree.bounded > end or over()
            )

        return self._beside.along(go_on) is None


def _small_machines(search: LayerSearch, source: str) -> Beside:
    """What looks for mappings beside the search; nothing, and not loaded, where every level is needed."""
    if not loose_levels(search.problem.space.nest):
        return Beside(search, iter(()))
    from tilewright.solvers.mapping.patterns.sub_machines import beside

    return beside(search, source)


def _look_at_perfect_factors(search: LayerSearch) -> None:
    """Have a first mapping and a bound where a short limit may strike soon: rows of perfect factors are few.

    With more time the search's own tables come first.  Its dive then finds a mapping as good, and most proofs
    take as long as the look.
    """
    problem, seconds = search.problem, search.limits.seconds
    if seconds is None or seconds >= _SHORT:
        return
    if search.key is not None or problem.space.nest.perfect or problem.space.rows <= _SOON:
        return
    search.raise_bound(least_key(problem), "compulsory traffic")
    space = problem.space
    if any(group.most > MANY_ROWS for group in space.groups):
        return  # the search began with them
    groups = tuple(
        group.having(group.rows[perfect_rows(space.nest.boundaries, group)]) for group in space.groups
    )
    if sum(map(len, groups)) > _SOON:
        return
    inner = PartSearch(search, problem, search.limits, PERFECT)
    # The rows are some of the problem's own, so its statement holds of them.
    part = replace(problem, space=replace(space, groups=groups), alike=None)
    goal = Minimum(inner, PERFECT)
    with suppress(LimitReachedError):
        # Layers of a network that are as long in some dimension have these rows in common as well.
        legal = LegalTables(part, search.limits, tables_beside(problem))
        layout = laid_out(part, search.limits, goal=goal, tally=search.tally, legal=legal)
        tree = Tree(inner, goal, layout=layout)
        if not tree.empty:
            tree.dive()
