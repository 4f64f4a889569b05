"""The map space of one operator on one engine: the decisions, and the nest that they shape.

Decisions are the tile sizes at every boundary, the loop order of every memory level by its effect, and for
each tensor the levels that store it.  A space has one arrangement of storage: in the even one all tensors of
a level begin to live at one point; the uneven space is the union over many
(:mod:`~tilewright.formulation.mapping.nests.arrangements`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from tilewright.formulation.expression import Expr, Variable, as_expr
from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.formulation.mapping.nests.arrangements import Arrangement, even_arrangement, segments
from tilewright.formulation.mapping.nests.blocks import Block, Residency, loop_hosts, whole
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass, sequence
from tilewright.formulation.mapping.tiles.axis_groups import DIVISORS, RowFilter, axis_group, chains_of
from tilewright.formulation.mapping.tiles.chains import AxisGroup, axis_group_dims
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Dimension, Operator


@dataclass(frozen=True, slots=True)
class LoopSite:
    """A place where a dimension may have a loop: a block, named as users name it.

    Parameters
    ----------
    level : name of the memory level
    axis : name of the array axis below it, or ``None`` for the level's temporal loops
    after : tensors whose storage in the level the loops follow; empty where the level has one point of
        storage
    """

    level: str
    axis: str | None
    after: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.after:
            return f"{self.level}/{'+'.join(self.after)}"
        return self.level if self.axis is None else f"{self.level}:{self.axis}"


@dataclass(frozen=True)
class MapSpace:
    """The decisions of a mapping problem.

    Parameters
    ----------
    nest : the loop nest over the decisions
    groups : tile sizes that are chosen together
    selectors : order and residency choices, outermost first
    sites : one per block of the nest
    tiles : which tiles a dimension may have inside a tile
    """

    nest: Nest
    groups: tuple[AxisGroup, ...]
    selectors: tuple[Variable, ...]
    sites: tuple[LoopSite, ...]
    tiles: str

    @property
    def size(self) -> int:
        """Number of combinations, before capacity and array constraints; at most where they are very many."""
        result = 1
        for group in self.groups:
            result *= group.size_at_most
        for selector in self.selectors:
            result *= len(selector.domain)
        return result

    @property
    def rows(self) -> int:
        """Rows of tiles of all groups; at most where they are very many."""
        return sum(group.size_at_most for group in self.groups)

    def decode(self, assignment: MappingABC[Variable, int]) -> Mapping:
        """The mapping that an assignment stands for; loops of one iteration are left out."""
        nest = self.nest

        def number(expr: Expr) -> int:
            return assignment[expr] if isinstance(expr, Variable) else expr.value  # type: ignore[attr-defined]

        tiles = [{dim: number(expr) for dim, expr in edge.items()} for edge in nest.boundaries]
        stores: dict[int, list[Storage]] = {}
        for tensor in nest.operator.tensors:
            residency = nest.residency[tensor.name]
            chosen = residency.alternatives[_index(residency.selector, assignment)]
            for level in chosen:
                name = nest.engine.levels[level].name
                stores.setdefault(residency.positions[level], []).append(Storage(tensor.name, name))
        nodes: list[Node] = []
        # A loop belongs to the level stored last outside it; only where that is another level does the node
        # name it.
        names, hosts = [level.name for level in nest.engine.levels], loop_hosts(nest.operator, nest.engine)
        stored = names[0]
        for index, block in enumerate(nest.blocks):
            nodes += stores.get(index, [])
            stored = stores[index][-1].level if index in stores else stored
            host = names[hosts[block.level]]
            # Equal tiles on both sides are a loop of one iteration, which no mapping has.
            loops: Sequence[str] = [
                dim for dim in nest.operator.bounds if tiles[index][dim] != tiles[index + 1][dim]
            ]
            if block.orders:
                order = block.orders[_index(block.selector, assignment)]
                loops = sequence(order, loops, nest.operator, block.orders)
            for dim in loops:
                tile = tiles[index + 1][dim]
                nodes.append(
                    Temporal(dim, tile, None if host == stored else host)
                    if block.axis is None
                    else Spatial(dim, tile, block.axis.name)
                )
        return Mapping(tuple(nodes))


def _index(selector: Variable | int, assignment: MappingABC[Variable, int]) -> int:
    return selector if isinstance(selector, int) else assignment[selector]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Alike:
    """What spaces have in common; their rows and tables are shared then.

    Spaces of one operator's arrangements share nearly all.  Layers of a network on one machine share the
    tiles of dimensions that are as long in several of them.

    Parameters
    ----------
    spaces : by their loops; ``None`` where operators differ
    tiles : tile sizes; those of a dimension are numbered from the outside
    groups : by their tile sizes, and those around array axes
    """

    spaces: dict[Hashable, MapSpace] | None = field(default_factory=dict)
    tiles: dict[Hashable, Variable] = field(default_factory=dict)
    groups: dict[Hashable, AxisGroup] = field(default_factory=dict)

    def tile(self, dim: str, number: int, site: LoopSite, domain: Sequence[int], group: str) -> Variable:
        """A tile size of a dimension; the same for all spaces.

        Parameters
        ----------
        number : of tiles of the dimension outside it that are decided
        site : inside which it stands, if all spaces have the same sites
        domain : what it may be, increasing
        group : name of the axis group
        """
        name = f"{dim}@{site}" if self.spaces is None else f"{dim}#{number}"
        key = (name, tuple(domain), group)
        if key not in self.tiles:
            self.tiles[key] = Variable(name, domain, group)
        return self.tiles[key]


_FEW = 20_000  # rows up to which a space is kept for those with the same loops


def build_space(
    operator: Operator,
    engine: Engine,
    orders: Callable[[int], tuple[OrderClass, ...]],
    row_filters: Sequence[RowFilter] = (),
    tiles: str = DIVISORS,
    slots: Arrangement | None = None,
    check: Callable[[], None] = lambda: None,
    alike: Alike | None = None,
) -> MapSpace:
    """The map space of an operator on an engine, for one arrangement of storage.

    Parameters
    ----------
    orders : per slot of the arrangement (per memory level in the even one), the order effects to choose from;
        the innermost level's loops run over registers, where no order matters
    row_filters : user constraints on tile sizes, as predicates over the tile sizes at every boundary
    tiles : the tiles that a tile may be cut into, one of those of `axis_groups`
    slots : the even arrangement by default
    check : called between dimensions, each of which may have millions of rows; what it raises goes through
    alike : what spaces have in common: of this operator, on machines that differ in what levels store, how
        much and how fast, where one of the same loops gives its decisions to the new one, or of several
    """
    slots = even_arrangement(operator, engine) if slots is None else slots
    blocks, sites = _blocks(engine, slots, orders)
    loops = _loops(blocks, slots, tiles)
    spaces = None if alike is None else alike.spaces
    if spaces is not None and loops in spaces:
        return _storing(spaces[loops], engine, slots, sites)
    boundaries, variables = _boundaries(operator, blocks, sites, slots, tiles, alike)
    groups = tuple(
        _group(operator, dims, blocks, boundaries, variables, row_filters, tiles, check, alike)
        for dims in axis_group_dims(operator)
    )
    residency = _residency(operator, engine, blocks, slots)
    space = MapSpace(
        nest=Nest(operator, engine, tuple(boundaries), tuple(blocks), residency, tiles == DIVISORS),
        groups=groups,
        selectors=_selectors(blocks, residency),
        sites=tuple(sites),
        tiles=tiles,
    )
    if spaces is not None and not row_filters and space.rows <= _FEW:
        spaces[loops] = space
    return space


def _group(
    operator: Operator,
    dims: tuple[str, ...],
    blocks: Sequence[Block],
    boundaries: Sequence[MappingABC[str, Expr]],
    variables: MappingABC[str, Sequence[Variable]],
    row_filters: Sequence[RowFilter],
    tiles: str,
    check: Callable[[], None],
    alike: Alike | None,
) -> AxisGroup:
    """A group, that of an earlier space where it has the same rows."""

    def made() -> AxisGroup:
        return axis_group(operator, dims, blocks, boundaries, variables, row_filters, tiles, check)

    if alike is None or row_filters:
        return made()
    # All that rows depend on.
    bounds = tuple(
        (dimension.bound, dimension.upto) for dimension in operator.dimensions if dimension.name in dims
    )
    axes = tuple(
        (block.axis.size, tuple((boundaries[index][dim], boundaries[index + 1][dim]) for dim in dims))
        for index, block in enumerate(blocks)
        if block.axis is not None
    )
    key = (dims, bounds, tiles, tuple(tuple(variables[dim]) for dim in dims), axes)
    group = alike.groups.get(key)
    if group is None:
        group = made()
        if alike.spaces is not None or group.most <= _FEW:  # a network has many of its own
            alike.groups[key] = group
    return group


def _selectors(blocks: Sequence[Block], residency: MappingABC[str, Residency]) -> tuple[Variable, ...]:
    choices = [block.selector for block in blocks] + [r.selector for r in residency.values()]
    return tuple(choice for choice in choices if isinstance(choice, Variable))


def _loops(blocks: Sequence[Block], slots: Arrangement, tiles: str) -> Hashable:
    """What the decisions on loops of a space depend on, for one operator."""
    return (
        tiles,
        tuple(slot.dims for slot in slots),
        tuple(
            (block.level, block.axis, tuple((order.permutation, order.effect) for order in block.orders))
            for block in blocks
        ),
    )


def _storing(space: MapSpace, engine: Engine, slots: Arrangement, sites: Sequence[LoopSite]) -> MapSpace:
    """The space of the same loops where other tensors may be stored between them."""
    nest = space.nest
    residency = _residency(nest.operator, engine, nest.blocks, slots)
    selectors = _selectors(nest.blocks, residency)
    return replace(space, nest=nest.storing(engine, residency), selectors=selectors, sites=tuple(sites))


def level_positions(blocks: Sequence[Block]) -> dict[int, int]:
    """Per memory level index, the boundary just outside its (outermost) temporal loops."""
    positions: dict[int, int] = {}
    for index, block in enumerate(blocks):
        if block.is_temporal:
            positions.setdefault(block.level, index)
    return positions


def _blocks(
    engine: Engine, slots: Arrangement, orders: Callable[[int], tuple[OrderClass, ...]]
) -> tuple[list[Block], list[LoopSite]]:
    blocks: list[Block] = []
    sites: list[LoopSite] = []
    parts = segments(engine)
    for index, slot in enumerate(slots):
        level = engine.levels[slot.level]
        # A level with several points of storage has several loop sites; their names distinguish them.
        alone = [other.level for other in slots].count(slot.level) == 1
        site = LoopSite(level.name, None, () if alone else slot.tensors)
        classes = orders(index)
        selector: Variable | int = 0
        if len(classes) > 1:
            selector = Variable(f"order@{site}", range(len(classes)))
        blocks.append(Block(slot.level, None, classes, selector))
        sites.append(site)
        segment = next(candidate for candidate in parts if slot.level in candidate.levels)
        # The array stands after the last point of its segment.
        if index + 1 == len(slots) or slots[index + 1].level not in segment.levels:
            last = segment.levels[-1]
            feeds = engine.levels[last].fanout
            for axis in feeds.axes if feeds else ():
                blocks.append(Block(last, axis))
                sites.append(LoopSite(engine.levels[last].name, axis.name))
    return blocks, sites


def _boundaries(
    operator: Operator,
    blocks: Sequence[Block],
    sites: Sequence[LoopSite],
    slots: Arrangement,
    tiles: str,
    alike: Alike | None,
) -> tuple[list[dict[str, Expr]], dict[str, list[Variable]]]:
    """Tile sizes between the blocks, and per dimension the variables among them, outermost first."""
    # Dimensions that share a tensor axis stand in one table: their tiles decide one extent together.
    groups = {dim: "+".join(dims) for dims in axis_group_dims(operator) for dim in dims}
    boundaries = [whole(operator)]
    variables: dict[str, list[Variable]] = {dim: [] for dim in operator.bounds}
    hosts = [_hosted(operator, blocks, slots, dimension) for dimension in operator.dimensions]
    for index in range(len(blocks)):
        tile: dict[str, Expr] = {}
        for dimension, hosted in zip(operator.dimensions, hosts, strict=True):
            dim, outer = dimension.name, boundaries[-1][dimension.name]
            # The last block that can have a loop takes what is left, so its inner tile is no decision.
            if dimension.bound == 1 or index >= hosted[-1]:
                tile[dim] = as_expr(1)
            elif index not in hosted:
                tile[dim] = outer
            else:
                # tiles of tiles are tiles: one step of a chain has all values of the longer ones
                chains = chains_of(dimension, tiles)
                domain = sorted(set(chains(dimension.bound, 1)[:, 0].tolist()))
                site, number = sites[index + 1], len(variables[dim])
                tile[dim] = variable = (
                    Variable(f"{dim}@{site}", domain, groups[dim])
                    if alike is None
                    else alike.tile(dim, number, site, domain, groups[dim])
                )
                variables[dim].append(variable)
        boundaries.append(tile)
    return boundaries, variables


def _hosted(
    operator: Operator, blocks: Sequence[Block], slots: Arrangement, dimension: Dimension
) -> list[int]:
    """Blocks in which a dimension may have a loop."""
    temporal = iter(slots)
    hosts: list[int] = []
    for index, block in enumerate(blocks):
        if block.axis is None:
            free = dimension.name in next(temporal).dims
        else:
            free = block.axis.carries is None or dimension.like in block.axis.carries
        if free:
            hosts.append(index)
    return hosts


def _residency(
    operator: Operator, engine: Engine, blocks: Sequence[Block], slots: Arrangement
) -> dict[str, Residency]:
    temporal = [index for index, block in enumerate(blocks) if block.is_temporal]
    positions = {
        (name, slot.level): index
        for slot, index in zip(slots, temporal, strict=True)
        for name in slot.tensors
    }
    result: dict[str, Residency] = {}
    for tensor in operator.tensors:
        kept = [i for i, level in enumerate(engine.levels) if tensor.role in level.keeps]
        optional = [i for i in kept if tensor.role in engine.levels[i].may_bypass]
        # The first alternative stores the tensor wherever the machine can; those that bypass more levels
        # follow.
        left_out = chain.from_iterable(combinations(optional, n) for n in range(len(optional) + 1))
        alternatives = tuple(tuple(i for i in kept if i not in out) for out in left_out)
        selector: Variable | int = 0
        if len(alternatives) > 1:
            selector = Variable(f"stores@{tensor.name}", range(len(alternatives)))
        at = {level: positions[tensor.name, level] for level in kept}
        result[tensor.name] = Residency(at, alternatives, selector)
    return result
