"""Routing and residency: a whole plan from engines and steps of tasks.

Given an engine and a step per task it fills in sources, transfers, residency, evictions and write-backs:

- data comes from the nearest engine that holds it, otherwise from DRAM; copies needed in one step by several
  engines arrive together, as one multicast per source;
- data arrives up to ``ahead`` steps early where the buffer has capacity left, otherwise in the step of use;
- a buffer that is too full gives up the copy that is used again last (``furthest``), or the one with the
  largest product of bytes and steps to its next use (``occupation``, algorithm 3 of Atomic Dataflow, whose
  initial occupation is printed as infinity and starts at 0 here); results that are still needed are written
  back first, and an idle step is put in where that takes time that the plan does not leave.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled import routing_kernel as machine_code
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError, graph_of, network_of
from tilewright.formulation.scheduling.tiled.eviction_kernel import Rules
from tilewright.formulation.scheduling.tiled.halting import check, halting
from tilewright.formulation.scheduling.tiled.plan import Plan, make_residency, make_transfers
from tilewright.formulation.scheduling.tiled.ports_kernel import BLOCK, FIRST, LAST, SOURCE, TARGET
from tilewright.formulation.scheduling.tiled.uses_kernel import Order, uses_of
from tilewright.foundation.arrays import Bools, Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology

Eviction = Literal["furthest", "occupation"]


def complete(
    dag: AtomicDag,
    machine: TiledMachine,
    engine: npt.NDArray[np.integer],
    step: npt.NDArray[np.integer],
    *,
    eviction: Eviction = "furthest",
    ahead: int = 8,
    through_dram: bool = False,
    limits: Limits | None = None,
) -> Plan:
    """The plan that runs every task on its engine, in the order of the steps given.

    Parameters
    ----------
    engine, step : per task; the numbers of steps matter only by their order
    eviction : which copy leaves a buffer that is too full
    ahead : steps before its use in which data may arrive
    through_dram : finished results are written back at once, and read from DRAM only; unfinished sums stay

    Raises
    ------
    IllegalPlanError : for an engine that does not exist or runs two tasks in a step, a task that is not after
        all it reads, or one that fits no buffer
    LimitReachedError : where limits strike on the way
    """
    place = np.ascontiguousarray(engine, dtype=np.int32)
    _check(dag, machine, place, np.asarray(step))
    check(limits, dag.outline)
    _, logical = np.unique(step, return_inverse=True)
    logical = logical.astype(np.int32)
    steps = int(logical.max()) + 1
    tasks = np.argsort(logical, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(logical, minlength=steps))]).astype(np.int64)
    graph, net = graph_of(dag), network_of(machine)
    again, use_starts, uses = uses_of(graph, place, logical, starts, tasks, net.engines)
    outside = _finished(dag) if through_dram else np.zeros(dag.tasks, dtype=np.bool_)
    outside &= np.diff(use_starts) > 0
    check(limits, dag.outline)
    order = Order(place, logical, starts, tasks, again, use_starts, uses, outside)
    rules = Rules(eviction == "furthest", ahead)
    with halting(limits) as halt:
        fault, at, total, rows, *columns = machine_code.complete(
            graph, order, net, topology(machine).hops, steps, rules, halt
        )
    if fault == machine_code.HALTED:
        check(limits, dag.outline)
    if fault >= 0:
        raise IllegalPlanError(
            f"{dag.task_name(int(fault))} needs {int(dag.needs[fault])} bytes on engine {int(place[fault])}, "
            f"a buffer has {machine.engine.buffer_bytes}"
        )
    transfers = make_transfers(
        machine.engines,
        rows[:, BLOCK],
        rows[:, SOURCE],
        rows[:, TARGET],
        dag.block_bytes[rows[:, BLOCK]],
        rows[:, FIRST],
        rows[:, LAST],
    )
    return Plan(place, at, at.copy(), transfers, make_residency(*columns), int(total))


def _finished(dag: AtomicDag) -> Bools:
    """Per task, whether its result is a finished sum."""
    slots = dag.slots[dag.unit]
    finished: Bools = (np.arange(dag.tasks) - dag.base[dag.unit]) % slots == slots - 1
    return finished


def _check(dag: AtomicDag, machine: TiledMachine, engine: Int32s, step: npt.NDArray[np.integer]) -> None:
    if len(engine) != dag.tasks or len(step) != dag.tasks:
        raise IllegalPlanError(f"expected an engine and a step for each of {dag.tasks} tasks")
    outside = np.flatnonzero((engine < 0) | (engine >= machine.engines))
    if len(outside):
        task = int(outside[0])
        raise IllegalPlanError(
            f"{dag.task_name(task)}: engine {int(engine[task])}, expected one of {machine.engines}"
        )
    slots = (step.astype(np.int64) - int(step.min())) * machine.engines + engine
    order = np.argsort(slots, kind="stable")
    same = np.flatnonzero(np.diff(slots[order]) == 0)
    if len(same):
        a, b = (int(t) for t in order[same[0] : same[0] + 2])
        raise IllegalPlanError(
            f"engine {int(engine[a])} runs both {dag.task_name(a)} and "
            f"{dag.task_name(b)} in step {int(step[a])}"
        )
    parent = dag.block_parent[dag.reads]
    reader = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    made = parent >= 0
    late = np.flatnonzero(made & (step[np.where(made, parent, 0)] >= step[reader]))
    if len(late):
        a, b = int(reader[late[0]]), int(parent[late[0]])
        raise IllegalPlanError(
            f"dependency: {dag.task_name(a)} in step {int(step[a])} reads "
            f"{dag.task_name(b)} of step {int(step[b])}"
        )
