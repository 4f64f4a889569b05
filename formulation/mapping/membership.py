"""Whether a mapping lies in a map space, and at which point; a claim counts only mappings of its space.

The evaluator costs any nest that the machine can run: stores of one level at different places among the
loops, tiles of any size, a dimension twice in one level.  A search walks through its space only, so nothing
else may touch what it claims.  This module answers from the space itself, its blocks, store positions, tiles
and residencies, and asks no solver.

All orders of a level's loops belong to the space; that a search looks only at effects which no other one
dominates loses nothing (``docs/proofs.md``).  Capacities, array sizes and the user's demands say which points
of the space are legal; that is the evaluator's question
(:class:`~tilewright.formulation.mapping.evaluator.Evaluation`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.nests.arrangements import (
    EVEN,
    UNEVEN,
    Arrangement,
    Reduction,
    Segment,
    Slot,
    is_fixed,
    place_in_point,
    segments,
    useful_dims,
)
from tilewright.formulation.mapping.nests.blocks import Block, loop_hosts
from tilewright.formulation.mapping.nests.idle_levels import loops_where_nothing_is_stored
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.space import MapSpace, level_positions
from tilewright.formulation.mapping.tiles.axis_groups import DIVISORS, EVERY_INTEGER, chains_of
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Dimension, Operator


class OutsideError(ValueError):
    """A mapping does not lie in the space; the message says which level, tensor or tile is at fault."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a mapping lies in a space, whatever the order of its loops.

    Parameters
    ----------
    tiles : per boundary, the tile sizes in the sequence of the operator's dimensions
    stores : per tensor of the operator, the indices of the levels that store it
    """

    tiles: tuple[tuple[int, ...], ...]
    stores: tuple[tuple[int, ...], ...]


def placement(space: MapSpace, mapping: Mapping) -> Placement:
    """The point of a map space at which a mapping lies.

    Parameters
    ----------
    mapping : one that the evaluator can cost, legal or not

    Raises
    ------
    OutsideError : where it lies outside the space
    """
    return _Walk(space.tiles, Skeleton.of(space)).through(mapping)


def outside_uneven(even: MapSpace, mapping: Mapping, reduction: Reduction) -> str | None:
    """Why a mapping lies outside the uneven space; ``None`` for one that lies in it.

    Parameters
    ----------
    even : the even part of that space
    reduction : whether loops between points of storage are restricted
    """
    # Even mappings belong to the uneven space, whatever arrangement their nodes read as.
    if outside(even, mapping) is None:
        return None
    nest = even.nest
    slots = arrangement_of(nest.operator, nest.engine, mapping)
    try:
        walk = _Walk(even.tiles, Skeleton.arranged(even, slots))
        walk.through(mapping)
        _check_loops(nest.operator, nest.engine, slots, walk.loops(), reduction)
    except OutsideError as error:
        return str(error)
    return None


def arrangement_of(operator: Operator, engine: Engine, mapping: Mapping) -> Arrangement:
    """The arrangement of a mapping: a slot for every store, and one for segments that hold nothing."""
    names = [level.name for level in engine.levels]
    every = frozenset(operator.bounds)
    own_slots = [
        Slot(names.index(node.level), (node.tensor,), every)
        for node in mapping.nodes
        if isinstance(node, Storage)
    ]
    slots: list[Slot] = []
    for segment in segments(engine):
        own = [slot for slot in own_slots if slot.level in segment.levels]
        # A segment that stores nothing still has a place for loops, at its innermost level.
        slots += own or [Slot(segment.levels[-1], (), every)]
    return tuple(slots)


def _check_loops(
    operator: Operator,
    engine: Engine,
    slots: Arrangement,
    loops: Sequence[Collection[str]],
    reduction: Reduction,
) -> None:
    """Raise ``OutsideError`` where loops between points of storage are none of the searched ones."""
    for segment in segments(engine)[1:]:
        places = [(s, dims) for s, dims in zip(slots, loops, strict=True) if s.level in segment.levels]
        if not segment.fed and not places[0][0].tensors and places[0][1]:
            name = engine.levels[places[0][0].level].name
            raise OutsideError(f"loops over {', '.join(places[0][1])} at {name}, where nothing is stored")
        if reduction is Reduction.LOOPS and places[0][0].tensors:
            _check_points(operator, engine, segment, places)


def _check_points(
    operator: Operator, engine: Engine, segment: Segment, places: Sequence[tuple[Slot, Collection[str]]]
) -> None:
    """The same for the points of one segment."""
    # Stores with no loop between them are one point, in whatever sequence the mapping has them.
    points: list[tuple[list[Slot], Collection[str]]] = [([], ())]
    for slot, dims in places:
        points[-1][0].append(slot)
        if dims:
            points[-1] = points[-1][0], dims
            points.append(([], ()))
    # Stores of this segment at this point or outside it.
    before: set[tuple[int, str]] = set()
    moved: Collection[str] | None = None  # by the loops before a point
    fixed = is_fixed(operator, engine, segment)
    for index, (own, dims) in enumerate(points):
        # The sequence in which the search would state them, by which it decides whose loops are useful.
        inner = sorted(own, key=partial(place_in_point, operator))
        items = [(slot.level, slot.tensors[0]) for slot in inner]
        before |= {*items}
        if fixed and moved is not None and items and not operator.tensor(items[0][1]).dims & set(moved):
            name = engine.levels[items[0][0]].name
            raise OutsideError(
                f"no loop between the storage of {items[0][1]} in {name} and the one around it moves "
                f"{items[0][1]}; the searched points stand further out"
            )
        moved = dims
        if (segment.fed and index == 0) or not dims:
            continue
        # Where nothing may be bypassed the innermost store is there for sure; otherwise any of them may be
        # the last.
        last = items[-1:] if fixed else items
        if not any(
            useful_dims(operator, engine, segment, item, before - {item}) >= set(dims) for item in last
        ):
            held = " and ".join(f"{name} in {engine.levels[level].name}" for level, name in items)
            reported = f"loops over {', '.join(dims)} just inside the storage of {held}"
            raise OutsideError(f"{reported}; the searched ones stand outside")


@dataclass(frozen=True)
class Skeleton:
    """The blocks of a nest and the places of stores among them, without tile sizes.

    Parameters
    ----------
    blocks : outermost first
    positions : per tensor name and memory level index, the boundary at which a tile is stored
    """

    nest: Nest
    blocks: tuple[Block, ...]
    positions: MappingABC[tuple[str, int], int]
    storage: str = EVEN

    @classmethod
    def of(cls, space: MapSpace) -> Skeleton:
        """That of a space of one arrangement."""
        nest = space.nest
        at = {(name, level): p for name, r in nest.residency.items() for level, p in r.positions.items()}
        return cls(nest, nest.blocks, at)

    @classmethod
    def arranged(cls, even: MapSpace, slots: Arrangement) -> Skeleton:
        """That of an arrangement, from the even space."""
        blocks: list[Block] = []
        positions: dict[tuple[str, int], int] = {}
        nest = even.nest
        temporal = {block.level: block for block in nest.blocks if block.is_temporal}
        for segment in segments(nest.engine):
            for slot in slots:
                if slot.level in segment.levels:
                    positions |= {(name, slot.level): len(blocks) for name in slot.tensors}
                    blocks.append(temporal[slot.level])
            blocks += [b for b in nest.blocks if not b.is_temporal and b.level == segment.levels[-1]]
        return cls(even.nest, tuple(blocks), positions, UNEVEN)


def outside(space: MapSpace, mapping: Mapping, idles: bool = False) -> str | None:
    """Why a mapping lies outside a space; ``None`` for one that lies in it.

    Parameters
    ----------
    idles : whether levels that store nothing have no loops
    """
    try:
        place = placement(space, mapping)
    except OutsideError as error:
        return str(error)
    return loops_where_nothing_is_stored(space.nest, place.tiles, place.stores) if idles else None


def tiles_of(space: MapSpace) -> dict[str, str]:
    """Per dimension of more than one iteration, the tiles that the space has."""
    return {dim: space.tiles for dim, bound in space.nest.operator.bounds.items() if bound > 1}


class _Walk:
    """Goes through a mapping's nodes and gives every loop its block of the space.

    Where several blocks count as one level (levels that can store nothing), a loop takes the outermost that
    is free: a later choice leaves the loops after it no further options.
    """

    def __init__(self, tiles: str, skeleton: Skeleton) -> None:
        nest = skeleton.nest
        self._tiles_kind, self._nest, self._storage = tiles, nest, skeleton.storage
        self._operator, self._engine = nest.operator, nest.engine
        self._blocks = skeleton.blocks
        self._names = [level.name for level in nest.engine.levels]
        self._hosts = loop_hosts(nest.operator, nest.engine)
        self._positions = skeleton.positions
        self._first_of_level = level_positions(skeleton.blocks)
        self._tile = dict(nest.operator.bounds)
        self._inner: list[dict[str, int]] = [{} for _ in skeleton.blocks]
        self._innermost = dict.fromkeys(nest.operator.bounds, -1)  # per dimension, the block of its last loop
        self._first = 0  # no loop that follows may stand in a block before this one
        self._last = -1  # the innermost block with a loop so far
        self._level = 0
        self.stored: dict[str, list[int]] = {tensor.name: [] for tensor in nest.operator.tensors}

    def through(self, mapping: Mapping) -> Placement:
        """The point at which the mapping lies; raises ``OutsideError`` where there is none."""
        for node in mapping.nodes:
            match node:
                case Storage(tensor, level):
                    self.store(tensor, level)
                case Temporal(dim, tile, level):
                    self.temporal(dim, tile, level)
                case Spatial(dim, tile, axis):
                    self.spatial(dim, tile, axis)
                case _:
                    assert_never(node)
        return self.placement()

    def loops(self) -> list[tuple[str, ...]]:
        """The dimensions that iterate in every temporal block, outermost block first."""
        pairs = zip(self._blocks, self._inner, strict=True)
        return [tuple(inner) for block, inner in pairs if block.is_temporal]

    def store(self, tensor: str, level: str) -> None:
        """A tensor begins to live in a level: all loops so far lie outside the level's own."""
        self._level = self._names.index(level)
        position = self._positions[tensor, self._level]
        if self._last >= position:
            place = f"{tensor} begins to live in {level} inside {self._place(self._last)}"
            if self._storage == EVEN:
                raise OutsideError(f"{place}; even storage begins outside all loops of {level}")
            raise OutsideError(f"{place}; each store has one place")
        self._first = max(self._first, position)
        self.stored[tensor].append(self._level)

    def temporal(self, dim: str, tile: int, level: str | None) -> None:
        """A loop in time; one of a single iteration is no loop."""
        if tile == self._tile[dim]:
            return
        at = self._hosts[self._level if level is None else self._names.index(level)]
        name = self._names[at]
        # A loop stands inside every store and every loop so far.
        start = max(self._first, self._last)
        # Blocks of one level, and of levels inside it that can store nothing.
        own = [i for i, b in enumerate(self._blocks) if b.is_temporal and self._hosts[b.level] == at]
        if not own:
            raise OutsideError(f"the loop over {dim} at {name}, where nothing is stored")
        left = [index for index in own if index >= start]
        if not left:
            reason = f"the loop over {dim} at {name} stands inside {self._before(own[-1])}"
            raise OutsideError(f"{reason}; the searched ones stand outside it")
        free = [index for index in left if dim not in self._inner[index]]
        if not free:
            raise OutsideError(f"{dim} has two loops at {name}; a searched level has one per dimension")
        self._take(free[0], dim, tile)

    def spatial(self, dim: str, tile: int, axis: str) -> None:
        """A loop in space.  Axes of an array may stand in any sequence, unless one dimension is on both."""
        if tile == self._tile[dim]:
            return
        block = next(i for i, b in enumerate(self._blocks) if b.axis is not None and b.axis.name == axis)
        level = self._blocks[block].level
        start = max(self._first, self._last)
        # Loops on the other axis of the same array may stand on either side.
        if start > block and self._blocks[start].level != level:
            raise OutsideError(f"axis {axis} stands inside {self._before(block)}, not outside")
        if self._innermost[dim] > block:
            raise OutsideError(f"{dim} runs over axis {axis} inside {self._place(self._innermost[dim])}")
        self._take(block, dim, tile)

    def placement(self) -> Placement:
        """The point, once all nodes have been walked through."""
        nest = self._nest
        tiles = [dict(nest.operator.bounds)]
        for index, inner in enumerate(self._inner):
            for dim, tile in inner.items():
                self._check_tile(index, dim, tiles[-1][dim], tile)
            tiles.append({**tiles[-1], **inner})
        stores = tuple(tuple(sorted(self.stored[t.name])) for t in nest.operator.tensors)
        for tensor, levels in zip(nest.operator.tensors, stores, strict=True):
            residency = nest.residency[tensor.name]
            if levels not in residency.alternatives:
                kept = set.intersection(*(set(chosen) for chosen in residency.alternatives))
                missing = [self._names[level] for level in sorted(kept - set(levels))]
                text = f"{tensor.name} skips {', '.join(missing)}, which it may not bypass"
                raise OutsideError(
                    text if missing else f"{tensor.name} is stored where the machine keeps none"
                )
        return Placement(tuple(tuple(edge.values()) for edge in tiles), stores)

    def _take(self, block: int, dim: str, tile: int) -> None:
        self._inner[block][dim] = tile
        self._tile[dim] = tile
        self._innermost[dim] = block
        self._last = max(self._last, block)

    def _check_tile(self, block: int, dim: str, outer: int, inner: int) -> None:
        if self._tiles_kind == EVERY_INTEGER:
            return
        if self._tiles_kind == DIVISORS:
            fits, wanted = outer % inner == 0, f"a divisor of {outer}"
        elif (dimension := self._dimension(dim)).upto is not None and outer == dimension.bound:
            fits = inner in chains_of(dimension, self._tiles_kind)(outer, 1)[:, 0]
            wanted = f"ceil(b/n) of any b from {outer} to {dimension.upto}"
        else:
            trips = -(-outer // inner)
            least = -(-outer // trips)
            # A larger tile with as many trips costs no less anywhere, so the space has the least one only.
            fits, wanted = inner == least, f"ceil({outer}/n): {trips} trips need {least} at least"
        if not fits:
            axis = self._blocks[block].axis
            place = f"at {self._level_name(block)}" if axis is None else f"on axis {axis.name}"
            raise OutsideError(f"the tile {inner} of {dim} {place} is not {wanted}")

    def _dimension(self, name: str) -> Dimension:
        return next(dimension for dimension in self._operator.dimensions if dimension.name == name)

    def _before(self, block: int) -> str:
        """What is already there and ought to stand inside a block."""
        if self._last > block:
            return self._place(self._last)
        stored = [self._names[level] for levels in self.stored.values() for level in levels]
        inner = [name for name in self._names if name in stored and self._position(name) > block]
        return f"the stores of {inner[-1]}"

    def _position(self, level: str) -> int:
        return self._first_of_level[self._names.index(level)]

    def _level_name(self, block: int) -> str:
        return self._names[self._hosts[self._blocks[block].level]]

    def _place(self, block: int) -> str:
        axis = self._blocks[block].axis
        name = self._level_name(block)
        dims = ", ".join(self._inner[block])
        loops = f"loop over {dims}" if len(self._inner[block]) == 1 else f"loops over {dims}"
        return f"{name}'s {loops}" if axis is None else f"axis {axis.name} ({dims})"
