"""What searches of parts of a machine read: tables and layouts that many of them share."""

from __future__ import annotations

from collections.abc import Hashable

from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.tables.shared_tables import SharedTables
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import Layout, LegalTables, laid_out

_FEW_ROWS = 10_000  # of a part, with which its layout is the same for all goals
_MOST_BYTES = 200_000_000  # of what programs of parts read, and of their tables


class PartTables:
    """What searches of parts read, together."""

    def __init__(self) -> None:
        self._shared, self._bank = SharedTables(), TableBank()
        self._layouts: dict[Hashable, Layout] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._shared.clear()
        self._bank.clear()
        self._layouts.clear()

    def layout(self, part: LayerProblem, search: LayerSearch, goal: Goal) -> Layout:
        """The layout of a part; raises ``LimitReachedError`` where a limit strikes."""
        space, stated = part.space, part.statement
        key = id(space), stated.energy, stated.cycles, part.limits, part.objective, goal.both
        known = self._layouts.get(key)
        if known is not None:
            return known
        if self._shared.bytes + self._bank.bytes > _MOST_BYTES:
            self.clear()
        legal = LegalTables(part, search.limits, self._shared).wanted(goal)
        laid = laid_out(part, search.limits, goal=goal, bank=self._bank, tally=search.tally, legal=legal)
        if space.rows <= _FEW_ROWS:
            self._layouts[key] = laid  # which keeps the space, and so its identity
        return laid
