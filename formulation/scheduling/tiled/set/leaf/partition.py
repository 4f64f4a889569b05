"""Partitions of a layer over tiles (section 4.2.2): which shares, and in which order they are laid out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations

import numpy as np

from tilewright.foundation.arrays import Int64s

DIMENSIONS = "KBHW"
"""Output channels, samples, rows, columns: the order in which shares are numbered."""

LEAST_UTILIZATION = 0.75
"""A partition whose largest share leaves the tiles less busy than that is tried only where all do."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Shares per dimension, and the dimensions outermost first as tiles are handed out.

    The text ``W:4,K:2,H:2,B:1`` has both: neighbouring tiles differ in the last dimension that is divided.
    """

    parts: tuple[int, int, int, int]
    order: tuple[int, int, int, int]

    @property
    def tiles(self) -> int:
        return math.prod(self.parts)

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """Per dimension, how far apart the tiles of neighbouring shares are."""
        steps = [1, 1, 1, 1]
        step = 1
        for dimension in reversed(self.order):
            steps[dimension] = step
            step *= self.parts[dimension]
        return steps[0], steps[1], steps[2], steps[3]

    def __str__(self) -> str:
        return ",".join(f"{DIMENSIONS[dimension]}:{self.parts[dimension]}" for dimension in self.order)


def parse_partition(text: str) -> Partition:
    """A partition from its text; raises ``ValueError`` saying what was expected."""
    fields = [field.split(":") for field in text.split(",")]
    names = [field[0].strip() for field in fields]
    if sorted(names) != sorted(DIMENSIONS) or any(len(field) != 2 for field in fields):
        raise ValueError(
            f"expected each of {', '.join(DIMENSIONS)} once, such as H:2,W:7,B:1,K:1; got {text!r}"
        )
    counts = {}
    for name, count in fields:
        if not count.strip().isdigit() or int(count) < 1:
            raise ValueError(f"{name}: expected a number of shares from 1, got {count!r}")
        counts[name.strip()] = int(count)
    parts = tuple(counts[name] for name in DIMENSIONS)
    order = tuple(DIMENSIONS.index(name) for name in names)
    return Partition((parts[0], parts[1], parts[2], parts[3]), (order[0], order[1], order[2], order[3]))


@cache
def factor_pairs(number: int) -> tuple[tuple[int, int], ...]:
    """Ordered pairs with that product, the most even ones first."""
    pairs: list[tuple[int, int]] = []
    for low in range(math.isqrt(number), 0, -1):
        high, rest = divmod(number, low)
        if not rest:
            pairs.append((low, high))
            if low != high:
                pairs.append((high, low))
    return tuple(pairs)


@cache
def _divisions(tiles: int) -> tuple[tuple[int, int, int, int], ...]:
    return tuple(
        (k, b, h, w)
        for kb, hw in factor_pairs(tiles)
        for k, b in factor_pairs(kb)
        for h, w in factor_pairs(hw)
    )


def utilization(sizes: tuple[int, int, int, int], parts: tuple[int, int, int, int]) -> float:
    """What the largest shares leave of the tiles' work, dimension by dimension."""
    used = 1.0
    for size, count in zip(sizes, parts, strict=True):
        used *= size / (-(-size // count) * count)
    return used


@cache
def row_numbers(tiles: int) -> tuple[dict[tuple[int, int, int, int], int], int]:
    """Per division of tiles, the number of its first order among all orders of all divisions; and how many
    there are.
    """
    numbers: dict[tuple[int, int, int, int], int] = {}
    count = 0
    for parts in _divisions(tiles):
        numbers[parts] = count
        count += math.factorial(sum(part > 1 for part in parts))
    return numbers, count


@lru_cache(maxsize=65536)
def divisions(
    sizes: tuple[int, int, int, int], tiles: int, least_cuts: int = 0
) -> tuple[tuple[int, int, int, int], ...]:
    """Shares per dimension worth trying, in the order of the released program.

    Parameters
    ----------
    sizes : channels, samples, rows and columns of the results
    least_cuts : samples, rows and columns together are cut at least that often, as inputs would not fit

    Returns
    -------
    All with at least ``LEAST_UTILIZATION``; the best one where none has it; none where nothing cuts enough
    """
    legal = [counts for counts in _divisions(tiles) if counts[1] * counts[2] * counts[3] >= least_cuts]
    rated = [(utilization(sizes, counts), counts) for counts in legal]
    good = tuple(counts for rate, counts in rated if rate >= LEAST_UTILIZATION)
    if good or not rated:
        return good
    best = max(rate for rate, _ in rated)
    return (next(counts for rate, counts in rated if rate == best),)


@lru_cache(maxsize=65536)
def orders(parts: tuple[int, int, int, int]) -> tuple[tuple[int, int, int, int], ...]:
    """Every order of the dimensions that are divided; the others follow, the last one first."""
    divided = [dimension for dimension in range(4) if parts[dimension] > 1]
    rest = [dimension for dimension in reversed(range(4)) if parts[dimension] == 1]
    orders_made = []
    for front in permutations(divided):
        a, b, c, d = (*front, *rest)
        orders_made.append((a, b, c, d))
    return tuple(orders_made)


@lru_cache(maxsize=65536)
def ordered(parts: tuple[int, int, int, int]) -> tuple[tuple[Partition, ...], Int64s]:
    """A division in every order, and the rows of shares and steps that kernels read."""
    partitions = tuple(Partition(parts, order) for order in orders(parts))
    return partitions, np.array(
        [(*partition.parts, *partition.steps) for partition in partitions], dtype=np.int64
    )


@lru_cache(maxsize=65536)
def share_tiles(partition: Partition) -> Int64s:
    """Per share, K outermost, its tile counted from the leaf's first; cached, so not to be written to."""
    tiles = np.zeros(1, dtype=np.int64)
    for count, step in zip(partition.parts, partition.steps, strict=True):
        tiles = np.add.outer(tiles, step * np.arange(count, dtype=np.int64)).ravel()
    tiles.flags.writeable = False
    return tiles
