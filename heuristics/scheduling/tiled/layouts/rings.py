"""Rings: engines that share sums take turns in where they begin, so that none waits for the one before.

Engine p of P makes its part of box j of n in turn ``(j + lag p) mod turns``, where turns are the larger one
of n and P.  For a box, turns rise with p but for one step back; the chain of its parts begins behind that,
and the last engine passes its sum to the first one.  No engine has two boxes in one turn, since ``j`` alone
differs between them and is less than turns.  With at least two boxes for each engine a sum has a turn to
travel in (``lag`` 2); turns step back once at most, as ``lag (P - 1)`` is less than turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s


def chain_fill(boxes: Int64s, parts: Int64s) -> Floats:
    """The part of its turns that a layer would take longer if all engines began with the same box.

    Parameters
    ----------
    boxes, parts : numbers of boxes and of engines, of any shapes that fit together
    """
    turns = np.maximum(boxes, parts)
    fill: Floats = (boxes + parts - 1 - turns) / turns
    return fill


def ring_lag(boxes: Any, parts: Any) -> Any:
    """Turns from one engine's part of a box to the next one's: a number, or an array as of `chain_fill`."""
    return 1 + (boxes >= 2 * parts)


def finishing_turns(boxes: Int64s, parts: Int64s) -> Int64s:
    """How many turns at the end boxes are finished in.

    Parameters
    ----------
    boxes, parts : as of `chain_fill`
    """
    turns: Int64s = np.maximum(boxes, parts) - ring_lag(boxes, parts) * (parts - 1)
    return turns


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
