"""What single parts of storage patterns cost at least, each found by a search of its own.

Parts of one problem mostly have the same tiles and read the same counts of them, at other energies, so they
share tables; a part that is searched again, with more effort or for more, has its layout still.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.mapping.parts.storage_parts import StoragePart, part_problem
from tilewright.formulation.mapping.parts.uneven_parts import uneven_part_problems
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.solvers.mapping.patterns.part_tiles import PartAnswer
from tilewright.solvers.mapping.tables.shared_tables import SharedTables, tables_beside
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import LeastEnergy
from tilewright.solvers.mapping.tree.layout import Deciding, Layout, LegalTables, laid_out

_MOST_BYTES = 200_000_000  # of tables that searches of parts read


class PartCosts:
    """Searches of the parts of one problem; they raise ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    search : of the whole, whose limits count
    """

    def __init__(self, search: LayerSearch) -> None:
        self._search = search
        self._alike, self._tables = Alike(), SharedTables()
        self._layouts: dict[tuple[StoragePart, Fraction], list[Layout]] = {}
        self._bytes = 0

    def least(self, part: StoragePart, weight: Fraction, effort: int, enough: float) -> PartAnswer:
        """What a part costs at least, as far as a search of some effort knows, or enough.

        Over uneven storage it is the least over all sequences of points.

        Parameters
        ----------
        weight : what each of the part's own cycles costs besides, pJ
        effort, enough : as for :func:`least_energy`; the effort is shared by all sequences of points
        """
        known, left = enough, math.inf  # by searches that have ended, and by others
        answers: list[PartAnswer] = []
        layouts = self._layouts_of(part, weight)
        for layout in layouts:
            answers.append(_least(self._search, layout, -(-effort // len(layouts)), known))
            if answers[-1].is_exact:
                known = min(known, answers[-1].least)
            else:
                left = min(left, answers[-1].least)
        cheapest = min(answers, key=lambda answer: answer.least)
        return replace(cheapest, is_exact=known <= left)

    def _layouts_of(self, part: StoragePart, weight: Fraction) -> list[Layout]:
        """The layouts of a part; those of many parts read the same tables."""
        known = self._layouts.get((part, weight))
        if known is None:
            if self._tables.bytes + self._bytes > _MOST_BYTES:
                self._tables.clear()
                self._layouts.clear()
                self._bytes = 0
            search, problem = self._search, self._search.problem
            stated: Iterable[LayerProblem] = (
                uneven_part_problems(problem, part, weight, self._alike)
                if problem.is_uneven
                else [part_problem(problem, part, weight, self._alike)]
            )
            # Spatial splits settle the steps, which count where a cycle costs something.  Over even storage
            # other parts' tiles settle more (measured on free axes with bypass).
            deciding = Deciding(spread_first=True) if weight and problem.is_uneven else None
            known = []
            for own in stated:
                legal = LegalTables(own, search.limits, self._tables)
                known.append(laid_out(own, search.limits, deciding=deciding, tally=search.tally, legal=legal))
            self._layouts[part, weight] = known
            self._bytes += sum(layout.bytes for layout in known)
        return known


def least_energy(
    search: LayerSearch,
    part: LayerProblem,
    effort: int,
    deciding: Deciding | None = None,
    enough: float = math.inf,
) -> PartAnswer:
    """What a part costs at least, as far as a search of some effort knows.

    Raises ``LimitReachedError`` where a limit strikes before.

    Parameters
    ----------
    search : of the whole, whose limits count
    part : to be searched for the least energy
    effort : nodes that are bounded at most
    deciding : in which order; by default that for energy
    enough : pJ; what costs as much is of no interest, and far fewer nodes are below
    """
    shared = tables_beside(part)
    legal = None if shared is None else LegalTables(part, search.limits, shared)
    layout = laid_out(part, search.limits, deciding=deciding, tally=search.tally, legal=legal)
    return _least(search, layout, effort, enough)


def _least(search: LayerSearch, layout: Layout, effort: int, enough: float) -> PartAnswer:
    """As :func:`least_energy`, for the layout of a part."""
    part, scale = layout.problem, layout.problem.statement.energy_scale
    goal = LeastEnergy(enough * scale)
    tree = BestFirst(search, goal, layout)
    if tree.empty:
        return PartAnswer(part, math.inf, True, {})
    tree.limit(effort)
    left = tree.run()
    least = min(goal.best, math.inf if left is None else left)
    return PartAnswer(part, least / scale, left is None, goal.tiles)
