"""Lower bounds on cycles and energy of plans over all sizes of atoms.

A layer as one atom, however little fits its buffer, takes no more than its atoms together do, whatever their
sizes, since every count of `tilewright.formulation.scheduling.tiled.costs` is a product over the axes of a
division and, along each of them, additive, subadditive (rounded up, or positions that neighbours share) or
not divided at all.  So what the atoms of that DAG take, component by component, no plan undercuts; and what
it reads from DRAM, every division reads.  Only cycles under ``pairs`` need more, see `least_cycles`.  On a
tile from a machine file no PE is taken to be idle, and only products and results to cost energy.  Atoms that
fit buffers read more where a layer does not (`tilewright.solvers.scheduling.tiled.fitting_atoms`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.build import build_dag
from tilewright.formulation.scheduling.tiled.costs import least_cycles
from tilewright.formulation.scheduling.tiled.dag import INPUT, AtomicDag
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.trips import whole_shapes, whole_tiling
from tilewright.solvers.scheduling.tiled.bounds import Bounds, least_energy, leaving_bytes, traffic_cycles
from tilewright.solvers.scheduling.tiled.first_weights import waiting_cycles
from tilewright.solvers.scheduling.tiled.fitting_atoms import fitting_energy
from tilewright.solvers.scheduling.tiled.layer_begins import following, layer_loads, stored_bytes
from tilewright.solvers.scheduling.tiled.task_prices import least_priced
from tilewright.workloads.mapping.operator import Operator


def size_bounds(problem: TiledProblem, limits: Limits | None = None) -> Bounds:
    """Bounds on every legal plan over all sizes of atoms; raises `LimitReachedError` where limits strike."""
    machine = problem.machine
    check(limits)
    work = whole_cycles(problem, problem.batch)
    check(limits)
    whole = whole_layers(problem)
    check(limits)
    traffic, leaving = incoming_bytes(whole), leaving_bytes(whole)
    cycles = {
        "work": -(-sum(work) // machine.engines),
        "path": 0,
        "window": 0,
        "staged": 0,
        **traffic_cycles(machine, traffic, leaving),
    }
    loads = layer_loads(whole, whole_cycles(problem, 1), work)
    cycles["window"], cycles["staged"] = following(whole, machine, loads, max(cycles.values()))
    check(limits)
    cycles["waiting"] = waiting_cycles(problem, whole, work, max(cycles.values()))
    check(limits)
    energy = least_energy(whole, machine, traffic, leaving, max(cycles.values()))
    return Bounds(**cycles, energy=energy + sum(fitting_energy(problem, whole)))


def quick_bounds(problem: TiledProblem) -> Bounds:
    """What `size_bounds` knows without asking who reads what, in a fraction of its time.

    All cycles of all layers are shared by all engines; weights and the network's results pass DRAM; and
    energy is that of whole layers with that traffic.  Each of these is a part of what `size_bounds` counts.
    """
    machine = problem.machine
    priced = least_priced(problem)
    alone = [replace(unit, reads=()) for unit in priced.units]
    whole = build_dag(
        alone,
        [whole_tiling(unit.layer.operator, problem.batch) for unit in alone],
        priced.machine.engine,
        batch=problem.batch,
        partial_sums=problem.partial_sums,
    )
    traffic, leaving = incoming_bytes(whole), leaving_bytes(whole)
    cycles = {
        "work": -(-sum(whole_cycles(problem, problem.batch)) // machine.engines),
        **traffic_cycles(machine, traffic, leaving),
    }
    energy = least_energy(whole, machine, traffic, leaving, max(cycles.values()))
    return Bounds(**cycles, path=0, window=0, staged=0, energy=energy)


def whole_cycles(problem: TiledProblem, samples: int) -> list[int]:
    """Per unit, cycles that no way to cut so many of its samples undercuts in sum."""
    engine = problem.machine.engine

    def cycles(operator: Operator) -> int:
        return int(least_cycles(engine, whole_shapes(operator, samples))[0])

    key = engine, samples
    return [
        _CYCLES.get(unit.layer.operator, key, partial(cycles, unit.layer.operator)) for unit in problem.units
    ]


_CYCLES: Memo[int] = Memo(lambda value: 1)


def whole_layers(problem: TiledProblem) -> AtomicDag:
    """Every layer as one atom, however little fits its buffer."""
    problem = least_priced(problem)
    return problem.unchecked_dag([whole_tiling(unit.layer.operator, problem.batch) for unit in problem.units])


def compulsory_bytes(whole: AtomicDag) -> int:
    """What every plan reads from DRAM and writes to it, at least.

    Parameters
    ----------
    whole : of `whole_layers`
    """
    return incoming_bytes(whole) + leaving_bytes(whole)


def incoming_bytes(whole: AtomicDag) -> int:
    """What every plan reads from DRAM, and so writes into buffers, at least.

    Parameters
    ----------
    whole : of `whole_layers`
    """
    return int(stored_bytes(whole).sum()) + _inputs(whole)


def _inputs(whole: AtomicDag) -> int:
    """Bytes of the network's inputs that have to come from DRAM.

    Layers that read different parts of one input may share what both read: all but the first of them count
    for nothing.  So may operands of one layer, ``x[1:] + x[:-1]``: of a layer that reads an input more than
    once, only the largest block of every sample counts.
    """
    size = 0
    counted: set[int | str] = set()
    for index, unit in enumerate(whole.units):
        outside = [read.source for read in unit.reads if read.producer is None]
        if outside and counted.isdisjoint(outside):
            blocks = whole.reads_of(index)
            sizes = np.sort(whole.block_bytes[blocks[whole.block_kind[blocks] == INPUT]])
            size += int((sizes if len(set(outside)) == len(outside) else sizes[-whole.batch :]).sum())
        counted.update(outside)
    return size
