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
from numpy.typing import NDArray

from tilewright.formulation.expression import Constant, Expr, Product, product
from tilewright.formulation.expression.batch import Array, BatchReader
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.tables import Tables

Usage = NDArray[np.int64]


def array_rooms(nest: Nest) -> list[Limit]:
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
    found: list[Product] = []
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
                found.append(node)
        stack.extend(node.children())
    return found


class ArrayBounds:
    """The least value of each such product over all rows that fit the array together."""

    def __init__(self, nest: Nest, tables: Tables, heed: Callable[[], None] = lambda: None) -> None:
        self._sizes = [
            block.axis.size
            for block in (nest.blocks[index] for index in nest.spatial)
            if block.axis is not None
        ]
        self._usage: dict[str, tuple[Usage, NDArray[np.intp]]] = {}
        self._values = {table.group.name: table.values for table in tables.tables}
        for table in tables.tables:
            columns = {
                v: table.group.rows[:, i].astype(np.float64) for i, v in enumerate(table.group.variables)
            }
            reader = BatchReader(columns, heed=heed)
            used = [
                np.broadcast_to(_trips(reader, nest, index, table.group.dims), (len(table),))
                for index in nest.spatial
            ]
            stacked = np.column_stack(used).astype(np.int64) if used else np.ones((len(table), 1), np.int64)
            self._usage[table.group.name] = _distinct(stacked)

    def bounds(self, roots: Sequence[Expr]) -> dict[Expr, float]:
        """The bound of every product in the expressions where it exceeds that of plain intervals."""
        result: dict[Expr, float] = {}
        if not self.fits:
            return result
        for node in products(roots):
            shared, plain = self._least(node)
            if shared > plain:
                result[node] = shared
        return result

    @cached_property
    def fits(self) -> bool:
        """Whether any rows of all groups fit the array together."""
        states, costs = self._empty_array()
        for usage, _ in self._usage.values():
            states, costs = self._combine(states, costs, usage, np.zeros(len(usage)))
        return len(states) > 0

    def _empty_array(self) -> tuple[Usage, Array]:
        return np.ones((1, max(1, len(self._sizes))), dtype=np.int64), np.ones(1)

    def _least(self, node: Product) -> tuple[float, float]:
        """The least value under the array's limits, and without them."""
        scale = 1.0
        least: dict[str, Array] = {}
        plain = 1.0
        for factor in node.factors:
            if isinstance(factor, Constant):
                scale = factor.value
                continue
            assert factor.group is not None
            usage, inverse = self._usage[factor.group]
            values = np.full(len(usage), np.inf)
            np.minimum.at(values, inverse, self._values[factor.group][factor])
            least[factor.group] = values
            plain *= float(values.min())
        states, costs = self._empty_array()
        for group, (usage, _) in self._usage.items():
            added = least.get(group)
            if added is None:
                continue  # other groups may use a single instance
            states, costs = self._combine(states, costs, usage, added)
        return scale * float(costs.min()), scale * plain

    def _combine(self, states: Usage, costs: Array, usage: Usage, added: Array) -> tuple[Usage, Array]:
        merged = (states[:, None, :] * usage[None, :, :]).reshape(-1, states.shape[1])
        values = (costs[:, None] * added[None, :]).ravel()
        fits = np.ones(len(merged), dtype=bool)
        for axis, size in enumerate(self._sizes):
            fits &= merged[:, axis] <= size
        merged, values = merged[fits], values[fits]
        distinct, inverse = _distinct(merged)
        best = np.full(len(distinct), np.inf)
        np.minimum.at(best, inverse, values)
        return distinct, best


def _trips(reader: BatchReader, nest: Nest, block: int, dims: Sequence[str]) -> Array:
    values = [reader.read(expr) for expr in nest.trips([block], dims)]
    return np.asarray(np.prod(np.broadcast_arrays(*values), axis=0))


def _distinct(usage: Usage) -> tuple[Usage, NDArray[np.intp]]:
    """The different rows, and which of them each row is; by one number per row, which sorts much faster."""
    codes = np.zeros(len(usage), dtype=np.int64)
    for column in usage.T:
        codes = codes * (int(column.max(initial=0)) + 1) + column
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return usage[first], np.asarray(inverse, dtype=np.intp).ravel()
