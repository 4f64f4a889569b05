"""Rows of an axis group refined in stages, from the outermost tile inwards.

A stage fixes some of a group's decisions; rows that agree on them form a cell.  For every cell the tables
hold the minimum and maximum of each local expression, so a bound for a partial decision is one look-up
per group.  Rows are sorted so that the cells of each stage are contiguous and nested.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.mapping.tiles.columns import Classes
from tilewright.formulation.mapping.tiles.tables import GroupTable
from tilewright.foundation.arrays import Floats, Int32s, Int64s, contained
from tilewright.solvers.mapping.tables.cell_bounds import bound_cells
from tilewright.solvers.mapping.tables.stages import Stage

_MOST_PACKED = 1 << 62
"""Different values of a packed key."""
_VERY_LARGE = 1 << 16  # rows of a group, from which on tables take more time than a few more nodes
_NEARLY = 0.8  # of the cells of the stage behind, from which on such a group's rows are split before
_NO_CLASSES = np.zeros(0, dtype=np.int32)
_FEW = 1 << 10
"""Bounds of an expression that are kept for further programs: to copy them takes a tenth of the time."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What an expression comes to once the stages decide all that it reads.

    Parameters
    ----------
    stage : from which on every cell has rows of one class alone
    classes : of rows; ``None`` where every row is one of its own
    values : of each class
    """

    stage: int
    classes: Classes | None
    values: Floats


class StagedTable:
    """One group's tables at every stage.

    Attributes
    ----------
    starts : per stage, the first row of each cell
    offsets : where the bounds of the whole group (first) and of each stage's cells begin in :meth:`bounds`;
        a stage that splits no cell has the cells of the one before, in the same place

    Parameters
    ----------
    check : called between steps; millions of rows take seconds
    """

    def __init__(
        self, table: GroupTable, nest: Nest, stages: Sequence[Stage], check: Callable[[], None] = lambda: None
    ) -> None:
        decided = [decided_by(table.group, nest, stage) for stage in stages]
        columns = _columns(table.group)
        # Rows sorted by what stages decide, first stage first: cells of every stage are then ranges of rows.
        keys = _packed(key for own in decided for key in _keys(columns, own, check))
        check()
        self._order = order = np.lexsort(keys[::-1]) if keys else np.arange(len(table))
        del keys, columns  # of millions of rows they take as much as all else
        check()
        self.table = table.reordered(order)
        self._never_negative: dict[Expr, bool] = {}
        changed = np.zeros(len(table), dtype=bool)
        changed[:1] = True
        starts: list[Int32s] = []
        columns = _columns(self.table.group)
        for own in decided:
            for key in _packed(_keys(columns, own, check)):
                # A cell begins where anything decided so far differs from the row before.
                changed[1:] |= key[1:] != key[:-1]
            starts.append(np.flatnonzero(changed).astype(np.int32))
        if len(table) >= _VERY_LARGE:
            # A stage that splits hardly anything would take as much memory as all others: the stage before
            # decides what it does.
            for stage in reversed(range(len(starts) - 1)):
                if len(starts[stage]) >= _NEARLY * len(starts[stage + 1]):
                    starts[stage] = starts[stage + 1]
        self._lay(starts)

    def _lay(self, starts: list[Int32s]) -> None:
        """Give every stage its cells."""
        self.starts = starts
        self._known_levels: dict[int, tuple[Int32s, Int64s]] = {}  # by how many of the first stages they are
        self._kept: dict[tuple[Expr, bool, int | None], Floats] = {}
        self.offsets, self._ends = [0], [1]
        for cells, before in zip(map(len, starts), [1, *map(len, starts)], strict=False):
            end = self._ends[-1]
            self.offsets.append(self.offsets[-1] if cells == before else end)
            self._ends.append(end if cells == before else end + cells)

    @cached_property
    def children(self) -> list[Int32s]:
        """Per stage, the first cell of the next stage in each cell, with an end marker."""
        return [
            np.append(np.searchsorted(inner, here), len(inner)).astype(np.int32)
            for here, inner in pairwise(self.starts)
        ]

    def splits(self, stage: int) -> bool:
        """Whether a stage splits a cell of the stage before, or the whole group."""
        return self.offsets[stage + 1] != self.offsets[stage]

    def in_stages(self, kept: Sequence[int]) -> StagedTable:
        """The same in some stages only; the others split no cell."""
        if len(kept) == len(self.starts):
            return self
        result = copy.copy(self)
        for derived in ("children", "first_rows", "_settled_from"):
            result.__dict__.pop(derived, None)
        result._lay([self.starts[stage] for stage in kept])
        return result

    def take(self, table: GroupTable) -> None:
        """Take the values that the table has got since it was staged."""
        self.table.take(table, self._order)

    def drop_values(self) -> None:
        """Forget values of rows, and what is put together of cells to bound them."""
        self.table.values.clear()
        self._known_levels.clear()
        self.__dict__.pop("first_rows", None)

    @property
    def bytes(self) -> int:
        """Memory of its rows and cells."""
        # Every stage's cells have first rows, and are children.
        return self.table.group.rows.nbytes + 2 * sum(starts.nbytes for starts in self.starts)

    @cached_property
    def first_rows(self) -> Int32s:
        """The first row of the whole group, and of each stage's cells, in the places of :meth:`bounds`."""
        split = [starts for stage, starts in enumerate(self.starts) if self.splits(stage)]
        return np.concatenate([np.zeros(1, dtype=np.int32), *split])

    @cached_property
    def _settled_from(self) -> dict[Variable, int]:
        """The stage from which on each tile size is one in every cell; the last one's successor for none."""
        rows = self.table.group.rows
        result: dict[Variable, int] = {}
        for place, variable in enumerate(self.table.group.variables):
            changes = np.flatnonzero(rows[1:, place] != rows[:-1, place]) + 1
            stage = 0
            while stage < len(self.starts):
                begins = np.zeros(len(rows) + 1, dtype=bool)
                begins[self.starts[stage]] = True
                if begins[changes].all():
                    break
                stage += 1
            result[variable] = stage
        return result

    def settled(self, expr: Expr) -> Settled | None:
        """What an expression comes to once it is decided; ``None`` for a group of few rows."""
        if not self.table.values.is_large:
            return None
        classes, values = self.table.values.by_class(expr)
        stage = max(self._settled_from[variable] for variable in expr.support)
        if stage >= len(self.starts):
            return None
        return Settled(stage, classes, values)

    def has_cells_of(self, other: StagedTable) -> bool:
        """Whether another table has the same rows and cells, in the same sequence."""
        return np.array_equal(self.table.group.rows, other.table.group.rows) and all(
            map(np.array_equal, self.starts, other.starts)
        )

    def size(self, stages: int | None = None) -> int:
        """How many values :meth:`bounds` has for so many of the first stages."""
        return self._ends[-1 if stages is None else stages]

    def bounds(self, expr: Expr, low: bool, stages: int | None = None, into: Floats | None = None) -> Floats:
        """Least or greatest values of a local expression: over all rows, then cell by cell of each stage.

        Parameters
        ----------
        low : whether the least ones are asked for
        stages : so many of the first ones; by default all
        into : memory for them, as much as :meth:`size` says
        """
        bounds = np.empty(self.size(stages)) if into is None else into
        key = expr, low, stages
        known = self._kept.get(key)
        if known is not None:
            bounds[:] = known
            return bounds
        classes, values = self.table.values.by_class(expr)
        of_row = _NO_CLASSES if classes is None else classes.of_row
        levels = self._levels(len(self.starts) if stages is None else stages)
        bound_cells(values, of_row, *levels, low, bounds)
        if len(bounds) <= _FEW:
            self._kept[key] = bounds.copy()
        return bounds

    def _levels(self, stages: int) -> tuple[Int32s, Int64s]:
        """What :func:`bound_cells` reads for so many of the first stages."""
        levels = self._known_levels.get(stages)
        if levels is None:
            # Of stages with the same cells the last one tells where these have their children.
            last = [at for at in range(stages) if at == stages - 1 or self.splits(at + 1)]
            edges = [self.children[at] for at in last[:-1]]
            if last:
                edges.append(np.append(self.starts[last[-1]], np.int32(len(self.table))))
            whole = np.array([0, len(edges[0]) - 1 if edges else len(self.table)], dtype=np.int32)
            edges.insert(0, whole)
            places = [0, *(self.offsets[at + 1] for at in last)]
            counts = [len(level) - 1 for level in edges]
            levels = self._known_levels[stages] = (
                np.concatenate(edges),
                np.array([places, counts], dtype=np.int64),
            )
        return levels

    def is_never_negative(self, expr: Expr) -> bool:
        """Whether no row has a negative value."""
        known = self._never_negative.get(expr)
        if known is None:
            known = bool(self.table.values.by_class(expr)[1].min(initial=0.0) >= 0)
            self._never_negative[expr] = known
        return known


def settled_cells(
    staged: Sequence[StagedTable], of_rows: Sequence[Int64s]
) -> tuple[int, list[Int64s]] | None:
    """The first stage from which on all cells have rows of one class, and the classes of cells there.

    Parameters
    ----------
    of_rows : of every group, the class of each row

    Returns ``None`` where no stage settles them.
    """
    for stage in range(len(staged[0].starts) if staged else 0):
        starts = [own.starts[stage] for own in staged]
        if all(
            contained(np.flatnonzero(np.diff(own)) + 1, begin).all()
            for own, begin in zip(of_rows, starts, strict=True)
        ):
            return stage, [own[begin] for own, begin in zip(of_rows, starts, strict=True)]
    return None


def decisive(staged: Sequence[StagedTable], stages: Sequence[Stage]) -> tuple[list[Stage], list[StagedTable]]:
    """The stages that split a cell or make a choice, at least one, and the tables in these alone.

    Parameters
    ----------
    staged : of every axis group, in all the stages
    """
    kept = [
        number
        for number, stage in enumerate(stages)
        if stage.selectors or any(table.splits(number) for table in staged)
    ] or [0]
    return [stages[number] for number in kept], [table.in_stages(kept) for table in staged]


@dataclass(frozen=True, slots=True)
class Decided:
    """What a stage decides of one dimension.

    Parameters
    ----------
    spread : tiles outside and inside every array axis
    tiles : tile sizes
    coarse : as for `Stage`
    loops : tiles outside and inside every block of which it decides whether it has a loop
    """

    spread: tuple[tuple[Expr, Expr], ...]
    tiles: tuple[Expr, ...]
    coarse: float
    loops: tuple[tuple[Expr, Expr], ...]


def decided_by(group: AxisGroup, nest: Nest, stage: Stage) -> tuple[Decided, ...]:
    """What a stage decides of a group, dimension by dimension."""
    edges = nest.boundaries
    axes = [
        index
        for index, block in enumerate(nest.blocks)
        if block.axis is not None and block.level == stage.spread
    ]
    return tuple(
        Decided(
            tuple((edges[index][dim], edges[index + 1][dim]) for index in axes),
            tuple(edges[edge][dim] for edge in stage.boundaries),
            stage.coarse,
            tuple((edges[block][dim], edges[block + 1][dim]) for block in stage.loops),
        )
        for dim in group.dims
    )


def _columns(group: AxisGroup) -> dict[Variable, Int32s | Int64s]:
    """The tile sizes of all rows, by variable, in as few bits as they need."""
    largest = max((max(variable.domain) for variable in group.variables), default=0)
    kind = np.int32 if largest < 2**31 else np.int64
    return dict(zip(group.variables, group.rows.T.astype(kind, order="C"), strict=True))


def _keys(
    columns: MappingABC[Variable, Int32s | Int64s], decided: Iterable[Decided], check: Callable[[], None]
) -> list[Int32s | Int64s]:
    """The columns of what is decided, without tiles of one size.

    Parameters
    ----------
    columns : the tile sizes of all rows
    check : called between columns
    """

    def values(expr: Expr) -> Int32s | Int64s:
        if isinstance(expr, Constant):
            return np.array([expr.value], dtype=np.int64)
        assert isinstance(expr, Variable)
        return columns[expr]

    keys: list[Int32s | Int64s] = []
    for own in decided:
        check()
        spread = [-(-values(outer) // values(inner)) for outer, inner in own.spread]
        tiles = [values(expr) for expr in own.tiles]
        if own.coarse:
            trips = [each.astype(np.int64) for each in spread]  # whose product may need more bits
            spread = [_between_powers(2, reduce(np.multiply, trips))] if spread else []
            tiles = [_between_powers(own.coarse, column) for column in tiles]
        loops = [(values(outer) > values(inner)).astype(np.int32) for outer, inner in own.loops]
        keys += [key for key in (*loops, *spread, *tiles) if len(key) > 1]
    return keys


def _packed(keys: Iterable[Int32s | Int64s]) -> list[Int64s]:
    """Fewer keys that sort and distinguish rows as these do: neighbours in one number while it is exact."""
    packed: list[Int64s] = []
    values = 1
    for key in keys:
        own = int(key.max(initial=0)) + 1
        values *= own
        if packed and values <= _MOST_PACKED:
            packed[-1] *= own
            packed[-1] += key
        else:
            packed.append(key.astype(np.int64))
            values = own
    return packed


def _between_powers(base: float, column: Int32s | Int64s) -> Int64s:
    """Between which powers the values lie."""
    largest = int(column.max(initial=1))
    powers = float(base) ** np.arange(1, max(1, math.ceil(math.log(largest, base)) + 1) + 1)
    if largest > len(column):
        return np.searchsorted(powers, column, side="right")
    return np.searchsorted(powers, np.arange(largest + 1), side="right")[column]
