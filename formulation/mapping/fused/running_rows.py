"""What a softmax in parts moves: running maxima and sums of rows, and its reader's sums that are scaled anew.

Every turn of the reader writes both words of each of its rows, and reads them first if an earlier turn has
seen a part of the row.  Then it also reads, multiplies and writes each of the reader's sums of these rows,
where the turn finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.expression import as_expr
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost.hierarchy_cycles import port_times
from tilewright.formulation.mapping.fused.boxes import LayerBoxes, windows_of
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.movement import Movement
from tilewright.formulation.mapping.fused.softmax import WORDS, RunningRows
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns
from tilewright.hardware.mapping.engine import COMPUTING, LEAKAGE, Engine
from tilewright.workloads.mapping.operator import Role, Tensor

KEPT, SCALED = "kept", "scaled"
"""Purposes of what moves within a level: words of rows, and sums."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How often a reader of a softmax in parts touches what the parts have in common.

    Parameters
    ----------
    read, written : words of running maxima and sums
    scaled : sums of the reader that are read, multiplied and written
    """

    read: int
    written: int
    scaled: int


def scaling_of(output: Tensor, boxes: LayerBoxes, running: RunningRows) -> Scaling:
    """Of all turns of a reader.

    Parameters
    ----------
    output, boxes : its result, and its turns
    running : the rows of its softmax
    """
    again = boxes.alive & boxes.continued
    sums = windows_of(output, boxes).elements
    written, read = int(running.rows.sum()), int(np.where(again, running.rows, 0).sum())
    return Scaling(WORDS * read, WORDS * written, int(np.where(again, sums, 0).sum()))


def rows_moved(engine: Engine, name: str, level: int, scaling: Scaling) -> Movement:
    """What running maxima and sums cost.

    Parameters
    ----------
    engine, name : the machine, and what they are called
    level : in which they are
    scaling : how often they are touched
    """
    return _in_place(engine, name, level, (scaling.read, scaling.written), 0)


def sums_scaled(engine: Engine, name: str, level: int, scaled: int) -> Movement:
    """What it costs to multiply sums of a reader where they are.

    Parameters
    ----------
    engine, name : the machine, and what the sums are called
    level : in which a turn finds them
    scaled : how many, turn by turn
    """
    return _in_place(engine, name, level, (scaled, scaled), scaled)


def _in_place(engine: Engine, name: str, level: int, moved: tuple[int, int], operations: int) -> Movement:
    """Reads and writes of one level, and operations on all PEs at once, while nothing else moves."""
    reads, writes = moved
    memory, role = engine.levels[level], Role.OUTPUT
    times = port_times(engine, memory, [(role, as_expr(reads))], [(role, as_expr(writes))])
    cycles = max([-(-operations // engine.instances), *(evaluate(time, {}) for time in times)])
    energies = {memory.name: reads * memory.read_energy_of(role) + writes * memory.write_energy_of(role)}
    if operations:
        energies[COMPUTING] = operations * engine.mac_energy
    if engine.leak:
        energies[LEAKAGE] = engine.leak * cycles
    return Movement(
        tensor=name,
        outer=memory.name,
        inner=memory.name,
        elements=writes,
        again=reads,
        accesses={(memory.name, "reads"): reads, (memory.name, "updates"): writes},
        energies={component: Fraction(energy) for component, energy in energies.items()},
        cycles=cycles,
        purpose=SCALED if operations else KEPT,
    )


def softmaxes_of(
    group: FusedGroup, engine: Engine, turns: Turns, leaf: LeafTurns, level: int
) -> list[Movement]:
    """What the softmax of a leaf's layer takes, where its rows come in parts.

    Parameters
    ----------
    group, engine, turns : the layers, the machine and all turns
    leaf : the reader's
    level : in which its turns find its sums
    """
    layer = leaf.leaf.layer
    moves: list[Movement] = []
    for (reader, operand), running in turns.softmaxes.items():
        if reader == layer:
            output = group.operator(layer).output
            scaling = scaling_of(output, leaf.boxes, running)
            moves.append(rows_moved(engine, f"{layer}.{operand} softmax", running.level, scaling))
            moves.append(sums_scaled(engine, f"{layer}.{output.name}", level, scaling.scaled))
    return moves
