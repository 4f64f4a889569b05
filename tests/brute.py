"""Every mapping of an even space, written out node by node: tiles, loop orders, stores.

The rules of the space stand here a second time and as plainly as they can be said, so that nothing that they
judge is taken from the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from itertools import chain, combinations, pairwise, permutations
from itertools import product as cartesian

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator

Site = tuple[int, str | None]  # level, axis


def inner_tiles(outer: int, perfect: bool) -> list[int]:
    """Tiles that a tile may be cut into."""
    if perfect:
        return [size for size in range(1, outer + 1) if outer % size == 0]
    return sorted({math.ceil(outer / trips) for trips in range(1, outer + 1)})


def sites(engine: Engine) -> list[Site]:
    """Places of loops, outermost first."""
    found: list[Site] = []
    for index, level in enumerate(engine.levels):
        found.append((index, None))
        found += [(index, axis.name) for axis in (level.fanout.axes if level.fanout else ())]
    return found


def cuts(bound: int, places: int, perfect: bool) -> Iterator[tuple[int, ...]]:
    """Tile sizes inside each of so many places, the last one 1."""
    if places == 1:
        yield (1,)
        return
    for size in inner_tiles(bound, perfect):
        for rest in cuts(size, places - 1, perfect):
            yield (size, *rest)


def every_mapping(operator: Operator, engine: Engine, perfect: bool) -> Iterator[Mapping]:
    """All mappings, legal or not, in every loop order."""
    places = sites(engine)
    carried: dict[str, list[int]] = {}
    for dimension in operator.dimensions:
        carried[dimension.name] = [
            index
            for index, (level, axis) in enumerate(places)
            if axis is None or _carries(engine, level, axis, dimension.like)
        ]
    choices = [
        [dict(zip(carried[dim], sizes, strict=True)) for sizes in cuts(bound, len(carried[dim]), perfect)]
        for dim, bound in operator.bounds.items()
    ]
    for chosen in cartesian(*choices):
        tiles = dict(zip(operator.bounds, chosen, strict=True))
        loops: list[list[tuple[str, int]]] = [[] for _ in places]
        for dim, bound in operator.bounds.items():
            for index, (outer, inner) in zip(
                carried[dim], pairwise([bound, *tiles[dim].values()]), strict=True
            ):
                if inner < outer:
                    loops[index].append((dim, inner))
        ordered = [
            list(permutations(own)) if axis is None else [tuple(own)]
            for own, (_, axis) in zip(loops, places, strict=True)
        ]
        for stores in _stores(operator, engine):
            for arranged in cartesian(*ordered):
                yield _mapping(operator, engine, places, stores, arranged)


def _carries(engine: Engine, level: int, axis: str, like: str) -> bool:
    fan = engine.levels[level].fanout
    assert fan is not None
    (found,) = [one for one in fan.axes if one.name == axis]
    return found.carries is None or like in found.carries


def _stores(operator: Operator, engine: Engine) -> Iterator[dict[str, set[int]]]:
    options: list[list[set[int]]] = []
    for tensor in operator.tensors:
        kept = {i for i, level in enumerate(engine.levels) if tensor.role in level.keeps}
        free = [i for i in sorted(kept) if tensor.role in engine.levels[i].may_bypass]
        left_out = chain.from_iterable(combinations(free, n) for n in range(len(free) + 1))
        options.append([kept - set(out) for out in left_out])
    for chosen in cartesian(*options):
        yield dict(zip((t.name for t in operator.tensors), chosen, strict=True))


def _mapping(
    operator: Operator,
    engine: Engine,
    places: list[Site],
    stores: dict[str, set[int]],
    loops: tuple[tuple[tuple[str, int], ...], ...],
) -> Mapping:
    roles = {tensor.role for tensor in operator.tensors}
    nodes: list[Node] = []
    host = 0
    for (level, axis), own in zip(places, loops, strict=True):
        memory = engine.levels[level]
        if axis is None:
            host = level if roles & memory.keeps else host
            nodes += [Storage(tensor, memory.name) for tensor, held in stores.items() if level in held]
            nodes += [Temporal(dim, tile, engine.levels[host].name) for dim, tile in own]
        else:
            nodes += [Spatial(dim, tile, axis) for dim, tile in own]
    return Mapping(tuple(nodes))


def spelled(operator: Operator, engine: Engine, mapping: Mapping) -> Hashable:
    """A mapping's nodes without what makes no difference.

    That is: loops of one iteration, the sequence of stores with no loop between them, the sequence of loops
    over different dimensions on the axes of one array, and whether a loop names its level.
    """
    names = [level.name for level in engine.levels]
    arrays = {a.name: i for i, level in enumerate(engine.levels) if level.fanout for a in level.fanout.axes}
    tile = dict(operator.bounds)
    level = names[0]
    parts: list[tuple[Hashable, list[Hashable]]] = []

    def add(kind: Hashable, item: Hashable, merges: bool = True) -> None:
        if not (parts and merges and parts[-1][0] == kind):
            parts.append((kind, []))
        parts[-1][1].append(item)

    for node in mapping.nodes:
        if isinstance(node, Storage):
            level = node.level
            add("store", (node.tensor, node.level))
        elif node.tile < tile[node.dim]:
            if isinstance(node, Temporal):
                add("loop", (node.dim, node.tile, node.level or level), merges=False)
            else:
                add(arrays[node.axis], (node.dim, node.axis, tile[node.dim], node.tile))
            tile[node.dim] = node.tile
    return tuple((kind, tuple(sorted(items, key=repr))) for kind, items in parts)


def distinct(operator: Operator, engine: Engine, mapping: Mapping) -> Hashable:
    """What two mappings must differ in to count as different: tiles, stores, or effects of orders."""
    names = [level.name for level in engine.levels]
    roles = {tensor.role for tensor in operator.tensors}
    tile = dict(operator.bounds)
    level = names[0]
    cut: list[Hashable] = []
    stores: list[Hashable] = []
    groups: dict[str, list[str]] = {}
    for node in mapping.nodes:
        if isinstance(node, Storage):
            level = node.level
            stores.append((node.tensor, node.level))
        elif node.tile < tile[node.dim]:
            tile[node.dim] = node.tile
            if isinstance(node, Temporal):
                groups.setdefault(node.level or level, []).append(node.dim)
                cut.append((node.level or level, node.dim, node.tile))
            else:
                cut.append((node.axis, node.dim, node.tile))
    effects: list[Hashable] = []
    for place, loops in groups.items():
        if place == names[-1]:
            continue  # nothing is stored inside the innermost level
        inside = engine.levels[names.index(place) + 1 :]
        for tensor in operator.tensors:
            still: list[str] = []
            for dim in reversed(loops):
                if dim in tensor.dims:
                    break
                still.append(dim)
            keeps_windows = any(m.sliding_window and tensor.role in m.keeps and roles for m in inside)
            moves = loops[len(loops) - len(still) - 1] if len(still) < len(loops) else None
            slides = moves if keeps_windows and _overlaps(operator, tensor.name, moves) else None
            effects.append((place, tensor.name, frozenset(still), slides))
    return frozenset(cut), frozenset(stores), frozenset(effects)


def _overlaps(operator: Operator, tensor: str, dim: str | None) -> bool:
    """Whether windows of the tensor that lie side by side along a dimension can share elements."""
    for axis in operator.tensor(tensor).axes:
        stride = next((term.stride for term in axis.terms if term.dim == dim), None)
        if stride is not None and len(axis.terms) > 1:
            others = sum(t.stride * (operator.bounds[t.dim] - 1) for t in axis.terms if t.dim != dim)
            if others + 1 > stride:
                return True
    return False
