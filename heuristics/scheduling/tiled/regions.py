"""Regions of a tiled machine: the engines that a plan uses.

Copies cost energy, and the fewer engines share a layer, the fewer copies there are and the shorter are their
ways; more engines take less time.  A plan on a region is a plan of the whole machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.lists import grid_of_engines, to_and_fro


@dataclass(frozen=True, eq=False)
class Region:
    """A rectangle of engines.

    Parameters
    ----------
    name : columns by rows, ``2x8``
    along : its engines along the rows, every other row backwards
    """

    name: str
    along: Int32s

    @property
    def engines(self) -> int:
        return len(self.along)


def whole(machine: TiledMachine) -> Region:
    """All engines."""
    return _rectangle(machine, 0, 0, machine.width, machine.height)


def regions(machine: TiledMachine) -> list[Region]:
    """Rectangles with the machine's sides halved any number of times, the largest first.

    Each lies where its engines are nearest to the ports of DRAM.
    """
    ports = np.array(machine.dram_ports, dtype=np.int64).reshape(-1, 2)

    def distance(x: int, y: int, width: int, height: int) -> int:
        columns, rows = np.arange(x, x + width), np.arange(y, y + height)
        ways = np.abs(columns[:, None, None] - ports[:, 0]) + np.abs(rows[None, :, None] - ports[:, 1])
        return int(ways.min(axis=2).sum()) if len(ports) else 0

    nearest = []
    for width in _halves(machine.width):
        for height in _halves(machine.height):
            places = [
                (distance(x, y, width, height), x, y)
                for x in range(machine.width - width + 1)
                for y in range(machine.height - height + 1)
            ]
            _, x, y = min(places)
            nearest.append(_rectangle(machine, x, y, width, height))
    return sorted(nearest, key=lambda region: -region.engines)


def _rectangle(machine: TiledMachine, x: int, y: int, width: int, height: int) -> Region:
    inside = grid_of_engines(machine)[y : y + height, x : x + width]
    return Region(f"{width}x{height}", to_and_fro(inside))


def _halves(side: int) -> list[int]:
    halves = [side]
    while halves[-1] > 1:
        halves.append(-(-halves[-1] // 2))
    return halves
