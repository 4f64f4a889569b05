"""Timeloop's mappings: directives per level, as one list of loops and stores.

A factor is how often a loop repeats; this project's ``tile`` is what is left inside it, the product of the
factors of all loops inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.roles import ROLE_NAMES
from tilewright.report.exchange.mapping.timeloop_factors import Factor, read_factors, read_permutation
from tilewright.report.exchange.mapping.timeloop_sites import Sites
from tilewright.report.exchange.source import Field
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.workloads.mapping.operator import Operator

PEER = "timeloop"
TOPS: tuple[str, ...] = ("mapping",)

_TYPES = ("temporal", "spatial", "datatype", "dataspace", "bypass")
_KNOWN = {"target", "type", "factors", "permutation", "split", "keep", "bypass"}


@dataclass(slots=True)
class _Loop:
    """A loop with its place in the file; ``axis`` is ``None`` for one in time."""

    dim: str
    factor: Factor
    axis: str | None
    level: str
    field: Field


@dataclass(slots=True)
class _Directives:
    """What the file says, by level and by array, in the order of the machine."""

    temporal: dict[str, list[_Loop]] = field(default_factory=dict)
    spatial: dict[str, list[_Loop]] = field(default_factory=dict)
    stored: dict[str, set[str]] = field(default_factory=dict)


def recognises(data: object) -> bool:
    """Whether a file has a list of directives."""
    return isinstance(data, dict) and isinstance(data.get("mapping"), list)


def read(top: Field, bundle: Bundle) -> None:
    """Add the mapping, for the one layer and the machine that are known."""
    place = top.at("mapping")
    operator, engine = bundle.operator, bundle.engine
    if operator is None:
        raise place.error(
            "expected one problem with it, or --layer: a mapping does not state its loops' bounds"
        )
    if engine is None:
        raise place.error(
            "expected an architecture with it, or --arch: a mapping does not state its levels' order"
        )
    sites = Sites.of(engine)
    directives = _Directives()
    for entry in place.entries():
        _read_directive(entry, directives, sites, operator, bundle)
    nodes: list[Node] = []
    loops = _in_order(directives, sites)
    tiles = _tiles(loops, operator, place)
    for level in sites.levels:
        nodes += _stores(level, directives, engine, operator)
        kept = bool(nodes) and isinstance(nodes[-1], Storage) and nodes[-1].level == level
        for loop, tile in zip(loops, tiles, strict=True):
            if loop.level != level or tile is None:
                continue
            if loop.axis is not None:
                nodes.append(Spatial(loop.dim, tile, loop.axis))
            else:
                nodes.append(Temporal(loop.dim, tile, None if kept else level))
    name = bundle.layers[0][0]
    mapping = Mapping(tuple(nodes))
    mapping.validate(operator, engine, place.where)
    bundle.mappings.append(StoredMapping(name, mapping, operator, engine))


def _read_directive(
    entry: Field, directives: _Directives, sites: Sites, operator: Operator, bundle: Bundle
) -> None:
    given = entry.fields()
    kind, target = entry.at("type").one_of(_TYPES), entry.at("target")
    for key, extra in given.items():
        if key not in _KNOWN:
            extra.lose(bundle.ledger, Effect.COST, "is no part of a mapping that is known here")
    if kind == "spatial":
        array = sites.array(target)
        if array in directives.spatial:
            raise target.error(f"a second spatial directive for {array}")
        directives.spatial[array] = _spatial_loops(entry, sites.arrays[array], sites.below[array], operator)
        return
    idle = sites.is_array(target)
    if kind == "temporal":
        if idle:
            for factor in read_factors(entry.at("factors")):
                if factor.number != 1:
                    raise entry.at("factors").error(f"{factor.dim}: an array has no loops in time")
            return
        level = sites.level(target)
        if level in directives.temporal:
            raise target.error(f"a second temporal directive for {level}")
        loops = _loops(entry, operator)
        directives.temporal[level] = [
            _Loop(item.dim, item, None, level, entry.at("factors")) for item in loops
        ]
        return
    kept = _tensors(entry.at("keep"), operator)
    if idle:
        if kept:
            raise entry.at("keep").error("an array stores nothing")
        return
    level = sites.level(target)
    bypassed = _tensors(entry.at("bypass"), operator)
    if kept & bypassed:
        raise entry.error(f"{', '.join(sorted(kept & bypassed))} are kept and bypassed")
    unsaid = [item.name for item in operator.tensors if item.name not in kept | bypassed]
    if (unsaid and kept and bypassed) or (unsaid and not kept and not bypassed):
        raise entry.error(f"tells of {', '.join(unsaid)} neither that it is kept nor that it is bypassed")
    directives.stored[level] = kept if not unsaid else kept or set(unsaid)


def _tensors(place: Field, operator: Operator) -> set[str]:
    """The layer's tensors of a list of data spaces, by name or by role."""
    tensors: set[str] = set()
    for word in place.words() if place else []:
        own = {tensor.name for tensor in operator.tensors if tensor.name == word}
        role = ROLE_NAMES.get(word.lower())
        own = own or {tensor.name for tensor in operator.tensors if tensor.role is role}
        if not own:
            known = ", ".join(tensor.name for tensor in operator.tensors)
            raise place.error(f"unknown data space {word!r}, expected one of: {known}")
        tensors |= own
    return tensors


def _loops(entry: Field, operator: Operator) -> list[Factor]:
    """Factors above 1 in the order of the loops, outermost first; 0 is the whole dimension."""
    place, factors = entry.at("factors"), {}
    for factor in read_factors(place):
        if factor.dim not in operator.bounds:
            raise place.error(
                f"unknown dimension {factor.dim!r}, expected one of: {', '.join(operator.bounds)}"
            )
        if factor.compare != "=":
            raise place.error(
                f"{factor.dim}{factor.compare}{factor.number} is no factor, expected an equation"
            )
        bound = operator.bounds[factor.dim]
        whole = replace(factor, number=bound, last=bound) if factor.number == 0 else factor
        if not 1 <= whole.last <= whole.number:
            raise place.error(
                f"{factor.dim}={factor.number},{factor.last}: expected a last round of 1 to {factor.number}"
            )
        factors[factor.dim] = whole
    order = read_permutation(entry.at("permutation"))
    for dim in order:
        if dim not in operator.bounds:
            known = ", ".join(operator.bounds)
            raise entry.at("permutation").error(f"unknown dimension {dim!r}, expected one of: {known}")
    loose = [dim for dim, factor in factors.items() if dim not in order and factor.number > 1]
    if len(loose) > 1 or (loose and any(factors[dim].number > 1 for dim in order if dim in factors)):
        raise entry.at("permutation").error(
            f"does not order {', '.join(loose)}, expected every loop of the level"
        )
    return [factors[dim] for dim in (*loose, *reversed(order)) if dim in factors and factors[dim].number > 1]


def _spatial_loops(entry: Field, axes: Sequence[str], level: str, operator: Operator) -> list[_Loop]:
    """An array's loops: of the permutation, the first ``split`` dimensions lie on X, the others on Y."""
    loops = _loops(entry, operator)
    place = entry.at("factors")
    if len(axes) == 1:
        return [_Loop(loop.dim, loop, axes[0], level, place) for loop in loops]
    if not loops:
        return []
    if not entry.at("split"):
        raise entry.error(f"missing split, expected how many loops of the permutation lie on {axes[0]}")
    edge = entry.at("split").whole("the number of loops on X", least=0)
    on_x = set(read_permutation(entry.at("permutation"))[:edge])
    placed = [_Loop(loop.dim, loop, axes[loop.dim not in on_x], level, place) for loop in loops]
    return [loop for loop in placed if loop.axis == axes[0]] + [
        loop for loop in placed if loop.axis == axes[1]
    ]


def _in_order(directives: _Directives, sites: Sites) -> list[_Loop]:
    """All loops, outermost first: a level's in time, then those of its arrays."""
    loops: list[_Loop] = []
    for level in sites.levels:
        loops += directives.temporal.get(level, [])
        for array, below in sites.below.items():
            if below == level:
                loops += directives.spatial.get(array, [])
    return loops


def _tiles(loops: Sequence[_Loop], operator: Operator, place: Field) -> list[int | None]:
    """The tile inside every loop; ``None`` for a loop of a single iteration.

    Tiles are the products of the factors inside.  The last rounds have to make up the bound: with factors
    ``f`` and last rounds ``r`` it is ``1 + sum((r - 1) * product of the f inside)``.
    """
    inside = dict.fromkeys(operator.bounds, 1)
    covered = dict.fromkeys(operator.bounds, 1)
    tiles: list[int | None] = []
    for loop in reversed(loops):
        tiles.append(inside[loop.dim])
        covered[loop.dim] += (loop.factor.last - 1) * inside[loop.dim]
        inside[loop.dim] *= loop.factor.number
    for dim, bound in operator.bounds.items():
        if covered[dim] != bound:
            at = next((loop.field for loop in loops if loop.dim == dim), place)
            raise at.error(f"the factors of {dim} make {covered[dim]} iterations, the layer has {bound}")
    tiles.reverse()
    around = dict(operator.bounds)
    for index, loop in enumerate(loops):
        tile = tiles[index]
        assert tile is not None
        if tile >= around[loop.dim]:
            tiles[index] = None
        else:
            around[loop.dim] = tile
    return tiles


def _stores(level: str, directives: _Directives, engine: Engine, operator: Operator) -> list[Node]:
    """The tensors that a level keeps; where the file does not say, all that the machine may keep there."""
    keeps = engine.level(level).keeps
    stored = directives.stored.get(level)
    return [
        Storage(tensor.name, level)
        for tensor in operator.tensors
        if (tensor.role in keeps if stored is None else tensor.name in stored)
    ]
