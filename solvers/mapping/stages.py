"""Rows of an axis group refined in stages, from the outermost tile inwards.

A stage fixes some of a group's decisions; rows that agree on them form a cell.  For every cell the tables
hold the minimum and maximum of each local expression, so a bound for a partial decision is one look-up
per group.  Rows are sorted so that the cells of each stage are contiguous and nested.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping.chains import AxisGroup
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tables import GroupTable
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class Stage:
    """The boundaries and choices that one refinement decides.

    Parameters
    ----------
    name : in words
    spread : index of the memory level whose spatial loops it fixes, if any
    boundaries : boundaries whose tile sizes it fixes
    selectors : choices that it fixes
    coarse : it fixes only between which powers of this number those tile sizes lie, of spatial loops between
        which powers of two the instances that a dimension takes on all axes together; 0 where it fixes them
    """

    name: str
    spread: int | None
    boundaries: tuple[int, ...]
    selectors: tuple[Variable, ...]
    coarse: float = 0.0
    loops: tuple[int, ...] = ()


COARSE, FINE = 3.0, 1.2
STORAGE = "storage"
MANY = 1_000_000  # outermost tiles, before any limit
FEW_LEVELS = 3  # that keep tiles of all tensors


def stages_of(space: MapSpace, spread_first: bool = False, inner_first: bool = False) -> list[Stage]:
    """Storage, then outer tile first, the spatial split inside it, the next tile, down to single iterations.

    The order of a level's loops is decided together with the tile that they step through; which tensors
    levels store is decided before all else.  Tiles are many, so their sizes are decided roughly first: that
    of the outermost one where there are very many, and those of all levels before any exactly where storages,
    or levels of all tensors, are many, since most rough parts close whatever the exact tile around them is.
    Where cycles count, or exact outermost tiles are very many, a second rough stage is finer, and no tile is
    decided exactly before the next one is known roughly: what lies inside it closes most tiles that bounds
    of the outer levels leave open.
    Around a tile inside an array, how much of the array each dimension takes is decided roughly as soon as
    the tile is known roughly.

    Parameters
    ----------
    spread_first : whether spatial splits are decided before all tiles: they settle the cycles of computing
    inner_first : whether a tile inside an array is decided before what is spread: it must fit a small store
    """
    nest = space.nest
    temporal = [(index, nest.blocks[index]) for index in nest.temporal]
    orders = [block.selector for _, block in temporal if isinstance(block.selector, Variable)]
    stores = tuple(selector for selector in space.selectors if selector not in orders)
    levels = [nest.engine.levels[block.level] for _, block in temporal]
    whole = sum(level.keeps == set(Role) for level in levels)
    partial = bool(stores) or whole < len(levels) >= FEW_LEVELS  # some tensors may be stored in fewer levels
    all_roughly_first = whole > FEW_LEVELS or (partial and not nest.perfect)
    first: list[Stage] = []
    rough: list[list[Stage]] = []
    exact: list[list[Stage]] = []
    done = 0
    outermost = temporal[1][0] if len(temporal) > 1 else 0
    refined = not nest.perfect and not stores and (spread_first or _tiles(space, outermost) > MANY)
    for (place, outside), (position, _) in pairwise(temporal):
        between = nest.spatial_between(place, position)
        chosen = (outside.selector,) if isinstance(outside.selector, Variable) else ()
        edges = tuple(range(done + 1, position + 1))
        arrays, around = spreads(nest, between), bool(between) and inner_first
        # Perfect tiles are few enough to be decided exactly at once.
        many = not nest.perfect and (
            refined or all_roughly_first or done > 0 or _tiles(space, position) > MANY
        )
        # With the inner tile first, what lies between is decided with the array around it.
        tile = Stage(f"tile of {space.sites[position]}", None, edges[-1:] if around else edges, chosen)
        roughly: list[Stage] = []
        if many or around:
            stage, tile = _twice(tile)
            roughly.append(stage)
            if refined:
                roughly.append(replace(stage, coarse=FINE, selectors=()))
        exactly = [tile]
        if around:
            roughly += rough_spreads(nest, between)
            exactly += _twice(Stage(f"array around {space.sites[position]}", None, edges[:-1], ()))
        elif spread_first:
            first += [*(rough_spreads(nest, between) if all_roughly_first else ()), *arrays]
        else:
            roughly = [*arrays, *roughly]
        rough.append(roughly)
        exact.append(exactly)
        done = position
    exact.append([Stage("innermost loops", None, tuple(range(done + 1, len(nest.boundaries))), ())])
    if all_roughly_first:
        stages = [*first, *chain(*rough), *chain(*exact)]
    else:
        # The exact stages of a tile follow its rough ones, or those of the next tile.
        rough += [[]] * (2 if refined else 1)
        exact = [[], *exact] if refined else exact
        stages = [
            *first,
            *chain.from_iterable(stage + other for stage, other in zip(rough, exact, strict=True)),
        ]
    return [Stage(STORAGE, None, (), stores), *stages] if stores else stages


def spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks."""
    levels = dict.fromkeys(nest.blocks[index].level for index in blocks)
    return [Stage(f"spread below {nest.engine.levels[level].name}", level, (), ()) for level in levels]


def rough_spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks: roughly what each dimension takes of it."""
    return [_roughly(stage) for stage in spreads(nest, blocks)]


def _roughly(stage: Stage) -> Stage:
    """The stage that decides roughly what another one decides exactly."""
    return replace(stage, name=f"rough {stage.name}", coarse=COARSE)


def _twice(stage: Stage) -> list[Stage]:
    """A stage that decides roughly, and then the stage itself."""
    return [_roughly(stage), replace(stage, selectors=())]


def _tiles(space: MapSpace, boundary: int) -> int:
    """How many tiles a boundary may have, were there no limits."""
    sizes = [expr for expr in space.nest.boundaries[boundary].values() if isinstance(expr, Variable)]
    return math.prod(len(size.domain) for size in sizes)


@dataclass(frozen=True, slots=True)
class Settled:
    """What an expression comes to once the stages decide all that it reads.

    Parameters
    ----------
    stage : from which on every cell has rows of one class alone
    of_row : the class of each row; ``None`` where every row is one of its own
    values : of each class
    """

    stage: int
    of_row: Int32s | None
    values: Floats


class StagedTable:
    """One group's tables at every stage.

    Attributes
    ----------
    starts : per stage, the first row of each cell
    children : per stage, the first cell of the next stage in each cell, with an end marker
    offsets : where the bounds of the whole group (first) and of each stage's cells begin in :meth:`bounds`;
        a stage that splits no cell has the cells of the one before, in the same place
    """

    def __init__(self, table: GroupTable, nest: Nest, stages: Sequence[Stage]) -> None:
        keys = [_keys(table, decided_by(table.group, nest, stage)) for stage in stages]
        # Rows sorted by what stages decide, first stage first: cells of every stage are then ranges of rows.
        flat = [column for columns in keys for column in columns]
        order = np.lexsort(flat[::-1]) if flat else np.arange(len(table))
        self.table = table.reordered(order)
        self._order = order
        self._never_negative: dict[Expr, bool] = {}
        count = len(table)
        changed = np.zeros(count, dtype=bool)
        changed[:1] = True
        starts: list[Int32s] = []
        for columns in keys:
            for column in columns:
                ordered = column[order]
                # A cell begins where anything decided so far differs from the row before.
                changed[1:] |= ordered[1:] != ordered[:-1]
            starts.append(np.flatnonzero(changed).astype(np.int32))
        self._lay(starts)

    def _lay(self, starts: list[Int32s]) -> None:
        """Give every stage its cells."""
        self.starts = starts
        self.children: list[Int32s] = []
        for here, inner in pairwise(starts):
            self.children.append(np.append(np.searchsorted(inner, here), len(inner)).astype(np.int32))
        self.offsets, self._ends = [0], [1]
        for cells, before in zip(map(len, starts), [1, *map(len, starts)], strict=False):
            end = self._ends[-1]
            self.offsets.append(self.offsets[-1] if cells == before else end)
            self._ends.append(end if cells == before else end + cells)

    def splits(self, stage: int) -> bool:
        """Whether a stage splits a cell of the stage before, or the whole group."""
        return self.offsets[stage + 1] != self.offsets[stage]

    def in_stages(self, kept: Sequence[int]) -> StagedTable:
        """The same in some stages only; the others split no cell."""
        result = copy.copy(self)
        for derived in ("first_rows", "_settled_from"):
            result.__dict__.pop(derived, None)
        result._lay([self.starts[stage] for stage in kept])
        return result

    def take(self, table: GroupTable) -> None:
        """Take the values that the table has got since it was staged."""
        self.table.take(table, self._order)

    @property
    def bytes(self) -> int:
        """Memory of its rows and cells."""
        return self.table.group.rows.nbytes + sum(array.nbytes for array in (*self.starts, *self.children))

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
        return Settled(stage, None if classes is None else classes.of_row, values)

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
        count = len(self.starts) if stages is None else stages
        bounds = np.empty(self.size(count)) if into is None else into
        end = np.minimum if low else np.maximum
        inner = values = self.table.values[expr]
        # From the finest cells outwards: each coarser cell is a range of finer ones.
        for stage in range(count - 1, -1, -1):
            if stage < count - 1 and not self.splits(stage + 1):
                continue  # the stage behind has the same cells
            starts = self.starts[stage] if inner is values else self.children[stage][:-1]
            cells = bounds[self.offsets[stage + 1] : self.offsets[stage + 1] + len(starts)]
            if len(starts) == len(inner):
                cells[:] = inner
            else:
                end.reduceat(inner, starts, out=cells)
            inner = cells
        bounds[0] = end.reduce(inner)
        return bounds

    def is_never_negative(self, expr: Expr) -> bool:
        """Whether no row has a negative value."""
        known = self._never_negative.get(expr)
        if known is None:
            known = bool(self.table.values.by_class(expr)[1].min(initial=0.0) >= 0)
            self._never_negative[expr] = known
        return known

    def root_children(self) -> tuple[int, int]:
        """The range of cells of the first stage."""
        return 0, len(self.starts[0])


def decisive(
    staged: Sequence[StagedTable], stages: Sequence[Stage]
) -> tuple[list[Stage], list[StagedTable]]:
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


def _keys(table: GroupTable, decided: Iterable[Decided]) -> list[Int64s]:
    """The columns of what is decided."""
    place = {variable: column for column, variable in enumerate(table.group.variables)}
    rows = table.group.rows

    def values(expr: Expr) -> Int64s:
        if isinstance(expr, Constant):
            return np.full(len(rows), expr.value, dtype=np.int64)
        assert isinstance(expr, Variable)
        return rows[:, place[expr]]

    columns: list[Int64s] = []
    for own in decided:
        spread = [-(-values(outer) // values(inner)) for outer, inner in own.spread]
        tiles = [values(expr) for expr in own.tiles]
        if own.coarse:
            spread = [_between_powers(2, np.asarray(np.prod(spread, axis=0)))] if spread else []
            tiles = [_between_powers(own.coarse, column) for column in tiles]
        loops = [(values(outer) > values(inner)).astype(np.int64) for outer, inner in own.loops]
        columns += [*loops, *spread, *tiles]
    return columns


def _between_powers(base: float, column: Int64s) -> Int64s:
    """Between which powers the values lie."""
    most = max(1, math.ceil(math.log(int(column.max(initial=1)), base)) + 1)
    return np.searchsorted(float(base) ** np.arange(1, most + 1), column, side="right")
