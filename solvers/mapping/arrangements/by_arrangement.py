"""Methods that know one arrangement of storage at a time, on problems whose storage is uneven.

Branch and bound searches all arrangements together
(:mod:`tilewright.solvers.mapping.arrangements.arrangement_trees`). Every other exact solver is asked for each
arrangement in turn, from the second on for something better than what is known; the least of its bounds is
the bound of the whole.  A heuristic searches the even part: what it finds counts, its bound does not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerMethod, LayerSearch
from tilewright.formulation.method import Outcome, knows_arrangements
from tilewright.solvers.mapping.narrowed import solve_narrowed
from tilewright.solvers.mapping.part_search import PartSearch

_COMPOSED = "auto"
"""Whose methods work by themselves."""
_SHARE = 0.25  # of the time, for the even part at least: among thousands it has hardly any
_CAPPED = ("energy", "cycles", "edp")
_NOTHING = "no mapping satisfies all constraints"


class ByArrangement:
    """A method made fit for uneven storage; on even storage it is the method itself."""

    def __init__(self, method: LayerMethod) -> None:
        self._method = method
        self.name, self.exact = method.name, method.exact

    @property
    def version(self) -> str:
        return self._method.version

    @property
    def knows_arrangements(self) -> bool:
        """Whether the method itself searches all arrangements."""
        return knows_arrangements(self._method)

    def solve(self, search: LayerSearch) -> Outcome:
        """Search the whole space, part by part where the method knows no other way.

        Arrangements may be thousands, each of which would have to show that nothing fits.
        """
        if search.problem.is_uneven and self.exact:
            from tilewright.solvers.mapping.fused.floors.least_room import fits_alone

            if not fits_alone(search.problem.operator, search.problem.engine):
                return Outcome(True, _NOTHING)
        if self.name == _COMPOSED:
            return self._method.solve(search)
        with search.at_work(self.name):
            return self._solve(search)

    def _solve(self, search: LayerSearch) -> Outcome:
        if self.knows_arrangements:
            return self._method.solve(search)
        if not search.problem.is_uneven:
            return solve_narrowed(search, self._method)
        if not self.exact:
            return solve_narrowed(_part(search, search.problem.even()), self._method)
        return self._each(search)

    def _each(self, search: LayerSearch) -> Outcome:
        compulsory = least_key(search.problem)
        if compulsory > 0 and (search.key is None or compulsory <= search.key):
            search.raise_bound(compulsory, "compulsory traffic")
        rest: list[Arrangement] = []
        for slots in search.problem.arrangements():
            if search.done:
                return Outcome(False)
            rest.append(slots)
        least: Fraction | None = None  # of the bounds; none yet
        exhausted, message = True, ""
        for index in range(len(rest) + 1):
            if search.done:
                return Outcome(False, message)
            check = search.limits.check
            part = search.problem.arranged(rest[index - 1], check) if index else search.problem
            share = 1 / (len(rest) + 1 - index) if index else max(_SHARE, 1 / (len(rest) + 1))
            inner = _part(search, self._capped(part, search.key), share)
            outcome = self._part_solved(inner)
            message = outcome.message if outcome.error else message
            if outcome.exhausted and inner.key is None:
                continue
            exhausted = exhausted and inner.proven
            bound = inner.bound or Fraction(0)
            least = bound if least is None else min(least, bound)
        if least is None and search.key is None:
            return Outcome(exhausted, _NOTHING)
        known = [bound for bound in (least, search.key) if bound is not None]
        if min(known) > 0:
            search.raise_bound(min(known), self.name)
        return Outcome(exhausted, message, error=bool(message) and not exhausted)

    def _part_solved(self, inner: LayerSearch) -> Outcome:
        """How the search of one arrangement ended; in its share of the time nothing may be known of it."""
        with suppress(LimitReachedError):
            return solve_narrowed(inner, self._method)
        return Outcome(False)

    @staticmethod
    def _capped(part: LayerProblem, key: Fraction | None) -> LayerProblem:
        """The part with what is known as a limit, where the objective is one that has limits."""
        name = str(part.objective)
        return part if key is None or name not in _CAPPED else part.capped(name, key)


def _part(whole: LayerSearch, problem: LayerProblem, share: float = 1.0) -> PartSearch:
    """A search of a part for its optimum, in a share of the time that is left."""
    return PartSearch(whole, problem, replace(whole.limits.share(share), gap=0.0))
