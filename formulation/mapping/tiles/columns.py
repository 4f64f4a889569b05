"""Values of expressions at the rows of an axis group, each different one kept once.

An expression reads a few of a group's tile sizes, and rows that agree in these have one value.  A group of a
deep machine has 100,000 rows or more, of which a few thousand differ in any two or three tiles.  So values
are computed and kept by class of rows; all expressions over the same tiles share the classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Floats, Indices, Int32s, Int64s

BLOCK = LARGE = 1 << 14
"""Rows that are tabulated at once, some milliseconds for the dearest expressions; fewer are never classed."""
_FEW = 1 << 10  # rows, up to which no limit is checked inside an expression
_FEWER = 4  # times fewer classes than rows, from which on they are worth their map
_DENSE = 8  # times the rows, up to which codes are counted rather than sorted

Tiles = frozenset[Variable]


@dataclass(slots=True, eq=False)
class Classes:
    """Rows by what stands in some of their columns.

    Parameters
    ----------
    columns : the tile sizes of each class, by variable
    """

    columns: Mapping[Variable, Floats]
    _numbers: Int32s
    _order: Indices | None = None  # in which the numbers are read; they are put into it when they are

    @property
    def of_row(self) -> Int32s:
        """The class of each row."""
        if self._order is not None:
            self._numbers, self._order = self._numbers.take(self._order), None
        return self._numbers

    @property
    def bytes(self) -> int:
        """Memory of the class of each row, as far as it is its own."""
        return self._numbers.nbytes if self._order is None else 0

    def in_order(self, order: Indices) -> Classes:
        """The same of some rows, in another sequence."""
        return Classes(self.columns, self.of_row, order)


@dataclass(frozen=True, slots=True)
class _Column:
    """What an expression comes to.

    Parameters
    ----------
    classes : whose values these are; ``None`` where they are those of rows
    order : the rows that are meant, in their sequence, where some of many are
    """

    classes: Classes | None
    values: Floats
    order: Indices | None = None

    def of_rows(self) -> Floats:
        """The value at every row."""
        index = self.order if self.classes is None else self.classes.of_row
        return self.values if index is None else self.values.take(index)

    def at(self, rows: Indices) -> Floats:
        """The values at some rows."""
        index = self.order if self.classes is None else self.classes.of_row
        return self.values.take(rows if index is None else index.take(rows))


class Columns(Mapping[Expr, Floats]):
    """The values of some expressions at every row of a group, expanded where they are asked for.

    Parameters
    ----------
    group : its rows
    """

    def __init__(self, group: AxisGroup) -> None:
        self.group = group
        self._classes: dict[Tiles, Classes | None] = {}
        self._numbers: dict[int, tuple[Int32s, int]] = {}  # of each row's size, by column; how many sizes
        self._values: dict[Expr, _Column] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self._values)

    def __contains__(self, expr: object) -> bool:
        return expr in self._values

    def __getitem__(self, expr: Expr) -> Floats:
        return self._values[expr].of_rows()

    def take(self, expr: Expr, rows: Indices) -> Floats:
        """The values of an expression at some rows."""
        return self._values[expr].at(rows)

    def by_class(self, expr: Expr) -> tuple[Classes | None, Floats]:
        """The values of each class of rows, or of each row where there are no classes."""
        column = self._values[expr]
        return column.classes, column.of_rows() if column.classes is None else column.values

    @property
    def bytes(self) -> int:
        """Memory of the values and of the classes of rows."""
        classes = (known.bytes for known in self._classes.values() if known is not None)
        numbers = (numbers.nbytes for numbers, _ in self._numbers.values())
        values = (column.values.nbytes for column in self._values.values() if column.order is None)
        return sum(values) + sum(classes) + sum(numbers)

    def update(self, other: Columns) -> None:
        """Take the values that others have of the same rows."""
        self._values.update(other._values)
        self._classes.update(other._classes)
        self._numbers.update(other._numbers)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()
        self._classes.clear()
        self._numbers.clear()

    def compute(self, nodes: Sequence[Expr], limits: Limits | None = None) -> None:
        """Compute what some expressions of this group come to; raises ``LimitReachedError`` at a limit."""
        alike: dict[Tiles, list[Expr]] = {}
        for node in nodes:
            tiles = Tiles() if self._classes_of(node.support, limits) is None else node.support
            alike.setdefault(tiles, []).append(node)
        for tiles, own in alike.items():
            classes = self._classes_of(tiles, limits) if tiles else None
            columns: Mapping[Variable, Int64s | Floats] = (
                {variable: self.group.rows[:, i] for i, variable in enumerate(self.group.variables)}
                if classes is None
                else classes.columns
            )
            length = len(self.group) if classes is None else len(next(iter(columns.values())))
            for node, values in _read(own, columns, length, limits).items():
                self._values[node] = _Column(classes, values)

    @property
    def is_large(self) -> bool:
        """Whether there are so many rows that their classes are worth finding."""
        return len(self.group) > LARGE

    def _classes_of(self, tiles: Tiles, limits: Limits | None) -> Classes | None:
        """The classes of rows by some columns; ``None`` where every row may count as one."""
        if not self.is_large:
            return None
        if tiles not in self._classes:
            places = [i for i, variable in enumerate(self.group.variables) if variable in tiles]
            self._classes[tiles] = self._classed(places, limits)
        return self._classes[tiles]

    def _classed(self, places: Sequence[int], limits: Limits | None) -> Classes | None:
        group = self.group
        codes, most = np.zeros(len(group), dtype=np.int64), 1
        for place in places:
            if limits is not None:
                limits.check()  # millions of rows take some tens of milliseconds each time
            if place not in self._numbers:
                column = group.rows[:, place]
                self._numbers[place] = _numbered(column, int(column.max()) + 1)
            dense, size = self._numbers[place]
            codes, most = codes * size + dense, most * size
            if most >= 1 << 62:
                return None
        of_row, count = _numbered(codes, most)
        if count * _FEWER > len(group):
            return None
        first = np.zeros(count, dtype=np.int64)
        first[of_row[::-1]] = np.arange(len(group) - 1, -1, -1)
        columns = {group.variables[place]: group.rows[first, place].astype(np.float64) for place in places}
        return Classes(columns, of_row)

    def reordered(self, order: Indices) -> Columns:
        """The same values of some rows, in another sequence; they are put into it when they are read."""
        group = self.group
        result = Columns(group.having(group.rows[order]))
        moved: dict[int, Classes] = {}
        orders: dict[int, Indices] = {}

        def in_order(classes: Classes | None) -> Classes | None:
            # Values taken from others may have classes of their own for the same tiles.
            if classes is not None and id(classes) not in moved:
                moved[id(classes)] = classes.in_order(order)
            return None if classes is None else moved[id(classes)]

        for tiles, classes in self._classes.items():
            result._classes[tiles] = in_order(classes)
        for node, column in self._values.items():
            own = column.order
            if own is not None and id(own) not in orders:
                orders[id(own)] = own.take(order)
            rows = order if own is None else orders[id(own)]
            classes = in_order(column.classes)
            result._values[node] = _Column(classes, column.values, rows if classes is None else None)
        return result

    def among(self, nodes: Sequence[Expr]) -> Columns:
        """The values of some of the expressions, of the same rows."""
        result = Columns(self.group)
        result._classes.update(self._classes)
        result._numbers.update(self._numbers)
        result._values.update({node: self._values[node] for node in nodes})
        return result


def _numbered(codes: Int64s | Int32s, most: int) -> tuple[Int32s, int]:
    """The codes, all below ``most``, as numbers without gaps in their order, and how many there are."""
    if most > _DENSE * len(codes):
        different, numbers = np.unique(codes, return_inverse=True)
        return numbers.astype(np.int32), len(different)
    there = np.zeros(most, dtype=bool)
    there[codes] = True
    return (np.cumsum(there, dtype=np.int32) - 1)[codes], int(np.count_nonzero(there))


def _read(
    nodes: Sequence[Expr], columns: Mapping[Variable, Int64s | Floats], length: int, limits: Limits | None
) -> dict[Expr, Floats]:
    """Values of expressions, block by block: intermediate values never take a whole column's memory."""
    result: dict[Expr, Floats] = {}
    if length > BLOCK:
        result = {node: np.empty(length) for node in nodes}
    for start in range(0, max(1, length), BLOCK):
        block = {v: column[start : start + BLOCK].astype(np.float64) for v, column in columns.items()}
        if limits is None or length <= _FEW:  # an expression of few rows is read within a millisecond
            reader = BatchReader(block)
        else:
            reader = BatchReader(block, check=limits.check)
        for node in nodes:
            if limits is not None:
                limits.check()
            if length > BLOCK:
                result[node][start : start + BLOCK] = reader.read(node)
            else:
                result[node] = np.broadcast_to(reader.read(node), (length,))
    return result
