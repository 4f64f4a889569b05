"""Which softmaxes between two layers may be taken in parts of their rows, and what keeps the others whole.

A softmax divides exponentials by their sum along a row; so that none grows too large, the row's largest
element is taken off first.  A reader that adds up along the row may take it in parts (Milakov and Gimelshein,
"Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022, algorithm 1): every row
has a running maximum and a running sum, two words, and with every further part the reader's sums so far are
multiplied by what both have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.formulation.mapping.fused.boxes import LayerBoxes, Windows, visits_of, windows_of
from tilewright.formulation.mapping.fused.tree import SharedLoop
from tilewright.foundation.arrays import Int64s
from tilewright.workloads.mapping.operator import Axis, Tensor

if TYPE_CHECKING:
    from tilewright.formulation.mapping.fused.group import FusedGroup, Reading

WORDS = 2
"""Of every row: its largest element so far, and the sum of its exponentials."""


def obstacle(group: FusedGroup, reading: Reading) -> str:
    """Why a reader cannot take rows in parts; empty where it can.

    Parameters
    ----------
    group : the layers
    reading : an operand with rows that are needed whole otherwise
    """
    rows = group.rows_of(reading)
    reader, producer = group.operator(reading.reader), reading.producer
    own = any(layer == producer for layer, _ in group.rows)
    if (reading.rows and not reading.softmax) or (own and producer not in group.softmaxes):
        return "what needs whole rows is no softmax"
    if len(rows) != 1 or (own and reading.rows):
        return "its rows run along several axes"
    if producer in group.leaving:
        return f"{producer} is needed outside the group"
    if not reader.is_mac or not group.is_plain(reading):
        return f"{reading.reader} is no sum of products over them"
    others = [other for other in group.readings if other.reader == reading.reader and group.rows_of(other)]
    if len(others) > 1:
        return f"{reading.reader} reads several of them"
    along = {term.dim for term in reader.tensor(reading.operand).axes[rows[0]].terms}
    sums = {dim for dim in reader.reduction_dims if reader.bounds[dim] > 1}
    if not sums <= along:
        return f"{reading.reader} adds up along {min(sums - along)}, too"
    if not sums:
        return f"{reading.reader} does not add up along them"
    return ""


@dataclass(frozen=True)
class RunningRows:
    """Running maxima and sums of a softmax whose rows come in parts.

    Parameters
    ----------
    level : index of the memory level where they are, beside the elements of the rows
    loop : the outermost one that cuts rows, over whose turns they stay
    words : at most
    rows : of the operand in every turn of its reader
    """

    level: int
    loop: SharedLoop
    words: int
    rows: Int64s

    @classmethod
    def over(
        cls, rows: Windows, trips: Sequence[int], first: tuple[SharedLoop, int], level: int
    ) -> RunningRows:
        """Of some rows in every turn.

        Parameters
        ----------
        rows, trips : in the reader's turns, and the trips of the loops around them
        first : the outermost loop that cuts rows, and how many are outside
        level : where they are
        """
        loop, depth = first
        most = int(visits_of(rows, trips, depth).elements.max(initial=0))
        return cls(level, loop, WORDS * most, rows.elements)


def rows_in_turns(tensor: Tensor, along: str, boxes: LayerBoxes) -> Windows:
    """Rows of an operand that every turn sees, by what moves across them.

    Parameters
    ----------
    tensor, along : the operand, and the loop along its rows
    boxes : what its layer computes in every turn
    """
    return windows_of(replace(tensor, axes=across(tensor, along)), boxes)


def across(tensor: Tensor, along: str) -> tuple[Axis, ...]:
    """Axes of an operand that do not run along its rows."""
    return tuple(axis for axis in tensor.axes if all(term.dim != along for term in axis.terms))
