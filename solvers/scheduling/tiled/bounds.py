"""Lower bounds on cycles and energy of plans: for one atomic DAG, and over all sizes of atoms.

With ``E`` engines, ``head(t)`` a cycle before which task ``t`` cannot begin and ``rest(t)`` cycles that must
follow its end (`tilewright.solvers.scheduling.tiled.ancestors`):

========== ==========================================================================================
work       ``sum of cycles / E``
path       the longest way: atoms follow what they read, halos included
window     ``max over a, b of a + b + work{t: head(t) >= a, rest(t) >= b} / E``, and
           ``max of head(t) + cycles(t) + rest(t)``
compulsory weights, inputs and outputs pass DRAM once
staged     ``max over a of a + (bytes of {blocks: head of every reader >= a} - on-chip bytes) / rate``
ports      what must enter engines, over the rate of all their ports
========== ==========================================================================================

Every task of a window begins at ``a`` or later and ends ``b`` before the end, so that much work fits between.
Of the blocks that nobody reads before cycle ``a``, at most the buffers' bytes are on chip when the first of
their readers begins; the rest comes later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.costs import atom_costs, least_cycles
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.trips import whole_shapes
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.ancestors import EFFORT, fetch_rate, heads_and_rests

Longs = npt.NDArray[np.int64]

THRESHOLDS = 256
"""Values of ``a`` that the window and staged bounds try; any choice is valid."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on cycles, each by what it counts; 0 where one does not apply.

    Parameters
    ----------
    energy : pJ that no plan undercuts
    """

    work: int
    path: int
    window: int
    compulsory: int
    staged: int
    ports: int
    energy: float

    @property
    def cycles(self) -> int:
        """The largest of the bounds on cycles."""
        return max(self.work, self.path, self.window, self.compulsory, self.staged, self.ports)


def dag_bounds(dag: AtomicDag, machine: TiledMachine, *, effort: int = EFFORT) -> Bounds:
    """Bounds on every legal plan of one atomic DAG.

    Parameters
    ----------
    effort : visits of tasks and edges for sets of ancestors; 0 for ways alone, in a fraction of the time
    """
    heads, rests = heads_and_rests(dag, machine, effort)
    ways, to_end = path_lengths(dag)
    work = -(-int(dag.cycles.sum()) // machine.engines)
    outside = dag.block_parent < 0
    read = np.zeros(dag.blocks, dtype=np.bool_)
    read[dag.reads] = True
    first_read = np.full(dag.blocks, np.iinfo(np.int64).max, dtype=np.int64)
    readers = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    np.minimum.at(first_read, dag.reads, heads[readers])
    fetched = outside & read
    traffic = int(dag.block_bytes[fetched].sum())
    leaving = int(dag.block_bytes[: dag.tasks][dag.is_output].sum())
    moved = (traffic + leaving) * machine.dram_energy
    inside = float(dag.compute_energy.sum() + dag.buffer_energy.sum() + dag.register_energy.sum())
    ends = traffic * machine.engine.buffer_write_energy + leaving * machine.engine.buffer_read_energy
    cycles = {
        "work": work,
        "path": int((ways + to_end).max()),
        "window": _window(heads, rests, dag.cycles, machine.engines),
        "compulsory": math.ceil((traffic + leaving) / machine.dram_rate),
        "staged": _staged(first_read[fetched], dag.block_bytes[fetched], machine),
        "ports": math.ceil(
            max(
                traffic / (machine.port_rate * machine.engines),
                max(traffic, leaving) / (machine.dram_port_rate * len(machine.dram_ports)),
            )
        ),
    }
    static = machine.engine.static_power * machine.engines * max(cycles.values())
    return Bounds(**cycles, energy=inside + moved + ends + static)


def _window(heads: Longs, rests: Longs, cycles: Longs, engines: int) -> int:
    """The window bound over quantiles of ``a``, and all ``b`` for each."""
    best = int((heads + cycles + rests).max())
    order = np.argsort(-rests, kind="stable")
    sorted_after, sorted_heads, sorted_cycles = rests[order], heads[order], cycles[order]
    for a in _thresholds(heads):
        work = np.cumsum(np.where(sorted_heads >= a, sorted_cycles, 0))
        found = int(a) + sorted_after + -(-work // engines)
        found = found[sorted_heads >= a]
        best = max(best, int(found.max(initial=0)))
    return best


def _staged(first_read: Longs, size: Longs, machine: TiledMachine) -> int:
    """DRAM traffic that cannot have come before cycle ``a``."""
    best = 0
    for a in _thresholds(first_read):
        later = int(size[first_read >= a].sum()) - machine.on_chip_bytes
        if later > 0:
            best = max(best, int(a) + math.ceil(later / fetch_rate(machine)))
    return best


def _thresholds(values: Longs) -> Longs:
    distinct = np.unique(values)
    pick = np.unique(np.linspace(0, len(distinct) - 1, min(THRESHOLDS, len(distinct))).astype(np.int64))
    return distinct[pick] if len(distinct) else distinct


def size_bounds(problem: TiledProblem) -> Bounds:
    """Bounds on every legal plan over all sizes of atoms.

    Work is what no division of a layer undercuts (`least_cycles`); weights and outputs pass DRAM
    at least once;
    inputs of the network are left out, since parts of them may never be read.
    """
    machine, engine = problem.machine, problem.machine.engine
    work, weights, leaving, compute = 0, 0, 0, 0.0
    for unit in problem.units:
        operator = unit.layer.operator
        shapes = whole_shapes(operator, problem.batch)
        work += int(least_cycles(engine, shapes)[0])
        operations = int(atom_costs(engine, shapes).operations[0])
        compute += operations * (engine.mac_energy if operator.is_mac else engine.vector_energy)
        if unit.layer.stored_weights:
            per_group = int(shapes.outputs[0] * shapes.inputs[0] * shapes.taps[0])
            has = any(tensor.role.value == "weights" for tensor in operator.inputs)
            weights += int(shapes.groups[0]) * per_group * engine.element_bytes if has else 0
        if unit.is_output:
            leaving += problem.batch * math.prod(shape_of(operator).sizes) * engine.element_bytes
    cycles = {
        "work": -(-work // machine.engines),
        "path": 0,
        "window": 0,
        "compulsory": math.ceil((weights + leaving) / machine.dram_rate),
        "staged": 0,
        "ports": math.ceil(
            max(
                weights / (machine.port_rate * machine.engines),
                max(weights, leaving) / (machine.dram_port_rate * len(machine.dram_ports)),
            )
        ),
    }
    static = engine.static_power * machine.engines * max(cycles.values())
    dram = (weights + leaving) * machine.dram_energy
    return Bounds(**cycles, energy=compute + dram + static)
