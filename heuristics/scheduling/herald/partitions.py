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


def grid(pes: int, pe_step: int, bandwidth: int, bandwidth_step: int, parts: int) -> list[Parts]:
    """All partitions in whole steps, every sub-accelerator with at least one step of either.

    Parameters
    ----------
    pes, pe_step : all PEs, and the step in which they are given
    bandwidth, bandwidth_step : bytes per cycle in all, and their step
    parts : number of sub-accelerators
    """
    return [
        tuple((a * pe_step, Fraction(b * bandwidth_step)) for a, b in zip(first, second, strict=True))
        for first, second in product(
            compositions(pes // pe_step, parts), compositions(bandwidth // bandwidth_step, parts)
        )
    ]


def binary_sample(points: Sequence[Parts]) -> list[Parts]:
    """Partitions that give every sub-accelerator a power of two of the smallest part, but for the last."""
    if not points:
        return []
    pe_unit = min(pes for parts in points for pes, _ in parts)
    rate_unit = min(rate for parts in points for _, rate in parts)

    def is_power(number: Fraction) -> bool:
        return number.denominator == 1 and number.numerator & (number.numerator - 1) == 0

    return [
        parts
        for parts in points
        if all(is_power(Fraction(pes, pe_unit)) and is_power(rate / rate_unit) for pes, rate in parts[:-1])
    ]


def random_sample(points: Sequence[Parts], count: int, seed: int) -> list[Parts]:
    """Some partitions of the grid, in the grid's order."""
    chosen = set(random.Random(seed).sample(range(len(points)), min(count, len(points))))
    return [parts for index, parts in enumerate(points) if index in chosen]
