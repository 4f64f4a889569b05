"""Windows of many nests at once: `tilewright.formulation.mapping.tiles.windows` over arrays of tile sizes.

One array element is one nest; sizes are integers in float64.  Machine code counts what windows fetch
(:mod:`tilewright.formulation.mapping.tiles.windows_kernel`); until it is compiled, and where numbers do not
fit it, the scalar function does.  How many sums of progressions differ is known where at most two loops are
spread, at even distances; of the other nests each different one is counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.formulation.mapping.tiles import windows, windows_kernel
from tilewright.formulation.mapping.tiles.piece_arrays import distinct_sums
from tilewright.formulation.mapping.tiles.windows_kernel import EXTENT_BITS, KINDS
from tilewright.foundation.arrays import Floats, Indices, Int64s
from tilewright.foundation.compiled import is_ready

Chain = Sequence[Floats]
_ROOM = 1 << 8  # runs and tiles, a power of two, which few nests exceed
_MORE = 4  # times as many where one does
_TURN = 1 << 7  # nests that the scalar function counts before machine code is asked for again
_MOST = 1 << 62  # elements that are counted in 64 bits


def fetched(sizes: Sequence[Chain], kinds: tuple[str, ...], strides: tuple[int, ...]) -> Floats:
    """Elements along an axis over all steps; see the scalar function.

    Parameters
    ----------
    sizes : per loop of the axis, its chain of tile sizes, each of shape (nests,)
    kinds, strides : as for the scalar function
    """
    columns = np.array([size for chain in sizes for size in chain])
    totals = np.empty(columns.shape[1])
    wholes = [int(chain[0].max(initial=1)) for chain in sizes]
    extent = 1 + sum(stride * (whole - 1) for whole, stride in zip(wholes, strides, strict=True))
    is_small = extent >> EXTENT_BITS == 0 and prod(wholes) * extent <= _MOST
    cuts = np.array([len(own) for own in kinds])
    codes = np.array([KINDS[kind] for own in kinds for kind in own], dtype=np.int64)
    row, room = 0, _ROOM
    while row < len(totals):
        arguments = row, columns, cuts, codes, np.array(strides), room, totals
        if is_small and is_ready(windows_kernel.fetched, arguments):
            row, room = windows_kernel.fetched(*arguments), room * _MORE
        else:
            chains = np.split(columns[:, row : row + _TURN].astype(np.int64), np.cumsum(cuts + 1)[:-1])
            nests = zip(*(map(tuple, chain.T.tolist()) for chain in chains), strict=True)
            counts = [windows.fetched(nest, kinds, strides) for nest in nests]
            totals[row : row + len(counts)] = counts
            row += len(counts)
    return totals


def distinct(shape: tuple[int, ...], values: Sequence[Floats]) -> Floats:
    """How many different sums progressions have; see the scalar function."""
    loops: list[tuple[Floats, Floats]] = []
    ones = np.ones_like(values[0])
    odd = np.zeros(len(ones), dtype=np.bool_)
    given = iter(zip(values[::2], values[1::2], strict=True))
    for count in shape:
        many, step = ones, ones
        for outer, distance in reversed([next(given) for _ in range(count)]):
            # Two progressions are one where the outer steps on by the whole length of the inner one.
            odd |= (many > 1) & (outer > 1) & (distance != many * step)
            step = np.where(many == 1, distance, step)
            many = many * outer
        loops.append((many, step))
    spread = np.add.reduce([(many > 1).astype(np.int64) for many, _ in loops])
    if len(loops) == 2:
        (m, a), (n, b) = loops
        total = distinct_sums(m, a, n, b)
    else:
        odd = np.ones_like(odd)
        total = ones
    plain = np.multiply.reduce([many for many, _ in loops])
    result = np.where(spread <= 1, plain, total).astype(np.float64)
    rest = odd & (spread > 1)
    if rest.any():
        # Many nests come to the same few rows; each is counted once.
        rows, place = _different([value[rest].astype(np.int64) for value in values])
        result[rest] = np.array([windows.distinct(shape, row) for row in rows], dtype=np.float64)[place]
    return result


def _different(columns: Sequence[Int64s]) -> tuple[list[tuple[int, ...]], Indices]:
    """The different rows of some columns, and which of them every row is."""
    place = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # Renumbered after every column, so that the mixed key stays far below 2^63.
        _, place = np.unique(place * (int(column.max()) + 1) + column, return_inverse=True)
    _, first = np.unique(place, return_index=True)
    rows = [tuple(row) for row in np.stack([column[first] for column in columns], axis=1).tolist()]
    return rows, place
