"""Axis groups that may change places: of two mappings whose tiles are exchanged a search needs one.

Rows and columns of a square layer are the common case.  Where operator, machine and decisions stay what they
are when the dimensions of two groups change places, so does the cost of every mapping
(``docs/proofs.md``, groups that change places).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.demands.rules import MetricCap
from tilewright.formulation.mapping.nests.arrangements import EVEN
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.chains import MANY_ROWS, AxisGroup
from tilewright.foundation.arrays import Int64s, among
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Tensor

NEITHER, OUTER, INNER, BOTH = range(4)
"""Along which of two axes of an array something is spread."""


def exchangeable_groups(problem: LayerProblem) -> tuple[tuple[int, int], ...]:
    """Pairs of axis groups, by their places, whose tiles may change places in any mapping at the same cost.

    Groups of more than two are a chain of pairs, each with the next one.  None are named where the cost of
    a mapping, its rules or the space may tell the two apart.
    """
    groups = problem.space.groups
    if not counts_places_alike(problem):
        return ()
    pairs: list[tuple[int, int]] = []
    for first, second in combinations(range(len(groups)), 2):
        # the nearest one on either side makes chains of what is alike in turn
        if all(first != own and second != other for own, other in pairs) and _are_exchangeable(
            problem, groups[first], groups[second]
        ):
            pairs.append((first, second))
    return tuple(pairs)


def exchangeable_axes(problem: LayerProblem) -> tuple[tuple[int, int], ...]:
    """Pairs of axes of an array, by their blocks, that may change places in mappings at the same cost.

    In mappings, that is, in which no dimension is spread along both: a dimension on two axes is cut in the
    sequence of these.  Of every array one pair is named at most.
    """
    if not counts_places_alike(problem):
        return ()
    nest, groups = problem.space.nest, problem.space.groups
    pairs: dict[int, tuple[int, int]] = {}
    for outer, inner in pairwise(nest.spatial):
        block, other = nest.blocks[outer], nest.blocks[inner]
        is_alike = block.axis is not None and other.axis is not None and block.level == other.level
        if is_alike and replace(block.axis, name="") == replace(other.axis, name=""):  # type: ignore[type-var]
            pairs.setdefault(block.level, (outer, inner))
    return tuple(pair for pair in pairs.values() if all(_has_images(nest, group, pair) for group in groups))


def sides(nest: Nest, group: AxisGroup, pair: tuple[int, int]) -> Int64s:
    """Along which of two axes every row of a group is spread, shape (rows,).

    `NEITHER`, `OUTER` or `INNER`, which tells of the first dimension that is spread at all, or `BOTH` where
    some dimension is spread along both.

    Parameters
    ----------
    pair : the blocks of the axes
    """
    result = np.zeros(len(group), dtype=np.int64)
    for before, between, after in reversed(list(_tiles_around(nest, group, pair))):
        on_outer, on_inner = before != between, between != after
        result[on_outer & ~on_inner & (result != BOTH)] = OUTER
        result[on_inner & ~on_outer & (result != BOTH)] = INNER
        result[on_outer & on_inner] = BOTH
    return result


def _tiles_around(
    nest: Nest, group: AxisGroup, pair: tuple[int, int]
) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """Of every dimension the tiles outside, between and inside two axes, each shape (rows,)."""
    for dim in group.dims:
        before, between, after = (group.sizes(nest.boundaries[edge][dim]) for edge in (*pair, pair[1] + 1))
        yield before, between, after


def _has_images(nest: Nest, group: AxisGroup, pair: tuple[int, int]) -> bool:
    """Whether a group has every row that exchanged axes make of one of its own."""
    if group.most > MANY_ROWS:
        return False
    rows = group.rows[sides(nest, group, pair) != BOTH]
    images = rows.copy()
    part = group.having(rows)
    for dim, (before, between, after) in zip(group.dims, _tiles_around(nest, part, pair), strict=True):
        tile = nest.boundaries[pair[1]][dim]
        if isinstance(tile, Variable):
            # One of both neighbours; the image has the other one.
            images[:, group.variables.index(tile)] = before + after - between
        elif (before + after - between != between).any():
            return False
    return bool(among(images, rows).all())


def counts_places_alike(problem: LayerProblem) -> bool:
    """Whether cost model and demands see dimensions and axes only as tensors and arrays have them."""
    is_even = problem.storage == EVEN and problem.even_space is None
    return (
        type(problem.model) is Hierarchy  # others may tell rows from columns
        and is_even
        and not any(
            level.timing.set_up for level in problem.engine.levels
        )  # ports begin rows, along one axis
        and all(isinstance(rule, MetricCap) for rule in problem.constraints.rules)
    )


def _are_exchangeable(problem: LayerProblem, group: AxisGroup, other: AxisGroup) -> bool:
    if len(group.dims) != len(other.dims) or group.most != other.most or group.most > MANY_ROWS:
        return False
    operator, nest = problem.operator, problem.space.nest
    pairs = [*zip(group.dims, other.dims, strict=True)]
    dims = {dim: dim for dim in operator.bounds} | dict(pairs) | {second: first for first, second in pairs}
    by_name = {dimension.name: dimension for dimension in operator.dimensions}
    return (
        all(by_name[a].bound == by_name[b].bound and by_name[a].upto == by_name[b].upto for a, b in pairs)
        and all(carries_alike(problem.engine, by_name[a].like, by_name[b].like) for a, b in pairs)
        and all(exchanged_axes(tensor, dims) is not None for tensor in operator.tensors)
        and _orders_are_closed(nest, dims)
        and _rows_are_alike(nest, group, other)
    )


def carries_alike(engine: Engine, like: str, other: str) -> bool:
    """Whether every axis of a machine's arrays carries two kinds of dimensions, or neither."""
    axes = (axis for level in engine.levels if level.fanout is not None for axis in level.fanout.axes)
    return all(axis.carries is None or (like in axis.carries) == (other in axis.carries) for axis in axes)


def exchanged_axes(tensor: Tensor, dims: Mapping[str, str]) -> tuple[int, ...] | None:
    """Per axis of a tensor the one that it becomes; ``None`` where there is none, or more than one may be.

    Parameters
    ----------
    dims : what each dimension changes places with, itself for most
    """
    axes = [(frozenset((term.dim, term.stride) for term in axis.terms), axis.size) for axis in tensor.axes]
    if len(set(axes)) < len(axes):
        return None
    try:
        return tuple(
            axes.index((frozenset((dims[dim], stride) for dim, stride in terms), size))
            for terms, size in axes
        )
    except ValueError:
        return None


def _orders_are_closed(nest: Nest, dims: Mapping[str, str]) -> bool:
    """Whether every effect of a loop order, with dimensions exchanged, is one that the block may have."""
    for block in nest.blocks:
        effects = {
            (frozenset(order.reused.items()), frozenset(order.slides.items())) for order in block.orders
        }
        exchanged = {
            (
                frozenset((name, frozenset(dims[dim] for dim in run)) for name, run in order.reused.items()),
                frozenset((name, dims.get(dim or "")) for name, dim in order.slides.items()),
            )
            for order in block.orders
        }
        if effects != exchanged:
            return False
    return True


def _rows_are_alike(nest: Nest, group: AxisGroup, other: AxisGroup) -> bool:
    """Whether two groups have tile sizes in the same places, and the same choices of them."""
    places: dict[Expr, Expr] = {}
    for boundary in nest.boundaries:
        for dim, partner in zip(group.dims, other.dims, strict=True):
            own, its = boundary[dim], boundary[partner]
            if isinstance(own, Constant) and isinstance(its, Constant) and own.value == its.value:
                continue
            if not (isinstance(own, Variable) and isinstance(its, Variable)):
                return False
            if places.setdefault(own, its) is not its:
                return False
    if [places.get(variable) for variable in group.variables] != [*other.variables]:
        return False
    return group.rows is other.rows or np.array_equal(group.rows, other.rows)
