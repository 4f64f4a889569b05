"""Pieces of a dimension: what nested tiles cut it into when they need not divide.

A loop over tiles of ``t`` cuts a piece of ``s`` iterations into ``floor(s / t)`` whole tiles and one smaller
remainder.  Counts below add up exactly what each piece contributes; nothing is averaged.

A chain is a dimension's tile sizes at successive boundaries, the whole dimension first.  Each cut is either
*counted* (all of its pieces matter: a loop in time, or instances that each have their own share) or not (one
piece stands for all: the first, which is the largest).
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

Pieces = tuple[tuple[int, int], ...]


@lru_cache(maxsize=1 << 16)
def cut(sizes: tuple[int, ...], counted: tuple[bool, ...]) -> Pieces:
    """The pieces at the end of a chain, as (size, how many), largest first.

    Parameters
    ----------
    sizes : tile sizes, non-increasing, the whole dimension first
    counted : per cut, whether all of its pieces matter
    """
    pieces = {sizes[0]: 1}
    for tile, all_matter in zip(sizes[1:], counted, strict=True):
        inner: dict[int, int] = {}
        for size, many in pieces.items():
            if all_matter and size > tile:
                whole, rest = divmod(size, tile)
                inner[tile] = inner.get(tile, 0) + many * whole
                if rest:
                    inner[rest] = inner.get(rest, 0) + many
            else:
                part = min(size, tile)
                inner[part] = inner.get(part, 0) + many
        pieces = inner
    return tuple(sorted(pieces.items(), reverse=True))


def number(pieces: Pieces) -> int:
    """How many pieces there are."""
    return sum(many for _, many in pieces)


def covered(pieces: Pieces) -> int:
    """Iterations in all pieces together."""
    return sum(size * many for size, many in pieces)


def distinct_sums(m: int, a: int, n: int, b: int) -> int:
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``.

    Parameters
    ----------
    m, n : numbers of multiples, each at least 1
    a, b : positive steps
    """
    common = gcd(a, b)
    return m * n - max(0, m - b // common) * max(0, n - a // common)
