"""Small machines whose levels tensors may bypass."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Role

SIZES = (512, 96, 12)
"""Capacities of the optional levels of a machine of four levels, in elements."""


def four_levels(
    sizes: Sequence[int] = SIZES, axes: tuple[int, int] = (4, 4), bandwidth: Fraction | None = Fraction(8)
) -> Engine:
    """DRAM and three levels that every tensor may bypass, with an array in the middle.

    Parameters
    ----------
    sizes : capacities of the optional levels, outermost first, in elements
    axes : sizes of the array's axes
    bandwidth : of every port, in elements a cycle; none counts without
    """
    array = Fanout((ArrayAxis("x", axes[0]), ArrayAxis("y", axes[1])), Fraction(2))
    inner = tuple(
        MemoryLevel(
            f"L{index}",
            capacity,
            Fraction(80 >> index),
            Fraction(80 >> index),
            double_buffered=True,
            may_bypass=frozenset(Role),
            read_bandwidth=bandwidth,
            write_bandwidth=bandwidth,
            fanout=array if index == 1 else None,
        )
        for index, capacity in enumerate(sizes)
    )
    dram = MemoryLevel("DRAM", None, Fraction(200), Fraction(200), read_bandwidth=bandwidth)
    return Engine("four", "hierarchy", 16, Fraction(1), Fraction(1000), (dram, *inner))
