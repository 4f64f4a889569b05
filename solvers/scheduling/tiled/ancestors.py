"""How early a task can begin and how much must follow it, from all that it depends on.

``head(t)``, the least cycle at which task ``t`` can begin, is the largest of

- the way: ``head(p) + cycles(p)`` of every producer ``p``;
- work: ``max over a of a + work{u in A(t): head(u) >= a} / E`` over its ancestors ``A(t)``, all of which end
  before it begins, on ``E`` engines;
- traffic: ``max over a of a + (bytes of blocks from DRAM that A(t) reads and nobody reads before a - chip) /
  rate``: no more than ``chip`` bytes, what all buffers hold, of those blocks can be there before ``a``.

Heads of ancestors come first.  What follows a task is the same on the reversed graph, without the traffic.
Tasks that read results of the same tasks have the same ancestors, so that a layer needs one set per place and
not one per task.  Where the graph is large, the layers with the fewest sets come first, and the others keep
their ways, which are valid as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.foundation.arrays import Int32s, Int64s, distinct
from tilewright.foundation.compiled import compiled
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

EFFORT = 400_000_000
"""Visits of tasks and edges that all sets of ancestors may take together, some seconds."""

WORD = 64
"""Sets that are followed at once, as bits of a word."""


def heads_and_rests(dag: AtomicDag, machine: TiledMachine, effort: int = EFFORT) -> tuple[Int64s, Int64s]:
    """Per task: a cycle before which it cannot begin, and cycles between its end and the end of all.

    Parameters
    ----------
    effort : visits of tasks and edges at most
    """
    starts, producers = _distinct(*dag.edges, dag.tasks)
    unit_starts = dag.base.astype(np.int64)
    outside = np.flatnonzero(dag.block_parent < 0)
    readers = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    block_starts, block_readers = _grouped(dag.reads, readers, dag.blocks)
    fetched = outside[block_starts[outside + 1] > block_starts[outside]]
    heads = _heads(
        starts=starts,
        producers=producers,
        cycles=dag.cycles,
        units=unit_starts,
        sets=_sets(starts, producers, unit_starts, effort // 2),
        engines=machine.engines,
        blocks=(block_starts, block_readers, dag.block_bytes, fetched),
        chip=machine.on_chip_bytes,
        rate=fetch_rate(machine),
    )
    last = dag.tasks - 1
    to = np.repeat(np.arange(dag.tasks), np.diff(starts))
    back_starts, back = _grouped(last - producers, last - to, dag.tasks)
    back_units = (dag.tasks - unit_starts)[::-1].copy()
    nothing = np.zeros(0, dtype=np.int64)
    remainders = _heads(
        starts=back_starts,
        producers=back.astype(producers.dtype),
        cycles=dag.cycles[::-1].copy(),
        units=back_units,
        sets=_sets(back_starts, back, back_units, effort // 2),
        engines=machine.engines,
        blocks=(block_starts, block_readers, dag.block_bytes, nothing),
        chip=machine.on_chip_bytes,
        rate=fetch_rate(machine),
    )
    return heads, remainders[::-1].copy()


def fetch_rate(machine: TiledMachine) -> float:
    """Bytes per cycle that can enter from DRAM: its own rate, or that of all its ports together."""
    return float(min(machine.dram_rate, machine.dram_port_rate * len(machine.dram_ports)))


def _grouped(
    keys: npt.NDArray[np.integer], values: npt.NDArray[np.integer], bound: int
) -> tuple[Int64s, Int64s]:
    """Values by their keys: where those of each key begin, and the values."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=bound))]).astype(np.int64)
    return starts, values[np.argsort(keys, kind="stable")].astype(np.int64)


def _distinct(starts: Int64s, producers: Int32s, tasks: int) -> tuple[Int64s, Int64s]:
    """The same edges, each once."""
    reader = np.repeat(np.arange(tasks), np.diff(starts))
    key = distinct(reader * tasks + producers)
    counts = np.bincount(key // max(1, tasks), minlength=tasks)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), key % max(1, tasks)


def _sets(starts: Int64s, producers: npt.NDArray[np.integer], units: Int64s, effort: int) -> Int64s:
    """Per task the number of its set of ancestors within its unit, -1 for those left to their ways.

    A task that reads one of its own unit (the next part of a sum) is left to its way through that one.
    """
    tasks = len(starts) - 1
    mark = np.random.default_rng(0).integers(1, 1 << 62, size=tasks, dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(mark[producers])])
    name = sums[starts[1:]] - sums[starts[:-1]]
    numbers_of = np.full(tasks, -1, dtype=np.int64)
    unit = np.repeat(np.arange(len(units) - 1), np.diff(units))
    inside = np.zeros(tasks, dtype=np.bool_)
    reader = np.repeat(np.arange(tasks), np.diff(starts))
    inside[reader[unit[producers] == unit[reader]]] = True
    inside |= np.diff(starts) == 0
    numbers: list[tuple[int, int, Int64s, Int64s]] = []
    for i in range(len(units) - 1):
        mine = np.arange(units[i], units[i + 1])[~inside[units[i] : units[i + 1]]]
        if len(mine):
            names, number = np.unique(name[mine], return_inverse=True)
            numbers.append((len(names), i, mine, number))
    left = effort
    for count, i, mine, number in sorted(numbers, key=lambda entry: entry[0]):
        words = -(-count // WORD)
        left -= words * int(starts[units[i + 1]]) + count * int(units[i])
        if left < 0:
            break
        numbers_of[mine] = number
    return numbers_of


@compiled
def _heads(
    starts: Int64s,
    producers: Int64s,
    cycles: Int64s,
    units: Int64s,
    sets: Int64s,
    engines: int,
    blocks: Any,
    chip: int,
    rate: float,
) -> Any:  # pragma: no cover
    block_starts, block_readers, block_bytes, fetched = blocks
    tasks = len(cycles)
    heads = np.zeros(tasks, dtype=np.int64)
    bits = np.zeros(tasks, dtype=np.uint64)
    work = np.zeros(64, dtype=np.int64)
    traffic = np.zeros(64, dtype=np.int64)
    least = np.zeros(64, dtype=np.int64)
    first_read = np.zeros(len(fetched), dtype=np.int64)
    for unit in range(len(units) - 1):
        begin, end = units[unit], units[unit + 1]
        for t in range(begin, end):
            for k in range(starts[t], starts[t + 1]):
                p = producers[k]
                heads[t] = max(heads[t], heads[p] + cycles[p])
        most = np.int64(-1)
        for t in range(begin, end):
            most = max(most, sets[t])
        if most < 0:
            continue
        order = np.argsort(-heads[:begin], kind="mergesort")
        for i in range(len(fetched)):
            b = fetched[i]
            first = np.int64(1) << 62
            for k in range(block_starts[b], block_starts[b + 1]):
                # readers to come have no head yet, and 0 is always one
                known = heads[block_readers[k]] if block_readers[k] < begin else np.int64(0)
                first = min(first, known)
            first_read[i] = first
        block_order = np.argsort(-first_read, kind="mergesort")
        for low in range(0, most + 1, 64):
            bits[:end] = 0
            for t in range(begin, end):
                if low <= sets[t] < low + 64:
                    for k in range(starts[t], starts[t + 1]):
                        bits[producers[k]] |= np.uint64(1) << np.uint64(sets[t] - low)
            for u in range(begin - 1, -1, -1):
                if bits[u]:
                    for k in range(starts[u], starts[u + 1]):
                        bits[producers[k]] |= bits[u]
            work[:] = 0
            traffic[:] = 0
            least[:] = 0
            for i in range(len(order)):
                u = order[i]
                if bits[u]:
                    for j in range(64):
                        if (bits[u] >> np.uint64(j)) & np.uint64(1):
                            work[j] += cycles[u]
                            least[j] = max(least[j], heads[u] - (-work[j] // engines))
            for i in range(len(block_order)):
                b = fetched[block_order[i]]
                together = np.uint64(0)
                for k in range(block_starts[b], block_starts[b + 1]):
                    if block_readers[k] < begin:
                        together |= bits[block_readers[k]]
                if together:
                    for j in range(64):
                        if (together >> np.uint64(j)) & np.uint64(1):
                            traffic[j] += block_bytes[b]
                            if traffic[j] > chip:
                                late = first_read[block_order[i]] + np.int64((traffic[j] - chip) / rate)
                                least[j] = max(least[j], late)
            for t in range(begin, end):
                if low <= sets[t] < low + 64:
                    heads[t] = max(heads[t], least[sets[t] - low])
        for t in range(begin, end):
            for k in range(starts[t], starts[t + 1]):
                p = producers[k]
                heads[t] = max(heads[t], heads[p] + cycles[p])
    return heads
