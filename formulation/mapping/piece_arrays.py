"""Pieces of many nests at once: :mod:`tilewright.formulation.mapping.pieces` over arrays of tile sizes.

One array element is one nest; results are equal to the scalar functions' element by element.  Where those
leave a piece out (no rest), here it stands with the number 0 and the size 1, unless all nests leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.foundation.arrays import Int64s

Pieces = list[tuple[Int64s, Int64s]]


def cut(sizes: Sequence[Int64s], counted: tuple[bool, ...]) -> Pieces:
    """The pieces at the end of a chain, as (size, how many); the first one is the largest.

    Equal sizes are one piece only where they are the largest.
    """
    pieces = [(sizes[0], np.ones_like(sizes[0]))]
    for tile, all_matter in zip(sizes[1:], counted, strict=True):
        largest = np.minimum(pieces[0][0], tile)
        number: Int64s | int = 0
        remainders = []
        for now, many in pieces:
            whole, rest = _divided(now, largest, all_matter)
            number = number + many * whole
            left = np.where(rest > 0, many, 0)
            if left.any():
                remainders.append((np.maximum(rest, 1), left))
        pieces = [(largest, np.asarray(number)), *remainders]
    return pieces


def _divided(now: Int64s, largest: Int64s, all_matter: bool) -> tuple[Int64s, Int64s]:
    """How many pieces of the largest size there are in others, and what is left; the first one alone unless
    all matter."""
    if all_matter:
        whole = now // largest
        return whole, now - whole * largest
    fits = now >= largest
    return fits.astype(np.int64), np.where(fits, 0, now)


def paired_cut(
    size: Int64s, before: Int64s, unit: Int64s, tiles: Sequence[Int64s], counted: tuple[bool, ...]
) -> list[tuple[Int64s, Int64s, Int64s]]:
    """Pieces of a size, each with its instance's piece of the tile before it, and how many there are.

    Parameters
    ----------
    size : iterations to cut, shape (nests,)
    before : of the same instances the piece of the tile before, shape (nests,)
    unit : ones, shape (nests,): how many pieces there are before any cut
    tiles : tile sizes of successive cuts, outermost first, each of shape (nests,)
    counted : per cut, whether all of its pieces matter
    """
    pieces = [(size, before, unit)]
    for tile, all_matter in zip(tiles, counted, strict=True):
        largest = np.minimum(pieces[0][0], tile)
        number = np.zeros_like(largest)
        remainders = []
        for now, earlier, many in pieces:
            whole, rest = _divided(now, largest, all_matter)
            number = number + many * whole
            left = np.where(rest > 0, many, 0)
            if left.any():
                kept = np.minimum(tile, np.maximum(0, earlier - whole * largest))
                remainders.append((np.maximum(rest, 1), kept, left))
        pieces = [(largest, np.minimum(pieces[0][1], tile), number), *remainders]
    return pieces


def number(pieces: Pieces) -> Int64s:
    """How many pieces there are."""
    return np.asarray(np.add.reduce([many for _, many in pieces]))


def covered(pieces: Pieces) -> Int64s:
    """Iterations in all pieces together."""
    return np.asarray(np.add.reduce([size * many for size, many in pieces]))


def distinct_sums(m: Int64s, a: Int64s, n: Int64s, b: Int64s) -> Int64s:
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``.

    Parameters
    ----------
    m, n : numbers of multiples, each at least 1, shape (nests,)
    a, b : positive steps, shape (nests,)
    """
    common = np.gcd(a, b)
    return np.asarray(m * n - np.maximum(0, m - b // common) * np.maximum(0, n - a // common))
