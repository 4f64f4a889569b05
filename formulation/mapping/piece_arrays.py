"""Pieces of many nests at once: :mod:`tilewright.formulation.mapping.pieces` over arrays of tile sizes.

One array element is one nest; results are equal to the scalar functions' element by element.  Where those
leave a piece out (no rest), here it stands with the number 0 and the size 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Pieces = list[tuple[Ints, Ints]]
Chain = tuple[Sequence[Ints], tuple[bool, ...]]


def cut(sizes: Sequence[Ints], counted: tuple[bool, ...]) -> Pieces:
    """The pieces at the end of a chain, as (size, how many); the first one is the largest.

    Equal sizes are one piece only where they are the largest.
    """
    one = np.ones_like(sizes[0])
    return [(size, many) for size, _, many in _cut(sizes[0], 0 * one, one, sizes[1:], counted)]


def _cut(
    size: Ints, before: Ints, one: Ints, tiles: Sequence[Ints], counted: tuple[bool, ...]
) -> list[tuple[Ints, Ints, Ints]]:
    """Pieces of a size, each with its instance's piece of the tile before it, and how many there are."""
    pieces = [(size, before, one)]
    for tile, all_matter in zip(tiles, counted, strict=True):
        largest = np.minimum(pieces[0][0], tile)
        number = np.zeros_like(largest)
        rests = []
        for now, earlier, many in pieces:
            whole = now // largest if all_matter else (now >= largest).astype(np.int64)
            rest = now - whole * largest if all_matter else np.where(whole == 1, 0, now)
            number = number + many * whole
            kept = np.minimum(tile, np.maximum(0, earlier - whole * largest))
            rests.append((np.maximum(rest, 1), kept, np.where(rest > 0, many, 0)))
        pieces = [(largest, np.minimum(pieces[0][1], tile), number), *rests]
    return pieces


def number(pieces: Pieces) -> Ints:
    """How many pieces there are."""
    return np.asarray(np.add.reduce([many for _, many in pieces]))


def covered(pieces: Pieces) -> Ints:
    """Iterations in all pieces together."""
    return np.asarray(np.add.reduce([size * many for size, many in pieces]))


def distinct_sums(m: Ints, a: Ints, n: Ints, b: Ints) -> Ints:
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``."""
    common = np.gcd(a, b)
    return np.asarray(m * n - np.maximum(0, m - b // common) * np.maximum(0, n - a // common))


def shared_windows(
    outer: tuple[Pieces, Pieces], fans: tuple[Chain, Chain], strides: tuple[int, int], shared: bool
) -> NDArray[np.float64]:
    """Elements over all pairs of pieces of two loops; see the scalar function."""
    total = np.zeros(len(outer[0][0][0]))
    for p, many_p in outer[0]:
        for r, many_r in outer[1]:
            total += (many_p * many_r) * _side_by_side(p, r, fans, strides, shared)[0]
    return total


def slid_windows(
    outer: tuple[Pieces, Pieces],
    step: Ints,
    fans: tuple[Chain, Chain],
    strides: tuple[int, int],
    shared: bool,
) -> NDArray[np.float64]:
    """Elements fetched while the first loop slides over each of its pieces; see the scalar function."""
    total = np.zeros(len(step))
    a, b = strides
    move = step * a
    for r, many_r in outer[1]:
        first, again = _side_by_side(step, r, fans, strides, shared, move)
        second = cut([r, *fans[1][0]], fans[1][1])
        for p, many_p in outer[0]:
            whole, rest = p // step, p % step
            sweep = np.where(whole > 0, first + (whole - 1) * again, 0)
            started = np.where(whole > 0, step, 0)
            left = np.where(rest > 0, 1, 0)
            for index, (x, before, m) in enumerate(_cut(np.maximum(rest, 1), started, left, *fans[0])):
                for place, (y, n) in enumerate(second):
                    regular = shared and index == 0 and place == 0
                    count = distinct_sums(m, x * a, n, y * b) if regular else m * n
                    reach = (y - 1) * b + 1
                    size = (x - 1) * a + reach
                    kept = np.where(before > 0, np.maximum(0, (before - 1) * a + reach - move), 0)
                    sweep = sweep + count.astype(np.float64) * (size - np.minimum(size, kept))
            total += (many_p * many_r) * sweep
    return total


def _side_by_side(
    p: Ints,
    r: Ints,
    fans: tuple[Chain, Chain],
    strides: tuple[int, int],
    shared: bool,
    most: Ints | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Elements in the windows of the instances that share a piece of each loop.

    Returned once whole and once with at most ``most`` elements of each window.
    """
    a, b = strides
    whole = np.zeros(len(p))
    capped = np.zeros(len(p))
    second = cut([r, *fans[1][0]], fans[1][1])
    for index, (x, m) in enumerate(cut([p, *fans[0][0]], fans[0][1])):
        for place, (y, n) in enumerate(second):
            regular = shared and index == 0 and place == 0
            count = (distinct_sums(m, x * a, n, y * b) if regular else m * n).astype(np.float64)
            size = (x - 1) * a + (y - 1) * b + 1
            whole += count * size
            if most is not None:
                capped += count * np.minimum(size, most)
    return whole, capped
