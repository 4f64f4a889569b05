"""Tiles for the children of S cuts.

``tests/data/set_tile_allocation.json`` holds allocations of SET's released program (SET-ISCA2023) for random
processing times, each with the least slowest time over all allocations.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.formulation.scheduling.tiled.set.trees.allocation import allocate, slowest, utilization
from tilewright.formulation.scheduling.tiled.set.trees.placement import grid_of, stripe_position
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine

CASES = json.loads((Path(__file__).parents[3] / "data" / "set_tile_allocation.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[str(i) for i in range(len(CASES))])
def test_reference_allocation(case: dict[str, Any]) -> None:
    """Allocation, slowest time and utilization are the program's, and the slowest time is the least."""
    allocation = allocate(case["T"], case["C"])
    assert allocation is not None
    assert list(allocation) == case["set_alloc"]
    assert slowest(case["T"], allocation) == pytest.approx(case["set_max_time"])
    assert utilization(case["T"], allocation) == pytest.approx(case["set_util"])
    assert (utilization(case["T"], allocation) >= 0.75) == case["valid_at_min_util_0_75"]
    assert slowest(case["T"], allocation) == pytest.approx(case["opt_max_time"])


def test_allocation_is_best_of_all() -> None:
    """On few tiles no division of them is slower at its slowest child: every one is tried."""
    random = np.random.default_rng(3)
    for _ in range(60):
        children, tiles = int(random.integers(2, 5)), int(random.integers(5, 10))
        times = [float(duration) for duration in random.integers(1, 1000, children)]
        allocation = allocate(times, tiles)
        assert allocation is not None
        assert sum(allocation) == tiles
        least = min(
            slowest(times, parts)
            for parts in itertools.product(range(1, tiles + 1), repeat=children)
            if sum(parts) == tiles
        )
        assert slowest(times, allocation) == pytest.approx(least)


def test_too_many_children() -> None:
    """More children than tiles get none."""
    assert allocate([1.0, 2.0, 3.0], 2) is None


def test_stripes_are_a_serpentine() -> None:
    """Tiles follow each other two columns wide, upwards, then downwards, and cover the grid."""
    places = [stripe_position(i, 4) for i in range(16)]
    assert places[:5] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]
    assert places[8:12] == [(2, 3), (3, 3), (2, 2), (3, 2)]
    for name in ("set-edge-4x4", "set-cloud-12x12", "atomic-8x8", "set-edge-4x4[engines=5x3]"):
        machine = load_tiled_machine(name)
        assert sorted(grid_of(machine).engine) == list(range(machine.engines))
