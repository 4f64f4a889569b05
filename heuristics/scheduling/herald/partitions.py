"""Partitions of PEs and bandwidth, and Herald's ways to sample them (section IV-C)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from tilewright.formulation.scheduling.herald.codesign import Parts

STRATEGIES = ("exhaustive", "binary", "random")


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write ``total`` as an ordered sum of ``parts`` numbers of at least 1."""
    if parts == 1:
        if total >= 1:
            yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in compositions(total - first, parts - 1):
            yield first, *rest


def grid(
    pes: int, pe_step: int, bandwidth: int, bandwidth_step: int, own: Sequence[int | None]
) -> list[Parts]:
    """All partitions in whole steps, every sub-accelerator with at least one step of either.

    Parameters
    ----------
    pes, pe_step : all PEs, and the step in which they are given
    bandwidth, bandwidth_step : bytes per cycle in all, and their step
    own : per sub-accelerator, the PEs that its machine file has; ``None`` where PEs are divided
    """
    divided = own.count(None)
    steps = (pes - sum(count or 0 for count in own)) // pe_step
    shares = compositions(steps, divided) if divided else iter([()] if steps >= 0 else [])

    def filled(share: tuple[int, ...]) -> list[int]:
        rest = iter(share)
        return [next(rest) * pe_step if count is None else count for count in own]

    return [
        tuple((a, Fraction(b * bandwidth_step)) for a, b in zip(filled(first), second, strict=True))
        for first, second in product(shares, compositions(bandwidth // bandwidth_step, len(own)))
    ]


def binary_sample(points: Sequence[Parts], own: Sequence[int | None]) -> list[Parts]:
    """Partitions that give every sub-accelerator a power of two of the smallest part, but for the last.

    Parameters
    ----------
    own : as of `grid`; PEs of machine files are as they are
    """
    if not points:
        return []
    divided = [parts[index][0] for parts in points for index, count in enumerate(own) if count is None]
    pe_unit = min(divided, default=1)
    rate_unit = min(rate for parts in points for _, rate in parts)

    def is_power(number: Fraction) -> bool:
        return number.denominator == 1 and number.numerator & (number.numerator - 1) == 0

    return [
        parts
        for parts in points
        if all(
            (count is not None or is_power(Fraction(pes, pe_unit))) and is_power(rate / rate_unit)
            for (pes, rate), count in zip(parts[:-1], own, strict=False)
        )
    ]


def random_sample(points: Sequence[Parts], count: int, seed: int) -> list[Parts]:
    """Some partitions of the grid, in the grid's order."""
    chosen = set(random.Random(seed).sample(range(len(points)), min(count, len(points))))
    return [parts for index, parts in enumerate(points) if index in chosen]
