"""Which engine runs which atom of a round (section IV-C).

A round's atoms are placed when all earlier rounds stand.  Data is taken to lie where it was made and where it
was last read; what was never read comes from the nearest DRAM port.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, permutations
from typing import Any

import numpy as np
from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.lists import zigzag

MOST_PERMUTATIONS = 720
"""Of the layers of one round; a round of more than six layers tries so many."""

Pick = Callable[[Int64s, Int64s, Int32s], Int32s]
"""Tasks of a round, bytes times hops of each on each engine, engines along the zig-zag -> engine of each."""


def place(
    dag: AtomicDag,
    machine: TiledMachine,
    step: Int32s,
    how: str,
    limits: Limits | None = None,
    along: Int32s | None = None,
) -> Int32s:
    """An engine per task.

    Parameters
    ----------
    step : the round of each task
    how : ``zigzag`` (in order), ``permutations`` (equation 2), ``matching`` (the least bytes times hops of
        the round, proven) or ``nearest`` (atoms that read most choose first)
    along : the engines that take part, in their order; by default all along the zig-zag

    Raises
    ------
    LimitReachedError : where limits strike on the way
    """
    picks: dict[str, Pick] = {
        "zigzag": lambda tasks, cost, along: along[: len(tasks)],
        "permutations": lambda tasks, cost, along: _permuted(dag.unit[tasks], cost, along),
        "matching": lambda tasks, cost, along: along[matched(cost[:, along])],
        "nearest": lambda tasks, cost, along: np.asarray(_nearest(cost, along), dtype=np.int32),
    }
    pick = picks[how]
    # equation 2 counts hops; a byte that stays in its engine is cheaper still than one that passes a port
    port = 0 if how == "permutations" else 1
    net, engines = topology(machine), machine.engines
    hops = net.hops.reshape(net.places, net.places).astype(np.int64) + port
    dram = hops[engines:, :engines].min(axis=0)
    near = hops[:engines, :engines].copy()
    np.fill_diagonal(near, 0)
    along = zigzag(machine) if along is None else along
    engine = np.full(dag.tasks, -1, dtype=np.int32)
    last = np.full(dag.blocks, -1, dtype=np.int32)
    order = np.argsort(step, kind="stable")
    bounds = np.flatnonzero(np.diff(step[order])) + 1
    for tasks in np.split(order, bounds):
        check(limits)
        cost = _costs(
            tasks=tasks,
            starts=dag.read_starts,
            reads=dag.reads,
            size=dag.block_bytes,
            parent=dag.block_parent,
            engine=engine,
            last=last,
            near=near,
            dram=dram,
        )
        engine[tasks] = pick(tasks, cost, along)
        _remember(tasks, dag.read_starts, dag.reads, engine, last)
    return engine


def matched(cost: Int64s) -> Int32s:
    """The assignment of rows to distinct columns of least total cost."""
    rows, columns = cost.shape
    solver = SimpleLinearSumAssignment()
    # rows that stand for no task make the problem square
    square = np.zeros((columns, columns), dtype=np.int64)
    square[:rows] = cost
    left, right = np.divmod(np.arange(columns * columns), columns)
    solver.add_arcs_with_cost(left, right, square.ravel())
    if solver.solve() != solver.OPTIMAL:
        raise ArithmeticError("no assignment of a round's atoms to engines: costs overflow")
    return np.array([solver.right_mate(i) for i in range(rows)], dtype=np.int32)


def _permuted(units: Int32s, cost: Int64s, along: Int32s) -> Int32s:
    """Layers in the order of least cost along the zig-zag (equation 2), atoms of a layer together."""
    layers = [np.flatnonzero(units == unit) for unit in dict.fromkeys(units.tolist())]
    slots = along[: len(units)]
    best, chosen = -1, slots
    for unit in islice(permutations(range(len(layers))), MOST_PERMUTATIONS):
        order = np.concatenate([layers[i] for i in unit])
        total = int(cost[order, slots].sum())
        if best < 0 or total < best:
            best, chosen = total, np.empty_like(slots)
            chosen[order] = slots
    return chosen


@compiled
def _costs(
    tasks: Int64s,
    starts: Int64s,
    reads: Int32s,
    size: Int64s,
    parent: Int32s,
    engine: Int32s,
    last: Int32s,
    near: Int64s,
    dram: Int64s,
) -> Any:  # pragma: no cover
    engines = len(dram)
    cost = np.zeros((len(tasks), engines), dtype=np.int64)
    for i in range(len(tasks)):
        for k in range(starts[tasks[i]], starts[tasks[i] + 1]):
            block = reads[k]
            made = engine[parent[block]] if parent[block] >= 0 else -1
            copy = last[block]
            for e in range(engines):
                if made < 0 and copy < 0:
                    way = dram[e]
                elif made < 0:
                    way = near[copy, e]
                elif copy < 0:
                    way = near[made, e]
                else:
                    way = min(near[made, e], near[copy, e])
                cost[i, e] += size[block] * way
    return cost


@compiled
def _remember(
    tasks: Int64s, starts: Int64s, reads: Int32s, engine: Int32s, last: Int32s
) -> None:  # pragma: no cover
    for t in tasks:
        for k in range(starts[t], starts[t + 1]):
            last[reads[k]] = engine[t]


@compiled
def _nearest(cost: Int64s, along: Int32s) -> Any:  # pragma: no cover
    rows, engines = cost.shape
    spread = np.zeros(rows, dtype=np.int64)
    for i in range(rows):
        spread[i] = cost[i].max() - cost[i].min()
    taken = np.zeros(engines, dtype=np.bool_)
    nearest = np.zeros(rows, dtype=np.int32)
    for i in np.argsort(-spread, kind="mergesort"):
        best = -1
        for e in along:
            if not taken[e] and (best < 0 or cost[i, e] < cost[i, best]):
                best = e
        taken[best] = True
        nearest[i] = best
    return nearest
