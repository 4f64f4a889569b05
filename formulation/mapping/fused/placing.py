"""Where a shared store may stand: what it stores, in which level, and what stands around it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import RETAINED, SharedStore
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine


@dataclass(frozen=True, slots=True)
class PlacedStore:
    """A shared store and where it stands.

    Parameters
    ----------
    store : the node
    level : index of its memory level
    depth : loops outside it on the way to every leaf below
    since : those of them outside the sequence that it belongs to; a run of the sequence ends what it holds
    """

    store: SharedStore
    level: int
    depth: int
    since: int = 0


def placed_store(
    group: FusedGroup,
    engine: Engine,
    store: SharedStore,
    around: tuple[Sequence[PlacedStore], int, int],
    below: Collection[str],
    where: tuple[str, str],
) -> PlacedStore:
    """A store in its place.

    Parameters
    ----------
    group, engine : the layers and the machine
    store : the node
    around : stores outside it, the number of loops, and of those outside its sequence
    below : layers inside it
    where : what errors call the mapping and the node

    Raises
    ------
    InputError : where there can be no such store
    """
    reason = _obstacle(group, engine, store, around[0], below)
    if reason:
        raise InputError(*where, reason)
    return PlacedStore(store, [level.name for level in engine.levels].index(store.level), *around[1:])


def _obstacle(
    group: FusedGroup,
    engine: Engine,
    store: SharedStore,
    stores: Sequence[PlacedStore],
    below: Collection[str],
) -> str:
    """Why there can be no such store; empty where there can."""
    if store.layer not in group.operators:
        return f"unknown layer {store.layer!r}, expected one of {group.names}"
    if store.layer not in below:
        return f"{store.layer} does not run inside"
    operator = group.operator(store.layer)
    levels = [level.name for level in engine.levels]
    if store.level not in levels:
        return f"unknown level {store.level!r}, expected one of {levels}"
    names = [tensor.name for tensor in operator.tensors]
    if store.tensor not in names:
        return f"unknown tensor {store.tensor!r} of {store.layer}, expected one of {names}"
    reading = group.reading(store.layer, store.tensor)
    if reading is not None:
        result = f"{reading.producer}.{group.operator(reading.producer).output.name}"
        return f"{store.name} is {result}, store that"
    level = levels.index(store.level)
    if any(outer.fanout is not None for outer in engine.levels[:level]):
        return f"{store.level} is inside an array, where nothing is shared by turns"
    before = [placed for placed in stores if placed.store.name == store.name]
    if before and before[-1].level >= level:
        return f"{store.name} stored in {store.level} inside a store of {before[-1].store.level}"
    if operator.tensor(store.tensor).is_output and group.read_by(store.layer):
        return _no_home(group, engine, store, before, below)
    memory = engine.levels[level]
    role = operator.tensor(store.tensor).role
    if role not in memory.keeps:
        return f"{store.level} keeps no {role.value}, which {store.name} needs"
    if store.halo != RETAINED:
        return f"{store.name} is no intermediate and has no halo to recompute"
    if level and not before:
        return f"{store.name} is not stored in {levels[0]} first"
    return ""


def _no_home(
    group: FusedGroup,
    engine: Engine,
    store: SharedStore,
    before: Sequence[PlacedStore],
    below: Collection[str],
) -> str:
    """Why a level cannot keep an intermediate, or its copy; empty where it can."""
    memory, home = engine.level(store.level), store.level != engine.levels[0].name
    readers = group.read_by(store.layer)
    roles = {group.operator(store.layer).output.role}
    roles |= {group.operator(reader.reader).tensor(reader.operand).role for reader in readers}
    if not roles <= memory.keeps:
        absent = ", ".join(sorted(role.value for role in roles - memory.keeps))
        return f"{store.level} keeps no {absent}, which {store.name} needs"
    away = [reader.reader for reader in readers if reader.reader not in below]
    if away and home:
        return f"{store.name} ends with this turn, but {away[0]} reads it in another one"
    if any(placed.level for placed in before):
        return f"{store.name} has a home already, {before[-1].store.level}"
    if home and roles & memory.partitions.keys():
        return f"{store.level} has a partition per role and keeps no intermediate"
    if home and len({engine.width(memory, role) for role in roles}) > 1:
        return f"{store.level} keeps {store.name} in several widths"
    return ""
