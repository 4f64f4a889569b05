"""Which tiles stay where over the turns of a fused mapping, as a drawing shows it.

What a level holds is what the evaluator counts for the turns of each layer, at most
(`FusedEvaluation.occupied`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.mapping.fused.boxes import visits_of, windows_of
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import Occupied, bits_of_tile, room_bits
from tilewright.formulation.mapping.fused.placing import PlacedStore
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.mapping.fused.turns import LeafTurns
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.report.records.mapping.turns_shown import TurnShown, flat_index, shown_turns
from tilewright.workloads.mapping.operator import Role

SOFTMAX = " softmax"
"""What the evaluator puts behind an operand's name for running maxima and sums of its rows."""


@dataclass(frozen=True, slots=True)
class StoreShown:
    """A shared store.

    Parameters
    ----------
    name, is_passed_on : of the tensor; whether later turns read it there
    bits : that its largest tile takes
    stays : of its tiles, first and last turn among those that are shown
    """

    name: str
    is_passed_on: bool
    bits: int
    stays: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RoomShown:
    """A level, or the part of a role in it.

    Parameters
    ----------
    name, most : of the level; bits that it has, ``None`` without a limit
    stores : that share it
    held : per turn, bits of what is passed on, of other shared stores, and of the layer's own tiles
    """

    name: str
    most: int | None
    stores: tuple[StoreShown, ...]
    held: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """What stays where.

    Parameters
    ----------
    name, machine : of the group and the engine
    layers : names, in the order of the run, with how many turns each one has
    turns : that are shown
    rooms : levels from the outside in, without the outermost one
    """

    name: str
    machine: str
    layers: tuple[tuple[str, int], ...]
    turns: tuple[TurnShown, ...]
    rooms: tuple[RoomShown, ...]


def lifetimes_of(
    name: str, group: FusedGroup, engine: Engine, tree: Branch, evaluation: FusedEvaluation
) -> Lifetimes:
    """What a drawing shows of a fused mapping.

    Parameters
    ----------
    name : of the group
    group, engine : the layers and the machine
    tree, evaluation : the fused mapping and what the evaluator says of it
    """
    shown = shown_turns(tree, evaluation)
    return Lifetimes(
        name,
        engine.name,
        tuple((leaf.leaf.layer, int(leaf.boxes.alive.sum())) for leaf in evaluation.turns.leaves),
        tuple(turn for turn, _ in shown),
        tuple(_rooms(group, engine, evaluation, [leaf for _, leaf in shown], [*map(_indices, shown)])),
    )


def _indices(shown: tuple[TurnShown, LeafTurns]) -> tuple[int, ...]:
    return tuple(index for _, index, _ in shown[0].loops)


def _rooms(
    group: FusedGroup,
    engine: Engine,
    evaluation: FusedEvaluation,
    leaves: Sequence[LeafTurns],
    indices: Sequence[tuple[int, ...]],
) -> Iterator[RoomShown]:
    """Every level that holds something, from the outside in.

    Parameters
    ----------
    leaves, indices : whose turn each one is, and the trips of the loops around it
    """
    stores = dict.fromkeys(
        placed for leaf in evaluation.turns.leaves for placed in leaf.stores if placed.level
    )
    for index, level in enumerate(engine.levels):
        for part in (None, *sorted(level.partitions)):
            by_layer = {
                room.layer: room
                for room in evaluation.occupied
                if (room.level, room.part) == (level.name, part)
            }
            if not any(room.tiles for room in by_layer.values()):
                continue
            shown: list[StoreShown] = []
            for placed in stores:
                role = _role(group, placed.store.name)
                if placed.level == index and (role if role in level.partitions else None) is part:
                    bits = bits_of_tile(engine, level, role, evaluation.turns.tiles[placed.store])
                    stays = _stays(group, evaluation, placed, leaves, indices)
                    passed_on = _is_passed_on(group, placed)
                    shown.append(StoreShown(placed.store.name, passed_on, bits, tuple(stays)))
            kept = {store.name: store.is_passed_on for store in shown}
            held = {layer: _held(group, engine, level, room, kept) for layer, room in by_layer.items()}
            yield RoomShown(
                level.name if part is None else f"{level.name} ({part})",
                room_bits(engine, level, part),
                tuple(shown),
                tuple(held.get(leaf.leaf.layer, (0, 0, 0)) for leaf in leaves),
            )


def _held(
    group: FusedGroup, engine: Engine, level: MemoryLevel, room: Occupied, kept: Mapping[str, bool]
) -> tuple[int, int, int]:
    """Bits of what is passed on, of other shared stores, and of the rest.

    Parameters
    ----------
    level, room : the level, and what it holds in turns of a layer
    kept : its shared stores, and whether they are passed on
    """
    bits = [0, 0, 0]
    for name, elements in room.tiles:
        kind = 0 if kept.get(name) else 1 if name in kept or name.endswith(SOFTMAX) else 2
        bits[kind] += bits_of_tile(engine, level, _role(group, name), elements)
    return bits[0], bits[1], bits[2]


def _role(group: FusedGroup, name: str) -> Role:
    if name.endswith(SOFTMAX):
        return Role.OUTPUT
    layer, _, tensor = name.rpartition(".")
    return group.operator(layer).tensor(tensor).role


def _is_passed_on(group: FusedGroup, placed: PlacedStore) -> bool:
    is_output = group.operator(placed.store.layer).output.name == placed.store.tensor
    return is_output and bool(group.read_by(placed.store.layer))


def _stays(
    group: FusedGroup,
    evaluation: FusedEvaluation,
    placed: PlacedStore,
    leaves: Sequence[LeafTurns],
    indices: Sequence[tuple[int, ...]],
) -> Iterator[tuple[int, int]]:
    """First and last turn of every tile, among those that are shown.

    Parameters
    ----------
    placed : the store
    leaves, indices : as for :func:`_rooms`
    """
    store = placed.store
    if _is_passed_on(group, placed):
        passing = evaluation.turns.passings[store.layer]
        windows, trips = passing.needed, passing.trips
    else:
        own = next(leaf for leaf in evaluation.turns.leaves if leaf.leaf.layer == store.layer)
        windows = windows_of(group.operator(store.layer).tensor(store.tensor), own.boxes)
        trips = own.trips
    visits = visits_of(windows, trips, placed.depth, placed.since)
    tiles = np.cumsum(visits.differing()[0] > 0)
    begun: tuple[int, int] | None = None
    last = -1
    for column, (leaf, at) in enumerate(zip(leaves, indices, strict=True)):
        if placed not in leaf.stores:
            continue
        visit = flat_index(at[: placed.depth], trips[: placed.depth])
        latest = int(np.searchsorted(visits.turns, visit, "right")) - 1
        if latest < 0 or visits.runs[latest] != visit // math.prod(trips[placed.since : placed.depth]):
            continue  # nothing has come yet in this run of the sequence
        tile = int(tiles[latest])
        if begun is None or begun[1] != tile or column != last + 1:
            if begun is not None:
                yield begun[0], last
            begun = column, tile
        last = column
    if begun is not None:
        yield begun[0], last
