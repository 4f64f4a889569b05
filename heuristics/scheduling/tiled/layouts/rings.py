"""Rings: engines that share sums take turns in where they begin, so that none waits for the one before.

Engine p of P makes its part of box j of n in turn ``(j + lag p) mod turns``, where turns are the larger one of
n and P.  For a box, turns rise with p but for one step back; the chain of its parts begins behind that, and
the last engine passes its sum to the first one.  No engine has two boxes in one turn, since ``j`` alone
differs between them and is less than turns.  With at least two boxes for each engine a sum has a turn to
travel in (``lag`` 2); turns step back once at most, as ``lag (P - 1)`` is less than turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout


def ring_lag(boxes: int, parts: int) -> int:
    """Turns from one engine's part of a box to the next one's."""
    return 2 if boxes >= 2 * parts else 1


def finishing_turns(boxes: Int64s, parts: Int64s) -> Int64s:
    """The last turns, in which boxes are finished: so many, of shape as of numbers of boxes and of engines."""
    lag = np.where(boxes >= 2 * parts, 2, 1)
    turns: Int64s = np.maximum(boxes, parts) - lag * (parts - 1)
    return turns


def ring_fill(layouts: Sequence[Layout]) -> Floats:
    """What a chain in which every engine begins with the first box takes longer than a ring, as a part of that,
    for each layout.
    """
    boxes = np.array([math.prod(layout.cuts[:3]) for layout in layouts])
    parts = np.array([layout.grid.groups[3] for layout in layouts])
    fill: Floats = (boxes + parts - 1) / np.maximum(boxes, parts) - 1.0
    return fill


def ring_turns(boxes: Int64s, part: Int64s, count: int, parts: int) -> Int64s:
    """In which turn an engine makes its part of a box.

    Parameters
    ----------
    boxes, part : numbers of boxes and of engines, of any shapes that fit together
    count, parts : how many there are of each
    """
    turns: Int64s = (boxes + ring_lag(count, parts) * part) % max(count, parts)
    return turns


def ring_begins(boxes: Int64s, count: int, parts: int) -> Int64s:
    """The engine whose part of a box comes first.

    Parameters
    ----------
    boxes : numbers of boxes
    count, parts : as of `ring_turns`
    """
    first = -(-(max(count, parts) - boxes) // ring_lag(count, parts))
    begins: Int64s = np.where(first < parts, first, 0)
    return begins
