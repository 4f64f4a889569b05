"""What shared stores move: tiles of operands in, results and partial sums out and in again."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tilewright.formulation.expression import as_expr
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost.hierarchy_cycles import port_times
from tilewright.formulation.mapping.cost.hierarchy_setup import longest_row, sets_up
from tilewright.formulation.mapping.fused.boxes import (
    LayerBoxes,
    Visits,
    moved_in,
    rows_of,
    tiles_in,
    visits_of,
    windows_of,
)
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.movement import Movement
from tilewright.formulation.mapping.fused.placing import PlacedStore
from tilewright.formulation.mapping.fused.running_rows import softmaxes_of
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns
from tilewright.hardware.mapping.engine import LEAKAGE, Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Tensor


class Moved(NamedTuple):
    """What goes between two levels for a shared store.

    Parameters
    ----------
    elements, again : in, or out for a result, and partial sums that come in again
    anew : elements of all visits, where every one is fetched anew; only cycles depend on it
    tiles, rows : that the outer level's port begins, where that takes cycles
    """

    elements: int
    again: int
    anew: int = 0
    tiles: int = 0
    rows: int = 0


def movements_of(group: FusedGroup, engine: Engine, turns: Turns) -> tuple[Movement, ...]:
    """Of all shared stores, and of softmaxes whose rows come in parts, leaf by leaf."""
    moves: list[Movement] = []
    for leaf in turns.leaves:
        layer = leaf.leaf.layer
        own: list[PlacedStore] = []
        for tensor in group.operator(layer).tensors:
            own = [
                placed
                for placed in leaf.stores
                if (placed.store.layer, placed.store.tensor) == (layer, tensor.name)
            ]
            if layer in turns.passings and tensor.is_output:
                if len(own) > 1:
                    levels = own[0].level, own[1].level
                    moved = elements_copied(engine, group.operator(layer), leaf.boxes, levels)
                    moves.append(_between(engine, own[0], own[1], tensor, moved))
                continue
            for outer, inner in pairwise(own):
                moves.append(_move(engine, group, leaf, tensor, outer, inner))
        # The output is the last tensor; a turn finds its sums in the innermost shared store.
        moves += softmaxes_of(group, engine, turns, leaf, own[-1].level if own else 0)
    return tuple(moves)


def _move(
    engine: Engine, group: FusedGroup, leaf: LeafTurns, tensor: Tensor, outer: PlacedStore, inner: PlacedStore
) -> Movement:
    """An operand's tiles come whenever they change, a result's go then and come back where sums go on."""
    operator = group.operator(leaf.leaf.layer)
    visits = visits_of(windows_of(tensor, leaf.boxes), leaf.trips, inner.depth, inner.since)
    moved = elements_moved(engine, operator, tensor, visits, (outer.level, inner.level))
    return _between(engine, outer, inner, tensor, moved)


def elements_moved(
    engine: Engine, operator: Operator, tensor: Tensor, visits: Visits, levels: tuple[int, int]
) -> Moved:
    """What a shared store takes in or gives out.

    Parameters
    ----------
    engine : the machine
    operator, tensor : whose tiles they are
    visits : of the store
    levels : the outer one, and that of the store
    """
    source, target = (engine.levels[level] for level in levels)
    elements = moved_in(visits, target.sliding_window and not tensor.is_output)
    again = max(0, elements - tensor.footprint(operator.bounds)) if tensor.is_output else 0
    anew = int(visits.elements.sum()) if target.timing.refetch and not tensor.is_output else 0
    if not sets_up(source):
        return Moved(elements, again, anew)
    row = longest_row(engine, source, tensor.role)
    return Moved(elements, again, anew, *tiles_in(visits, row, target.timing.refetch))


def elements_copied(engine: Engine, operator: Operator, boxes: LayerBoxes, levels: tuple[int, int]) -> Moved:
    """What goes from an intermediate's home to its copy: each element once, and a tile for every turn.

    Parameters
    ----------
    engine : the machine
    operator, boxes : whose result it is, and its turns
    levels : the outermost one, and the home
    """
    source, output = engine.levels[levels[0]], operator.output
    elements = output.footprint(operator.bounds)
    if not sets_up(source):
        return Moved(elements, 0)
    made, row = windows_of(output, boxes), longest_row(engine, source, output.role)
    rows = rows_of(made.low, made.high, row) if made.low else np.ones(len(made.alive), np.int64)
    return Moved(elements, 0, 0, int(made.alive.sum()), int(rows[made.alive].sum()))


def _between(
    engine: Engine, outer: PlacedStore, inner: PlacedStore, tensor: Tensor, moved: Moved
) -> Movement:
    levels = outer.level, inner.level
    return movement(engine, f"{inner.store.layer}.{tensor.name}", tensor, levels, moved)


def movement(
    engine: Engine, name: str, tensor: Tensor, levels: tuple[int, int], moved: Moved | tuple[int, int]
) -> Movement:
    """What some elements cost on their way between two levels.

    Parameters
    ----------
    engine : the machine
    name, tensor : what moves, and what it is called
    levels : the outer and the inner one
    moved : elements, and partial sums that come in again; a pair for the least that it may be
    """
    source, target = (engine.levels[level] for level in levels)
    moved = Moved(*moved)
    elements, again = moved[:2]
    role = tensor.role
    reads, writes, fills, drained = _accesses(tensor, target, (elements, again))
    timed = max(reads, moved.anew)
    outside = port_times(engine, source, [(role, as_expr(timed))], [(role, as_expr(writes))])
    inside = port_times(engine, target, [(role, as_expr(drained))], [(role, as_expr(fills))])
    begun = math.ceil(moved.tiles * source.timing.transfer + moved.rows * source.timing.row)
    cycles = begun + max((evaluate(time, {}) for time in outside), default=0)
    cycles = max([cycles, *(evaluate(time, {}) for time in inside)])
    energies = {
        source.name: reads * source.read_energy_of(role) + writes * source.write_energy_of(role),
        target.name: fills * target.write_energy_of(role) + drained * target.read_energy_of(role),
    }
    if engine.leak:
        energies[LEAKAGE] = engine.leak * cycles
    return Movement(
        tensor=name,
        outer=source.name,
        inner=target.name,
        elements=elements,
        again=again,
        accesses={
            (source.name, "reads"): reads,
            (source.name, "updates"): writes,
            (target.name, "fills"): fills,
            (target.name, "reads"): drained,
        },
        energies=energies,
        cycles=cycles,
    )


def _accesses(tensor: Tensor, target: MemoryLevel, moved: tuple[int, int]) -> tuple[int, int, int, int]:
    """Elements that the outer level reads and writes, and that the inner one is filled with and hands out."""
    elements, again = moved
    if tensor.is_output:
        return again, elements, again, elements if target.timing.drained else 0
    return elements, 0, elements, 0


def movement_energy(
    engine: Engine, tensor: Tensor, levels: tuple[int, int], moved: Moved | tuple[int, int]
) -> Fraction:
    """The pJ of :func:`movement`, without counting cycles where these cost nothing.

    Parameters
    ----------
    engine, tensor : the machine, and what moves
    levels : the outer and the inner one
    moved : as there
    """
    if engine.leak:
        return movement(engine, "", tensor, levels, moved).energy
    source, target = (engine.levels[level] for level in levels)
    role = tensor.role
    reads, writes, fills, drained = _accesses(tensor, target, (moved[0], moved[1]))
    outside = reads * source.read_energy_of(role) + writes * source.write_energy_of(role)
    return outside + fills * target.write_energy_of(role) + drained * target.read_energy_of(role)
