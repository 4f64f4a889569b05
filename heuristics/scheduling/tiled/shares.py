"""Sizes of atoms that share every layer out over the engines and fit their buffers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.costs import atom_costs
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, Tiling, tiling
from tilewright.formulation.scheduling.tiled.trips import atom_shapes
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.workloads.errors import InputError
from tilewright.workloads.mapping.operator import Role

PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64)
"""Into how many parts an axis is cut."""


def shared_sizes(problem: TiledProblem, *, room: float = 0.5) -> tuple[AtomSize, ...]:
    """Per unit the size of atoms with the least estimated time when the unit has the machine to itself.

    The estimate is the number of rounds over all engines times the longer of an atom's cycles and the cycles in
    which its operands and result pass the engine's port; ties go to fewer bytes.  An atom takes at most
    ``room`` of the buffer, so that the next one's operands can arrive meanwhile; where no atom does, all of it.

    Raises
    ------
    InputError : for a unit whose least atom fits no buffer
    """
    return tuple(_best(problem, unit, room) for unit in problem.units)


def _best(problem: TiledProblem, unit: Unit, room: float) -> AtomSize:
    machine = problem.machine
    limit = machine.engine.buffer_bytes
    found: list[tuple[bool, float, int, AtomSize]] = []
    smallest = limit + 1
    for size in _candidates(problem, unit):
        need, cycles, atoms = _atom(problem, unit, size)
        smallest = min(smallest, need)
        if need > limit:
            continue
        rounds = -(-atoms // machine.engines)
        time = rounds * max(float(cycles), need / machine.port_rate)
        found.append((need > room * limit, time, atoms * need, size))
    if not found:
        raise InputError(
            problem.machine.name, unit.name, f"its smallest atom needs {smallest} bytes, a buffer has {limit}"
        )
    return min(found, key=lambda one: one[:3])[3]


def _candidates(problem: TiledProblem, unit: Unit) -> Iterator[AtomSize]:
    """Sizes by numbers of parts per axis, channels in whole rows and columns of the array where they can be."""
    shape = shape_of(unit.layer.operator)
    engine = problem.machine.engine
    channels, rows, columns = shape.sizes
    outputs = {_multiple(-(-channels // n), engine.columns * engine.lanes, channels) for n in PARTS}
    outputs |= {1} if engine.buffer_bytes < 4096 else set()
    heights = {-(-rows // n) for n in PARTS if n <= rows}
    widths = {-(-columns // n) for n in PARTS[:8] if n <= columns}
    sums = {
        _multiple(-(-shape.parts // n), engine.rows * engine.lanes, shape.parts)
        for n in (1, 2, 4, 8, 16, 64, 256)
    }
    samples = {1, problem.batch} if rows * columns == 1 else {1}
    for output in sorted(outputs):
        for height in sorted(heights):
            for width in sorted(widths):
                for part in sorted(sums):
                    for sample in sorted(samples):
                        yield AtomSize(height, width, part, output, sample)


def _multiple(size: int, unit: int, whole: int) -> int:
    return min(whole, -(-size // unit) * unit)


def _atom(problem: TiledProblem, unit: Unit, size: AtomSize) -> tuple[int, int, int]:
    """Bytes that the largest atom keeps in its buffer (a bound), its cycles, and the number of atoms."""
    operator = unit.layer.operator
    engine = problem.machine.engine
    one = tiling(unit, size, problem.batch)
    atoms = int(np.prod([len(cuts) - 1 for cuts in (one.samples, *one.axes)]))
    first = _first_atom(one)
    shapes = atom_shapes(operator, first)
    cycles = int(atom_costs(engine, shapes).cycles[0])
    sample = first.samples[1]
    divided = len(one.parts) > 2
    results = sample * first.channels[1] * first.rows[1] * first.columns[1]
    need = results * (8 if divided else engine.element_bytes)
    inputs = int(shapes.input_positions[0]) * int(shapes.groups[0]) * sample
    for tensor in operator.inputs:
        if tensor.role is Role.WEIGHT and unit.layer.stored_weights:
            weights = int(shapes.groups[0] * shapes.outputs[0] * shapes.inputs[0] * shapes.taps[0])
            need += weights * engine.element_bytes
        else:
            depth = int(shapes.inputs[0]) if operator.is_mac else int(shapes.outputs[0])
            need += inputs * depth * engine.element_bytes
    need += sum(results * engine.element_bytes for read in unit.reads if read.late)
    return need, cycles, atoms


def _first_atom(one: Tiling) -> Tiling:
    """The tiling of the first atom alone, which no other exceeds."""
    return Tiling(one.samples[:2], one.channels[:2], one.rows[:2], one.columns[:2], one.parts[:2])
