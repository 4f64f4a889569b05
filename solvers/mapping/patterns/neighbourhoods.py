"""Neighbourhoods of the best mapping: machines of its levels, or one more, with all tiles but a few kept.

A neighbourhood is searched as any space is, so it allows large moves: two axis groups take any tiles that go
with those of the others, any loop orders, and tensors may pass levels (large neighbourhood search: Shaw,
"Using constraint programming and local search methods to solve vehicle routing problems", CP 1998).  It has
so few combinations that its search ends long before that of a whole machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from itertools import combinations

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import TablesTooLargeError
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.nests.idle_levels import loose_levels
from tilewright.formulation.mapping.parts.relaxation import wanted_rows
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Indices
from tilewright.solvers.mapping.patterns.pattern_machines import (
    PatternSearch,
    levels_of,
    machine_of,
    stores_of,
)
from tilewright.solvers.mapping.presolve.encode import tile_sizes
from tilewright.solvers.mapping.tables.shared_tables import SharedTables
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.layout import LegalTables, laid_out

_FREE = 2
"""Axis groups that take other tiles."""
_NODES = 200_000
"""Bounded in a neighbourhood, with those of a batch more."""
_MOST = 200_000
"""Rows of tiles of a machine; one that has more has perfect factors, or is left out."""

_ENDED = object()

Levels = tuple[int, ...]


class Neighbourhoods:
    """What is near the best mapping of a search whose machines of fewer levels stand alone.

    Parameters
    ----------
    source : what finds mappings
    may_improve : whether machines of some levels may have something better, as far as is known
    """

    def __init__(
        self,
        search: LayerSearch,
        source: str,
        may_improve: Callable[[Collection[int]], bool] = lambda _levels: True,
    ) -> None:
        self._search, self._source, self._may_improve = search, source, may_improve
        self._last: tuple[Levels, _Machine | None] | None = None
        self._tried: set[tuple[Levels, tuple[tuple[str, int], ...]]] = set()
        self._mapping: Mapping | None = None
        self._left: Iterator[None] = iter(())

    def steps(self) -> Iterator[None]:
        """Search neighbourhoods until the best mapping has none that was not searched, one a step.

        A further call goes on where the one before was left.
        """
        while not self._search.done:
            if self._mapping is not self._search.answer:
                self._mapping = self._search.answer
                self._left = iter(()) if self._mapping is None else self._around(self._mapping)
            if next(self._left, _ENDED) is not _ENDED:
                yield
            elif self._mapping is self._search.answer:
                return

    def _around(self, mapping: Mapping) -> Iterator[None]:
        """Search the neighbourhoods of a mapping, those of its own levels first."""
        stored = levels_of(stores_of(self._search.problem, mapping))
        others = [level for level in loose_levels(self._search.problem.space.nest) if level not in stored]
        for levels in (stored, *(tuple(sorted((*stored, level))) for level in others)):
            if not self._may_improve(levels):
                continue
            with suppress(TablesTooLargeError):
                machine = self._machine(levels)
                if machine is not None:
                    yield from self._on(machine, levels, mapping)

    def _on(self, machine: _Machine, levels: Levels, mapping: Mapping) -> Iterator[None]:
        """Search the neighbourhoods of a mapping on one machine, those of few tiles first."""
        sizes = tile_sizes(machine.problem, mapping)
        movable = [group for group in machine.groups if len(group) > 1]
        for free in sorted(
            combinations(movable, min(_FREE, len(movable))), key=lambda free: sum(map(len, free))
        ):
            kept = {
                variable: sizes[variable]
                for group in machine.groups
                if group not in free
                for variable in group.variables
            }
            mark = levels, tuple((variable.name, size) for variable, size in kept.items())
            if mark not in self._tried:
                self._tried.add(mark)
                machine.search_with(kept)
                yield

    def _machine(self, levels: Levels) -> _Machine | None:
        """The machine with some levels; ``None`` where it has very many tiles."""
        if self._last is None or self._last[0] != levels:
            self._last = None  # its memory serves the next one
            problem = self._search.problem.on(machine_of(self._search.problem.engine, levels))
            if problem.space.rows > _MOST and not problem.space.nest.perfect:
                problem = problem.with_perfect_factors()
            fits = problem.space.rows <= _MOST
            self._last = levels, _Machine(self._search, problem, self._source) if fits else None
        return self._last[1]


class _Machine:
    """A problem whose neighbourhoods read the same tables: rows that may be better than the best mapping.

    Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    whole : receives every mapping
    source : what finds mappings
    """

    def __init__(self, whole: LayerSearch, problem: LayerProblem, source: str) -> None:
        self.problem, self._search = problem, PatternSearch(whole, problem)
        self._goal, self._bank = Minimum(self._search, source), TableBank()
        legal = LegalTables(problem, whole.limits, SharedTables())
        # What no better mapping has now, none will have.
        rows = wanted_rows(problem, legal.tables, self._goal.wanted, whole.limits)
        self._legal = legal.restricted(rows)

    @property
    def groups(self) -> list[AxisGroup]:
        """The axis groups, of these rows."""
        return [table.group for table in self._legal.tables.tables]

    def search_with(self, kept: MappingABC[Variable, int]) -> None:
        """Search what has some tile sizes.

        Parameters
        ----------
        kept : tile sizes of groups, all of a group's or none
        """
        rows: list[Indices] = []
        for group in self.groups:
            columns = [column for column, variable in enumerate(group.variables) if variable in kept]
            sizes = [kept[group.variables[column]] for column in columns]
            rows.append(np.flatnonzero((group.rows[:, columns] == sizes).all(axis=1)))
        if not all(map(len, rows)):
            return
        legal, tally = self._legal.restricted(rows), self._search.tally
        layout = laid_out(self.problem, self._search.limits, bank=self._bank, tally=tally, legal=legal)
        tree = BestFirst(self._search, self._goal, layout)
        if not tree.empty:
            tree.limit(_NODES)
            tree.run()
