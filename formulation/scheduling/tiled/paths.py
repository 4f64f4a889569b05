"""Longest ways through an atomic DAG."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled


def path_lengths(dag: AtomicDag) -> tuple[Int64s, Int64s]:
    """Per task: cycles of the longest way to its start, and of the longest way from its start to the end."""
    edge_starts, producers = dag.edges
    heads, tails = _paths(edge_starts, producers, dag.cycles, dag.tasks)
    return heads, tails


@compiled
def _paths(starts: Int64s, producers: Int32s, cycles: Int64s, tasks: int) -> Any:  # pragma: no cover
    """Tasks are numbered in a topological order: producers come first."""
    heads = np.zeros(tasks, dtype=np.int64)
    tails = np.zeros(tasks, dtype=np.int64)
    for t in range(tasks):
        for k in range(starts[t], starts[t + 1]):
            heads[t] = max(heads[t], heads[producers[k]] + cycles[producers[k]])
    for t in range(tasks - 1, -1, -1):
        tails[t] += cycles[t]
        for k in range(starts[t], starts[t + 1]):
            tails[producers[k]] = max(tails[producers[k]], tails[t])
    return heads, tails
