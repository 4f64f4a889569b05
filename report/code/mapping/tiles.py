"""A mapping's tiles and loops as plain data, for programs that read JSON."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.workloads.mapping.operator import Operator

SCHEMA = "tilewright.tiles/1"


def tiles_of(operator: Operator, mapping: Mapping) -> dict[str, Any]:
    """Bounds, loops (outermost first, with trips and tiles), and the tile of every store."""
    left = dict(operator.bounds)
    loops: list[dict[str, Any]] = []
    stores: list[dict[str, Any]] = []
    for node in mapping.nodes:
        if isinstance(node, Storage):
            tensor = operator.tensor(node.tensor)
            shape = [axis.extent(left) for axis in tensor.axes]
            stores.append({"tensor": node.tensor, "level": node.level, "inside": len(loops), "tile": shape})
            continue
        loop = {"dim": node.dim, "trips": -(-left[node.dim] // node.tile), "tile": node.tile}
        loops.append(loop if isinstance(node, Temporal) else {**loop, "axis": node.axis})
        left[node.dim] = node.tile
    return {"bounds": dict(operator.bounds), "loops": loops, "stores": stores}


def tile_sizes(operator: Operator, mapping: Mapping, level: str) -> dict[str, int]:
    """Tile sizes of all dimensions where the first tensor begins to live in a level.

    Raises
    ------
    KeyError : where no tensor lives there
    """
    left = dict(operator.bounds)
    for node in mapping.nodes:
        if isinstance(node, Storage):
            if node.level == level:
                return left
        else:
            left[node.dim] = node.tile
    raise KeyError(level)


def divides(operator: Operator, mapping: Mapping) -> bool:
    """Whether every tile divides the one around it."""
    chains = {dim: [bound] for dim, bound in operator.bounds.items()}
    for node in mapping.nodes:
        if not isinstance(node, Storage):
            chains[node.dim].append(node.tile)
    return all(outer % inner == 0 for chain in chains.values() for outer, inner in pairwise(chain))
