"""Rows of an axis group refined in stages, from the outermost tile inwards.

A stage fixes some of a group's decisions; rows that agree on them form a cell.  For every cell the tables
hold the minimum and maximum of each local expression, so a bound for a partial decision is one look-up
per group.  Rows are sorted so that the cells of each stage are contiguous and nested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.expression.batch import Array
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tables import GroupTable, Indices


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


def stages_of(space: MapSpace, spread_first: bool = False, inner_first: bool = False) -> list[Stage]:
    """Storage, then outer tile first, the spatial split inside it, the next tile, down to single iterations.

    The order of a level's loops is decided together with the tile that they step through; which tensors
    levels store is decided before all else.  Tiles that need not divide are many: their size is decided
    roughly first, that of the outermost one where there are very many.  Around a tile inside an array, how
    much of the array each dimension takes is decided roughly as soon as the tile is known roughly.

    Parameters
    ----------
    spread_first : whether spatial splits are decided before all tiles: they settle the cycles of computing
    inner_first : whether a tile inside an array is decided before what is spread: it must fit a small store
    """
    nest = space.nest
    temporal = [(index, nest.blocks[index]) for index in nest.temporal]
    orders = [block.selector for _, block in temporal if isinstance(block.selector, Variable)]
    stores = tuple(selector for selector in space.selectors if selector not in orders)
    stages: list[Stage] = []
    done = 0
    for (place, outside), (position, _) in pairwise(temporal):
        between = nest.spatial_between(place, position)
        chosen = (outside.selector,) if isinstance(outside.selector, Variable) else ()
        edges = tuple(range(done + 1, position + 1))
        site = space.sites[position]
        if between and inner_first:
            rough, tile = _twice(Stage(f"tile of {site}", None, edges[-1:], chosen))
            stages += [rough, *rough_spreads(nest, between), tile]
            stages += _twice(Stage(f"array around {site}", None, edges[:-1], ()))
        else:
            for level in {nest.blocks[index].level for index in between}:
                stages.append(Stage(f"spread below {nest.engine.levels[level].name}", level, (), ()))
            tile = Stage(f"tile of {site}", None, edges, chosen)
            many = not nest.perfect and (done or _tiles(space, position) > MANY)
            stages += _twice(tile) if many else [tile]
        done = position
    stages.append(Stage("innermost loops", None, tuple(range(done + 1, len(nest.boundaries))), ()))
    if spread_first:
        stages.sort(key=lambda stage: stage.spread is None)
    return [Stage(STORAGE, None, (), stores), *stages] if stores else stages


def rough_spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks: roughly what each dimension takes of it."""
    levels = dict.fromkeys(nest.blocks[index].level for index in blocks)
    names = [level.name for level in nest.engine.levels]
    return [Stage(f"rough spread below {names[level]}", level, (), (), coarse=True) for level in levels]


def _twice(stage: Stage) -> list[Stage]:
    """A stage that decides roughly, and then the stage itself."""
    rough = replace(stage, name=f"rough {stage.name}", coarse=True)
    return [rough, replace(stage, selectors=())]


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
                changed[1:] |= ordered[1:] != ordered[:-1]
            self.starts.append(np.flatnonzero(changed))
        self.children: list[Indices] = []
        for here, inner in zip(self.starts, self.starts[1:], strict=False):
            self.children.append(np.append(np.searchsorted(inner, here), len(inner)))
        sizes = [1, *map(len, self.starts)]
        self.offsets = [0, *np.cumsum(sizes[:-1]).tolist()]

    def bounds(self, expr: Expr, low: bool) -> Array:
        """Least or greatest values of a local expression: over all rows, then cell by cell of each stage."""
        end = np.minimum if low else np.maximum
        found = [end.reduceat(self.table.values[expr], self.starts[-1])]
        for children in reversed(self.children):
            found.append(end.reduceat(found[-1], children[:-1]))
        return np.concatenate([[end.reduce(found[-1])], *reversed(found)])

    def root_children(self) -> tuple[int, int]:
        """The range of cells of the first stage."""
        return 0, len(self.starts[0])


def _keys(table: GroupTable, nest: Nest, stage: Stage) -> list[NDArray[np.int64]]:
    """The columns that a stage decides."""
    place = {variable: column for column, variable in enumerate(table.group.variables)}
    rows = table.group.rows

    def values(expr: Expr) -> NDArray[np.int64]:
        if isinstance(expr, Constant):
            return np.full(len(rows), expr.value, dtype=np.int64)
        assert isinstance(expr, Variable)
        return rows[:, place[expr]]

    def trips(index: int, dim: str) -> NDArray[np.int64]:
        return -(-values(nest.boundaries[index][dim]) // values(nest.boundaries[index + 1][dim]))

    axes = [
        index
        for index, block in enumerate(nest.blocks)
        if block.axis is not None and block.level == stage.spread
    ]
    columns: list[NDArray[np.int64]] = []
    for dim in table.group.dims:
        spread = [trips(index, dim) for index in axes]
        tiles = [values(nest.boundaries[edge][dim]) for edge in stage.boundaries]
        if stage.coarse:
            spread = [_between_powers(2, math.prod(spread))] if spread else []
            tiles = [_between_powers(COARSE, column) for column in tiles]
        columns += [*spread, *tiles]
    return columns


def _between_powers(base: int, column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Between which powers the values lie."""
    return np.searchsorted(base ** np.arange(1, 40), column, side="right")
