"""The array as a knapsack: the least product of factors that share it, against all rows together."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, given, settings
from instances import Instance, instances

from tilewright.formulation.expression import Constant, Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.expression.nodes import Product
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.tables.array_bounds import (
    ArrayBounds,
    Distinct,
    alike,
    implied_array_limits,
    products,
)
from tilewright.workloads.mapping.operators import gemm

FEW = 1_000  # combinations of rows that are enumerated


def every_row(problem: LayerProblem, names: set[str]) -> Iterator[dict[Variable, int]]:
    """Tile sizes of all rows of some groups."""
    groups = [group for group in problem.space.groups if group.name in names]
    for rows in cartesian(*(group.rows.tolist() for group in groups)):
        yield {
            variable: int(size)
            for group, row in zip(groups, rows, strict=True)
            for variable, size in zip(group.variables, row, strict=True)
        }


def fitting(problem: LayerProblem, names: set[str]) -> list[dict[Variable, int]]:
    """Tile sizes of all rows of some groups that spread no more over any array axis than it has."""
    nest = problem.space.nest
    dims = [dim for group in problem.space.groups if group.name in names for dim in group.dims]
    fitting = []
    for sizes in every_row(problem, names):
        used = []
        for index in nest.spatial:
            outside, inside = nest.boundaries[index], nest.boundaries[index + 1]
            tiles = [(evaluate(outside[dim], sizes), evaluate(inside[dim], sizes)) for dim in dims]
            axis = nest.blocks[index].axis
            assert axis is not None
            used.append(math.prod(-(-outer // inner) for outer, inner in tiles) <= axis.size)
        if all(used):
            fitting.append(sizes)
    return fitting


def least(node: Product, rows: list[dict[Variable, int]]) -> int:
    """The least value of a product over some rows."""
    return min(evaluate(node, sizes) for sizes in rows)


@settings(max_examples=effort(6))
@given(instances("hierarchy", most=12, largest=20_000))
def test_least_products(instance: Instance) -> None:
    """What is known of a product is its least value over all its rows that fit the array together."""
    problem = instance.problem()
    assume(math.prod(len(group) for group in problem.space.groups) <= FEW)
    roots = [problem.statement.energy, problem.statement.cycles]
    tables = Tables(problem.space.groups, roots)
    array = ArrayBounds(problem.space.nest, tables)
    assert array.fits == bool(fitting(problem, {group.name for group in problem.space.groups}))
    assume(array.fits)
    bounds = array.bounds(roots)
    for node in products(roots)[:6]:
        factors = [factor for factor in node.factors if not isinstance(factor, Constant)]
        groups = {factor.group for factor in factors if factor.group is not None}
        expected = least(node, fitting(problem, groups))
        values = {table.group.name: table.values for table in tables.tables}
        constant = math.prod(factor.value for factor in node.factors if isinstance(factor, Constant))
        alone = constant * math.prod(float(values[f.group][f].min()) for f in factors if f.group is not None)
        assert bounds.get(node, alone) == expected


def arrays(*sizes: tuple[int, ...]) -> Engine:
    """A machine with an array of such axes below every level but the innermost."""
    levels = [MemoryLevel("DRAM", None, Fraction(9), Fraction(9))]
    levels += [MemoryLevel(f"L{depth}", 64, Fraction(1), Fraction(1)) for depth in range(1, len(sizes) + 1)]
    for depth, axes in enumerate(sizes):
        named = tuple(ArrayAxis(f"{depth}{'xyz'[place]}", size) for place, size in enumerate(axes))
        levels[depth] = replace(levels[depth], fanout=Fanout(named))
    return Engine("arrays", "hierarchy", 16, Fraction(1), Fraction(500), tuple(levels))


@pytest.mark.parametrize(("factors", "m"), [("perfect", 2), ("imperfect", 3)])
@pytest.mark.parametrize("sizes", [((2, 3),), ((4,), (2, 2)), ((2, 2), (3, 2)), ((2, 2, 1),), ((3,),)])
def test_rooms_of_arrays(sizes: tuple[tuple[int, ...], ...], factors: str, m: int) -> None:
    """Every array of several axes has a room: the instances that its loops take, and those that there are.

    Of all tiles, those that fit every axis have room; of others, those without it take too many instances for
    any placing on the axes.
    """
    engine = arrays(*sizes)
    problem = layer_problem(gemm(m=m, n=2, k=2), engine, parse_objective("energy"), factors=factors)
    nest = problem.space.nest
    wide = [depth for depth, axes in enumerate(sizes) if len(axes) > 1]
    fanout_limits = implied_array_limits(nest)
    assert [room.name for room in fanout_limits] == [
        f"array below {engine.levels[depth].name}" for depth in wide
    ]
    assert [room.bound for room in fanout_limits] == [math.prod(sizes[depth]) for depth in wide]
    names = {group.name for group in problem.space.groups}
    fits = fitting(problem, names)
    assert fits
    assert all(evaluate(room.expr, sizes) <= room.bound for room in fanout_limits for sizes in fits)
    without = 0
    for tiles in every_row(problem, names):
        for room, depth in zip(fanout_limits, wide, strict=True):
            spread = [index for index in nest.spatial if nest.blocks[index].level == depth]
            ends = [
                (nest.boundaries[index][dim], nest.boundaries[index + 1][dim])
                for index in spread
                for dim in nest.operator.bounds
            ]
            trips = [-(-evaluate(outside, tiles) // evaluate(inside, tiles)) for outside, inside in ends]
            assert evaluate(room.expr, tiles) == math.prod(trips)
            if math.prod(trips) > room.bound:
                without += 1
                assert not can_be_placed([trip for trip in trips if trip > 1], sizes[depth])
    assert bool(without) == bool(fanout_limits)


def can_be_placed(trips: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether loops fit some axes, each loop whole on one of them."""
    return any(
        all(
            math.prod(trip for trip, place in zip(trips, places, strict=True) if place == axis) <= size
            for axis, size in enumerate(axes)
        )
        for places in cartesian(range(len(axes)), repeat=len(trips))
    )


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
def test_equal_usages_of_the_array_are_one(axes: int) -> None:
    """Every usage that fits stands once, with the least of the values given for its equals."""
    draw = random.Random(axes)
    for _ in range(20):
        every = [tuple(draw.randint(0, 4) for _ in range(axes)) for _ in range(draw.randint(1, 40))]
        every.append((0,) * axes)  # some usage fits
        values = [draw.randint(0, 99) for _ in every]
        distinct = Distinct(np.array(every, dtype=np.int64).reshape(len(every), axes), (3,) * axes)
        least: dict[tuple[int, ...], int] = {}
        for usage, value in zip(every, values, strict=True):
            if all(size <= 3 for size in usage):
                least[usage] = min(value, least.get(usage, value))
        usages = [tuple(row) for row in distinct.usage.tolist()]
        assert len(usages) == len(least)
        assert dict(zip(usages, distinct.least(np.array(values)).tolist(), strict=True)) == least


@pytest.mark.parametrize("size", [1, 2, 3, 12, 16, 108])
def test_usages_are_alike_if_and_only_if_they_leave_as_much(size: int) -> None:
    """Whatever else is spread fits beside a usage if it fits beside the one that stands for it, the least."""
    every = np.arange(1, size + 2, dtype=np.int64)
    leaves = [tuple(used * more <= size for more in range(1, size + 1)) for used in every.tolist()]
    first = {fits: used for used, fits in reversed(list(zip(every.tolist(), leaves, strict=True)))}
    assert alike(every[:, None], (size,))[:, 0].tolist() == [first[fits] for fits in leaves]


def test_a_wide_array_has_the_least_product_of_all_tiles() -> None:
    """On an axis of twelve most usages stand for others, and no bound of a product is less or more."""
    problem = layer_problem(gemm(m=13, n=5, k=7), arrays((12, 3)), parse_objective("energy"))
    roots = [problem.statement.energy, problem.statement.cycles]
    bounds = ArrayBounds(problem.space.nest, Tables(problem.space.groups, roots)).bounds(roots)
    fits = {group.name: fitting(problem, {group.name}) for group in problem.space.groups}
    assert bounds
    for node, bound in bounds.items():
        names = {factor.group for factor in node.factors if factor.group is not None}
        assert bound == least(node, fitting(problem, names) if len(names) > 1 else fits[min(names)])
