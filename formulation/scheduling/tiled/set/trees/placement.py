"""Where tiles lie: serpentine stripes of columns (section 3.3.2), and the grid for a leaf's shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

STRIPE = 2
"""Columns of a stripe, as in the released program's examples."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Tiles in the order in which they are handed out, and DRAM's ports.

    Parameters
    ----------
    width, height : tiles along x and y
    x, y : position of each tile by its number
    ports : (x, y) of every DRAM port, shape (ports, 2)
    engine : number of each tile on the machine, ``y * width + x``
    """

    width: int
    height: int
    x: Int64s
    y: Int64s
    ports: Int64s
    engine: Int64s

    @property
    def tiles(self) -> int:
        return len(self.x)


def stripe_position(number: int, height: int, stripe: int = STRIPE) -> tuple[int, int]:
    """(x, y) of a tile: along stripes of ``stripe`` columns, upwards in even and downwards in odd ones."""
    band = number // (stripe * height)
    y = (number // stripe) % height
    return band * stripe + number % stripe, height - 1 - y if band % 2 else y


@lru_cache(maxsize=32)
def grid_of(machine: TiledMachine, stripe: int = STRIPE) -> Grid:
    """The tiles of a machine in stripes; ports at its left side first, each side from below.

    A last stripe that would stick out is narrower.
    """
    where = [
        (x, y)
        for x, y in (
            stripe_position(i, machine.height, stripe)
            for i in range(-(-machine.width // stripe) * stripe * machine.height)
        )
        if x < machine.width
    ]
    x = np.array([place[0] for place in where], dtype=np.int64)
    y = np.array([place[1] for place in where], dtype=np.int64)
    ports = np.array(sorted(machine.dram_ports), dtype=np.int64).reshape(-1, 2)
    return Grid(machine.width, machine.height, x, y, ports, y * machine.width + x)
