"""Which partitions of a class's resources a co-design looks at."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction

from tilewright.formulation.scheduling.herald.codesign import Parts
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.heuristics.scheduling.herald.partitions import STRATEGIES, binary_sample, grid, random_sample

_LARGEST = 20_000  # partitions of a grid
_RANDOM = 32  # partitions of a random sample


def partitions_of(resources: AcceleratorClass, parts: int, strategy: str, seed: int) -> list[Parts]:
    """The partitions of a class that a strategy looks at; raises ``InputError`` for an unknown one.

    Parameters
    ----------
    resources : the class with its steps of PEs and bandwidth
    parts : number of sub-accelerators
    strategy : one of `STRATEGIES`
    seed : of random samples
    """
    if strategy not in STRATEGIES:
        raise InputError("--search", None, unknown_name(strategy, STRATEGIES))
    steps = resources.pes // resources.pe_step, resources.bandwidth // resources.bandwidth_step
    many = math.prod(math.comb(whole - 1, parts - 1) for whole in steps if whole)
    if many > _LARGEST:
        raise InputError("--pe-step", None, f"a grid of {many} partitions, expected at most {_LARGEST}")
    points = grid(resources.pes, resources.pe_step, resources.bandwidth, resources.bandwidth_step, parts)
    if strategy == "binary":
        return binary_sample(points)
    return random_sample(points, _RANDOM, seed) if strategy == "random" else points


def most_even(points: Collection[Parts]) -> Parts:
    """The partition whose sub-accelerators are most alike in PEs, then in bandwidth."""

    def spread(parts: Parts) -> tuple[int, Fraction]:
        pes, bandwidths = zip(*parts, strict=True)
        return max(pes) - min(pes), max(bandwidths) - min(bandwidths)

    return min(points, key=spread)
