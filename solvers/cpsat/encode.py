"""A mapping read back as a point of the map space, for warm starts."""

from __future__ import annotations

from itertools import product as cartesian

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping import Mapping, Spatial, Storage
from tilewright.formulation.problem import LayerProblem
from tilewright.solvers.cpsat.dive import Point
from tilewright.solvers.exhaustive import values
from tilewright.solvers.tables import Tables


def encode(problem: LayerProblem, tables: Tables, mapping: Mapping) -> Point | None:
    """The point with the mapping's tile sizes and the best orders and residencies for them.

    ``None`` where its tile sizes are not in the space: an uneven mapping, or one that the constraints
    exclude.
    """
    tiles = _tiles(problem, mapping)
    rows: list[int] = []
    for table in tables.tables:
        wanted = [tiles[variable] for variable in table.group.variables]
        places = np.flatnonzero((table.group.rows == wanted).all(axis=1))
        if not len(places):
            return None
        rows.append(int(places[0]))
    best: Point | None = None
    a, b = problem.objective.key_powers
    columns = [np.array([row]) for row in rows]
    for chosen in cartesian(*(selector.domain for selector in problem.space.selectors)):
        energy, cycles, legal = values(problem, tables, columns, chosen)
        key = float(energy[0] ** a * cycles[0] ** b)
        if legal[0] and (best is None or key < best.key):
            best = Point(key, tuple(rows), chosen)
    return best


def _tiles(problem: LayerProblem, mapping: Mapping) -> dict[Expr, int]:
    """The tile size that every variable stands for in the mapping."""
    nest = problem.space.nest
    names = [level.name for level in problem.engine.levels]
    loops: dict[tuple[int, str | None], dict[str, int]] = {}
    level = 0
    for node in mapping.nodes:
        match node:
            case Storage():
                level = names.index(node.level)
            case Spatial():
                loops.setdefault((-1, node.axis), {})[node.dim] = node.tile
            case _:
                loops.setdefault((level, None), {})[node.dim] = node.tile
    current = dict(problem.operator.bounds)
    result: dict[Expr, int] = {}
    for index, block in enumerate(nest.blocks):
        place = (block.level, None) if block.axis is None else (-1, block.axis.name)
        current |= loops.get(place, {})
        for dim, expr in nest.boundaries[index + 1].items():
            if isinstance(expr, Variable):
                result[expr] = current[dim]
            else:
                assert isinstance(expr, Constant)
    return result
