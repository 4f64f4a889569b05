"""Tables of what depends on one axis group alone.

Axis groups meet only in products, sums and maxima.  Whatever depends on one group is computed once per
row of that group; candidates then look it up.  Minima and maxima over sets of rows give intervals that
are exact per group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.mapping.tiles.columns import Columns
from tilewright.foundation.arrays import Floats, Indices


def local_nodes(roots: Iterable[Expr]) -> dict[str, list[Expr]]:
    """The largest sub-expressions that depend on one axis group alone, by group."""
    by_group: dict[str, dict[Expr, None]] = {}
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        # What depends on one group alone is looked up; its parts need no place in the table.
        if node.group is not None:
            by_group.setdefault(node.group, {})[node] = None
        elif not isinstance(node, Variable):
            stack.extend(node.children())
    return {group: list(nodes) for group, nodes in by_group.items()}


class GroupTable:
    """Values of a group's local nodes at each of its rows."""

    def __init__(self, group: AxisGroup, nodes: Sequence[Expr], limits: Limits | None = None) -> None:
        self.group = group
        self.values = Columns(group)
        self.values.compute(nodes, limits)

    def __len__(self) -> int:
        return len(self.group)

    def reordered(self, order: Indices) -> GroupTable:
        """The same table with its rows in another sequence."""
        return _filled(self.values.reordered(order))

    def take(self, other: GroupTable, order: Indices) -> None:
        """Take the values that another table has got of the same rows, in this sequence of them."""
        new = [node for node in other.values if node not in self.values]
        if new:
            self.values.update(other.values.among(new).reordered(order))

    def missing(self, roots: Sequence[Expr], limits: Limits | None = None) -> Columns:
        """The values that some expressions read and the table does not have."""
        read = local_nodes(roots).get(self.group.name, [])
        missing = self.values.among([])  # that knows the classes of rows
        missing.compute([node for node in read if node not in self.values], limits)
        return missing

    def reading(self, roots: Sequence[Expr], limits: Limits | None = None) -> GroupTable:
        """The same rows with what some expressions read."""
        read = local_nodes(roots).get(self.group.name, [])
        values = self.values.among([node for node in read if node in self.values])
        values.update(self.missing(roots, limits))
        return _filled(values)


def _filled(values: Columns) -> GroupTable:
    """A table of values that are known."""
    result = object.__new__(GroupTable)
    result.group, result.values = values.group, values
    return result


class Tables:
    """The tables of all groups for some expressions.

    Parameters
    ----------
    groups : the problem's axis groups
    roots : the expressions that will be read
    limits : ``LimitReachedError`` is raised where one strikes
    """

    def __init__(
        self, groups: Sequence[AxisGroup], roots: Sequence[Expr], limits: Limits | None = None
    ) -> None:
        nodes = local_nodes(roots)
        self.tables = [GroupTable(group, nodes.get(group.name, []), limits) for group in groups]

    @classmethod
    def of(cls, tables: Sequence[GroupTable]) -> Tables:
        """Tables that are known."""
        result = cls.__new__(cls)
        result.tables = list(tables)
        return result

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(table) for table in self.tables)

    def restricted(self, rows: Sequence[Indices]) -> Tables:
        """The same tables with some rows of every group only."""
        if self.sizes == tuple(map(len, rows)):
            return self
        return Tables.of([table.reordered(kept) for table, kept in zip(self.tables, rows, strict=True)])

    def read(self, roots: Sequence[Expr], limits: Limits | None = None) -> None:
        """Have what further expressions read; raises ``LimitReachedError`` at a limit."""
        nodes = local_nodes(roots)
        for table in self.tables:
            table.values.compute(
                [node for node in nodes.get(table.group.name, ()) if node not in table.values], limits
            )

    def known(self, rows: Sequence[Indices]) -> dict[Expr, Floats]:
        """Looked-up values of all local nodes for one row index array per group."""
        return {
            node: table.values.take(node, index)
            for table, index in zip(self.tables, rows, strict=True)
            for node in table.values
        }

    def assignment(self, rows: Sequence[int]) -> dict[Variable, int]:
        """Tile sizes at one row per group."""
        return {
            variable: int(table.group.rows[row, column])
            for table, row in zip(self.tables, rows, strict=True)
            for column, variable in enumerate(table.group.variables)
        }
