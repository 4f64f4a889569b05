"""A plan, its network of tasks and its machine as the arrays that machine code reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.foundation.arrays import Bools, Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled


class Graph(NamedTuple):
    """The part of an atomic DAG that the kernels read."""

    cycles: Int64s
    is_output: Bools
    block_bytes: Int64s
    block_parent: Int32s
    read_starts: Int64s
    reads: Int32s


class Moves(NamedTuple):
    """A plan's transfers and the number of each one's multicast."""

    block: Int32s
    source: Int32s
    target: Int32s
    bytes: Int64s
    first: Int32s
    last: Int32s
    group: Int64s


class Holds(NamedTuple):
    """A plan's residencies and, per block, where they begin."""

    block: Int32s
    engine: Int32s
    start: Int32s
    end: Int32s
    of_block: Int64s


class Tasks(NamedTuple):
    """A plan's tasks."""

    engine: Int32s
    first: Int32s
    last: Int32s


class Network(NamedTuple):
    """Routes and rates of a machine."""

    engines: int
    places: int
    starts: Int64s
    links: Int32s
    routers: int
    rates: Floats
    dram_rate: float
    hop_cycles: int
    buffer: int


@compiled(inline=True)
def holding(holds: Holds, block: int, engine: int, first: int, last: int) -> Any:  # pragma: no cover
    """The residency of a block on an engine that covers these steps, or -1.

    Parameters
    ----------
    holds : residencies in a plan's order, which the search halves
    block, engine : what is held where
    first, last : steps to cover
    """
    # the last residency of the block that is on an earlier engine, or on this one from ``first`` or before
    low, high = holds.of_block[block], holds.of_block[block + 1]
    while low < high:
        middle = (low + high) // 2
        other = holds.engine[middle]
        if other < engine or (other == engine and holds.start[middle] <= first):
            low = middle + 1
        else:
            high = middle
    below = low - 1
    if below < holds.of_block[block] or holds.engine[below] != engine or holds.end[below] < last:
        return -1
    return below


@compiled
def holdings(
    holds: Holds, block: Int32s, engine: Int32s, first: Int32s, last: Int32s
) -> Any:  # pragma: no cover
    """Per entry, the residency of a block on an engine that covers the steps, or -1.

    Parameters
    ----------
    holds : residencies in a plan's order
    block, engine, first, last : per entry, what is to be held where and in which steps
    """
    numbers = np.empty(len(block), dtype=np.int64)
    for k in range(len(block)):
        numbers[k] = holding(holds, block[k], engine[k], first[k], last[k])
    return numbers


@compiled
def ascend(first: Int32s, second: Int32s, third: Int32s, fourth: Int32s) -> Any:  # pragma: no cover
    """Whether rows ascend, the first column foremost.

    Parameters
    ----------
    first, second, third, fourth : columns of equal length
    """
    for i in range(1, len(first)):
        if first[i] != first[i - 1]:
            wrong = first[i] < first[i - 1]
        elif second[i] != second[i - 1]:
            wrong = second[i] < second[i - 1]
        elif third[i] != third[i - 1]:
            wrong = third[i] < third[i - 1]
        else:
            wrong = fourth[i] < fourth[i - 1]
        if wrong:
            return False
    return True


@compiled
def multicasts(
    block: Int32s, source: Int32s, target: Int32s, size: Int64s, first: Int32s, last: Int32s, engines: int
) -> Any:  # pragma: no cover
    """Per transfer, the number of its multicast.

    A write-back shares none, and none reaches an engine twice: what brings other bytes is another one.

    Parameters
    ----------
    block, source, target, size, first, last : of each transfer, in a plan's order
    engines : of the machine; targets from there on are DRAM ports
    """
    group = np.zeros(len(block), dtype=np.int64)
    reached = np.full(engines, -1, dtype=np.int64)
    for j in range(len(block)):
        if j > 0:
            same = block[j] == block[j - 1] and source[j] == source[j - 1] and size[j] == size[j - 1]
            same = same and first[j] == first[j - 1] and last[j] == last[j - 1]
            same = same and 0 <= target[j] < engines and target[j - 1] < engines
            same = same and reached[target[j]] != group[j - 1]
            group[j] = group[j - 1] if same else group[j - 1] + 1
        if 0 <= target[j] < engines:
            reached[target[j]] = group[j]
    return group
