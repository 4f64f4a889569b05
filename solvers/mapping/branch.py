"""Branch and bound over the memory hierarchy.

One tree (:mod:`tilewright.solvers.mapping.tree.tree`) serves an even space; uneven storage has one tree per
arrangement (:mod:`tilewright.solvers.mapping.arrangements.arrangement_trees`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from tilewright import __version__
from tilewright.formulation.limits import LimitReachedError, TablesTooLargeError
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.stopping import WhenSet
from tilewright.solvers.mapping.arrangements.by_arrangement import ByArrangement
from tilewright.solvers.mapping.compiled import program
from tilewright.solvers.mapping.part_search import PartSearch
from tilewright.solvers.mapping.problem_kinds import has_patterns, is_large
from tilewright.solvers.mapping.tree.goals import BAND, Minimum, goal_of
from tilewright.solvers.mapping.two_orders import TwoOrders

if TYPE_CHECKING:
    from tilewright.solvers.mapping.arrangements.arrangement_trees import ArrangementTrees
    from tilewright.solvers.mapping.patterns.storage_patterns import PatternTrees

_COMPILING = 3.0  # seconds that it takes at least
_NOT_COMPILED = "annealed only: compiling the search, done once, took longer (see tilewright doctor)"
_SHORT = "the tables of all tiles do not fit into the memory that there is: parts of the space were searched"
_SHARE, _ANNEALED = 0.4, 1.5  # of the time that is left, and seconds


class Branch:
    """Best-first branch and bound on interval bounds.

    Parameters
    ----------
    goes_on : whether a space whose tables are too large is searched in parts; parts themselves are not, as
        theirs may be the same
    even_is_closed : whether it is known that no even mapping is better than the incumbent
    """

    name = "branch"
    exact = True
    knows_arrangements = True

    def __init__(self, goes_on: bool = True, even_is_closed: bool = False) -> None:
        self._goes_on, self._even_is_closed = goes_on, even_is_closed

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Offer every improvement, raise the bound as the cheapest open part grows dearer.

        Where machine code has to be compiled first, annealing finds a mapping meanwhile; it is all where the
        limit strikes before that is done.  Compiling continues then, for the searches that follow.
        """
        with search.at_work(self.name):
            return self._solve(search)

    def _solve(self, search: LayerSearch) -> Outcome:
        if not (program.is_compiled() or self._meanwhile(search)):
            return Outcome(False, _NOT_COMPILED if search.limits.expired else "")
        try:
            return self._search(search)
        except TablesTooLargeError as too_large:
            if not self._goes_on:
                return Outcome(False, str(too_large))
            message = f"{too_large}; parts of them were searched, the bound holds for all"
        except MemoryError:
            from tilewright.solvers.mapping.patterns.pattern_machines import PatternSearch

            message = _SHORT
            if not self._goes_on or isinstance(search, PartSearch | PatternSearch):
                return Outcome(False, message)  # the whole goes on with other parts
        from tilewright.solvers.mapping.large_problems import go_on_without_tables

        # Outside the handlers, which hold the tables that were there.
        with suppress(MemoryError):
            with suppress(LimitReachedError):
                _annealing().solve(search.within(search.limits.part(_SHARE, _ANNEALED)))
            go_on_without_tables(search, self, Branch(goes_on=False))
        return Outcome(False, message)

    def _search(self, search: LayerSearch) -> Outcome:
        """Search all trees; raises `TablesTooLargeError` where memory does not suffice for any of them."""
        if search.proven:  # by what a large problem began with
            return Outcome(True)
        if has_patterns(search.problem) or search.problem.is_uneven:
            least = self._trees(search).run(self._bound(search))
        else:
            tree = TwoOrders(search, self.name)
            tree.on_hard = self._on_hard(search)
            if tree.empty and goal_of(search) is None:
                return Outcome(True, "no tile sizes satisfy the constraints and fit the array")
            # With a goal, tile sizes that cannot reach it were left out, perhaps all of them.
            least = None if tree.empty else tree.run(self._bound(search))
        if least is not None:
            # Something is open, yet the reported bound may have met the value.
            return Outcome(search.key is not None and search.key == search.bound)
        # Nothing is open: the goal itself, the incumbent's key or the user's gap below it, is the bound.
        goal = goal_of(search)
        if goal is None:
            return Outcome(True, "no mapping satisfies all constraints")
        search.raise_bound(goal, self.name)
        return Outcome(search.key is not None)

    def _trees(self, search: LayerSearch) -> PatternTrees | ArrangementTrees:
        """A tree for each pattern or arrangement; loaded late, as most layers have one tree."""
        if has_patterns(search.problem):
            from tilewright.solvers.mapping.large_problems import offer_perfect_factors
            from tilewright.solvers.mapping.patterns.storage_patterns import PatternTrees

            return PatternTrees(search, self.name, partial(offer_perfect_factors, search, self))
        from tilewright.solvers.mapping.arrangements.arrangement_trees import ArrangementTrees

        return ArrangementTrees(
            search,
            Minimum(search, self.name),
            self,
            self._on_hard(search),
            Branch(self._goes_on, even_is_closed=True),
            self._even_is_closed,
        )

    def _meanwhile(self, search: LayerSearch) -> bool:
        """Anneal while the machine code is compiled; whether it is there before the search is over."""
        limits = search.limits
        program.start_compiling()
        if not limits.deterministic:
            short = limits.remaining is not None and limits.remaining < _COMPILING
            # A short limit may pass before the code is compiled, so that this mapping is the answer;
            # otherwise any mapping will do as a start.
            annealing = _annealing() if short else _annealing(walkers=64, steps=60)
            with suppress(LimitReachedError):  # compiled before the tables were filled
                annealing.solve(search.within(limits.stopping(WhenSet(program.READY))))
        return program.await_compiled(lambda: search.done)

    def _on_hard(self, search: LayerSearch) -> Callable[[], None]:
        """What helps a search that does not end soon: the optimum of perfect factors, or else annealing."""

        def offer() -> None:
            from tilewright.solvers.mapping.large_problems import offer_perfect_factors

            if is_large(search.problem) and not search.problem.space.nest.perfect:
                return  # the search began with them
            if offer_perfect_factors(search, self) and search.key is not None:
                return  # random walks hardly ever find anything better
            limits = search.limits.part(_SHARE, _ANNEALED)
            with suppress(LimitReachedError):
                _annealing().solve(search.within(limits))

        return offer

    def _bound(self, search: LayerSearch) -> Callable[[float], None]:
        def on_bound(least: float) -> None:
            """Everything still open costs at least this much."""
            if least > 0:
                # Bounds are floats: lowered by more than their rounding, then cut to a whole number of units.
                safe = Fraction(int(least * (1 - BAND))) / search.problem.key_scale
                # What was closed costs as much as the goal, which a gap leaves below the value.
                goal = goal_of(search)
                search.raise_bound(safe if goal is None else min(safe, goal), self.name)

        return on_bound


def _annealing(**options: int) -> ByArrangement:
    """Random walks in all storage; loaded late, as most searches end without them."""
    from tilewright.heuristics.mapping.annealing import Annealing

    return ByArrangement(Annealing(**options))
