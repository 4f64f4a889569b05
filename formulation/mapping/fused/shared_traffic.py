"""What shared stores move: tiles of operands in, results and partial sums out and in again."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from tilewright.formulation.expression import as_expr
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost.hierarchy import LEAKAGE
from tilewright.formulation.mapping.cost.hierarchy_cycles import port_times
from tilewright.formulation.mapping.fused.boxes import Visits, moved_in, visits_of, windows_of
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.movement import Movement
from tilewright.formulation.mapping.fused.placing import PlacedStore
from tilewright.formulation.mapping.fused.running_rows import softmaxes_of
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Tensor


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
                if len(own) > 1:  # a copy in the outermost level, each element once
                    elements = tensor.footprint(group.operator(layer).bounds)
                    moves.append(_between(engine, own[0], own[1], tensor, elements, 0))
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
    elements, again = elements_moved(operator, tensor, visits, engine.levels[inner.level])
    return _between(engine, outer, inner, tensor, elements, again)


def elements_moved(operator: Operator, tensor: Tensor, visits: Visits, level: MemoryLevel) -> tuple[int, int]:
    """Elements that a shared store takes in or gives out, and partial sums that come in again.

    Parameters
    ----------
    operator, tensor : whose tiles they are
    visits : of the store
    level : in which it is
    """
    elements = moved_in(visits, level.sliding_window and not tensor.is_output)
    again = max(0, elements - tensor.footprint(operator.bounds)) if tensor.is_output else 0
    return elements, again


def _between(
    engine: Engine, outer: PlacedStore, inner: PlacedStore, tensor: Tensor, elements: int, again: int
) -> Movement:
    levels = outer.level, inner.level
    return movement(engine, f"{inner.store.layer}.{tensor.name}", tensor, levels, (elements, again))


def movement(
    engine: Engine, name: str, tensor: Tensor, levels: tuple[int, int], moved: tuple[int, int]
) -> Movement:
    """What some elements cost on their way between two levels.

    Parameters
    ----------
    engine : the machine
    name, tensor : what moves, and what it is called
    levels : the outer and the inner one
    moved : elements, and partial sums that come in again
    """
    source, target = (engine.levels[level] for level in levels)
    elements, again = moved
    role = tensor.role
    reads, writes, fills, drained = _accesses(tensor, target, moved)
    times = port_times(engine, source, [(role, as_expr(reads))], [(role, as_expr(writes))])
    times += port_times(engine, target, [(role, as_expr(drained))], [(role, as_expr(fills))])
    cycles = max((evaluate(time, {}) for time in times), default=0)
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
    engine: Engine, tensor: Tensor, levels: tuple[int, int], moved: tuple[int, int]
) -> Fraction:
    """The pJ of :func:`movement`, without counting cycles where these cost nothing.

    Parameters
    ----------
    engine, tensor : the machine, and what moves
    levels : the outer and the inner one
    moved : elements, and partial sums that come in again
    """
    if engine.leak:
        return movement(engine, "", tensor, levels, moved).energy
    source, target = (engine.levels[level] for level in levels)
    role = tensor.role
    reads, writes, fills, drained = _accesses(tensor, target, moved)
    outside = reads * source.read_energy_of(role) + writes * source.write_energy_of(role)
    return outside + fills * target.write_energy_of(role) + drained * target.read_energy_of(role)
