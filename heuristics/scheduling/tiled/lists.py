"""Quick orders of atoms: layer by layer along the zig-zag, and a list by the longest way to the end.

Both give an engine and a step per task; `complete` makes a plan of that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.halting import check, halting
from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.foundation.arrays import Bools, Bytes, Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

Assignment = tuple[Int32s, Int32s]


def grid_of_engines(machine: TiledMachine) -> Int32s:
    """The engines' numbers, shape (height, width)."""
    return np.arange(machine.engines, dtype=np.int32).reshape(machine.height, machine.width)


def to_and_fro(engines: Int32s) -> Int32s:
    """The engines of a rectangle along its rows, every other row backwards."""
    rows = engines.copy()
    rows[1::2] = rows[1::2, ::-1]
    return rows.ravel()


def zigzag(machine: TiledMachine) -> Int32s:
    """Engines along the rows, every other row backwards."""
    return to_and_fro(grid_of_engines(machine))


def layer_sequential(
    dag: AtomicDag, machine: TiledMachine, *, waves: bool = True, along: Int32s | None = None
) -> Assignment:
    """One layer after the other, each dealt out over the engines along the zig-zag.

    Parameters
    ----------
    along : the engines that take part, in their order; by default all
    waves : where sums are divided, finish those of as many results as there are engines before the next ones
        begin, so that they can leave early; otherwise all first parts of a layer come before the second ones
    """
    along = zigzag(machine) if along is None else along
    engine = np.zeros(dag.tasks, dtype=np.int32)
    step = np.zeros(dag.tasks, dtype=np.int32)
    now = 0
    for unit in range(len(dag.units)):
        begin, end, slots = int(dag.base[unit]), int(dag.base[unit + 1]), int(dag.slots[unit])
        rounds = -(-(end - begin) // (slots * len(along)))
        place, slot = np.divmod(np.arange(end - begin), slots)
        engine[begin:end] = along[place % len(along)]
        wave = place // len(along)
        step[begin:end] = now + (wave * slots + slot if waves else slot * rounds + wave)
        now += rounds * slots
    return engine, step


def list_order(
    dag: AtomicDag,
    machine: TiledMachine,
    *,
    priority: Int64s | None = None,
    along: Int32s | None = None,
    homes: Bools | None = None,
    limits: Limits | None = None,
) -> Assignment:
    """Greedy lists: in each step the ready tasks of highest priority, each on the engine that holds most of
    what it reads.

    Parameters
    ----------
    priority : per task, larger first; by default the longest way to the end in cycles
    along : the engines that take part, in their order; by default all
    homes : per unit and engine, whether its tasks may run there; what engines were sent from DRAM then counts
        as held, too; by default everywhere, and results count alone

    Raises
    ------
    LimitReachedError : where limits strike on the way
    """
    _starts, tails = path_lengths(dag)
    chosen = tails if priority is None else priority
    edge_starts, producers = dag.edges
    out_starts, out = successors_of(edge_starts, producers, dag.tasks)
    with halting(limits) as halt:
        engine, step, ended = _list_order(
            starts=edge_starts,
            producers=producers,
            out_starts=out_starts,
            out=out,
            priority=np.ascontiguousarray(chosen, dtype=np.int64),
            size=dag.block_bytes,
            read_starts=dag.read_starts,
            reads=dag.reads,
            parent=dag.block_parent,
            unit=dag.unit,
            homes=np.ones((len(dag.units), machine.engines), dtype=np.bool_) if homes is None else homes,
            sent=np.zeros((0 if homes is None else dag.blocks, machine.engines), dtype=np.bool_),
            along=zigzag(machine) if along is None else along,
            engines=machine.engines,
            halt=halt,
        )
    if not ended:
        check(limits, dag.outline)
    return engine, step


def depth_first(dag: AtomicDag, engines: int = 1) -> Int64s:
    """Priorities that run the last layers first: results are read, and may leave, soon after they are made.

    Within a layer all channels of some pixels come before the next pixels, as readers need all of them.  Rows
    of all samples are dealt out in as many runs as there are engines, and the first rows of all runs come
    before the second ones, so that each engine can go through a run of its own.
    """
    priority = np.empty(dag.tasks, dtype=np.int64)
    for unit, cuts in enumerate(dag.tilings):
        sizes = [len(borders) - 1 for borders in (cuts.samples, cuts.channels, cuts.rows, cuts.columns)]
        tasks = np.arange(dag.base[unit], dag.base[unit + 1]).reshape(*sizes, int(dag.slots[unit]))
        rows = tasks.transpose(0, 2, 3, 1, 4).reshape(sizes[0] * sizes[2], -1)
        run, at = np.divmod(np.arange(len(rows)), -(-len(rows) // engines))
        order = rows[np.lexsort((run, at))].ravel()
        priority[order] = (unit + 1) * dag.tasks - np.arange(len(order))
    return priority


def successors_of(starts: Int64s, producers: Int32s, tasks: int) -> tuple[Int64s, Int32s]:
    """Readers of every task, as starts and tasks; the inverse of `AtomicDag.edges`."""
    begin, successors = _successors(starts, producers, tasks)
    return begin, successors


@compiled
def _successors(starts: Int64s, producers: Int32s, tasks: int) -> Any:  # pragma: no cover
    begin = np.zeros(tasks + 1, dtype=np.int64)
    for p in producers:
        begin[p + 1] += 1
    for t in range(tasks):
        begin[t + 1] += begin[t]
    at = begin[:-1].copy()
    successors = np.empty(len(producers), dtype=np.int32)
    for t in range(tasks):
        for k in range(starts[t], starts[t + 1]):
            successors[at[producers[k]]] = t
            at[producers[k]] += 1
    return begin, successors


@compiled
def _list_order(
    starts: Int64s,
    producers: Int32s,
    out_starts: Int64s,
    out: Int32s,
    priority: Int64s,
    size: Int64s,
    read_starts: Int64s,
    reads: Int32s,
    parent: Int32s,
    unit: Int32s,
    homes: Bools,
    sent: Bools,
    along: Int32s,
    engines: int,
    halt: Bytes,
) -> Any:  # pragma: no cover
    tasks = len(priority)
    waiting = np.empty(tasks, dtype=np.int64)
    heap = np.empty(tasks, dtype=np.int64)
    later = np.empty(tasks, dtype=np.int64)
    n = 0
    for t in range(tasks):
        waiting[t] = starts[t + 1] - starts[t]
        if waiting[t] == 0:
            n = _push(heap, n, t, priority)
    engine = np.zeros(tasks, dtype=np.int32)
    step = np.zeros(tasks, dtype=np.int32)
    chosen = np.empty(engines, dtype=np.int64)
    gain = np.zeros(engines, dtype=np.float64)
    s = 0
    while n > 0 and halt[0] == 0:
        count = put_off = 0
        taken = np.zeros(engines, dtype=np.bool_)
        while n > 0 and count < len(along):
            t = heap[0]
            n = _pop(heap, n, priority)
            gain[:] = 0.0
            for k in range(starts[t], starts[t + 1]):
                gain[engine[producers[k]]] += size[producers[k]]
            if len(sent):
                for k in range(read_starts[t], read_starts[t + 1]):
                    if parent[reads[k]] < 0:
                        for e in along:
                            gain[e] += size[reads[k]] * sent[reads[k], e]
            best = -1
            for e in along:
                if homes[unit[t], e] and not taken[e] and (best < 0 or gain[e] > gain[best]):
                    best = e
            if best < 0:
                later[put_off] = t
                put_off += 1
                continue
            taken[best] = True
            engine[t], step[t] = best, s
            chosen[count] = t
            count += 1
            if len(sent):
                for k in range(read_starts[t], read_starts[t + 1]):
                    sent[reads[k], best] = True
        for i in range(put_off):
            n = _push(heap, n, later[i], priority)
        for i in range(count):
            t = chosen[i]
            for k in range(out_starts[t], out_starts[t + 1]):
                waiting[out[k]] -= 1
                if waiting[out[k]] == 0:
                    n = _push(heap, n, out[k], priority)
        s += 1
    return engine, step, n == 0


@compiled
def _before(a: int, b: int, priority: Int64s) -> Any:  # pragma: no cover
    return priority[a] > priority[b] or (priority[a] == priority[b] and a < b)


@compiled
def _push(heap: Int64s, n: int, item: int, priority: Int64s) -> Any:  # pragma: no cover
    i = n
    heap[i] = item
    while i > 0 and _before(heap[i], heap[(i - 1) // 2], priority):
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2
    return n + 1


@compiled
def _pop(heap: Int64s, n: int, priority: Int64s) -> Any:  # pragma: no cover
    n -= 1
    heap[0] = heap[n]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and _before(heap[child + 1], heap[child], priority):
            child += 1
        if not _before(heap[child], heap[i], priority):
            break
        heap[i], heap[child] = heap[child], heap[i]
        i = child
    return n
