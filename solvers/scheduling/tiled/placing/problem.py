"""Which engines run the atoms of several consecutive rounds: bytes times hops, a quadratic assignment.

The order stands, and so do the engines of all other rounds.  A result comes from the engine that made it
(equation 2 of Atomic Dataflow); data from DRAM comes from the engine that read it last in an earlier round,
or from the nearest port.  Between two atoms of the window the cost is a product of two choices; towards
anything else it depends on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RoundPlacing:
    """The engines of some tasks, the costs being bytes times hops.

    Parameters
    ----------
    tasks : in ascending order
    rounds : of each task
    single : bytes times hops of each task on each engine, towards what stands; shape (tasks, engines)
    pairs : (i, j, bytes) between two tasks of the window, by their places in ``tasks``
    hops : between engines, shape (engines, engines)
    """

    tasks: Longs
    rounds: Ints
    single: Longs
    pairs: tuple[tuple[int, int, int], ...]
    hops: Longs

    def cost(self, engine: Ints) -> int:
        """Bytes times hops of engines for the tasks, in their order."""
        total = int(self.single[np.arange(len(self.tasks)), engine].sum())
        return total + sum(size * int(self.hops[engine[i], engine[j]]) for i, j, size in self.pairs)


Sources = dict[int, list[tuple[int, int, int]]]
"""Per task the (reader, source, bytes) in which it is either; the source -1 is DRAM."""


def round_sources(dag: AtomicDag, step: Ints) -> Sources:
    """From where every task reads: the task that made the data or read it last, or DRAM."""
    order = np.lexsort((np.arange(dag.tasks), step))
    readers: dict[int, list[int]] = {}
    bytes_of: dict[tuple[int, int], int] = {}
    for task in order.tolist():
        for block in {*dag.reads_of(task).tolist()}:
            source = int(dag.block_parent[block])
            if source < 0:
                earlier = readers.setdefault(block, [])
                before = [other for other in earlier[::-1] if step[other] < step[task]]
                source = before[0] if before else -1
                earlier.append(task)
            key = (task, source)
            bytes_of[key] = bytes_of.get(key, 0) + int(dag.block_bytes[block])
    by_task: Sources = {}
    for (reader, source), size in bytes_of.items():
        for task in {reader, source} - {-1}:
            by_task.setdefault(task, []).append((reader, source, size))
    return by_task


def placing_of(
    machine: TiledMachine, sources: Sources, step: Ints, rounds: Sequence[int], engine: Ints | None
) -> RoundPlacing:
    """The problem of some rounds.

    Parameters
    ----------
    sources : of `round_sources`
    engine : of every task; ``None`` leaves out what passes between the window and other rounds, so that the
        least costs of windows that share no round add up to a bound on the whole
    """
    net, engines = topology(machine), machine.engines
    hops = net.hops.reshape(net.places, net.places).astype(np.int64)
    dram = hops[engines:, :engines].min(axis=0)
    hops = hops[:engines, :engines]
    tasks = np.flatnonzero(np.isin(step, np.array(rounds)))
    place = {int(task): i for i, task in enumerate(tasks)}
    single = np.zeros((len(tasks), engines), dtype=np.int64)
    pairs: dict[tuple[int, int], int] = {}
    for reader, source, size in {flow for task in place for flow in sources.get(task, ())}:
        here, there = place.get(reader), place.get(source)
        if here is not None and there is not None:
            key = (min(here, there), max(here, there))
            pairs[key] = pairs.get(key, 0) + size
        elif here is not None and source < 0:
            single[here] += size * dram
        elif engine is not None and here is not None:
            single[here] += size * hops[engine[source]]
        elif engine is not None and there is not None:
            single[there] += size * hops[:, engine[reader]]
    listed = tuple((i, j, size) for (i, j), size in sorted(pairs.items()))
    return RoundPlacing(tasks, step[tasks].astype(np.int32), single, listed, hops)
