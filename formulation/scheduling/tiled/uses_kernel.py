"""When data is read again, in machine code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.plan_kernel import Graph
from tilewright.foundation.arrays import Bools, Int32s, Int64s
from tilewright.foundation.compiled import compiled

NONE = -1
"""No such step, copy or place."""


class Order(NamedTuple):
    """Tasks by logical step, and when data is read again.

    Parameters
    ----------
    engine, step : per task
    starts, tasks : tasks of step ``s`` are ``tasks[starts[s] : starts[s + 1]]``
    again : per read, the next step in which the same engine reads the same block, -1 if none
    use_starts, uses : per task, ascending steps in which its result or parts of it are read
    outside : per task, whether its result is written back at once and read from DRAM only
    """

    engine: Int32s
    step: Int32s
    starts: Int64s
    tasks: Int64s
    again: Int32s
    use_starts: Int64s
    uses: Int32s
    outside: Bools


@compiled
def uses_of(
    graph: Graph, engine: Int32s, step: Int32s, starts: Int64s, tasks: Int64s, engines: int
) -> Any:  # pragma: no cover
    """``again``, ``use_starts`` and ``uses`` of `Order`.

    Parameters
    ----------
    graph : tasks and what they read
    engine, step : per task
    starts, tasks : as of `Order`
    engines : of the machine
    """
    blocks, count = len(graph.block_bytes), len(engine)
    per_block = np.zeros(blocks + 1, dtype=np.int64)
    use_starts = np.zeros(count + 1, dtype=np.int64)
    for k in range(len(graph.reads)):
        b = graph.reads[k]
        per_block[b + 1] += 1
        if graph.block_parent[b] >= 0:
            use_starts[graph.block_parent[b] + 1] += 1
    for b in range(blocks):
        per_block[b + 1] += per_block[b]
    for t in range(count):
        use_starts[t + 1] += use_starts[t]
    at_block, at_use = per_block[:-1].copy(), use_starts[:-1].copy()
    # reads by block, in the order of the tasks that read them
    listed = np.empty(len(graph.reads), dtype=np.int64)
    reader = np.empty(len(graph.reads), dtype=np.int32)
    uses = np.empty(use_starts[count], dtype=np.int32)
    for i in range(len(tasks)):
        t = tasks[i]
        for k in range(graph.read_starts[t], graph.read_starts[t + 1]):
            b = graph.reads[k]
            reader[k] = t
            listed[at_block[b]] = k
            at_block[b] += 1
            parent = graph.block_parent[b]
            if parent >= 0:
                uses[at_use[parent]] = step[t]
                at_use[parent] += 1
    # backwards over the readers of each block: what an engine has seen of it is its next use there
    again = np.full(len(graph.reads), NONE, dtype=np.int32)
    seen = np.zeros(engines, dtype=np.int32)
    later = np.zeros(engines, dtype=np.int32)
    stamp = np.full(engines, -1, dtype=np.int64)
    for b in range(blocks):
        for i in range(per_block[b + 1] - 1, per_block[b] - 1, -1):
            k = listed[i]
            t = reader[k]
            e = engine[t]
            if stamp[e] != b:
                later[e] = NONE
            elif seen[e] > step[t]:
                later[e] = seen[e]
            # a task that reads a block twice reads it again when the next one does
            again[k] = later[e]
            stamp[e] = b
            seen[e] = step[t]
    return again, use_starts, uses
