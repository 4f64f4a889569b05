"""Which engines run the atoms of several consecutive rounds: bytes times hops, a quadratic assignment.

The order stands, and so do the engines of all other rounds.  A result comes from the engine that made it
(equation 2 of Atomic Dataflow); data from DRAM comes from the engine that read it last in an earlier round,
or from the nearest port.  Between two atoms of the window the cost is a product of two choices; towards
anything else it depends on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.foundation.arrays import Bools, Int32s, Int64s, distinct
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology


class Flows(NamedTuple):
    """What moves between tasks, one row per reader and source.

    Parameters
    ----------
    reader, source : tasks, or their places in a window; the source -1 is DRAM
    size : bytes
    """

    reader: Int64s
    source: Int64s
    size: Int64s

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Reader, source and bytes, one after the other."""
        return zip(self.reader.tolist(), self.source.tolist(), self.size.tolist(), strict=True)


@dataclass(frozen=True, eq=False)
class RoundPlacing:
    """The engines of some tasks, the costs being bytes times hops.

    Parameters
    ----------
    tasks : in ascending order
    rounds : of each task
    allowed : whether a task may run on an engine, shape (tasks, engines)
    single : bytes times hops of each task on each engine, towards what stands; shape (tasks, engines)
    pairs : between two tasks of the window, by their places in ``tasks``; a later round reads
    hops : between engines, shape (engines, engines)
    """

    tasks: Int64s
    rounds: Int32s
    allowed: Bools
    single: Int64s
    pairs: Flows
    hops: Int64s

    def cost(self, engine: Int32s) -> int:
        """Bytes times hops of engines for the tasks, in their order."""
        total = int(self.single[np.arange(len(self.tasks)), engine].sum())
        return total + int(self.pairs.size @ self.hops[engine[self.pairs.reader], engine[self.pairs.source]])


def flows_of(dag: AtomicDag, step: Int32s, *, from_dram: bool = True) -> Flows:
    """From where every task reads: the task that made the data or read it last, or DRAM.

    Parameters
    ----------
    step : the round of every task
    from_dram : whether data from DRAM counts, of which the engine that read it last is a source too
    """
    reader = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    reader, block = np.divmod(distinct(reader * dag.blocks + dag.reads), dag.blocks)
    source = dag.block_parent[block].astype(np.int64)
    if from_dram:
        shared = np.flatnonzero(source < 0)
        shared = shared[np.lexsort((reader[shared], step[reader[shared]], block[shared]))]
        source[shared] = _read_last(block[shared], step[reader[shared]], reader[shared])
    else:
        made = source >= 0
        reader, block, source = reader[made], block[made], source[made]
    return _summed(reader, source, dag.block_bytes[block], dag.tasks)


def _read_last(block: Int64s, step: Int32s, reader: Int64s) -> Int64s:
    """Who read a block last in an earlier round, -1 for nobody; rows in ascending order."""
    new = (np.diff(block, prepend=-1) != 0) | (np.diff(step, prepend=-1) != 0)
    # the first row of each row's block and round: the row above it is of an earlier round or another block
    first = np.maximum.accumulate(np.where(new, np.arange(len(block)), 0))
    above = np.maximum(first - 1, 0)
    return np.where((first > 0) & (block[above] == block), reader[above], -1)


def _summed(reader: Int64s, source: Int64s, size: Int64s, tasks: int) -> Flows:
    """One row per reader and source, with the bytes of all."""
    keys, row = np.unique(reader * (tasks + 1) + source + 1, return_inverse=True)
    total = np.zeros(len(keys), dtype=np.int64)
    np.add.at(total, row, size)
    return Flows(keys // (tasks + 1), keys % (tasks + 1) - 1, total)


def placing_of(
    machine: TiledMachine,
    flows: Flows,
    step: Int32s,
    rounds: Sequence[int],
    engine: Int32s | None,
    *,
    exchange: bool = False,
) -> RoundPlacing:
    """The problem of some rounds.

    Parameters
    ----------
    flows : of all tasks
    step : the round of every task
    rounds : of which the tasks move
    engine : of every task; ``None`` leaves out what passes between the window and other rounds, so that the
        least costs of windows that share no round add up to a bound on the whole
    exchange : whether the tasks of a round exchange the engines that they have, instead of taking any
    """
    net, engines = topology(machine), machine.engines
    hops = net.hops.reshape(net.places, net.places).astype(np.int64)
    dram = hops[engines:, :engines].min(axis=0)
    hops = hops[:engines, :engines]
    tasks = np.flatnonzero(np.isin(step, rounds))
    place = np.full(len(step) + 1, -1)  # the last one is DRAM's, which -1 finds
    place[tasks] = np.arange(len(tasks))
    reader, source = place[flows.reader], place[flows.source]
    single = np.zeros((len(tasks), engines), dtype=np.int64)
    from_dram = (reader >= 0) & (flows.source < 0)
    np.add.at(single, reader[from_dram], np.outer(flows.size[from_dram], dram))
    if engine is not None:
        for moves, stays, other in ((reader, source, flows.source), (source, reader, flows.reader)):
            alone = (moves >= 0) & (stays < 0) & (flows.source >= 0)
            np.add.at(single, moves[alone], flows.size[alone, None] * hops[engine[other[alone]]])
    both = (reader >= 0) & (source >= 0)
    pairs = _summed(reader[both], source[both], flows.size[both], len(tasks))
    allowed = np.ones((len(tasks), engines), dtype=np.bool_)
    if exchange and engine is not None:
        for r in rounds:
            mine = step[tasks] == r
            allowed[mine] = np.isin(np.arange(engines), engine[tasks[mine]])
    return RoundPlacing(tasks, step[tasks].astype(np.int32), allowed, single, pairs, hops)
