"""Tables of many problems, each computed once.

Arrangements of storage, parts of machines, and machines that store other tensors mostly have the same rows of
tile sizes (:class:`~tilewright.formulation.mapping.space.Alike`), sort them in the same stages, and read the
same expressions of them.  What is known of equal rows is kept here for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from tilewright.formulation.expression import Expr
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.parts.relaxation import legal_groups
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.mapping.tiles.chains import MANY_ROWS, AxisGroup
from tilewright.formulation.mapping.tiles.tables import GroupTable, Tables
from tilewright.foundation.arrays import Indices
from tilewright.solvers.mapping.tables.array_bounds import ArrayBounds
from tilewright.solvers.mapping.tables.staged_tables import StagedTable, decided_by, decisive
from tilewright.solvers.mapping.tables.stages import Stage

MOST_SHARED_ROWS = 1_000_000
"""Rows of all axis groups of a problem whose tables others may read."""


class SharedTables:
    """What layouts of problems read, for any objective; for one thread at a time.

    Its methods raise ``LimitReachedError`` where a limit strikes.

    Attributes
    ----------
    bytes : about the memory of what is kept
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything; what somebody reads stays theirs."""
        self.bytes = 0
        self._tables: dict[Hashable, list[GroupTable]] = {}
        self._staged: dict[Hashable, StagedTable] = {}
        self._arrays: dict[Hashable, ArrayBounds] = {}
        self._legal: dict[Hashable, tuple[AxisGroup, ...]] = {}

    def legal(self, problem: LayerProblem, limits: Limits) -> tuple[AxisGroup, ...]:
        """The axis groups of a problem, large ones without rows that no legal mapping has."""
        groups = problem.space.groups
        if any(group.size_at_most > MANY_ROWS for group in groups):
            return legal_groups(problem, limits)
        key = (tuple(self._known(group) for group in groups), problem.limits)
        known = self._legal.get(key)
        if known is None:
            known = self._legal[key] = legal_groups(problem, limits)
        return known

    def tables(self, groups: Sequence[AxisGroup], roots: Sequence[Expr], limits: Limits) -> Tables:
        """The tables of some groups, with what some expressions read."""
        tables = Tables.of([self._known(group) for group in groups])
        self.read(tables, roots, limits)
        return tables

    def read(self, tables: Tables, roots: Sequence[Expr], limits: Limits) -> None:
        """Have what further expressions read."""
        before = sum(table.values.bytes for table in tables.tables)
        tables.read(roots, limits)
        # Staged tables have the same values in another sequence.
        self.bytes += 2 * (sum(table.values.bytes for table in tables.tables) - before)

    def restricted(self, tables: Tables, rows: Sequence[Indices]) -> Tables:
        """The same tables with some rows of every group only."""
        kept: list[GroupTable] = []
        for table, wanted in zip(tables.tables, rows, strict=True):
            part = table
            if len(wanted) < len(table):
                part = self._known(table.group.having(table.group.rows[wanted]))
                part.take(table, wanted)
            kept.append(part)
        return Tables.of(kept)

    def staged(
        self, tables: Tables, nest: Nest, stages: Sequence[Stage], limits: Limits
    ) -> tuple[list[Stage], list[StagedTable]]:
        """Those of some stages that decide anything, and tables in these, with all values that they have.

        Parameters
        ----------
        tables, nest : of one problem
        stages : from the first decision to the last
        limits : of the call
        """
        staged: list[StagedTable] = []
        for table in tables.tables:
            limits.check()
            staged.append(self._staged_table(table, nest, stages, limits))
        kept, fewer = decisive(staged, stages)
        if len(kept) < len(stages):
            keys = [_key(table, nest, kept) for table in tables.tables]
            staged = [self._staged.setdefault(key, table) for key, table in zip(keys, fewer, strict=True)]
            for known, table in zip(staged, tables.tables, strict=True):
                known.take(table)
        return kept, staged

    def _staged_table(
        self, table: GroupTable, nest: Nest, stages: Sequence[Stage], limits: Limits
    ) -> StagedTable:
        """A table in some stages, with all values that it has."""
        key = _key(table, nest, stages)
        known = self._staged.get(key)
        if known is None:
            known = self._staged[key] = StagedTable(table, nest, stages, limits.check)
            self.bytes += known.bytes
        else:
            known.take(table)
        return known

    def array(self, nest: Nest, tables: Tables, limits: Limits) -> ArrayBounds:
        """Bounds of what shares the array."""
        trips = (
            tuple(tuple(nest.trips([index], table.group.dims)) for index in nest.spatial)
            for table in tables.tables
        )
        axes = tuple(nest.blocks[index].axis for index in nest.spatial)
        key = (tuple(tables.tables), axes, tuple(trips))
        known = self._arrays.get(key)
        if known is None:
            known = self._arrays[key] = ArrayBounds(nest, tables, limits.check)
        return known

    def _known(self, group: AxisGroup) -> GroupTable:
        """The table of a group's rows."""
        alike = self._tables.setdefault((group.name, group.variables, len(group)), [])
        for table in alike:
            if table.group is group or np.array_equal(table.group.rows, group.rows):
                return table
        alike.append(GroupTable(group, ()))
        self.bytes += group.rows.nbytes
        return alike[-1]


_of_spaces: WeakKeyDictionary[Alike, SharedTables] = WeakKeyDictionary()
_MOST = 64 << 20  # bytes kept for later problems


def tables_beside(problem: LayerProblem) -> SharedTables | None:
    """Those of all problems whose spaces are alike; ``None`` where a problem has no such spaces."""
    if problem.alike is None:
        return None
    tables = _of_spaces.setdefault(problem.alike, SharedTables())
    if tables.bytes > _MOST:
        tables.clear()
    return tables


def _key(table: GroupTable, nest: Nest, stages: Sequence[Stage]) -> Hashable:
    """What staged tables have in common that are the same."""
    return table, *(decided_by(table.group, nest, stage) for stage in stages)
