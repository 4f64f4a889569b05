"""Rows of an axis group refined in stages, from the outermost tile inwards.

A stage fixes some of a group's decisions; rows that agree on them form a cell.  For every cell the tables
hold the minimum and maximum of each local expression, so a bound for a partial decision is one look-up
per group.  Rows are sorted so that the cells of each stage are contiguous and nested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tables import GroupTable
from tilewright.foundation.arrays import Floats, Indices, Int64s
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
    coarse : whether it fixes only between which powers of ``COARSE`` those tile sizes lie, of spatial loops
        between which powers of two the instances that a dimension takes on all axes together
    """

    name: str
    spread: int | None
    boundaries: tuple[int, ...]
    selectors: tuple[Variable, ...]
    coarse: bool = False


COARSE = 3
STORAGE = "storage"
MANY = 1_000_000  # outermost tiles, before any limit
FEW_LEVELS = 3  # that keep tiles of all tensors


def stages_of(space: MapSpace, spread_first: bool = False, inner_first: bool = False) -> list[Stage]:
    """Storage, then outer tile first, the spatial split inside it, the next tile, down to single iterations.

    The order of a level's loops is decided together with the tile that they step through; which tensors
    levels store is decided before all else.  Tiles are many, so their sizes are decided roughly first: that
    of the outermost one where there are very many, and those of all levels before any exactly where storages,
    or levels of all tensors, are many, since most rough parts close whatever the exact tile around them is.
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
    for (place, outside), (position, _) in pairwise(temporal):
        between = nest.spatial_between(place, position)
        chosen = (outside.selector,) if isinstance(outside.selector, Variable) else ()
        edges = tuple(range(done + 1, position + 1))
        arrays, around = _spreads(nest, between), bool(between) and inner_first
        # Perfect tiles are few enough to be decided exactly at once.
        many = not nest.perfect and (all_roughly_first or done > 0 or _tiles(space, position) > MANY)
        # With the inner tile first, what lies between is decided with the array around it.
        tile = Stage(f"tile of {space.sites[position]}", None, edges[-1:] if around else edges, chosen)
        roughly: list[Stage] = []
        if many or around:
            stage, tile = _twice(tile)
            roughly.append(stage)
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
        rough.append([])
        stages = [
            *first,
            *chain.from_iterable(stage + other for stage, other in zip(rough, exact, strict=True)),
        ]
    return [Stage(STORAGE, None, (), stores), *stages] if stores else stages


def _spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks."""
    levels = dict.fromkeys(nest.blocks[index].level for index in blocks)
    return [Stage(f"spread below {nest.engine.levels[level].name}", level, (), ()) for level in levels]


def rough_spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks: roughly what each dimension takes of it."""
    return [_roughly(stage) for stage in _spreads(nest, blocks)]


def _roughly(stage: Stage) -> Stage:
    """The stage that decides roughly what another one decides exactly."""
    return replace(stage, name=f"rough {stage.name}", coarse=True)


def _twice(stage: Stage) -> list[Stage]:
    """A stage that decides roughly, and then the stage itself."""
    return [_roughly(stage), replace(stage, selectors=())]


def _tiles(space: MapSpace, boundary: int) -> int:
    """How many tiles a boundary may have, were there no limits."""
    sizes = [expr for expr in space.nest.boundaries[boundary].values() if isinstance(expr, Variable)]
    return math.prod(len(size.domain) for size in sizes)


class StagedTable:
    """One group's tables at every stage.

    Attributes
    ----------
    starts : per stage, the first row of each cell
    children : per stage, the first cell of the next stage in each cell, with an end marker
    offsets : where the bounds of the whole group (first) and of each stage's cells begin in :meth:`bounds`
    """

    def __init__(self, table: GroupTable, nest: Nest, stages: Sequence[Stage]) -> None:
        keys = [_keys(table, nest, stage) for stage in stages]
        # Rows sorted by what stages decide, first stage first: cells of every stage are then ranges of rows.
        flat = [column for columns in keys for column in columns]
        order = np.lexsort(flat[::-1]) if flat else np.arange(len(table))
        self.table = table.reordered(order)
        count = len(table)
        changed = np.zeros(count, dtype=bool)
        changed[:1] = True
        self.starts: list[Indices] = []
        for columns in keys:
            for column in columns:
                ordered = column[order]
                # A cell begins where anything decided so far differs from the row before.
                changed[1:] |= ordered[1:] != ordered[:-1]
            self.starts.append(np.flatnonzero(changed))
        self.children: list[Indices] = []
        for here, inner in zip(self.starts, self.starts[1:], strict=False):
            self.children.append(np.append(np.searchsorted(inner, here), len(inner)))
        sizes = [1, *map(len, self.starts)]
        self.offsets = [0, *np.cumsum(sizes[:-1]).tolist()]

    def bounds(self, expr: Expr, low: bool) -> Floats:
        """Least or greatest values of a local expression: over all rows, then cell by cell of each stage."""
        end = np.minimum if low else np.maximum
        # From the finest cells outwards: each coarser cell is a range of finer ones.
        levels = [end.reduceat(self.table.values[expr], self.starts[-1])]
        for children in reversed(self.children):
            levels.append(end.reduceat(levels[-1], children[:-1]))
        return np.concatenate([[end.reduce(levels[-1])], *reversed(levels)])

    def root_children(self) -> tuple[int, int]:
        """The range of cells of the first stage."""
        return 0, len(self.starts[0])


def _keys(table: GroupTable, nest: Nest, stage: Stage) -> list[Int64s]:
    """The columns that a stage decides."""
    place = {variable: column for column, variable in enumerate(table.group.variables)}
    rows = table.group.rows

    def values(expr: Expr) -> Int64s:
        if isinstance(expr, Constant):
            return np.full(len(rows), expr.value, dtype=np.int64)
        assert isinstance(expr, Variable)
        return rows[:, place[expr]]

    def trips(index: int, dim: str) -> Int64s:
        return -(-values(nest.boundaries[index][dim]) // values(nest.boundaries[index + 1][dim]))

    axes = [
        index
        for index, block in enumerate(nest.blocks)
        if block.axis is not None and block.level == stage.spread
    ]
    columns: list[Int64s] = []
    for dim in table.group.dims:
        spread = [trips(index, dim) for index in axes]
        tiles = [values(nest.boundaries[edge][dim]) for edge in stage.boundaries]
        if stage.coarse:
            spread = [_between_powers(2, np.asarray(np.prod(spread, axis=0)))] if spread else []
            tiles = [_between_powers(COARSE, column) for column in tiles]
        columns += [*spread, *tiles]
    return columns


def _between_powers(base: int, column: Int64s) -> Int64s:
    """Between which powers the values lie."""
    return np.searchsorted(base ** np.arange(1, 40), column, side="right")
