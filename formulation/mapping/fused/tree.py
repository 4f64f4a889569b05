"""Fused mappings: trees of temporal loops, stores and sequences whose leaves are layers' own mappings.

A branch is a list of shared loops and stores, outermost first, and a sequence behind them, whose children
run in turn on the whole array: leaves, each one layer, or further branches.  Loops and tensors carry their
layer's name, ``av.M``.  A leaf's nodes are those of an ordinary mapping of what one turn computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from typing import Any

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.errors import InputError

RETAINED, RECOMPUTED = HALOS = ("retained", "recomputed")
DEEPEST = 40
"""Sequences within sequences at most."""


@dataclass(frozen=True, slots=True)
class SharedLoop:
    """A loop in time around a sequence: tiles of ``tile`` iterations of a layer's dimension.

    It cuts every layer below whose loop is the same (`FusedGroup.ranks`).
    """

    layer: str
    dim: str
    tile: int

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.dim}"


@dataclass(frozen=True, slots=True)
class SharedStore:
    """A tile of a layer's tensor lives in a level while the sequence inside runs.

    Parameters
    ----------
    layer, tensor, level : an intermediate is named after the layer that makes it
    halo : of an intermediate, whether elements that the next visit of the store needs again are retained,
        or computed anew
    """

    layer: str
    tensor: str
    level: str
    halo: str = RETAINED

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.tensor}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A layer's own mapping, run once in every turn on what the turn computes; tiles are clipped to that.

    Parameters
    ----------
    layer, mapping : whose, and for all turns that have none of their own
    sized : mappings of turns of some sizes, by iterations per dimension in the operator's order
    """

    layer: str
    mapping: Mapping
    sized: tuple[tuple[tuple[int, ...], Mapping], ...] = ()

    def of(self, sizes: tuple[int, ...]) -> Mapping:
        """The mapping of a turn of some sizes."""
        return next((mapping for own, mapping in self.sized if own == sizes), self.mapping)


SharedNode = SharedLoop | SharedStore


@dataclass(frozen=True, slots=True)
class Branch:
    """Shared loops and stores, outermost first, and the children that run in turn inside them."""

    nodes: tuple[SharedNode, ...]
    children: tuple[Branch | Leaf, ...]

    def leaves(self) -> Iterator[Leaf]:
        """All leaves, in the order in which they run."""
        for child in self.children:
            if isinstance(child, Leaf):
                yield child
            else:
                yield from child.leaves()

    def layers(self) -> list[str]:
        """Layers of the leaves."""
        return [leaf.layer for leaf in self.leaves()]

    def renamed(self, names: MappingABC[str, str]) -> Branch:
        """The same tree over layers of other names."""
        return Branch(
            tuple(replace(node, layer=names[node.layer]) for node in self.nodes),
            tuple(
                replace(child, layer=names[child.layer]) if isinstance(child, Leaf) else child.renamed(names)
                for child in self.children
            ),
        )

    def to_data(self) -> list[dict[str, Any]]:
        """Plain data for YAML and JSON."""
        rows: list[dict[str, Any]] = []
        for node in self.nodes:
            if isinstance(node, SharedLoop):
                rows.append({"temporal": node.name, "tile": node.tile})
            else:
                row = {"store": node.name, "level": node.level}
                rows.append(row if node.halo == RETAINED else row | {"halo": node.halo})
        children = [
            _leaf_data(child) if isinstance(child, Leaf) else {"nodes": child.to_data()}
            for child in self.children
        ]
        return [*rows, {"sequence": children}]


def _leaf_data(leaf: Leaf) -> dict[str, Any]:
    row: dict[str, Any] = {"layer": leaf.layer, "nodes": leaf.mapping.to_data()}
    if leaf.sized:
        row["sized"] = [{"sizes": list(sizes), "nodes": mapping.to_data()} for sizes, mapping in leaf.sized]
    return row


def unfused(mappings: MappingABC[str, Mapping]) -> Branch:
    """Whole layers one after the other."""
    return Branch((), tuple(Leaf(layer, mapping) for layer, mapping in mappings.items()))


def tree_from_data(rows: object, where: str = "mapping", field: str = "nodes", depth: int = 0) -> Branch:
    """The inverse of :meth:`Branch.to_data`; raises ``InputError`` naming the node that is malformed.

    Parameters
    ----------
    rows : plain data
    where, field : what errors call the file, and the place in it
    depth : sequences around it
    """
    if not isinstance(rows, list) or not rows:
        raise InputError(where, field, "expected a list of nodes that ends with a sequence")
    if depth > DEEPEST:
        raise InputError(where, field, f"more than {DEEPEST} sequences within each other")
    nodes = tuple(_node(row, where, f"{field}[{index}]") for index, row in enumerate(rows[:-1]))
    last = f"{field}[{len(rows) - 1}]"
    end = rows[-1]
    if not isinstance(end, dict) or set(end) != {"sequence"}:
        raise InputError(where, last, "expected {sequence: [...]} as the last node")
    children = end["sequence"]
    if not isinstance(children, list) or not children:
        raise InputError(where, f"{last}.sequence", "expected a list of children")
    return Branch(
        nodes,
        tuple(
            _child(child, where, f"{last}.sequence[{index}]", depth) for index, child in enumerate(children)
        ),
    )


def _child(row: object, where: str, field: str, depth: int) -> Branch | Leaf:
    if isinstance(row, dict) and {"layer", "nodes"} <= set(row) <= {"layer", "nodes", "sized"}:
        if not isinstance(row["layer"], str):
            raise InputError(where, f"{field}.layer", f"expected a layer's name, got {row['layer']!r}")
        mapping = Mapping.from_data(row["nodes"], where, f"{field}.nodes")
        return Leaf(row["layer"], mapping, _sized(row.get("sized", []), where, f"{field}.sized"))
    if isinstance(row, dict) and set(row) == {"nodes"}:
        return tree_from_data(row["nodes"], where, f"{field}.nodes", depth + 1)
    raise InputError(where, field, "expected {layer, nodes} or {nodes}")


def _sized(rows: object, where: str, field: str) -> tuple[tuple[tuple[int, ...], Mapping], ...]:
    if not isinstance(rows, list):
        raise InputError(where, field, "expected a list of {sizes, nodes}")
    mappings: list[tuple[tuple[int, ...], Mapping]] = []
    for index, row in enumerate(rows):
        at = f"{field}[{index}]"
        if not isinstance(row, dict) or set(row) != {"sizes", "nodes"}:
            raise InputError(where, at, "expected {sizes, nodes}")
        sizes = row["sizes"]
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 1 for size in sizes):
            raise InputError(where, f"{at}.sizes", f"expected iterations per dimension, got {sizes!r}")
        mappings.append((tuple(sizes), Mapping.from_data(row["nodes"], where, f"{at}.nodes")))
    return tuple(mappings)


def _node(row: object, where: str, field: str) -> SharedNode:
    keys = frozenset(row) if isinstance(row, dict) else frozenset()
    if not isinstance(row, dict) or keys not in (
        {"temporal", "tile"},
        {"store", "level"},
        {"store", "level", "halo"},
    ):
        raise InputError(where, field, "expected {temporal, tile} or {store, level} before the sequence")
    if "temporal" in row:
        layer, dim = _name(row, "temporal", where, field)
        tile = row["tile"]
        if not isinstance(tile, int) or isinstance(tile, bool) or tile < 1:
            raise InputError(where, f"{field}.tile", f"expected a number of at least 1, got {tile!r}")
        return SharedLoop(layer, dim, tile)
    layer, tensor = _name(row, "store", where, field)
    if not isinstance(row["level"], str):
        raise InputError(where, f"{field}.level", f"expected a level's name, got {row['level']!r}")
    halo = row.get("halo", RETAINED)
    if halo not in HALOS:
        raise InputError(where, f"{field}.halo", f"expected one of {list(HALOS)}, got {halo!r}")
    return SharedStore(layer, tensor, row["level"], halo)


def _name(row: dict[Any, Any], key: str, where: str, field: str) -> tuple[str, str]:
    text = row[key]
    layer, dot, own = text.rpartition(".") if isinstance(text, str) else ("", "", "")
    if not dot or not layer or not own:
        raise InputError(where, f"{field}.{key}", f"expected LAYER.NAME, such as qk.M, got {text!r}")
    return layer, own
