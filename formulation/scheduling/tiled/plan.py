"""The plan: which engine runs which task in which steps, what moves where, and what stays where.

Places are engines, then DRAM ports (``engines + port``), as in
`tilewright.hardware.scheduling.tiled.topology`.
Steps carry no length; the evaluator gives them one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled import ordering_kernel, plan_kernel
from tilewright.foundation.arrays import Int32s, Int64s

MOST_COUNTERS = 1 << 22
"""Numbers of blocks or steps that may always be counted one by one where rows are sorted."""


@dataclass(frozen=True, eq=False)
class Transfers:
    """Movements of blocks, in order of (first step, last step, block, source).

    Those to engines that agree in all four (and in bytes) are one multicast: the source is read
    once, and every
    link of the tree of routes is loaded once.

    Parameters
    ----------
    block : what moves
    source, target : places; a target at DRAM is a write-back
    bytes : how much of it; several transfers may bring one block together
    first, last : steps over which it is spread evenly
    """

    block: Int32s
    source: Int32s
    target: Int32s
    bytes: Int64s
    first: Int32s
    last: Int32s

    def __len__(self) -> int:
        return len(self.block)


@dataclass(frozen=True, eq=False)
class Residency:
    """Blocks in buffers, in order of (block, engine, start); both end steps are included.

    A result lies in its engine's buffer from the step in which its task begins; anything else from the first
    step of the transfer that brings it.
    """

    block: Int32s
    engine: Int32s
    start: Int32s
    end: Int32s

    def __len__(self) -> int:
        return len(self.block)


@dataclass(frozen=True, eq=False)
class Plan:
    """One way to run an atomic DAG on a machine.

    Parameters
    ----------
    engine, first, last : per task: where, and in which steps it runs
    steps : number of steps, numbered from 0
    """

    engine: Int32s
    first: Int32s
    last: Int32s
    transfers: Transfers
    residency: Residency
    steps: int


def multicast_groups(moving: Transfers, engines: int) -> Int64s:
    """Per transfer, the number of its multicast."""
    columns = (moving.block, moving.source, moving.target, moving.bytes, moving.first, moving.last)
    groups: Int64s = plan_kernel.multicasts(*columns, engines)
    return groups


def make_transfers(
    engines: int,
    block: Int32s | Int64s,
    source: Int32s | Int64s,
    target: Int32s | Int64s,
    size: Int64s,
    first: Int32s | Int64s,
    last: Int32s | Int64s,
) -> Transfers:
    """Transfers in their order; write-backs (targets from ``engines`` on) are never part of a multicast.

    Parameters
    ----------
    engines : of the machine; places from there on are DRAM ports
    block, source, target : of each transfer; source and target are places
    size : bytes of each
    first, last : steps of each
    """
    block, source, target = _narrow(block), _narrow(source), _narrow(target)
    first, last = _narrow(first), _narrow(last)
    size = np.ascontiguousarray(size, dtype=np.int64)
    order = np.zeros(0, dtype=np.int64)
    if _are_dense(first) and min(int(column.min()) for column in (block, source, target, size, first)) >= 0:
        order = ordering_kernel.transfer_order(block, source, target, size, first, last, engines)
    if not len(order):
        order = np.lexsort((size, target >= engines, source, block, last, first))
    return Transfers(block[order], source[order], target[order], size[order], first[order], last[order])


def make_residency(
    block: Int32s | Int64s, engine: Int32s | Int64s, start: Int32s | Int64s, end: Int32s | Int64s
) -> Residency:
    """Residencies in their order.

    Parameters
    ----------
    block, engine : of each residency
    start, end : its first and last step
    """
    block, engine, start, end = _narrow(block), _narrow(engine), _narrow(start), _narrow(end)
    if _are_dense(block) and min(int(column.min()) for column in (block, engine, start)) >= 0:
        order = ordering_kernel.residency_order(block, engine, start)
    else:
        order = np.lexsort((start, engine, block))
    return Residency(block[order], engine[order], start[order], end[order])


def _narrow(column: Int32s | Int64s) -> Int32s:
    return np.ascontiguousarray(column, dtype=np.int32)


def _are_dense(keys: Int32s | Int64s) -> bool:
    """Whether there are keys, of a size that counters of them pay."""
    return len(keys) > 0 and int(keys.max()) <= MOST_COUNTERS + 8 * len(keys)
