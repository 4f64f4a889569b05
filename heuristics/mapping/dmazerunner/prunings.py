"""dMazeRunner's pruning heuristics (section 4.2.3), each on its own switch.

OPT1 keeps tilings that use much of the PEs and memories, OPT2 those without loops over the filter's rows and
columns at DRAM, OPT3 those without reduction across PEs.  Thresholds are those of section 6.3.  OPT4 (orders
of maximal reuse) and OPT5 (caching and threads) lose nothing and are the search's own matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable, product, total
from tilewright.formulation.mapping.cost.base import capacity_limits, resident
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.space import level_positions
from tilewright.formulation.mapping.tiles.tables import GroupTable
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.workloads.mapping.operator import Operator

_RANGE = re.compile(r"(\d)(?:-(\d))?")
LOSSY = frozenset({1, 2, 3})


def read_opts(text: str) -> frozenset[int]:
    """``1-3``, ``1``, ``1+3`` or ``none``; raises ``ValueError`` for anything else."""
    if text == "none":
        return frozenset()
    parts = [_RANGE.fullmatch(part) for part in text.split("+")]
    chosen = {
        number
        for part in parts
        if part is not None
        for number in range(int(part[1]), int(part[2] or part[1]) + 1)
    }
    if not chosen or None in parts or not chosen <= LOSSY:
        raise ValueError(f"expected numbers from 1 to 3 such as 1-3 or 1+3, or none, got {text!r}")
    return frozenset(chosen)


@dataclass(frozen=True, slots=True)
class Prunings:
    """Which tilings are kept.

    Parameters
    ----------
    opts : the switches that are on, by number
    pe, rf, spm : OPT1: least share of the PEs, of the innermost memory, of every other bounded memory
    """

    opts: frozenset[int] = LOSSY
    pe: float = 0.8
    rf: float = 0.8
    spm: float = 0.5

    def relaxed(self, factor: float) -> Prunings:
        """With OPT1's thresholds scaled."""
        return replace(self, pe=self.pe * factor, rf=self.rf * factor, spm=self.spm * factor)


@dataclass(frozen=True, slots=True)
class Condition:
    """``least <= expr <= most``."""

    expr: Expr
    least: float
    most: float


def conditions(nest: Nest, prunings: Prunings) -> list[Condition]:
    """Capacity and array limits, and OPT1's shares of them."""
    stated = [Condition(limit.expr, 0, limit.bound) for limit in capacity_limits(nest)]
    for index in nest.spatial:
        axis = nest.blocks[index].axis
        assert axis is not None
        stated.append(Condition(product(nest.trips([index])), 0, axis.size))
    if 1 in prunings.opts:
        stated += _utilisation(nest, prunings)
    return stated


def _utilisation(nest: Nest, prunings: Prunings) -> list[Condition]:
    """OPT1: what every bounded memory holds, and PEs at work."""
    stated: list[Condition] = []
    engine = nest.engine
    for index, level in enumerate(engine.levels):
        capacity_bits = (level.capacity or 0) * engine.capacity_element_bits(level)
        capacity_bits += sum(size * engine.width(level, role) for role, size in level.partitions.items())
        if not capacity_bits:
            continue
        unit = math.gcd(*(engine.width(level, role) for role in level.keeps))
        held = total(
            engine.width(level, tensor.role) // unit * resident(nest, tensor, index, nest.kept(tensor, index))
            for tensor in nest.operator.tensors
            if index in nest.residency[tensor.name].positions
        )
        share = prunings.rf if index == len(engine.levels) - 1 else prunings.spm
        stated.append(Condition(held, share * (capacity_bits / unit), np.inf))
    if nest.spatial:
        every = product(nest.trips(nest.spatial))
        stated.append(Condition(every, prunings.pe * nest.engine.instances, np.inf))
    return stated


def kept_rows(table: GroupTable, nest: Nest, prunings: Prunings) -> Bools:
    """Rows of one axis group that OPT2, OPT3 and exact tiling leave."""
    tiles = _tiles(table, nest)
    keep = np.ones(len(table), dtype=bool)
    for dim in table.group.dims:
        for outer, inner in zip(tiles[dim], tiles[dim][1:], strict=False):
            keep &= outer % inner == 0
        if 2 in prunings.opts and dim in minor_dims(nest.operator):
            keep &= tiles[dim][level_positions(nest.blocks)[1]] == nest.operator.bounds[dim]
        if 3 in prunings.opts and dim not in nest.operator.output.dims:
            for block in summing_blocks(nest):
                keep &= tiles[dim][block] == tiles[dim][block + 1]
    return keep


def summing_blocks(nest: Nest) -> list[int]:
    """Spatial blocks that OPT3 keeps free of reduction.

    Those of axes that carry nothing but reductions are left out: OPT3 would idle such an array.
    """
    likes = {
        dimension.like
        for dimension in nest.operator.dimensions
        if dimension.name in nest.operator.output.dims
    }
    axes = {index: nest.blocks[index].axis for index in nest.spatial}
    return [
        i for i, axis in axes.items() if axis is not None and (axis.carries is None or axis.carries & likes)
    ]


def minor_dims(operator: Operator) -> frozenset[str]:
    """Dimensions along the minor axes of a weight tensor: ``R`` and ``S`` of ``W[k][c][r][s]``.

    They are the ones that stand alone on an axis there and move a window of another tensor.
    """
    windows = {
        term.dim
        for tensor in operator.tensors
        for axis in tensor.axes
        if axis.is_compound
        for term in axis.terms
    }
    return frozenset(windows - operator.output.dims)


def _tiles(table: GroupTable, nest: Nest) -> dict[str, list[Int64s]]:
    """Per dimension the tile sizes at every boundary, row by row."""
    place = {variable: column for column, variable in enumerate(table.group.variables)}

    def values(expr: Expr) -> Int64s:
        if isinstance(expr, Constant):
            return np.full(len(table), expr.value, dtype=np.int64)
        assert isinstance(expr, Variable)
        return table.group.rows[:, place[expr]].astype(np.int64)  # which are multiplied

    return {dim: [values(edge[dim]) for edge in nest.boundaries] for dim in table.group.dims}


def fixed_residencies(nest: Nest) -> Iterator[dict[Variable, int]]:
    """Every choice of the levels that store each tensor."""
    from itertools import product as cartesian

    free = [r.selector for r in nest.residency.values() if isinstance(r.selector, Variable)]
    for values in cartesian(*(selector.domain for selector in free)):
        yield dict(zip(free, values, strict=True))
