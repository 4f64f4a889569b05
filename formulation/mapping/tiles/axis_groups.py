"""The axis groups of a space: which tiles a dimension may have, and the rows of those cut together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from functools import lru_cache
from itertools import chain, pairwise
from types import MappingProxyType

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.mapping.nests.blocks import Block
from tilewright.formulation.mapping.tiles.chains import (
    MANY_ROWS,
    Among,
    AxisGroup,
    Check,
    Sizes,
    SparseChains,
    balanced_chains,
    count_chains,
    cross,
    every_chain,
    halved_chains,
    listed,
    perfect_chains,
    ranged_chains,
)
from tilewright.foundation.arrays import Bools, Indices, Int64s
from tilewright.workloads.mapping.operator import Dimension, Operator

Chains = Callable[..., Int64s]
Steps = tuple[()] | tuple[tuple[int, ...]] | tuple[tuple[int, ...], Among]
RowFilter = Callable[[MappingABC[str, Sequence[Int64s]]], Bools]

_BLOCK = 1 << 14  # combinations of chains that are made at once
DIVISORS, ROUNDED_UP, EVERY_INTEGER = "divisors", "ceil(outer/n)", "every integer"
HALVED = "ceil(outer/2**n)"
SPARSE = {octave: f"ceil(outer/n), {octave} sizes while one doubles" for octave in (8, 4, 2, 1, 0.5, 0.25)}
"""The tiles that a dimension may have inside a tile: its divisors, the least of every trip count, any, the
least of trip counts that are powers of two or fill an axis, or few sizes of the least of every trip count."""

CHAINS: MappingABC[str, Chains] = {
    DIVISORS: perfect_chains,
    ROUNDED_UP: balanced_chains,
    EVERY_INTEGER: every_chain,
    HALVED: halved_chains,
    **{kind: SparseChains(octave) for octave, kind in SPARSE.items()},
}


def chains_of(dimension: Dimension, tiles: str) -> Chains:
    """The chains of a dimension, which may stand for several bounds."""
    if dimension.upto is not None and tiles == ROUNDED_UP:
        return ranged_chains(dimension.bound, dimension.upto)
    return CHAINS[tiles]


def axis_group(
    operator: Operator,
    dims: tuple[str, ...],
    blocks: Sequence[Block],
    boundaries: Sequence[MappingABC[str, Expr]],
    variables: MappingABC[str, Sequence[Variable]],
    row_filters: Sequence[RowFilter],
    tiles: str,
    check: Check,
    sizes: Sizes = MappingProxyType({}),
) -> AxisGroup:
    """The choices of some dimensions together.

    Parameters
    ----------
    operator, dims : what is cut
    blocks, boundaries : of the nest, and the tile sizes between them
    variables : per dimension, those among the tile sizes, outermost first
    row_filters : user constraints on tile sizes
    tiles : which tiles a tile may be cut into
    check : called between dimensions
    sizes : that some variables may have; any by default
    """
    columns = tuple(chain.from_iterable(variables[dim] for dim in dims))
    chains = {dimension.name: chains_of(dimension, tiles) for dimension in operator.dimensions}
    steps = {dim: _steps(variables[dim], blocks, boundaries, dim, chains[dim], sizes) for dim in dims}
    counts = {dim: _count(operator.bounds[dim], len(variables[dim]), chains[dim], steps[dim]) for dim in dims}
    most = math.prod(counts.values())

    def tabulate(check: Check) -> Int64s:
        tables = []
        for dim in dims:
            check()
            # Filtered before the product of the group's dimensions, which could be too large to build.
            bound, length = operator.bounds[dim], len(variables[dim])
            rows = listed(chains[dim], counts[dim], check, bound, length, *steps[dim])
            check()
            tables.append(_keep(rows, variables[dim], [dim], operator, blocks, boundaries, row_filters))
        if len(dims) == 1:
            return tables[0]
        # User filters speak of one dimension and have been applied; an axis limits the product of the group's
        # dimensions.  Of all that is multiplied it keeps a part, so that no more than blocks of it are made.
        first, *others = tables
        step = max(1, _BLOCK // max(1, math.prod(map(len, others))))
        kept = []
        for start in range(0, max(1, len(first)), step):
            check()
            rows = cross([first[start : start + step], *others])
            kept.append(_keep(rows, columns, dims, operator, blocks, boundaries, ()))
        return np.concatenate(kept)

    def narrowed(wanted: Sizes) -> AxisGroup:
        return axis_group(
            operator, dims, blocks, boundaries, variables, row_filters, tiles, check, {**sizes, **wanted}
        )

    group = AxisGroup("+".join(dims), dims, columns, tabulate, most, narrowed)
    if most <= MANY_ROWS:
        group.make(check)
    return group


@lru_cache(maxsize=1024)
def _count(bound: int, length: int, chains: Chains, steps: Steps) -> int:
    """How many chains there are at most."""
    if chains is every_chain:
        every = math.comb(bound + length - 1, length)
        return every if len(steps) < 2 else min(every, math.prod(map(len, steps[1])))
    if chains is halved_chains:
        return len(halved_chains(bound, length, *steps))
    return count_chains(bound, length, chains, *steps)


def _steps(
    variables: Sequence[Variable],
    blocks: Sequence[Block],
    boundaries: Sequence[MappingABC[str, Expr]],
    dim: str,
    chains: Chains,
    sizes: Sizes,
) -> Steps:
    """What chains take of every step of a dimension: an array axis has so many trips, tiles some sizes only.

    What has more is left out by `_keep` in any case; not to make it saves memory.
    """
    limited = (perfect_chains, balanced_chains, halved_chains, every_chain)
    if not (chains in limited or isinstance(chains, SparseChains)):
        return ()
    most = tuple(
        block.axis.size if block.axis is not None else 0
        for index, block in enumerate(blocks)
        if isinstance(boundaries[index + 1][dim], Variable)
        and boundaries[index + 1][dim] is not boundaries[index][dim]
    )
    if any(variable in sizes for variable in variables):
        return most, tuple(frozenset(sizes.get(variable, variable.domain)) for variable in variables)
    return (most,) if any(most) else ()


def _keep(
    rows: Int64s,
    columns: Sequence[Variable],
    dims: Sequence[str],
    operator: Operator,
    blocks: Sequence[Block],
    boundaries: Sequence[MappingABC[str, Expr]],
    row_filters: Sequence[RowFilter],
) -> Int64s:
    """Rows whose spatial loops fit their axes and that pass the user's filters."""
    place = {variable: column for column, variable in enumerate(columns)}
    if row_filters:
        rows = rows.astype(np.int64)  # they multiply tile sizes

    def values(expr: Expr) -> Int64s:
        if isinstance(expr, Variable):
            return rows[:, place[expr]]
        return np.full(len(rows), expr.value, dtype=np.int64)  # type: ignore[attr-defined]

    mask = np.ones(len(rows), dtype=bool)
    for index, block in enumerate(blocks):
        if block.axis is not None:
            # Instances of one axis, shared by all dimensions of the group that are spread along it.
            spread = [
                (boundaries[index][dim], boundaries[index + 1][dim])
                for dim in dims
                if boundaries[index][dim] is not boundaries[index + 1][dim]
            ]
            if len(spread) == 1:
                ((outer, inner),) = spread
                mask &= values(outer) <= np.int64(block.axis.size) * values(inner)
            elif spread:
                trips = [-(-values(outer) // values(inner)) for outer, inner in spread]
                mask &= np.prod(trips, axis=0, dtype=np.int64) <= block.axis.size
    if row_filters:
        tiles = {dim: [values(edge[dim]) for edge in boundaries] for dim in dims}
        for row_filter in row_filters:
            mask &= row_filter(tiles)
    return rows if mask.all() else rows[mask]


def perfect_rows(boundaries: Sequence[MappingABC[str, Expr]], group: AxisGroup) -> Indices:
    """The rows of a group in which every tile divides the one around it.

    Parameters
    ----------
    boundaries : tile sizes between the blocks of the nest, outermost first
    """
    perfect = np.ones(len(group), dtype=np.bool_)
    for outer, inner in pairwise(boundaries):
        for dim in group.dims:
            if inner[dim] is not outer[dim]:
                perfect &= group.sizes(outer[dim]) % group.sizes(inner[dim]) == 0
    return np.flatnonzero(perfect)
