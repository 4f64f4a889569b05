"""Pieces of many nests at once: :mod:`tilewright.formulation.mapping.tiles.pieces` over arrays of tile sizes.

One array element is one nest; results are equal to the scalar functions' element by element.  Where those
leave a piece out (no rest), here it stands with the number 0 and the size 1, unless all nests leave it out.
Sizes and numbers are integers below 2**52 in float64: their quotients are rounded down exactly, many times
as fast as integers are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.foundation.arrays import Floats

Pieces = list[tuple[Floats, Floats]]
Shared = dict[Any, tuple[Sequence[Floats], Pieces]]
"""Pieces of chains by their cuts and the identities of their arrays, which are kept with them."""


def cut(sizes: Sequence[Floats], counted: tuple[bool, ...], shared: Shared | None = None) -> Pieces:
    """The pieces at the end of a chain, as (size, how many); the first one is the largest.

    Equal sizes are one piece only where they are the largest.

    Parameters
    ----------
    sizes : tile sizes, the whole dimension first, each of shape (nests,)
    counted : per cut, whether all of its pieces matter
    shared : has the pieces of chains that begin as this one does, and gets those of this one
    """
    if not counted:
        return [(sizes[0], np.ones(sizes[0].shape))]
    key = (counted, *map(id, sizes))
    if shared is not None and key in shared:
        return shared[key][1]
    pieces = _cut_again(cut(sizes[:-1], counted[:-1], shared), sizes[-1], counted[-1])
    if shared is not None:
        shared[key] = sizes, pieces
    return pieces


def _cut_again(pieces: Pieces, tile: Floats, all_matter: bool) -> Pieces:
    """The pieces of some pieces."""
    largest = np.minimum(pieces[0][0], tile)
    number = np.zeros(largest.shape)
    remainders = []
    for now, many in pieces:
        whole, rest = _divided(now, largest, all_matter)
        number += many * whole
        left = many * (rest > 0)
        if left.any():
            remainders.append((np.maximum(rest, 1), left))
    return [(largest, number), *remainders]


def divided(now: Floats, by: Floats) -> tuple[Floats, Floats]:
    """Quotients rounded down, and what is left."""
    whole = np.floor(now / by)
    return whole, now - whole * by


def _divided(now: Floats, largest: Floats, all_matter: bool) -> tuple[Floats, Floats]:
    """How many pieces of the largest size there are in others, and what is left; the first one alone unless
    all matter."""
    if all_matter:
        return divided(now, largest)
    fits = now >= largest
    return fits.astype(np.float64), now * ~fits


def number(pieces: Pieces) -> Floats:
    """How many pieces there are."""
    return np.asarray(np.add.reduce([many for _, many in pieces]))


def covered(pieces: Pieces) -> Floats:
    """Iterations in all pieces together."""
    return np.asarray(np.add.reduce([size * many for size, many in pieces]))


def distinct_sums(m: Floats, a: Floats, n: Floats, b: Floats) -> Floats:
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``.

    Parameters
    ----------
    m, n : numbers of multiples, shape (nests,)
    a, b : positive steps, shape (nests,)
    """
    total = m * n
    # One multiple of either step coincides with nothing; common divisors take long to find.
    both = np.flatnonzero((m > 1) & (n > 1))
    if len(both):
        m, a, n, b = m[both], a[both], n[both], b[both]
        common = np.gcd(a.astype(np.int64), b.astype(np.int64))
        total[both] -= np.maximum(0, m - b / common) * np.maximum(0, n - a / common)
    return total
