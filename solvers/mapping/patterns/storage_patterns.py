"""Branch and bound over storage patterns: one tree per pattern, one incumbent for all of them.

A *storage pattern* says which levels store each tensor.  With many optional levels there are thousands of
patterns, and many more tiles of all levels than of the few that a good pattern uses.  So every pattern is
searched on a machine of its own: levels that store nothing are left out, the others store what the pattern
says.  All mappings of these machines together are the even space (``docs/proofs.md``, storage patterns).
Patterns are bounded without being stated (:mod:`tilewright.solvers.mapping.patterns.pattern_bounds`) and
searched in the order of their bounds; the tree with the least bound goes on until another one's, or that of
what has not been stated yet, is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.nests.idle_levels import loose_levels
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.solvers.mapping.beside import Beside
from tilewright.solvers.mapping.levels.outside_first import seen_from_outside
from tilewright.solvers.mapping.patterns.neighbourhoods import Neighbourhoods
from tilewright.solvers.mapping.patterns.pattern_bounds import BoundedPattern, PatternBounds
from tilewright.solvers.mapping.patterns.pattern_descent import Descent
from tilewright.solvers.mapping.patterns.pattern_machines import (
    PatternSearch,
    Stores,
    levels_of,
    machine_of,
    on_own_machine,
)
from tilewright.solvers.mapping.patterns.pattern_tiles import PatternTiles
from tilewright.solvers.mapping.patterns.patterns_together import PatternsTogether, are_bounded_together
from tilewright.solvers.mapping.patterns.sub_machines import beside
from tilewright.solvers.mapping.problem_kinds import SHARED_BY_FEW
from tilewright.solvers.mapping.tables.stages import has_scratchpads, last_array
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.division import terms_at_stores
from tilewright.solvers.mapping.tree.goals import BAND, Minimum, goal_of
from tilewright.solvers.mapping.tree.layout import Deciding, orders_of_decisions
from tilewright.solvers.mapping.tree.tree import Tree

_AHEAD = 0.01  # by which a tree's bound may pass the others' before they go on
_DIVES = 6  # patterns in which a mapping is looked for at once; the others find better ones on their way
_SHARED = 200_000  # rows of tiles, up to which one tree has all patterns of some levels; others come last
_SOON = 10_000  # rows of scratchpads with which all is searched as soon as perfect factors
_ROUNDING = 1e-8  # relative; far above that of sums of some parts
_MANY = 800_000  # rows from which on a pattern is bounded alone where its tiles are not known


@dataclass(slots=True, eq=False)
class _OpenTree:
    """A tree of one pattern, or of all patterns of some levels.

    Parameters
    ----------
    terms : its energy by the boundary of the stores that are filled
    times : what its keys are multiplied by to be scaled as the problem's
    key : lower bound of the pattern's key, scaled as the problem's
    """

    tree: Tree
    terms: dict[int, Expr]
    times: float
    key: float

    @property
    def least(self) -> float:
        """Lower bound of all that is open in it, scaled as the problem's."""
        return max(self.tree.least * self.times, self.key)


class _Efforts:
    """What trees of single patterns took, by the order of their decisions: neither is better everywhere."""

    def __init__(self) -> None:
        self._known: dict[Deciding, tuple[int, int]] = {}  # trees, and nodes of all of them

    def best(self, orders: Sequence[Deciding]) -> Deciding:
        """The order whose trees took the fewest nodes on average; the first of those not tried yet."""

        def nodes(deciding: Deciding) -> float:
            trees, bounded = self._known.get(deciding, (1, 0))
            return bounded / trees

        return min(orders, key=nodes)

    def note(self, deciding: Deciding, bounded: int) -> None:
        """Count a tree that bounded so many nodes, at least one."""
        trees, before = self._known.get(deciding, (0, 0))
        self._known[deciding] = trees + 1, before + max(1, bounded)


class PatternTrees:
    """The trees of one search over all storage patterns.

    Parameters
    ----------
    source : what finds mappings
    offer_perfect : offers mappings with perfect factors, where they are a part of the space
    """

    def __init__(
        self, search: LayerSearch, source: str, offer_perfect: Callable[[], object] = lambda: None
    ) -> None:
        self._search, self._source, self._offer_perfect = search, source, offer_perfect
        self._dives = count()
        self._bounds: PatternBounds | None = None
        self._descent = Descent(search, source, self._is_pattern_wanted)
        near = Neighbourhoods(search, source, self._are_levels_wanted)
        self._beside = (
            Beside(search, iter(()))
            if are_bounded_together(search.problem)
            else beside(search, source, near, self._descent, self._are_levels_wanted)
        )
        self._bank = TableBank()
        self._open: list[_OpenTree] = []
        self._unstated = 0.0  # lower bound of what has not been stated, as the problem's keys are scaled
        self._left: list[BoundedPattern] = []  # of large tables, the cheapest first
        self._shared: dict[tuple[int, ...], _OpenTree | None] = {}  # by levels that store something
        self._rows: dict[tuple[int, ...], int] = {}
        self._most_shared = SHARED_BY_FEW if has_scratchpads(search.problem.engine) else _SHARED
        self._alike: dict[tuple[int, ...], Alike] = {}  # likewise, of patterns on machines of their own
        self._efforts = _Efforts()

    def run(self, on_bound: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        on_bound : called with lower bounds of the objective key (scaled) of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        with suppress(LimitReachedError):
            self._run(on_bound)
        least = self._least
        if math.isinf(least):
            return None
        on_bound(least)
        return least

    @property
    def _least(self) -> float:
        scale = float(self._search.problem.key_scale)
        left = (pattern.key * scale for pattern in self._left)
        return min([self._unstated, *left, *(entry.least for entry in self._open)])

    def _run(self, on_bound: Callable[[float], None]) -> None:
        self._offer_mappings()
        together = PatternsTogether(self._search, self._source)
        self._bounds = bounds = PatternBounds(self._search, self._beside.keep_up, together)
        scale = float(self._search.problem.key_scale)
        while not self._search.done:
            self._beside.keep_up()
            self._close()
            self._unstated = bounds.least * scale if self._is_wanted(bounds.least * scale) else math.inf
            self._left = [pattern for pattern in self._left if self._is_wanted(pattern.key * scale)]
            others = min((entry.least for entry in self._open), default=math.inf)
            if math.isinf(min(others, self._unstated)):
                break
            on_bound(self._least)
            if math.isinf(self._unstated) or bounds.least > others / scale:
                self._go_on(min(self._open, key=lambda entry: entry.least), on_bound)
                continue
            try:
                pattern = bounds.take(others / scale)
            finally:  # what a limit leaves is bounded by what was learned until then
                self._unstated = bounds.least * scale
            if pattern is not None:
                self._unstated = min(pattern.key, bounds.least) * scale
                if self._is_wanted(pattern.key * scale) and not self._state(pattern, 0, on_bound):
                    self._left.append(pattern)
        if self._left:
            self._make_room()
        tiles = PatternTiles(self._search.problem, bounds)
        while self._left and not self._search.done:
            on_bound(self._least)
            self._left = [pattern for pattern in self._left if self._is_wanted(pattern.key * scale)]
            if self._left and not self._search_together(tiles, on_bound):
                if not self._state(self._left[0], _MANY, on_bound):
                    self._offer_perfect()  # a part of the space is all that is left to search
                    return
                self._left.pop(0)
                self._close()
            if self._open:
                return  # a limit struck

    def _search_together(self, tiles: PatternTiles, on_bound: Callable[[float], None]) -> bool:
        """Search the cheapest of the patterns left, with others, over the tiles that may be wanted of them.

        Returns whether they were opened or closed: their tiles may be too many.
        """
        batch = tiles.batch(self._left)
        if batch is None:
            return False
        numbers = {pattern.number for pattern in batch.patterns}
        entry = None
        if batch.problem is not None:
            least = batch.wanted[0].key * self._search.problem.key_scale
            entry = self._tree(batch.problem, least, TableBank())
        if entry is not None and not entry.tree.empty:
            for pattern in batch.wanted:
                self._add(entry, pattern)
            self._open.append(entry)
        self._left = [pattern for pattern in self._left if pattern.number not in numbers]
        if self._open:
            self._go_on(self._open[0], on_bound, math.inf)
            self._close()
        return True

    def _make_room(self) -> None:
        """Forget what patterns of few rows read, which are closed, and what their bounds did."""
        assert self._bounds is not None
        self._shared = dict.fromkeys(stored for stored, entry in self._shared.items() if entry is None)
        self._bank.clear()
        self._bounds.forget_tables()

    def _offer_mappings(self) -> None:
        """Offer mappings of single patterns, and of small machines: bounds say where better ones may be.

        With scratchpads dives end far from the optimum, and few mappings have perfect factors.  Where these
        are bounded together, the cheapest of their tiles give better mappings than all of that.
        """
        problem = self._search.problem
        if are_bounded_together(problem):
            self._descent.begin()
            return
        if has_scratchpads(problem.engine) and problem.space.rows > _SOON:
            self._offer_perfect()
        self._descent.begin()
        self._beside.begin(1 + len(loose_levels(self._search.problem.space.nest)))

    def _close(self) -> None:
        """Drop trees in which nothing is wanted."""
        self._open = [entry for entry in self._open if self._is_wanted(entry.least)]

    def _is_wanted(self, key: float) -> bool:
        """Whether the goal wants something of a lower bound (scaled)."""
        goal = goal_of(self._search)
        if goal is None:
            return not math.isinf(key)
        return key * (1 - BAND) < float(goal) * self._search.problem.key_scale

    def _is_pattern_wanted(self, stores: Stores) -> bool:
        """Whether the goal may want something of a pattern."""
        scale = float(self._search.problem.key_scale)
        return self._bounds is None or self._is_wanted(self._bounds.key_of(stores) * scale)

    def _are_levels_wanted(self, levels: Collection[int]) -> bool:
        """Whether the goal may want something of the patterns that store in some levels alone."""
        scale = float(self._search.problem.key_scale)
        return self._bounds is None or self._is_wanted(self._bounds.key_within(levels) * scale)

    def _state(self, pattern: BoundedPattern, most: int, on_bound: Callable[[float], None]) -> bool:
        """Open a pattern in the tree of its levels, or search one of its own.

        Parameters
        ----------
        most : rows up to which a pattern has a tree of its own

        Returns whether it was opened.
        """
        stored = levels_of(pattern.stores)
        key = pattern.key * self._search.problem.key_scale
        entry, alone = None, self._alone(pattern)
        if alone is None:
            entry = self._shared_tree(stored)
        if entry is None:
            if self._rows[stored] > max(most, self._most_shared):
                return False
            if alone is None:
                part = on_own_machine(self._search.problem, pattern.stores)
                alone = part, self._efforts.best(orders_of_decisions(part))
            part, deciding = alone
            entry = self._tree(part, key, TableBank(), deciding)
        if entry.tree.empty:
            return True
        self._add(entry, pattern)
        if all(entry is not other for other in self._open):
            self._open.append(entry)
        if self._rows[stored] > self._most_shared:
            self._go_on(entry, on_bound, math.inf)  # its tables are too large to be kept
            self._efforts.note(deciding, entry.tree.bounded)
        return True

    def _add(self, entry: _OpenTree, pattern: BoundedPattern) -> None:
        """Open a pattern in a tree of its levels."""
        stored, tree = levels_of(pattern.stores), entry.tree
        problem = tree.layout.problem
        storage: dict[Variable, int] = {}
        for tensor, stores in zip(problem.operator.tensors, pattern.stores, strict=True):
            residency = problem.space.nest.residency[tensor.name]
            if isinstance(residency.selector, Variable):
                held = tuple(stored.index(level) for level in stores)
                storage[residency.selector] = residency.alternatives.index(held)
        dives = self._search.key is None or next(self._dives) < _DIVES
        tree.add(storage, _least_parts(entry, pattern, stored), dives)

    def _alone(self, pattern: BoundedPattern) -> tuple[LayerProblem, Deciding] | None:
        """A pattern on its own machine, where its tree knows the inside; ``None`` where another serves."""
        engine = self._search.problem.engine
        if self._search.problem.objective.key_powers[1] or not has_scratchpads(engine):
            return None
        stored = levels_of(pattern.stores)
        part = on_own_machine(self._search.problem, pattern.stores, self._alike.setdefault(stored, Alike()))
        self._rows[stored] = part.space.rows
        # What the key is more than levels outside the array cost at least.
        outer = sum(value for level, value in pattern.parts.items() if level <= last_array(engine))
        return seen_from_outside(part, max(0.0, pattern.key - outer * (1 + _ROUNDING)))

    def _shared_tree(self, stored: tuple[int, ...]) -> _OpenTree | None:
        """The tree of all patterns that store in some levels; ``None`` where rows of tiles are too many."""
        if stored not in self._shared:
            part = self._search.problem.on(machine_of(self._search.problem.engine, stored))
            self._rows[stored] = part.space.rows
            is_shared = self._rows[stored] <= self._most_shared
            self._shared[stored] = self._tree(part, 0.0, self._bank) if is_shared else None
        return self._shared[stored]

    def _tree(
        self, part: LayerProblem, key: float, bank: TableBank, deciding: Deciding | None = None
    ) -> _OpenTree:
        """A tree with nothing open yet; ``key`` bounds all that will be, scaled."""
        inner = PatternSearch(self._search, part)
        tree = Tree(inner, Minimum(inner, self._source), part, bank, divides=True, deciding=deciding)
        return _OpenTree(tree, terms_at_stores(part), self._search.problem.key_scale / part.key_scale, key)

    def _go_on(self, entry: _OpenTree, on_bound: Callable[[float], None], ahead: float = 1 + _AHEAD) -> None:
        """Search a tree on, until it passes the others' bounds so many times."""
        self._open.remove(entry)
        others = self._least
        self._open.append(entry)

        def report(least: float) -> None:
            on_bound(min(max(least * entry.times, entry.key), others))

        until = max(entry.least, others) * ahead / entry.times
        self._beside.along(lambda over: entry.tree.go_on(report, until, over))


def _least_parts(entry: _OpenTree, pattern: BoundedPattern, stored: Sequence[int]) -> dict[Expr, float]:
    """What the terms of a pattern's energy cost at least, scaled.

    Parameters
    ----------
    entry : the tree, of a machine that has some levels only
    stored : those, as the whole machine numbers them
    """
    problem = entry.tree.layout.problem
    places = dict(zip(stored, problem.space.nest.temporal, strict=True))
    least: dict[int, float] = {}
    for level, value in pattern.parts.items():
        # What the PEs read counts together with what moves into the innermost level that there is.
        place = places.get(level, problem.space.nest.temporal[-1])
        least[place] = least.get(place, 0.0) + value * problem.statement.energy_scale
    return {term: least.get(boundary, 0.0) for boundary, term in entry.terms.items()}
