"""Lower bounds on cycles and energy of plans over all sizes of atoms.

A layer as one atom, however little fits its buffer, takes no more than its atoms together do, whatever their
sizes, since every count of `tilewright.formulation.scheduling.tiled.costs` is a product over the axes of a
division and, along each of them, additive, subadditive (rounded up, or positions that neighbours share) or
not divided at all.  So what the atoms of that DAG take, component by component, no plan undercuts; and what
it reads from DRAM, every division reads.  Only cycles under ``pairs`` need more, see `least_cycles`.  On a
tile from a machine file no PE is taken to be idle, and only products and results to cost energy.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tilewright.formulation.scheduling.tiled.costs import least_cycles
from tilewright.formulation.scheduling.tiled.dag import INPUT, WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.trips import whole_shapes, whole_tiling
from tilewright.formulation.scheduling.tiled.units import Read
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.tiled.ancestors import fetch_rate
from tilewright.solvers.scheduling.tiled.barriers import barriers
from tilewright.solvers.scheduling.tiled.bounds import Bounds, least_energy, leaving_bytes, traffic_cycles
from tilewright.solvers.scheduling.tiled.task_prices import least_priced
from tilewright.workloads.mapping.operator import Operator


def size_bounds(problem: TiledProblem) -> Bounds:
    """Bounds on every legal plan over all sizes of atoms."""
    machine = problem.machine
    work = sum(whole_cycles(problem, problem.batch))
    whole = whole_layers(problem)
    weights = _weights(whole)
    traffic, leaving = incoming_bytes(whole), leaving_bytes(whole)
    cycles = {
        "work": -(-work // machine.engines),
        "path": 0,
        "window": 0,
        "staged": 0,
        **traffic_cycles(machine, traffic, leaving),
    }
    cycles["staged"] = _staged(problem, weights, max(cycles.values()))
    return Bounds(**cycles, energy=least_energy(whole, machine, traffic, leaving, max(cycles.values())))


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
    return int(_weights(whole).sum()) + _inputs(whole)


def _staged(problem: TiledProblem, weights: Int64s, least: int) -> int:
    """Weights that cannot have come before the first layer that reads one of them begins; 0 where that is no
    more than ``least``.

    A layer begins after all cycles of its `barriers`, of one sample.  Of the weights that no layer reads
    before then, no more than fit all buffers are there, and the others follow.
    """
    machine = problem.machine
    work = np.array(whole_cycles(problem, 1), dtype=np.int64)

    def after(before: Int64s) -> int:
        begins = -(-before // machine.engines)
        order = np.argsort(-begins, kind="stable")
        later = np.cumsum(weights[order])
        # of layers that begin together, the last one's sum has the weights of all
        last = np.append(np.diff(begins[order]) != 0, True) & (later > machine.on_chip_bytes)
        rest = zip(later[last].tolist(), begins[order][last].tolist(), strict=True)
        rate = fetch_rate(machine)
        return max((at + math.ceil((size - machine.on_chip_bytes) / rate) for size, at in rest), default=0)

    # with all layers before each, which are quick to tell, no less comes out
    if after(np.cumsum(work) - work) <= least:
        return 0
    return after(np.array([work[list(units)].sum() for units in barriers(problem.units)], dtype=np.int64))


def _weights(whole: AtomicDag) -> Int64s:
    """Bytes of stored weights per unit of a DAG of whole layers."""
    sizes = np.zeros(len(whole.units), dtype=np.int64)
    for index in range(len(whole.units)):
        blocks = whole.reads_of(index)
        sizes[index] = whole.block_bytes[blocks[whole.block_kind[blocks] == WEIGHTS]].sum()
    return sizes


def _inputs(whole: AtomicDag) -> int:
    """Bytes of the network's inputs that have to come from DRAM.

    Layers that read different parts of one input may share what both read: all but the first of them count
    for nothing.
    """
    size = 0
    counted: set[str] = set()
    for index, unit in enumerate(whole.units):
        names = {_input_name(read) for read in unit.reads if read.producer is None}
        if names and counted.isdisjoint(names):
            blocks = whole.reads_of(index)
            size += int(whole.block_bytes[blocks[whole.block_kind[blocks] == INPUT]].sum())
        counted |= names
    return size


def _input_name(read: Read) -> str:
    return read.link.tensor if read.link is not None else f"{read.layer.name}.{read.operand}"
