"""The order of a plan's transfers and residencies, in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled

FEW = 24
"""Rows that are sorted by insertion."""


@compiled
def transfer_order(
    block: Int32s, source: Int32s, target: Int32s, size: Int64s, first: Int32s, last: Int32s, engines: int
) -> Any:  # pragma: no cover
    """Places of transfers in the order of (first, last, block, source, write-back, size).

    Equal rows keep their sequence.  None are returned where a row of a step is no number of 62 bits.

    Parameters
    ----------
    block, source, target, size, first, last : of each transfer, none negative
    engines : of the machine; targets from there on are write-backs
    """
    count = len(block)
    steps, longest, blocks, sources, sizes = 0, 0, 0, 0, np.int64(0)
    for i in range(count):
        if last[i] < first[i]:
            return np.empty(0, dtype=np.int64)
        steps = max(steps, first[i] + 1)
        longest = max(longest, last[i] - first[i])
        blocks = max(blocks, block[i])
        sources = max(sources, source[i])
        sizes = max(sizes, size[i])
    of_size = _bits(sizes)
    of_source = of_size + 1 + _bits(np.int64(sources))
    of_block = of_source + _bits(np.int64(blocks))
    if of_block + _bits(np.int64(longest)) > 62:
        return np.empty(0, dtype=np.int64)
    starts, order = counting_sort(first, np.arange(count), steps)
    most = np.int64(0)
    for step in range(steps):
        most = max(most, starts[step + 1] - starts[step])
    keys = np.empty(most, dtype=np.int64)
    kept = np.empty(most, dtype=np.int64)
    for step in range(steps):
        low, rows = starts[step], starts[step + 1] - starts[step]
        for k in range(rows):
            i = order[low + k]
            key = np.int64(last[i] - first[i]) << of_block
            key |= np.int64(block[i]) << of_source
            key |= np.int64(source[i]) << (of_size + 1)
            if target[i] >= engines:
                key |= np.int64(1) << of_size
            keys[k] = key | size[i]
        _sort_run(keys[:rows], order[low : low + rows], kept)
    return order


@compiled
def residency_order(block: Int32s, engine: Int32s, start: Int32s) -> Any:  # pragma: no cover
    """Places of residencies in the order of (block, engine, start); equal rows keep their sequence.

    Parameters
    ----------
    block, engine, start : of each residency, none negative
    """
    count = len(block)
    blocks, steps = 0, 0
    for i in range(count):
        blocks = max(blocks, block[i] + 1)
        steps = max(steps, start[i] + 1)
    starts, order = counting_sort(block, np.arange(count), blocks)
    most = np.int64(0)
    for b in range(blocks):
        most = max(most, starts[b + 1] - starts[b])
    keys = np.empty(count, dtype=np.int64)
    for k in range(count):
        keys[k] = np.int64(engine[order[k]]) * steps + start[order[k]]
    kept = np.empty(most, dtype=np.int64)
    for b in range(blocks):
        low, high = starts[b], starts[b + 1]
        if high - low > 1:
            _sort_run(keys[low:high], order[low:high], kept)
    return order


@compiled
def _sort_run(keys: Int64s, places: Int64s, kept: Int64s) -> None:  # pragma: no cover
    """Sort places by their keys, in place.

    Parameters
    ----------
    keys : of each place; afterwards in no order
    places : to be sorted
    kept : memory for as many
    """
    count = len(keys)
    if count <= FEW:
        for i in range(1, count):
            key, place = keys[i], places[i]
            j = i
            while j > 0 and keys[j - 1] > key:
                keys[j], places[j] = keys[j - 1], places[j - 1]
                j -= 1
            keys[j], places[j] = key, place
        return
    for i in range(1, count):
        if keys[i] < keys[i - 1]:
            ranked = np.argsort(keys)
            for k in range(count):
                kept[k] = places[ranked[k]]
            places[:] = kept[:count]
            return


@compiled(inline=True)
def _bits(value: np.int64) -> Any:  # pragma: no cover
    """Bits of a number that is not negative; at least one."""
    bits = 1
    while value >> bits != 0:
        bits += 1
    return bits
