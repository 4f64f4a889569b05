"""The tree of partial decisions that branch and bound searches for the mappings of a problem.

It refines all axis groups stage by stage (:mod:`tilewright.solvers.mapping.tables.stages`): the outermost
tile first, then what happens inside it.  Partial decisions are opened in the order of their bounds; what a
goal does not want is closed.  A search that does not end soon asks for help, and divides the energy into
parts whose least values bound it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import replace

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.division import divided
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import MOST_TOGETHER, Deciding, Layout, laid_out
from tilewright.solvers.mapping.tree.nodes import Nodes
from tilewright.solvers.mapping.tree.part_bounds import PartBounds

_PLAIN = 300_000  # parts bounded from which on the energy is divided
_PLAIN_PRODUCT = 1_000_000  # where cycles count, too: least values of energy alone tell less of a product
_EASY = 2_000_000  # parts bounded from which on a search is a hard one
_CHOICES = 32  # of orders and residencies at the outset, with which a search is a hard one


class Tree(BestFirst):
    """One search of a problem for one goal.

    ``on_hard`` is called once, where the search does not end soon.  Raises ``LimitReachedError`` where a
    limit strikes before it is laid out.

    Parameters
    ----------
    problem : that of the search by default, else a part of it
    bank : keeps what the bound programs of several trees read
    divides : whether the energy is divided at once
    layout : the problem's, where it is known
    deciding : in which order it decides, where the layout is not known; by default the most promising one
    """

    def __init__(
        self,
        search: LayerSearch,
        goal: Goal,
        problem: LayerProblem | None = None,
        bank: TableBank | None = None,
        divides: bool = False,
        layout: Layout | None = None,
        deciding: Deciding | None = None,
    ) -> None:
        if layout is None:
            layout = laid_out(
                problem or search.problem,
                search.limits,
                goal=goal,
                bank=bank,
                deciding=deciding,
                tally=search.tally,
            )
        division = divided(layout) if divides and layout.energy is not None and layout.fits else None
        if division is not None:
            layout = layout.dividing(division.energy, division.parts)
        super().__init__(search, goal, layout)
        self.on_hard: Callable[[], None] = lambda: None
        self._is_hard, self._is_plain = False, division is None
        self._lower_bounds: PartBounds | None = None
        if division is not None:
            self._lower_bounds = PartBounds(search, goal, layout, division)

    def begin(self, on_bound: Callable[[float], None] = lambda _least: None, dive: bool = True) -> None:
        """As any search; one with many choices is hard at once: it divides the energy after the dive."""
        root = self._root(on_bound)
        choices = math.prod(len(selector.domain) for selector in self.layout.stages[0].selectors)
        has_many = choices > _CHOICES
        if has_many:
            self._ask()
        if dive:
            self._dive(root)
        if has_many:
            self._divide_once()
        self._open_first(root)

    def add(self, storage: MappingABC[Variable, int], least: MappingABC[Expr, float], dive: bool) -> None:
        """Open what is under one storage, in place of :meth:`begin`.

        Parameters
        ----------
        storage : options of all choices of storage
        least : what terms of the divided energy cost at least there, scaled
        dive : whether to look for a mapping there at once
        """
        if self._lower_bounds is not None:
            self._lower_bounds.know(least, storage)
        nodes = self._refinement.root(storage)
        if self.layout.owners:  # the first stage is the choice of storage, which is made
            nodes = replace(nodes, stage=0)
        if dive:
            self._dive(nodes)
        self._push(nodes)

    def _weigh_effort(self, bounded: int) -> None:
        if bounded > (_PLAIN_PRODUCT if self.layout.powers[1] else _PLAIN):
            self._divide_once()
        self._weigh_search(bounded)

    def _weigh_search(self, bounded: int) -> None:
        if bounded > _EASY:
            self._ask()

    def _ask(self) -> None:
        """Ask for help, once."""
        if not self._is_hard:
            self._is_hard = True
            self.on_hard()

    def _divide_once(self) -> None:
        """Divide the energy, once, where it counts."""
        # Of very many rows, tables of parts would take more memory and time than the parts are worth.
        may_divide = self._is_plain and sum(len(own.table) for own in self.layout.staged) <= MOST_TOGETHER
        if may_divide and self.layout.energy is not None:
            with suppress(LimitReachedError):
                self._divide()
        self._is_plain = False

    def _divide(self) -> None:
        """Read the energy as a sum of parts that have lower bounds; raises where a limit strikes."""
        division = divided(self.layout)
        if division.parts:
            layout = self.layout.dividing(division.energy, division.parts)
            self._refinement.read(layout)
            self.layout = layout
            self._lower_bounds = PartBounds(self.search, self.goal, layout, division)

    def _learned(self, nodes: Nodes) -> bool:
        """What one more part of the energy costs at least under the storage of some nodes bounds all of them.

        Once all parts are known and the storage is still of interest, dive into it.
        """
        storage = self.layout.storage(nodes.chosen)
        if self._lower_bounds is None or storage is None or not self._lower_bounds.raise_next(storage, nodes):
            return False
        alike = [part for *_, part in self._open if self.layout.storage(part.chosen) == storage]
        self._open = [entry for entry in self._open if self.layout.storage(entry[-1].chosen) != storage]
        heapq.heapify(self._open)
        for part in [*alike, nodes]:
            bounded = self._refinement.pruned(part)
            if len(bounded):
                self._push(bounded.cheapest_first())
        if storage and nodes.stage == 0 and self._lower_bounds.are_complete(storage):
            self._dive(self._refinement.pruned(nodes))
        return True
