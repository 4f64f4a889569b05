"""Lower bounds on cycles and energy of the plans of one atomic DAG.

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
waiting    the wait for the first weights, and all work; over all sizes of atoms only
========== ==========================================================================================

Every task of a window begins at ``a`` or later and ends ``b`` before the end, so that much work fits between.
Of the blocks that nobody reads before cycle ``a``, at most the buffers' bytes are on chip when the first of
their readers begins; the rest comes later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.formulation.scheduling.tiled.search import TiledGoal
from tilewright.foundation.arrays import Int64s, distinct
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.ancestors import EFFORT, fetch_rate, heads_and_rests

THRESHOLDS = 256
"""Values of ``a`` that the window and staged bounds try; any choice is valid."""


ROUNDING = Fraction(1, 10**9)
"""Part of a bound on energy that is given away for the rounding of sums of floats."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on cycles, each by what it counts; 0 where one does not apply.

    Parameters
    ----------
    energy : lower bound in pJ
    """

    work: int
    path: int
    window: int
    compulsory: int
    staged: int
    ports: int
    energy: float
    waiting: int = 0

    @property
    def cycles(self) -> int:
        """The largest of the bounds on cycles."""
        return max(self.work, self.path, self.window, self.compulsory, self.staged, self.ports, self.waiting)


def bound_key(goal: TiledGoal, bounds: Bounds) -> Fraction:
    """The key that bounds on cycles and energy imply."""
    energy = Fraction(bounds.energy) * (1 - ROUNDING)
    return goal.problem.objective.key(energy, bounds.cycles)


def dag_bounds(dag: AtomicDag, machine: TiledMachine, *, effort: int = EFFORT) -> Bounds:
    """Bounds on every legal plan of one atomic DAG.

    Parameters
    ----------
    effort : visits of tasks and edges for sets of ancestors; 0 for ways alone, in a fraction of the time
    """
    heads, remainders = heads_and_rests(dag, machine, effort)
    ways, to_end = path_lengths(dag)
    work = -(-int(dag.cycles.sum()) // machine.engines)
    read = np.zeros(dag.blocks, dtype=np.bool_)
    read[dag.reads] = True
    fetched = read & (dag.block_parent < 0)
    first_read = np.full(dag.blocks, np.iinfo(np.int64).max, dtype=np.int64)
    readers = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    np.minimum.at(first_read, dag.reads, heads[readers])
    traffic = int(dag.block_bytes[fetched].sum())
    leaving = leaving_bytes(dag)
    cycles = {
        "work": work,
        "path": int((ways + to_end).max()),
        "window": _window(heads, remainders, dag.cycles, machine.engines),
        **traffic_cycles(machine, traffic, leaving),
        "staged": _staged(first_read[fetched], dag.block_bytes[fetched], machine),
    }
    return Bounds(**cycles, energy=least_energy(dag, machine, traffic, leaving, max(cycles.values())))


def leaving_bytes(dag: AtomicDag) -> int:
    """Bytes of results that must end in DRAM."""
    return int(dag.block_bytes[: dag.tasks][dag.is_output].sum())


def traffic_cycles(machine: TiledMachine, traffic: int, leaving: int) -> dict[str, int]:
    """The compulsory bound and that of the ports, for bytes that must enter engines and leave for DRAM."""
    return {
        "compulsory": math.ceil((traffic + leaving) / machine.dram_rate),
        "ports": math.ceil(
            max(
                traffic / (machine.port_rate * machine.engines),
                max(traffic, leaving) / (machine.dram_port_rate * len(machine.dram_ports)),
            )
        ),
    }


def least_energy(dag: AtomicDag, machine: TiledMachine, traffic: int, leaving: int, cycles: int) -> float:
    """pJ of atoms, of DRAM's compulsory traffic with its ends in engines, and of power for these cycles.

    Parameters
    ----------
    dag, machine : the atoms, and where they run
    traffic, leaving : bytes that are read from DRAM and written to it at least
    cycles : that any plan takes
    """
    engine = machine.engine
    inside = float(dag.compute_energy.sum() + dag.buffer_energy.sum() + dag.register_energy.sum())
    moved = (traffic + leaving) * machine.dram_energy
    ends = traffic * engine.buffer_write_energy + leaving * engine.buffer_read_energy
    return inside + moved + ends + engine.static_power * machine.engines * cycles


def _window(heads: Int64s, remainders: Int64s, cycles: Int64s, engines: int) -> int:
    """The window bound over quantiles of ``a``, and all ``b`` for each."""
    best = int((heads + cycles + remainders).max())
    order = np.argsort(-remainders, kind="stable")
    sorted_after, sorted_heads, sorted_cycles = remainders[order], heads[order], cycles[order]
    for a in _thresholds(heads):
        work = np.cumsum(np.where(sorted_heads >= a, sorted_cycles, 0))
        lengths = int(a) + sorted_after + -(-work // engines)
        lengths = lengths[sorted_heads >= a]
        best = max(best, int(lengths.max(initial=0)))
    return best


def _staged(first_read: Int64s, size: Int64s, machine: TiledMachine) -> int:
    """DRAM traffic that cannot have come before cycle ``a``."""
    best = 0
    for a in _thresholds(first_read):
        later = int(size[first_read >= a].sum()) - machine.on_chip_bytes
        if later > 0:
            best = max(best, int(a) + math.ceil(later / fetch_rate(machine)))
    return best


def _thresholds(values: Int64s) -> Int64s:
    moments = distinct(values)
    pick = np.unique(np.linspace(0, len(moments) - 1, min(THRESHOLDS, len(moments))).astype(np.int64))
    return moments[pick] if len(moments) else moments
