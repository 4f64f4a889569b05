"""Every mapping of an even space, written out node by node: tiles, loop orders, stores.

The rules of the space stand here a second time and as plainly as they can be said, so that nothing that they
judge is taken from the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations, pairwise, permutations
from itertools import product as cartesian
from typing import NamedTuple

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
    sites: list[Site] = []
    for index, level in enumerate(engine.levels):
        sites.append((index, None))
        sites += [(index, axis.name) for axis in (level.fanout.axes if level.fanout else ())]
    return sites


def cuts(bound: int, places: int, perfect: bool) -> Iterator[tuple[int, ...]]:
    """Tile sizes inside each of so many places, the last one 1."""
    if places == 1:
        yield (1,)
        return
    for size in inner_tiles(bound, perfect):
        for rest in cuts(size, places - 1, perfect):
            yield (size, *rest)


def every_mapping(operator: Operator, engine: Engine, perfect: bool, idles: bool = True) -> Iterator[Mapping]:
    """All mappings, legal or not, in every loop order.

    ``idles`` leaves out those with loops at a level that could store something and does not.
    """
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
            if idles and _loops_beside_stores(operator, engine, places, stores, loops):
                continue
            for arranged in cartesian(*ordered):
                yield _mapping(operator, engine, places, stores, arranged)


def _loops_beside_stores(
    operator: Operator,
    engine: Engine,
    places: list[Site],
    stores: dict[str, set[int]],
    loops: list[list[tuple[str, int]]],
) -> bool:
    """Whether loops stand at a level that could store something and stores nothing."""
    roles = {tensor.role for tensor in operator.tensors}
    host = 0
    for (level, axis), own in zip(places, loops, strict=True):
        host = level if roles & engine.levels[level].keeps else host
        if axis is None and own and not any(host in held for held in stores.values()):
            return True
    return False


def _carries(engine: Engine, level: int, axis: str, like: str) -> bool:
    fan = engine.levels[level].fanout
    assert fan is not None
    (array_axis,) = [candidate for candidate in fan.axes if candidate.name == axis]
    return array_axis.carries is None or like in array_axis.carries


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
    """What two mappings must differ in to count as different: tiles, stores, or effects of orders.

    Loops are run, not compared: dimensions leave pieces behind, and orders the iterations that pass before a
    tensor's tile moves.
    """
    tile = dict(operator.bounds)
    pieces = {dim: [bound] for dim, bound in operator.bounds.items()}
    stages: dict[str, list[tuple[Hashable, list[int]]]] = {dim: [] for dim in operator.bounds}
    stores: set[tuple[str, str]] = set()
    stretches: list[_Stretch] = []
    for node in mapping.nodes:
        if isinstance(node, Storage):
            stores.add((node.tensor, node.level))
        elif node.tile < tile[node.dim]:
            dim, inner, axis = node.dim, node.tile, None if isinstance(node, Temporal) else node.axis
            where: Hashable = (frozenset(stores), axis)
            if not stretches or stretches[-1].outside != stores:
                stretches.append(_Stretch(set(stores), {name: list(own) for name, own in pieces.items()}))
            stretches[-1].loops.append(_Loop(dim, tile[dim], inner, axis is None))
            pieces[dim] = [part for piece in pieces[dim] for part in _pieces(piece, inner)]
            if stages[dim] and stages[dim][-1][0] == where:
                stages[dim].pop()  # one walk over the same pieces
            stages[dim].append((where, list(pieces[dim])))
            tile[dim] = inner
    effects: list[tuple[Hashable, ...]] = []
    for stretch in stretches:
        if stretch.outside == stores:
            continue  # nothing is stored inside
        inside = {level for _, level in stores - stretch.outside}
        for tensor in operator.tensors:
            keeps = any(
                m.sliding_window and tensor.role in m.keeps and m.name in inside for m in engine.levels
            )
            passed = _passed(operator, tensor.name, stretch, keeps)
            effects.append((frozenset(stretch.outside), tensor.name, *passed))
    cuts = tuple((dim, tuple((where, tuple(left)) for where, left in own)) for dim, own in stages.items())
    return cuts, frozenset(stores), frozenset(effect for effect in effects if effect[2:] != FREE)


class _Loop(NamedTuple):
    dim: str
    outer: int
    inner: int
    in_time: bool


@dataclass
class _Stretch:
    """Loops with no storage between them, what is stored outside, and each dimension's pieces there."""

    outside: set[tuple[str, str]]
    before: dict[str, list[int]]
    loops: list[_Loop] = field(default_factory=list)


FREE: tuple[Hashable, Hashable] = ((), None)
"""No loop passes before a tile moves: that is what an order without loops means, too."""


def _pieces(piece: int, tile: int) -> list[int]:
    return [min(tile, piece - start) for start in range(0, piece, tile)]


def _passed(operator: Operator, tensor: str, stretch: _Stretch, keeps: bool) -> tuple[Hashable, Hashable]:
    """What passes in time until the tensor's tile first moves, and the loop that moves it.

    Of the dimensions that pass, the pieces into which they are cut outside of what passes.
    """
    dims = operator.tensor(tensor).dims
    walks = [
        range(0, loop.outer, loop.inner) if loop.in_time else range(1) for loop in stretch.loops
    ]  # instances of an array do the same
    mover = -1
    for place in cartesian(*walks):  # the innermost loop runs fastest
        moved = [index for index, start in enumerate(place) if start]
        if moved and stretch.loops[moved[0]].dim in dims:
            mover = moved[0]
            break
    rest: dict[str, tuple[int, ...]] = {}
    for dim in operator.bounds:
        own = stretch.before[dim]
        for index, loop in enumerate(stretch.loops):
            if loop.dim == dim:
                if loop.in_time and index > mover and dim not in dims:
                    rest[dim] = tuple(own)
                    break
                own = [part for piece in own for part in _pieces(piece, loop.inner)]
    slides: Hashable = None
    if mover >= 0 and keeps and _overlaps(operator, tensor, stretch.loops[mover].dim):
        slides = stretch.loops[mover]
    return tuple(rest.items()), slides


def _overlaps(operator: Operator, tensor: str, dim: str | None) -> bool:
    """Whether windows of the tensor that lie side by side along a dimension can share elements."""
    for axis in operator.tensor(tensor).axes:
        stride = next((term.stride for term in axis.terms if term.dim == dim), None)
        if stride is not None and len(axis.terms) > 1:
            others = sum(t.stride * (operator.bounds[t.dim] - 1) for t in axis.terms if t.dim != dim)
            if others + 1 > stride:
                return True
    return False
