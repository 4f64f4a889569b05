"""Which partitions of a class's resources a co-design looks at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tilewright.formulation.scheduling.herald.codesign import Parts
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.heuristics.scheduling.herald.partitions import STRATEGIES, binary_sample, grid, random_sample

_LARGEST = 20_000  # partitions of a grid
_RANDOM = 32  # partitions of a random sample


def partitions_of(
    resources: AcceleratorClass,
    flows: Sequence[str],
    strategy: str,
    seed: int,
    engines: Mapping[str, Engine] | None = None,
) -> list[Parts]:
    """The partitions of a class that a strategy looks at; raises ``InputError`` for an unknown one.

    Parameters
    ----------
    resources : the class with its steps of PEs and bandwidth
    flows : what every sub-accelerator runs under
    strategy : one of `STRATEGIES`
    seed : of random samples
    engines : machines from files among the flows, whose PEs are not divided
    """
    if strategy not in STRATEGIES:
        raise InputError("--search", None, unknown_name(strategy, STRATEGIES))
    own = [engines[flow].instances if engines and flow in engines else None for flow in flows]
    left = resources.pes - sum(count or 0 for count in own)
    if left < own.count(None) * resources.pe_step:
        raise InputError(
            "--dataflows",
            None,
            f"{resources.pes - left} PEs of machine files leave {left} of {resources.pes} to "
            f"{own.count(None)} dataflows in steps of {resources.pe_step}",
        )
    steps = left // resources.pe_step, resources.bandwidth // resources.bandwidth_step
    parts = own.count(None), len(own)
    many = math.prod(
        math.comb(whole - 1, count - 1) for whole, count in zip(steps, parts, strict=True) if whole and count
    )
    if many > _LARGEST:
        raise InputError("--pe-step", None, f"a grid of {many} partitions, expected at most {_LARGEST}")
    points = grid(resources.pes, resources.pe_step, resources.bandwidth, resources.bandwidth_step, own)
    if strategy == "binary":
        return binary_sample(points, own)
    return random_sample(points, _RANDOM, seed) if strategy == "random" else points
