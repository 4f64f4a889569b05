"""Hops between engines as a sum of cuts, each of which divides the engines in two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tilewright.hardware.scheduling.tiled.machine import TiledMachine

Flags = npt.NDArray[np.bool_]


def hop_cuts(machine: TiledMachine) -> tuple[int, list[Flags]]:
    """A scale and cuts: as many cuts separate two engines as they are hops apart, times the scale.

    On a mesh the cuts lie between neighbouring columns and between neighbouring rows.  On a ring of n places
    each run of ``n // 2`` places is a cut, and twice as many separate two places as they are apart.  In a
    tree each edge cuts a subtree off.
    """
    at = np.arange(machine.engines)
    x, y = at % machine.width, at // machine.width
    if machine.topology == "htree":
        return 1, [np.isin(at, part) for part in _subtrees(machine, 0, 0, machine.width, machine.height)]
    if machine.topology == "torus":
        return 2, [*_arcs(x, machine.width), *_arcs(y, machine.height)]
    return 1, [*(x >= k for k in range(1, machine.width)), *(y >= k for k in range(1, machine.height))]


def _arcs(place: npt.NDArray[np.int64], size: int) -> Iterator[Flags]:
    for k in range(size if size > 1 else 0):
        yield (place - k) % size < size // 2


def _subtrees(machine: TiledMachine, x: int, y: int, width: int, height: int) -> Iterator[list[int]]:
    """Engines below every node but the root; the longer side is halved at each level."""
    if width * height == 1:
        return
    if width >= height:
        parts = ((x, y, width // 2, height), (x + width // 2, y, width - width // 2, height))
    else:
        parts = ((x, y, width, height // 2), (x, y + height // 2, width, height - height // 2))
    for left, top, wide, high in parts:
        yield [v * machine.width + u for v in range(top, top + high) for u in range(left, left + wide)]
        yield from _subtrees(machine, left, top, wide, high)
