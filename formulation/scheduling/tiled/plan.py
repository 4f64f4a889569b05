"""The plan: which engine runs which task in which steps, what moves where, and what stays where.

Places are engines, then DRAM ports (``engines + port``), as in
`tilewright.hardware.scheduling.tiled.topology`.
Steps carry no length; the evaluator gives them one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled import plan_kernel
from tilewright.foundation.arrays import Int32s, Int64s


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
    engines: int, block: Int64s, source: Int64s, target: Int64s, size: Int64s, first: Int64s, last: Int64s
) -> Transfers:
    """Transfers in their order; write-backs (targets from ``engines`` on) are never part of a multicast.

    Parameters
    ----------
    engines : of the machine; places from there on are DRAM ports
    block, source, target : of each transfer; source and target are places
    size : bytes of each
    first, last : steps of each
    """
    back = (target >= engines).astype(np.int64)
    key = _packed((first, last - first, block, source, back, size))
    if key is None:
        order = np.lexsort((size, back, source, block, last, first))
    else:
        order = np.argsort(key, kind="stable")
    small = [column[order].astype(np.int32) for column in (block, source, target, first, last)]
    return Transfers(small[0], small[1], small[2], size[order].astype(np.int64), small[3], small[4])


def make_residency(block: Int64s, engine: Int64s, start: Int64s, end: Int64s) -> Residency:
    """Residencies in their order.

    Parameters
    ----------
    block, engine : of each residency
    start, end : its first and last step
    """
    key = _packed((block, engine, start))
    order = np.lexsort((start, engine, block)) if key is None else np.argsort(key, kind="stable")
    columns = [column[order].astype(np.int32) for column in (block, engine, start, end)]
    return Residency(*columns)


def _packed(columns: tuple[Int64s, ...]) -> Int64s | None:
    """One integer per row that sorts like the columns, or ``None`` where 63 bits do not hold them."""
    if not len(columns[0]) or min(int(column.min()) for column in columns) < 0:
        return None
    key = np.zeros(len(columns[0]), dtype=np.int64)
    bits_left = 63
    for column in columns:
        bits = max(1, int(column.max()).bit_length())
        bits_left -= bits
        if bits_left < 0:
            return None
        key = (key << bits) | column
    return key
