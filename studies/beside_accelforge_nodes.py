"""Mappings between AccelForge's reading of a nest and the one here.

There a tile stays where loops follow its store that do not touch the tensor, and a store in front of loops
that do keeps one tile of them at a time.  Here a store has the tile of the loops after it, and loops right
before it that do not touch the tensor leave it in place, also where an array stands between.  So a store
moves past temporal loops to mean the same, and an array comes before the temporal loops around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from tilewright.workloads.mapping.operator import Operator, Tensor

Node = dict[str, Any]
Nodes = list[Node]


def from_peer(nodes: Sequence[Node], operator: Operator) -> Iterator[Nodes]:
    """AccelForge's mapping here: stores behind the loops that follow them and touch their tensor.

    What neighbouring tiles share is kept along one loop here, so a store of such a tensor may as well stay
    before some of those loops: every reading is given.
    """
    steps = [range(1) for _ in nodes]
    for place, node in enumerate(nodes):
        if "store" in node and _has_windows(_tensor(node, operator)) and not _is_outermost(node, nodes):
            steps[place] = range(1 + sum("temporal" in other for other in nodes[place:]))
    seen = []
    for kept in product(*steps):
        moved = list(nodes)
        # From the inside, so that loops which a store passes are those that follow it in the end.
        for place in reversed(range(len(moved))):
            if "store" in moved[place] and not _is_outermost(moved[place], moved):
                _move_inwards(moved, place, operator, kept[place])
        if moved not in seen:
            seen.append(moved)
            yield moved


def _move_inwards(moved: Nodes, place: int, operator: Operator, kept: int) -> None:
    """Move a store behind the loops that follow it and touch its tensor, but for the last ``kept`` ones."""
    store, ends = moved[place], [place]
    while ends[-1] + 1 < len(moved) and _passes(store, moved[ends[-1] + 1], operator, _touches):
        ends.append(ends[-1] + 1)
    loops = [end for end in ends[1:] if "temporal" in moved[end]]
    end = ends[-1] if not kept else loops[-kept - 1] if kept < len(loops) else place
    moved.insert(end, moved.pop(place))


def to_peer(nodes: Sequence[Node], operator: Operator) -> Iterator[Nodes]:
    """A mapping for AccelForge: stores before the loops that precede them and do not touch their tensor.

    In a second reading the stores around an array are larger: they make way for it.
    """
    for makes_way in (False, True):
        moved = list(nodes)
        for is_first in (True, False):
            for place, store in enumerate(moved):
                if "store" not in store:
                    continue
                start = place
                while start and _passes(store, moved[start - 1], operator, _leaves):
                    start -= 1
                if makes_way and is_first and _is_last_before_array(moved, place):
                    while start and "temporal" in moved[start - 1]:
                        start -= 1
                moved.insert(start, moved.pop(place))
            moved = _arrays_first(moved, operator)
        yield moved


def _is_last_before_array(nodes: Nodes, place: int) -> bool:
    """Whether nothing but stores stands between a store and an array."""
    following = next((node for node in nodes[place + 1 :] if "store" not in node), {})
    return "spatial" in following


def _arrays_first(nodes: Sequence[Node], operator: Operator) -> Nodes:
    """Spatial loops before the temporal ones right before them; tiles divide, so each keeps its trips."""
    sizes = dict(operator.bounds)
    trips: dict[int, int] = {}
    for node in nodes:
        dim = _dim(node)
        if dim is not None:
            trips[id(node)] = sizes[dim] // node["tile"]
            sizes[dim] = node["tile"]
    windows = {
        term.dim
        for tensor in operator.tensors
        for axis in tensor.axes
        for term in axis.terms
        if len(axis.terms) > 1 and operator.bounds[term.dim] > 1
    }
    moved = list(nodes)
    for place, node in enumerate(moved):
        start = place
        while start and "spatial" in node and "temporal" in moved[start - 1]:
            if moved[start - 1]["temporal"] == node["spatial"] and node["spatial"] in windows:
                break  # neighbours in an array share what overlaps
            start -= 1
        moved.insert(start, moved.pop(place))
    sizes = dict(operator.bounds)
    tiled = []
    for node in moved:
        dim = _dim(node)
        if dim is not None:
            sizes[dim] //= trips[id(node)]
        tiled.append(node if dim is None else {**node, "tile": sizes[dim]})
    return tiled


def _dim(node: Node) -> str | None:
    """The dimension of a loop; ``None`` for a store."""
    return node.get("temporal", node.get("spatial"))


def _tensor(store: Node, operator: Operator) -> Tensor:
    return next(tensor for tensor in operator.tensors if tensor.name == store["store"])


def _has_windows(tensor: Tensor) -> bool:
    return any(len(axis.terms) > 1 for axis in tensor.axes)


def _is_outermost(store: Node, nodes: Sequence[Node]) -> bool:
    """Whether no other store of the tensor stands before it."""
    return next(node for node in nodes if node.get("store") == store["store"]) is store


def _touches(tensor: Tensor, dim: str) -> bool:
    return dim in tensor.dims


def _leaves(tensor: Tensor, dim: str) -> bool:
    return dim not in tensor.dims


def _passes(store: Node, other: Node, operator: Operator, may_pass: Callable[[Tensor, str], bool]) -> bool:
    """Whether a store may move past its neighbour: another tensor's store, or a loop of the right kind."""
    if "store" in other:
        return bool(other["store"] != store["store"])
    return "temporal" in other and may_pass(_tensor(store, operator), other["temporal"])
