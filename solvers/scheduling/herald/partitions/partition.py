"""Which partitions of a class's resources a co-design looks at."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from tilewright.formulation.scheduling.herald.codesign import Division, Parts
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.hardware.scheduling.herald.variants import OwnEngines
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
    if message := _too_large(resources, own):
        raise InputError("--dataflows", None, message)
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


def divisions_of(
    resources: AcceleratorClass, flows: Sequence[str], strategy: str, seed: int, engines: OwnEngines
) -> list[Division]:
    """The partitions of every variant, see `partitions_of`.

    A variant whose machines leave no partition is left out like one that is no machine.

    Parameters
    ----------
    resources, flows, strategy, seed : as of `partitions_of`
    engines : machine files among the flows

    Raises
    ------
    InputError : where no variant has a partition, or all have too many
    """
    divisions: list[Division] = []
    too_large = ""
    for place, variant in engines.variants.items():
        own = [variant[flow].instances if flow in variant else None for flow in flows]
        if engines.axes and (message := _too_large(resources, own)):
            too_large = too_large or message
            continue
        parts = partitions_of(resources, flows, strategy, seed, variant)
        divisions += [Division(part, place) for part in parts]
        if len(divisions) > _LARGEST:
            message = f"a grid of more than {_LARGEST} partitions of all variants"
            raise InputError("--pe-step", None, message)
    if not divisions:
        raise InputError("--dataflows", None, too_large or "more dataflows than the grid has steps")
    return divisions


def _too_large(resources: AcceleratorClass, own: Sequence[int | None]) -> str:
    """Why a class has too few PEs; empty where it has enough.

    Parameters
    ----------
    own : per sub-accelerator, the PEs of its machine file; ``None`` where PEs are divided
    """
    left = resources.pes - sum(count or 0 for count in own)
    if left >= own.count(None) * resources.pe_step:
        return ""
    return (
        f"{resources.pes - left} PEs of machine files leave {left} of {resources.pes} to "
        f"{own.count(None)} dataflows in steps of {resources.pe_step}"
    )


def most_even(divisions: Collection[Division]) -> Division:
    """The division whose sub-accelerators are most alike in PEs, then in bandwidth."""

    def spread(division: Division) -> tuple[int, Fraction]:
        pes, bandwidths = zip(*division.parts, strict=True)
        return max(pes) - min(pes), max(bandwidths) - min(bandwidths)

    return min(divisions, key=spread)
