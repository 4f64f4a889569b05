"""A mapping read back as a point of the map space, for warm starts."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from itertools import islice
from itertools import product as cartesian
from typing import assert_never

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import level_positions
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.solvers.mapping.exhaustive import values
from tilewright.solvers.mapping.presolve.dive import Point

CHOICES = 256  # at most so many are tried


def encode(
    problem: LayerProblem, tables: Tables, mapping: Mapping, choices: Iterable[tuple[int, ...]] | None = None
) -> Point | None:
    """The point with the mapping's tile sizes and the best of some choices (by default any) for them.

    ``None`` where its tile sizes are not in the space (an uneven mapping, or one that the constraints
    exclude), where none of the choices is legal, and for spaces with several points of storage in a level.

    Parameters
    ----------
    problem : gives the space, limits, energy and cycles
    tables : the rows of every axis group
    mapping : whose tile sizes are looked for
    choices : options of all selectors, the likeliest first; at most ``CHOICES`` are tried
    """
    if len(level_positions(problem.space.nest.blocks)) < len(problem.space.nest.temporal):
        return None
    rows = locate(tables, tile_sizes(problem, mapping))
    if rows is None:
        return None
    best: Point | None = None
    a, b = problem.objective.key_powers
    columns = [np.array([row]) for row in rows]
    if choices is None:
        choices = cartesian(*(selector.domain for selector in problem.space.selectors))
    for chosen in islice(choices, CHOICES):
        energy, cycles, legal = values(problem, tables, columns, chosen)
        key = float(energy[0] ** a * cycles[0] ** b)
        if legal[0] and (best is None or key < best.key):
            best = Point(key, rows, chosen)
    return best


def locate(tables: Tables, tiles: MappingABC[Variable, int]) -> tuple[int, ...] | None:
    """The row of every group that has these tile sizes, ``None`` where a group has none."""
    rows: list[int] = []
    for table in tables.tables:
        wanted = [tiles[variable] for variable in table.group.variables]
        places = np.flatnonzero((table.group.rows == wanted).all(axis=1))
        if not len(places):
            return None
        rows.append(int(places[0]))
    return tuple(rows)


def tile_sizes(problem: LayerProblem, mapping: Mapping) -> dict[Variable, int]:
    """The tile size that every variable stands for in the mapping."""
    nest = problem.space.nest
    names = [level.name for level in problem.engine.levels]
    loops: dict[int | str, dict[str, int]] = {}
    level = 0
    for node in mapping.nodes:
        match node:
            case Storage():
                level = names.index(node.level)
            case Spatial():
                loops.setdefault(node.axis, {})[node.dim] = node.tile
            case Temporal():
                at = level if node.level is None else names.index(node.level)
                loops.setdefault(at, {})[node.dim] = node.tile
            case _:
                assert_never(node)
    current = dict(problem.operator.bounds)
    result: dict[Variable, int] = {}
    for index, block in enumerate(nest.blocks):
        current |= loops.get(block.level if block.axis is None else block.axis.name, {})
        edge: MappingABC[str, Expr] = nest.boundaries[index + 1]
        result |= {expr: current[dim] for dim, expr in edge.items() if isinstance(expr, Variable)}
    return result
