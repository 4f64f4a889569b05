"""The array as a knapsack: the least product of factors that share it, against all rows together."""

from __future__ import annotations

import math
from itertools import product as cartesian

from effort import effort
from hypothesis import assume, given, settings
from instances import Instance, instances

from tilewright.formulation.expression import Constant, Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.expression.nodes import Product
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tables import Tables
from tilewright.solvers.mapping.array_bounds import ArrayBounds, products

FEW = 1_000  # combinations of rows that are enumerated for one product


def fitting(problem: LayerProblem, names: set[str]) -> list[dict[Variable, int]]:
    """Tile sizes of all rows of some groups that spread no more over any array axis than it has."""
    nest = problem.space.nest
    groups = [group for group in problem.space.groups if group.name in names]
    assume(math.prod(len(group) for group in groups) <= FEW)
    dims = [dim for group in groups for dim in group.dims]
    found = []
    for rows in cartesian(*(group.rows.tolist() for group in groups)):
        sizes = {
            variable: int(size)
            for group, row in zip(groups, rows, strict=True)
            for variable, size in zip(group.variables, row, strict=True)
        }
        used = []
        for index in nest.spatial:
            outside, inside = nest.boundaries[index], nest.boundaries[index + 1]
            tiles = [(evaluate(outside[dim], sizes), evaluate(inside[dim], sizes)) for dim in dims]
            axis = nest.blocks[index].axis
            assert axis is not None
            used.append(math.prod(-(-outer // inner) for outer, inner in tiles) <= axis.size)
        if all(used):
            found.append(sizes)
    return found


def least(node: Product, rows: list[dict[Variable, int]]) -> int:
    """The least value of a product over some rows."""
    return min(evaluate(node, sizes) for sizes in rows)


@settings(max_examples=effort(6))
@given(instances("hierarchy", most=12, largest=20_000))
def test_least_products(instance: Instance) -> None:
    """What is known of a product is its least value over all its rows that fit the array together."""
    problem = instance.problem()
    roots = [problem.statement.energy, problem.statement.cycles]
    tables = Tables(problem.space.groups, roots)
    array = ArrayBounds(problem.space.nest, tables)
    assert array.fits == bool(fitting(problem, {group.name for group in problem.space.groups}))
    assume(array.fits)
    found = array.bounds(roots)
    for node in products(roots)[:6]:
        factors = [factor for factor in node.factors if not isinstance(factor, Constant)]
        groups = {factor.group for factor in factors if factor.group is not None}
        expected = least(node, fitting(problem, groups))
        values = {table.group.name: table.values for table in tables.tables}
        constant = math.prod(factor.value for factor in node.factors if isinstance(factor, Constant))
        alone = constant * math.prod(float(values[f.group][f].min()) for f in factors if f.group is not None)
        assert found.get(node, alone) == expected
