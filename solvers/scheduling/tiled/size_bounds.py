"""Lower bounds on cycles and energy of plans over all sizes of atoms.

A layer as one atom, however little fits its buffer, takes no more than its atoms together do, whatever their
sizes, since every count of `tilewright.formulation.scheduling.tiled.costs` is a product over the axes of a
division and, along each of them, additive, subadditive (rounded up, or positions that neighbours share) or
not divided at all.  So what the atoms of that DAG take, component by component, no plan undercuts; and what
it reads from DRAM, every division reads.  Only cycles under ``pairs`` need more, see `least_cycles`.
"""

from __future__ import annotations

from tilewright.formulation.scheduling.tiled.costs import least_cycles
from tilewright.formulation.scheduling.tiled.dag import INPUT, WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.trips import whole_shapes, whole_tiling
from tilewright.formulation.scheduling.tiled.units import Read
from tilewright.solvers.scheduling.tiled.bounds import (
    Bounds,
    least_energy,
    leaving_bytes,
    outside_blocks,
    traffic_cycles,
)


def size_bounds(problem: TiledProblem) -> Bounds:
    """Bounds on every legal plan over all sizes of atoms."""
    machine = problem.machine
    shapes = [whole_shapes(unit.layer.operator, problem.batch) for unit in problem.units]
    work = sum(int(least_cycles(machine.engine, one)[0]) for one in shapes)
    whole = problem.unchecked_dag(
        [whole_tiling(unit.layer.operator, problem.batch) for unit in problem.units]
    )
    traffic, leaving = _traffic(whole), leaving_bytes(whole)
    cycles = {
        "work": -(-work // machine.engines),
        "path": 0,
        "window": 0,
        "staged": 0,
        **traffic_cycles(machine, traffic, leaving),
    }
    return Bounds(**cycles, energy=least_energy(whole, machine, traffic, leaving, max(cycles.values())))


def _traffic(whole: AtomicDag) -> int:
    """Bytes that have to come from DRAM.

    Layers that read different parts of one input of the network may share what both read: all but the first
    of them count for nothing.
    """
    outside = outside_blocks(whole)
    found = int(whole.block_bytes[outside & (whole.block_kind == WEIGHTS)].sum())
    counted: set[str] = set()
    for index, unit in enumerate(whole.units):
        names = {_input_name(read) for read in unit.reads if read.producer is None}
        if names and counted.isdisjoint(names):
            blocks = whole.reads_of(index)
            found += int(whole.block_bytes[blocks[whole.block_kind[blocks] == INPUT]].sum())
        counted |= names
    return found


def _input_name(read: Read) -> str:
    return read.link.tensor if read.link is not None else f"{read.layer.name}.{read.operand}"
