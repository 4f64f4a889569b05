"""Hops between engines as a weighted sum of distances between positions along a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Bools, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine


@dataclass(frozen=True, slots=True, eq=False)
class HopPositions:
    """Hops from engine ``a`` to ``b``: the sum of ``weight * |place[a] - place[b]|``, divided by the scale.

    Parameters
    ----------
    scale : a positive number
    terms : weight, and the place of every engine from 0 on
    """

    scale: int
    terms: tuple[tuple[int, Int64s], ...]


def hop_positions(machine: TiledMachine) -> HopPositions:
    """Positions whose distances are the machine's hops.

    On a mesh they are the column and the row.  A cut divides the engines in two, and gives each the position
    0 or 1.  On a ring of n places each run of ``n // 2`` places is a cut, and twice as many separate two
    places as they are apart.  In a tree each edge cuts a subtree off.  Cuts that divide alike are one term.
    """
    at = np.arange(machine.engines)
    x, y = at % machine.width, at // machine.width
    if machine.topology == "mesh":
        return HopPositions(1, tuple((1, axis) for axis in (x, y) if axis.any()))
    if machine.topology == "htree":
        scale, cuts = 1, _subtrees(machine, 0, 0, machine.width, machine.height)
    else:
        scale, cuts = 2, iter([*_arcs(x, machine.width), *_arcs(y, machine.height)])
    weights = Counter(tuple((cut ^ cut[0]).tolist()) for cut in cuts)
    unit = math.gcd(scale, *weights.values())
    terms = ((weight // unit, np.array(cut, dtype=np.int64)) for cut, weight in weights.items())
    return HopPositions(scale // unit, tuple(terms))


def _arcs(place: Int64s, size: int) -> Iterator[Bools]:
    for k in range(size if size > 1 else 0):
        yield (place - k) % size < size // 2


def _subtrees(machine: TiledMachine, x: int, y: int, width: int, height: int) -> Iterator[Bools]:
    """Engines below every node but the root; the longer side is halved at each level."""
    if width * height == 1:
        return
    if width >= height:
        parts = ((x, y, width // 2, height), (x + width // 2, y, width - width // 2, height))
    else:
        parts = ((x, y, width, height // 2), (x, y + height // 2, width, height - height // 2))
    for left, top, wide, high in parts:
        below = np.zeros((machine.height, machine.width), dtype=np.bool_)
        below[top : top + high, left : left + wide] = True
        yield below.ravel()
        yield from _subtrees(machine, left, top, wide, high)
