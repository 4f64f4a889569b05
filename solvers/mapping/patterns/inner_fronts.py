"""The front of energy and cycles that the innermost stores of storage patterns have.

The problem of two innermost levels, or three, has few tiles, and only what all levels outside cost at least
differs between patterns that store the same there
(:mod:`tilewright.formulation.mapping.parts.inner_levels`).  So one search finds what is of interest for all
of them, and the tiles of the cheapest decisions make good mappings.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.mapping.parts.inner_levels import InnerStores, stores_problem
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.mapping.tiles.boundary_tiles import Tiles
from tilewright.foundation.arrays import Floats
from tilewright.solvers.mapping.levels.outside_first import deciding_around_array, seen_from_outside
from tilewright.solvers.mapping.patterns.part_tiles import PartAnswer, PartTiles
from tilewright.solvers.mapping.patterns.pattern_machines import PatternSearch
from tilewright.solvers.mapping.tables.shared_tables import SharedTables
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.fronts import FrontBelow
from tilewright.solvers.mapping.tree.goals import Goal, Minimum
from tilewright.solvers.mapping.tree.layout import LegalTables, laid_out
from tilewright.solvers.mapping.tree.listed_tiles import ListedTiles
from tilewright.solvers.mapping.tree.tree import Tree

_EFFORT = 2_000_000  # nodes bounded for the stores of some levels
_MOST = 100_000  # decisions whose tiles are listed
_LOOK = 200_000  # and for a mapping with some of their tiles
_MOST_BYTES = 200_000_000  # of tables that their searches read
_ROUNDING = 1e-9  # relative; far above that of sums of some ten parts


@dataclass(frozen=True, slots=True)
class InnerFront:
    """Energy and cycles of mappings with some innermost stores, where levels outside cost their least.

    Parameters
    ----------
    outside : what these cost at least, pJ
    energy, cycles : of what is cheap in either, pJ and cycles, shape (points,)
    left : lower bound of the objective key, in pJ and cycles, of all that is not worse than one of them
    """

    outside: float
    energy: Floats
    cycles: Floats
    left: float

    def least_keys(self, outside: Floats, powers: tuple[int, int]) -> Floats:
        """Lower bounds of the objective key, in pJ and cycles, where levels outside cost more.

        Parameters
        ----------
        outside : what they cost at least, pJ, shape (patterns,); none less than those of the front
        powers : of energy and cycles in the key
        """
        energy = self.energy + (outside[:, None] - self.outside)
        keys: Floats = energy ** powers[0] * self.cycles ** powers[1]
        least: Floats = keys.min(axis=1, initial=self.left) * (1 - _ROUNDING)
        return least


class InnerFronts:
    """Searches for what innermost stores of one problem cost; a limit that strikes raises.

    Parameters
    ----------
    search : of the whole, whose limits count
    source : what finds mappings
    from_outside : whether tiles next to the array come first, and tell what is inside at least
    """

    def __init__(self, search: LayerSearch, source: str, from_outside: bool = False) -> None:
        self._search, self._source = search, source
        self._from_outside = from_outside
        self._cheapest: PartAnswer | None = None
        self._alike, self._tables, self._bank = Alike(), SharedTables(), TableBank()

    def found(
        self, stores: InnerStores, known: MappingABC[int, float], outside: float, below: float
    ) -> InnerFront:
        """The front of some stores, of keys below one in pJ and cycles.

        Parameters
        ----------
        known : what each of the levels costs at least, pJ
        outside : what levels outside cost at least, pJ; first fills from them and last drains count nothing
        """
        search = self._search
        part = self._part(stores, known, outside)
        scale = float(search.problem.key_scale)
        goal = FrontBelow(below * scale)
        left = self._searched(part, goal)
        unit = float(search.problem.statement.energy_scale)
        least = below if left is None else min(below, left / scale)
        self._cheapest = PartAnswer(part, goal.least / scale, False, goal.tiles)
        return InnerFront(outside, goal.energy / unit, goal.cycles, least)

    def listed(
        self, stores: InnerStores, known: MappingABC[int, float], outside: float
    ) -> tuple[LayerProblem, Tiles | None]:
        """The problem of some stores, and the tiles of all mappings that the goal may want.

        ``None`` in place of tiles that are too many.

        Parameters
        ----------
        known, outside : as for :meth:`found`; first fills and last drains count
        """
        part = self._part(stores, known, outside, fills=True)
        edges = range(1, len(part.space.nest.blocks))
        goal = ListedTiles(Minimum(self._search, self._source), part, edges, _MOST)
        is_open = self._searched(part, goal) is not None or goal.are_too_many
        return part, None if is_open else goal.tiles()

    def _part(
        self, stores: InnerStores, known: MappingABC[int, float], outside: float, fills: bool = False
    ) -> LayerProblem:
        """The problem of some stores."""
        if self._tables.bytes + self._bank.bytes > _MOST_BYTES:
            self._alike, self._tables, self._bank = Alike(), SharedTables(), TableBank()
        problem, alike = self._search.problem, self._alike
        return stores_problem(problem, stores, known, outside, alike, fills, knows_inside=self._from_outside)

    def _searched(self, part: LayerProblem, goal: Goal) -> float | None:
        """Lower bound, scaled, of what a search for a goal leaves open; ``None`` where that is nothing."""
        search = self._search
        legal = LegalTables(part, search.limits, self._tables)
        deciding = deciding_around_array(part) if self._from_outside else None
        layout = laid_out(
            part, search.limits, bank=self._bank, deciding=deciding, tally=search.tally, legal=legal
        )
        tree = BestFirst(search, goal, layout)
        if tree.empty:
            return None
        tree.limit(_EFFORT)
        return tree.run()

    def offer(self, pattern: LayerProblem) -> None:
        """Offer the best mapping of a pattern that has the tiles of the last front's cheapest decisions.

        Parameters
        ----------
        pattern : the problem of its machine
        """
        tiles = PartTiles(pattern)
        if self._cheapest is None or not tiles.learn(self._cheapest):
            return
        part, deciding = (self._from_outside and seen_from_outside(tiles.problem)) or (tiles.problem, None)
        inner = PatternSearch(self._search, part)
        tree = Tree(inner, Minimum(inner, self._source), part, deciding=deciding)
        if not tree.empty:
            tree.limit(_LOOK)
            tree.run()
