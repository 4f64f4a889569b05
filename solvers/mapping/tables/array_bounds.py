"""Bounds of products whose factors share the PE array through spatial loops.

Interval arithmetic bounds every axis group of a product on its own, as if each had the whole PE array.
Together they must fit: per array axis the spatial trips multiply to at most its size.  For a product of
factors that each depend on one group this is a small knapsack, solved exactly by dynamic programming over
the instances used per axis.  A dimension that may take either of two axes takes neither for sure, so the
array as a whole is a limit of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Product, product
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.mapping.tiles.columns import BLOCK
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Floats, Int32s, Int64s


def implied_array_limits(nest: Nest) -> list[Limit]:
    """For every array of several axes: no more instances than it has, whatever axis they stand on.

    The limits of single axes imply it.  A part of the space in which a dimension takes many instances, but
    on an axis that is still open, breaks no limit of a single axis.
    """
    arrays: dict[int, list[int]] = {}
    for index in nest.spatial:
        arrays.setdefault(nest.blocks[index].level, []).append(index)
    return [
        Limit(
            f"array below {nest.engine.levels[level].name}",
            product(nest.trips(blocks)),
            math.prod(
                axis.size for axis in (nest.blocks[index].axis for index in blocks) if axis is not None
            ),
        )
        for level, blocks in arrays.items()
        if len(blocks) > 1
    ]


def products(roots: Iterable[Expr]) -> list[Product]:
    """Products of two or more factors that each depend on one axis group."""
    collected: list[Product] = []
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen or node.group is not None:
            continue
        seen.add(node)
        if isinstance(node, Product):
            factors = [factor for factor in node.factors if not isinstance(factor, Constant)]
            if len(factors) > 1 and all(factor.group is not None for factor in factors):
                collected.append(node)
        stack.extend(node.children())
    return collected


def alike(every: Int32s | Int64s, sizes: Sequence[int]) -> Int64s:
    """For every usage the least one that leaves as much of the array.

    Of an axis of `size`, `used` instances leave ``size // used`` for loops inside and outside.  What `more`
    of them leave then is ``size // (used * more) == (size // used) // more``, so usages that leave the same
    are the same for whatever else is spread; an axis knows some ``2 * size ** 0.5`` of them.

    Parameters
    ----------
    every : instances used along every axis, at least 1, shape (usages, axes)
    sizes : of the array's axes
    """
    columns = []
    for column, size in zip(every.T, sizes, strict=True):
        # Looked up: a division takes ten times as long.  What is larger than the axis does not fit.
        of_usage = size // (size // np.arange(1, size + 2) + 1) + 1
        columns.append(of_usage[np.minimum(column, size + 1) - 1])
    return np.stack(columns, axis=1)


class Distinct:
    """The different ones among some usages of the array that fit it.

    Parameters
    ----------
    every : instances used along every axis, in integers of any width, shape (usages, axes)
    sizes : of the array's axes; none where all usages count
    merges : whether usages that are :func:`alike` are one
    """

    def __init__(self, every: Int64s | Int32s, sizes: Sequence[int] = (), merges: bool = False) -> None:
        places = None
        if sizes:
            places = np.flatnonzero((every <= np.asarray(sizes)).all(axis=1))
            every = every[places]
        if merges and sizes:
            every = alike(every, sizes)
        codes, most = np.zeros(len(every), dtype=np.int64), 1  # one number for each, which sorts fast
        for column in every.T:
            is_used = np.zeros(int(column.max(initial=0)) + 1, dtype=np.bool_)
            is_used[column] = True
            ranks = np.cumsum(is_used) - 1
            own = int(ranks[-1]) + 1
            codes *= own
            codes += ranks[column]
            most *= own
        # Numbers of 16 bits are sorted in one pass over all.
        order = np.argsort(codes.astype(np.uint16) if most <= 1 << 16 else codes, kind="stable")
        self._order = order if places is None else places[order]
        codes = codes[order]
        self._starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])[: len(codes)])
        self.usage = every[order[self._starts]].astype(np.int64)

    def least(self, values: Floats) -> Floats:
        """The least value among equal usages, one value given for each of all; some usage must fit."""
        return np.asarray(np.minimum.reduceat(values[self._order], self._starts))


class ArrayBounds:
    """The least value of each such product over all rows that fit the array together."""

    def __init__(self, nest: Nest, tables: Tables, check: Callable[[], None] = lambda: None) -> None:
        self._sizes = [
            block.axis.size
            for block in (nest.blocks[index] for index in nest.spatial)
            if block.axis is not None
        ]
        self._usage: dict[str, Distinct] = {}
        self._joined: dict[tuple[str, ...], Distinct] = {}
        self._least_values: dict[Expr, tuple[Floats, Int64s, float]] = {}
        self._of_products: dict[Product, tuple[float, float]] = {}
        self._values = {table.group.name: table.values for table in tables.tables}
        self._is_empty = not all(tables.sizes)
        for table in tables.tables if self._sizes else ():
            self._usage[table.group.name] = Distinct(_used(nest, table.group, self._sizes, check))

    def bounds(self, roots: Sequence[Expr]) -> dict[Expr, float]:
        """The bound of every product in the expressions where it exceeds that of plain intervals."""
        result: dict[Expr, float] = {}
        # Nothing is legal, which the search itself reports; or nothing is shared.
        if not self.fits or not self._sizes:
            return result
        for node in products(roots):
            known = self._of_products.get(node)
            if known is None:
                known = self._of_products[node] = self._least(node)
            shared, plain = known
            # Only what is tighter than the product of least factors is worth an instruction.
            if shared > plain:
                result[node] = shared
        return result

    @cached_property
    def fits(self) -> bool:
        """Whether any rows of all groups fit the array together; any rows at all, where there is none."""
        if self._is_empty or not self._sizes:
            return not self._is_empty
        return len(self._together(tuple(self._usage)).usage) > 0

    def _least(self, node: Product) -> tuple[float, float]:
        """The least value under the array's limits, and without them."""
        scale, plain, sizes = 1.0, 1.0, np.array(self._sizes)
        used = np.ones_like(sizes)
        least: dict[str, Floats] = {}
        for factor in node.factors:
            if isinstance(factor, Constant):
                scale = factor.value
            else:
                assert factor.group is not None
                least[factor.group], usage, cheapest = self._least_of(factor, factor.group)
                plain, used = plain * cheapest, used * usage
        if (used <= sizes).all():
            return scale * plain, scale * plain  # the least of all factors fit together
        joined: tuple[str, ...] = ()
        costs = np.ones(1)
        for group in self._usage:
            if group in least:  # other groups may use a single instance
                joined = (*joined, group)
                # Dynamic programming: the best cost for each number of instances that the groups so far take.
                pairs = costs[:, None] * least[group][None, :]
                costs = self._together(joined).least(pairs.ravel())
        return scale * float(costs.min()), scale * plain

    def _least_of(self, factor: Expr, group: str) -> tuple[Floats, Int64s, float]:
        """The least value of a factor under every usage of its group; the usage of the least, and this."""
        known = self._least_values.get(factor)
        if known is None:
            least = self._usage[group].least(self._values[group][factor])
            place = int(least.argmin())
            known = least, self._usage[group].usage[place], float(least[place])
            self._least_values[factor] = known
        return known

    def _together(self, groups: tuple[str, ...]) -> Distinct:
        """What some groups use together, by what the first of them use and what the last one does."""
        joined = self._joined.get(groups)
        if joined is None:
            if groups:
                # Usages multiply along every axis; equal ones are one state, and those beyond the array are
                # dropped.
                outer, inner = self._together(groups[:-1]).usage, self._usage[groups[-1]].usage
                every = (outer[:, None, :] * inner[None, :, :]).reshape(-1, outer.shape[1])
            else:
                every = np.ones((1, len(self._sizes)), dtype=np.int64)
            joined = self._joined[groups] = Distinct(every, self._sizes, merges=True)
        return joined


def _used(nest: Nest, group: AxisGroup, sizes: Sequence[int], check: Callable[[], None]) -> Int32s:
    """Instances that every row uses along every axis, as far as they differ, shape (rows, axes).

    Block by block: of millions of rows, what is read of them takes as much memory as all tables.

    Parameters
    ----------
    sizes : of the axes, at least one
    check : called between blocks
    """
    used = np.ones((len(group), len(sizes)), dtype=np.int32)
    for start in range(0, len(group), BLOCK):
        check()
        rows = group.rows[start : start + BLOCK].astype(np.float64)
        reader = BatchReader({variable: rows[:, i] for i, variable in enumerate(group.variables)})
        trips = np.ones((len(rows), len(nest.spatial)))
        for place, index in enumerate(nest.spatial):
            for expr in nest.trips([index], group.dims):
                trips[:, place] *= reader.read(expr)
        used[start : start + BLOCK] = alike(trips.astype(np.int64), sizes)
    return used
