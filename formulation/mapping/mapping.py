"""A mapping: temporal loops, spatial loops and storage from DRAM to the PEs, as one list of nodes.

A mapping is a list of nodes, outermost first (:class:`Temporal`, :class:`Spatial`, :class:`Storage`).  A
loop carries the tile size that remains inside it, so a trip count is the enclosing tile over it, rounded
up.  Where every tensor of a level begins to live at one point the mapping is even, otherwise uneven; both
are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import Any, assert_never

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, slots=True)
class Temporal:
    """A loop in time over tiles of ``tile`` iterations of ``dim``.

    Parameters
    ----------
    level : the memory level whose loop it is, where that is not the last one in which a tensor began to live
        but an inner one, which every tensor bypasses
    """

    dim: str
    tile: int
    level: str | None = None


@dataclass(frozen=True, slots=True)
class Spatial:
    """A loop in space: tiles of ``tile`` iterations of ``dim``, side by side on an array axis."""

    dim: str
    tile: int
    axis: str


@dataclass(frozen=True, slots=True)
class Storage:
    """A tile of ``tensor`` begins to live in ``level``."""

    tensor: str
    level: str


Node = Temporal | Spatial | Storage


@dataclass(frozen=True, slots=True)
class LoopStep:
    """A loop with the trip count that its place in the mapping gives it."""

    node: Temporal | Spatial
    trip: int


@dataclass(frozen=True)
class Mapping:
    """Nodes, outermost first."""

    nodes: tuple[Node, ...]

    def loops(self, operator: Operator) -> Iterator[LoopStep]:
        """The loops with their trip counts, outermost first."""
        tile = dict(operator.bounds)
        for node in self.nodes:
            if not isinstance(node, Storage):
                yield LoopStep(node, -(-tile[node.dim] // node.tile))
                tile[node.dim] = node.tile

    def validate(
        self,
        operator: Operator,
        engine: Engine,
        where: str = "mapping",
        outside: Sequence[Storage] = (),
        prefix: str = "",
    ) -> None:
        """Raise ``InputError`` naming the node that does not fit the operator or the engine.

        Parameters
        ----------
        operator, engine : the layer and the machine
        where : what errors call the mapping
        outside : stores in which tensors live already, around the mapping
        prefix : what stands before ``nodes`` in the names of fields
        """
        levels = [level.name for level in engine.levels]
        axes = {
            axis.name: index
            for index, level in enumerate(engine.levels)
            if level.fanout
            for axis in level.fanout.axes
        }
        tile = dict(operator.bounds)
        depth: dict[str, int] = {}
        at = 0
        nodes = (*outside, *self.nodes)
        for index, node in enumerate(nodes, -len(outside)):
            field = f"{prefix}nodes[{index}]"
            if isinstance(node, Storage):
                if node.level not in levels:
                    raise InputError(where, field, f"unknown level {node.level!r}, expected one of {levels}")
                names = [tensor.name for tensor in operator.tensors]
                if node.tensor not in names:
                    raise InputError(where, field, f"unknown tensor {node.tensor!r}, expected one of {names}")
                level = levels.index(node.level)
                # Data move inwards level by level.
                if level <= depth.get(node.tensor, -1):
                    raise InputError(
                        where, field, f"{node.tensor} stored in {node.level} inside an inner level's store"
                    )
                if operator.tensor(node.tensor).role not in engine.levels[level].keeps:
                    raise InputError(where, field, f"{node.level} does not keep {node.tensor}")
                depth[node.tensor] = at = level
                continue
            if node.dim not in tile:
                raise InputError(
                    where, field, f"unknown dimension {node.dim!r}, expected one of {[*operator.bounds]}"
                )
            # Each loop cuts the tile that the loops outside it leave.
            if not 1 <= node.tile <= tile[node.dim]:
                raise InputError(
                    where,
                    field,
                    f"tile {node.tile} of {node.dim}, expected 1 to {tile[node.dim]} (the enclosing tile)",
                )
            tile[node.dim] = node.tile
            if isinstance(node, Spatial) and node.axis not in axes:
                raise InputError(where, field, f"unknown axis {node.axis!r}, expected one of {[*axes]}")
            if isinstance(node, Temporal) and node.level is not None and node.level not in levels[at:]:
                raise InputError(where, field, f"loop at {node.level!r}, expected one of {levels[at:]}")
        # A PE works on one iteration at a time, so every dimension ends with a tile of 1.
        for dim, rest in tile.items():
            if rest != 1:
                reason = f"{dim} ends with a tile of {rest}, the innermost must be 1"
                raise InputError(where, f"{prefix}nodes", reason)
        for tensor in operator.tensors:
            first = next((n for n in nodes if isinstance(n, Storage) and n.tensor == tensor.name), None)
            if first is None or first.level != levels[0]:
                raise InputError(where, f"{prefix}nodes", f"{tensor.name} is not stored in {levels[0]} first")

    def to_data(self) -> list[dict[str, Any]]:
        """Plain data for YAML and JSON."""
        rows: list[dict[str, Any]] = []
        for node in self.nodes:
            match node:
                case Temporal(dim, tile, None):
                    rows.append({"temporal": dim, "tile": tile})
                case Temporal(dim, tile, at):
                    rows.append({"temporal": dim, "tile": tile, "level": at})
                case Spatial(dim, tile, axis):
                    rows.append({"spatial": dim, "tile": tile, "axis": axis})
                case Storage(tensor, level):
                    rows.append({"store": tensor, "level": level})
                case _:
                    assert_never(node)
        return rows

    @classmethod
    def from_data(cls, rows: object, where: str = "mapping", field: str = "nodes") -> Mapping:
        """The inverse of :meth:`to_data`; raises ``InputError`` naming the node that is malformed."""
        if not isinstance(rows, list):
            raise InputError(where, field, "expected a list of nodes")
        return cls(tuple(_node(row, where, f"{field}[{index}]") for index, row in enumerate(rows)))


_SHAPES: MappingABC[frozenset[str], type[Node]] = {
    frozenset(("temporal", "tile")): Temporal,
    frozenset(("temporal", "tile", "level")): Temporal,
    frozenset(("spatial", "tile", "axis")): Spatial,
    frozenset(("store", "level")): Storage,
}


def _node(row: object, where: str, field: str) -> Node:
    # The keys alone determine the kind of node.
    shape = _SHAPES.get(frozenset(row)) if isinstance(row, dict) else None
    if shape is None or not isinstance(row, dict):
        shapes = "{temporal, tile}, {temporal, tile, level}, {spatial, tile, axis} or {store, level}"
        raise InputError(where, field, f"expected {shapes}")
    for key, value in row.items():
        wanted = int if key == "tile" else str
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise InputError(where, f"{field}.{key}", f"expected {wanted.__name__}, got {value!r}")
    if shape is Temporal:
        return Temporal(row["temporal"], row["tile"], row.get("level"))
    if shape is Spatial:
        return Spatial(row["spatial"], row["tile"], row["axis"])
    return Storage(row["store"], row["level"])
