"""Pieces of a dimension: what nested tiles cut it into when they need not divide.

A loop over tiles of ``t`` cuts a piece of ``s`` iterations into ``floor(s / t)`` whole tiles and one smaller
rest.  Counts below add up exactly what each piece contributes; nothing is averaged.

A chain is a dimension's tile sizes at successive boundaries, the whole dimension first.  Each cut is either
*counted* (all of its pieces matter: a loop in time, or instances that each have their own share) or not (one
piece stands for all: the first, which is the largest).
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

Pieces = tuple[tuple[int, int], ...]
Chain = tuple[tuple[int, ...], tuple[bool, ...]]


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


def windows(first: Pieces, second: Pieces, strides: tuple[int, int]) -> int:
    """Elements of an axis of two loops, over all pairs of pieces.

    A pair of sizes ``(p, r)`` spans ``(p - 1) * strides[0] + (r - 1) * strides[1] + 1``.
    """
    a, b = strides
    many, other = number(first), number(second)
    return a * covered(first) * other + b * covered(second) * many + (1 - a - b) * many * other


def distinct_sums(m: int, a: int, n: int, b: int) -> int:
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``."""
    common = gcd(a, b)
    return m * n - max(0, m - b // common) * max(0, n - a // common)


def shared_windows(
    outer: tuple[Pieces, Pieces], fans: tuple[Chain, Chain], strides: tuple[int, int], shared: bool
) -> int:
    """Like :func:`windows` for two loops of which some instances stand side by side.

    Parameters
    ----------
    outer : pieces of both loops before they are spread over the instances
    fans : further tile sizes down to one instance and which of those cuts count, per loop
    shared : whether instances whose tiles begin at the same element and have the same size share one
        access

    """
    total = 0
    for p, many_p in outer[0]:
        for r, many_r in outer[1]:
            for size, count in _side_by_side(p, r, fans, strides, shared):
                total += many_p * many_r * count * size
    return total


def slid_windows(
    outer: tuple[Pieces, Pieces], step: int, fans: tuple[Chain, Chain], strides: tuple[int, int], shared: bool
) -> int:
    """Elements fetched along an axis while the first loop slides a window over each of its pieces.

    Parameters
    ----------
    outer : pieces of both loops: those that the sliding loop walks through, those of the other loop
    step : tile of the sliding loop
    fans, shared : as in :func:`shared_windows`, for what is spread inside the sliding loop

    Of two consecutive tiles at one instance, only what the first does not cover is fetched.
    """
    total = 0
    a, b = strides
    move = step * a
    for p, many_p in outer[0]:
        whole, rest = divmod(p, step)
        for r, many_r in outer[1]:
            sweep = 0
            for size, count in _side_by_side(step, r, fans, strides, shared) if whole else ():
                sweep += count * (size + (whole - 1) * min(size, move))
            if rest:
                for (x, before), m in _paired_cut(rest, step if whole else 0, fans[0]).items():
                    for place, (y, n) in enumerate(cut((r, *fans[1][0]), fans[1][1])):
                        regular = shared and place == 0 and x == min((rest, *fans[0][0]))
                        count = distinct_sums(m, x * a, n, y * b) if regular else m * n
                        reach = (y - 1) * b + 1
                        size = (x - 1) * a + reach
                        kept = (before - 1) * a + reach - move if before else 0
                        sweep += count * (size - min(size, max(0, kept)))
            total += many_p * many_r * sweep
    return total


def _paired_cut(size: int, before: int, chain: Chain) -> dict[tuple[int, int], int]:
    """Pieces of a rest, each with the piece that the same instance had of the whole tile before it."""
    pairs = {(size, before): 1}
    for tile, all_matter in zip(*chain, strict=True):
        inner: dict[tuple[int, int], int] = {}
        for (now, earlier), many in pairs.items():
            whole, rest = divmod(now, tile) if all_matter else (0, min(now, tile))
            if whole:
                full = tile, min(earlier, tile)
                inner[full] = inner.get(full, 0) + many * whole
            if rest:
                last = rest, min(tile, max(0, earlier - whole * tile))
                inner[last] = inner.get(last, 0) + many
        pairs = inner
    return pairs


def _side_by_side(
    p: int, r: int, fans: tuple[Chain, Chain], strides: tuple[int, int], shared: bool
) -> list[tuple[int, int]]:
    """Window sizes of the instances that share a piece of each loop, and how many fetch each size."""
    a, b = strides
    first = cut((p, *fans[0][0]), fans[0][1])
    second = cut((r, *fans[1][0]), fans[1][1])
    result = []
    for index, (x, m) in enumerate(first):
        for place, (y, n) in enumerate(second):
            regular = shared and index == 0 and place == 0
            count = distinct_sums(m, x * a, n, y * b) if regular else m * n
            result.append(((x - 1) * a + (y - 1) * b + 1, count))
    return result
