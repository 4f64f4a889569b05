"""Spaces over some combinations of tiles: against a look at every row."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.parts.segment_parts import inner_arrangements, near_arrangements
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tiles.boundary_tiles import restricted
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Int64s, contained
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.operators import conv2d

SHARES = (0.0, 0.1, 0.5, 1.0)
"""Of a group's combinations of tiles, how many are wanted."""


def arranged_space() -> MapSpace:
    """One arrangement of a strided layer: a group of two dimensions, and boundaries that are constants."""
    layer = conv2d(k=12, c=3, p=6, q=1, r=2, s=1, stride=2)
    problem = layer_problem(layer, load_engine("eyeriss-168"), parse_objective("energy"), storage="uneven")
    near, inner = next(near_arrangements(problem)), next(inner_arrangements(problem))
    return problem.arranged((*near, *inner)).space


def combination(space: MapSpace, group: AxisGroup, edges: range, row: Int64s) -> tuple[int, ...]:
    """A row's tiles at the boundaries."""
    values = dict(zip(group.variables, row.tolist(), strict=True))
    return tuple(
        int(evaluate(space.nest.boundaries[edge][dim], values)) for dim in group.dims for edge in edges
    )


@pytest.mark.parametrize("begin", [0, 1, 3])
@pytest.mark.parametrize("share", SHARES)
def test_rows_are_kept_whose_combination_of_tiles_is_wanted(begin: int, share: float) -> None:
    """Sizes that are wanted one by one, but not together, keep no row; sizes of no row are of no harm."""
    space, draw = arranged_space(), np.random.default_rng(begin)
    edges = range(begin, len(space.nest.boundaries))
    tiles, expected, mixed = {}, {}, 0
    for group in space.groups:
        own = [combination(space, group, edges, row) for row in group.rows]
        distinct = sorted(set(own))
        wanted = {tile for tile in distinct if draw.random() < share}
        alone = [set(sizes) for sizes in zip(*wanted, strict=True)]
        mixed += sum(
            bool(alone) and all(size in sizes for size, sizes in zip(tile, alone, strict=True))
            for tile in set(distinct) - wanted
        )
        strange = [tuple(10_000 for _ in distinct[0])]
        tiles[group.name] = np.array([*sorted(wanted), *strange], dtype=np.int64)
        expected[group.name] = [
            row.tolist() for row, tile in zip(group.rows, own, strict=True) if tile in wanted
        ]
    kept = restricted(space, edges, tiles)
    assert {group.name: group.rows.tolist() for group in kept.groups} == expected
    assert mixed or share != 0.5


def test_nothing_wanted_keeps_nothing() -> None:
    space = arranged_space()
    edges = range(1, len(space.nest.boundaries))
    none = {group.name: np.zeros((0, len(group.dims) * len(edges)), dtype=np.int64) for group in space.groups}
    assert not any(len(group) for group in restricted(space, edges, none).groups)


@pytest.mark.parametrize("size", [0, 1, 2, 30])
@pytest.mark.parametrize("wanted", [0, 1, 2, 30])
def test_values_among_others_are_those_of_numpy(size: int, wanted: int) -> None:
    """Any numbers in any order, some of them several times; below and above all others, too."""
    draw = np.random.default_rng(size + 100 * wanted)
    for spread in (2, 20, 2**62):
        values = draw.integers(-spread, spread, size)
        others = draw.integers(-spread // 2, spread // 2, wanted)
        assert contained(values, others).tolist() == np.isin(values, others).tolist()
        assert contained(others, others).all()
