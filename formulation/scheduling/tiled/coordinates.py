"""Coordinates of feature maps: how the loops of an operator lie along (channel, row, column).

Every result is a box of samples x channels x rows x columns.  Several loops may share a coordinate
(groups and
the channels of a group; heads and their features): the outer one counts whole runs of the inner ones.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.foundation.arrays import Int64s, distinct
from tilewright.workloads.mapping.operator import Axis, Operator, Term

Range = tuple[int, int]

CHANNEL, ROW, COLUMN, PART, ACROSS = 0, 1, 2, 3, 4
"""Axes of a tiling; ``PART`` divides the sum over input channels, or the rows of a pool's window, and
``ACROSS`` the columns of such a window."""

_COORDINATE = {"K": CHANNEL, "G": CHANNEL, "C": CHANNEL, "P": ROW, "R": ROW, "Q": COLUMN, "S": COLUMN}


def coordinate_of(like: str) -> int:
    """The coordinate that a convolution's loop moves along; what is none of them is the outermost of rows."""
    return _COORDINATE.get(like, ROW)


@dataclass(frozen=True)
class Shape:
    """The loops of an operator's result by coordinate.

    Parameters
    ----------
    sizes : (channels, rows, columns) of one sample
    loops : per coordinate the loops along it, outermost first; empty where a window scatters into it
    part : the loop over input channels that may be divided into partial sums, if any; of a pool with one row
        of results, the loop over the rows of its window
    parts : its bound, 1 without one
    across : of a pool with one result of each channel, the loop over the columns of its window, if any
    strips : its bound, 1 without one
    is_window : whether ``part`` is a loop over rows of a pool's window
    """

    sizes: tuple[int, int, int]
    loops: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    scattered: tuple[Axis | None, Axis | None, Axis | None]
    part: str | None
    parts: int
    across: str | None = None
    strips: int = 1
    is_window: bool = False

    @cached_property
    def covered(self) -> frozenset[str]:
        """The loops that lie along an axis of a tiling."""
        scattered = (term.dim for axis in self.scattered if axis is not None for term in axis.terms)
        summed = (name for name in (self.part, self.across) if name is not None)
        return frozenset([*itertools.chain(*self.loops), *scattered, *summed])

    def extent(self, axis: int) -> int:
        """Positions along an axis of a tiling."""
        return (*self.sizes, self.parts, self.strips)[axis]

    @cached_property
    def laid(self) -> tuple[int, int, int, int]:
        """Axes of a tiling that a layer is laid out along on engines: channels, rows, columns, and the sum.

        Rows, and columns, of a window that may be divided take the place of the one row of results.
        """
        if not self.is_window:
            return CHANNEL, ROW, COLUMN, PART
        return CHANNEL, PART, COLUMN if self.across is None else ACROSS, ROW

    @cached_property
    def summed(self) -> tuple[bool, bool, bool, bool]:
        """Which of these divide the sum, and not the results."""
        channels, rows, columns, rest = (axis >= PART for axis in self.laid)
        return channels, rows, columns, rest


@dataclass(frozen=True)
class Digit:
    """Some digits of the positions of an axis: of a position ``p`` they are ``p // every % size``.

    Heads that share their keys lie along one axis with the tokens of each, so that it runs along channels by
    its outer digits and along rows by its inner ones.
    """

    axis: Axis
    every: int
    size: int

    @property
    def terms(self) -> tuple[Term, ...]:
        """Of the axis."""
        return self.axis.terms


_SHAPES: dict[int, tuple[Operator, Shape]] = {}
_MOST_SHAPES = 4096


def shape_of(operator: Operator) -> Shape:
    """How the result of an operator lies along the coordinates.

    Kept per object: hashing an operator takes longer than this.
    """
    known = _SHAPES.get(id(operator))
    if known is None or known[0] is not operator:
        if len(_SHAPES) >= _MOST_SHAPES:
            _SHAPES.clear()
        known = operator, _shape(operator)
        _SHAPES[id(operator)] = known
    return known[1]


def _shape(operator: Operator) -> Shape:
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    loops: tuple[list[str], list[str], list[str]] = ([], [], [])
    scattered: list[Axis | None] = [None, None, None]
    sizes = [1, 1, 1]
    for axis in operator.output.axes:
        coordinate = coordinate_of(like[axis.terms[0].dim])
        sizes[coordinate] *= axis.size if axis.is_compound else operator.bounds[axis.terms[0].dim]
        if axis.is_compound:
            scattered[coordinate] = axis
        else:
            loops[coordinate].append(axis.terms[0].dim)
    sums = [
        name for name in like if like[name] == "C" and name in operator.reduction_dims and operator.is_mac
    ]
    is_window = operator.kind == "pool" and sizes[ROW] == 1
    if is_window:
        loops[ROW].clear()  # positions along rows are those of the window alone
        sums = [name for name in like if like[name] in ("P", "R") and name in operator.reduction_dims]
    part = sums[0] if len(sums) == 1 else None
    across = None
    if part and is_window and sizes[COLUMN] == 1:
        strips = [name for name in like if like[name] in ("Q", "S") and name in operator.reduction_dims]
        if len(strips) == 1:
            across = strips[0]
            loops[COLUMN].clear()
    return Shape(
        (sizes[0], sizes[1], sizes[2]),
        (tuple(loops[0]), tuple(loops[1]), tuple(loops[2])),
        (scattered[0], scattered[1], scattered[2]),
        part,
        operator.bounds[part] if part else 1,
        across,
        operator.bounds[across] if across else 1,
        is_window and part is not None,
    )


def loop_ranges(operator: Operator, axis: int, low: int, high: int) -> dict[str, Range]:
    """Ranges of the loops along one axis of a tiling that make the results from ``low`` up to ``high``.

    Parameters
    ----------
    operator : whose loops they are
    axis : of a tiling: `CHANNEL`, `ROW`, `COLUMN`, `PART` or `ACROSS`
    low, high : results along the axis; of `PART` and `ACROSS`, iterations of the sum
    """
    shape = shape_of(operator)
    if axis >= PART:
        summed = shape.part if axis == PART else shape.across
        return {summed: (low, high)} if summed else {}
    window = shape.scattered[axis]
    if window is not None:
        position, offset = window.terms
        bound, taps = operator.bounds[position.dim], operator.bounds[offset.dim]
        first = -(-(low - (taps - 1) * offset.stride) // position.stride)
        last = (high - 1) // position.stride
        begin = min(max(first, 0), bound)
        return {position.dim: (begin, max(begin, min(last + 1, bound)))}
    ranges: dict[str, Range] = {}
    names = shape.loops[axis]
    for place, name in enumerate(names):
        inner = math.prod(operator.bounds[inner_name] for inner_name in names[place + 1 :])
        begin, end = low // inner, (high - 1) // inner + 1
        ranges[name] = (begin, end)
        if end - begin > 1:
            ranges |= {inner_name: (0, operator.bounds[inner_name]) for inner_name in names[place + 1 :]}
            break
        low, high = low - begin * inner, high - begin * inner
    return ranges


def inner_run(operator: Operator, axis: int) -> int:
    """Results of the innermost loop along an axis; cuts inside a run must not cross its end."""
    shape = shape_of(operator)
    if axis >= PART:
        return shape.extent(axis)
    names = shape.loops[axis]
    if shape.scattered[axis] is not None or not names:
        return shape.sizes[axis]
    return operator.bounds[names[-1]]


def run_touched(axis: Axis | Digit, ranges: dict[str, Range], bounds: dict[str, int]) -> Range | None:
    """From which position up to which loops in these ranges touch a tensor's axis; ``None`` with gaps."""
    if isinstance(axis, Digit):
        whole = run_touched(axis.axis, ranges, bounds)
        if whole is None or whole[0] == whole[1]:
            return whole and (0, 0)
        low, high = whole[0] // axis.every, (whole[1] - 1) // axis.every
        first, last = low % axis.size, high % axis.size
        if high - low >= axis.size - 1:
            return 0, axis.size
        return (first, last + 1) if first <= last else None
    if len(axis.terms) == 1:
        only = axis.terms[0]
        low, high = ranges.get(only.dim, (0, bounds[only.dim]))
        first = only.stride * low
        return (first, max(first, first + high - low)) if only.stride == 1 or high - low < 2 else None
    spans = [(term.stride, *ranges.get(term.dim, (0, bounds[term.dim]))) for term in axis.terms]
    first, run = sum(stride * low for stride, low, _ in spans), 1
    for stride, low, high in sorted(spans):
        if stride > run or high <= low:  # a gap between the positions, or none of them
            return None
        run += stride * (high - 1 - low)
    return first, first + run


def touched(axis: Axis | Digit, ranges: dict[str, Range], bounds: dict[str, int]) -> Int64s:
    """Positions of a tensor's axis that loops in these ranges touch, ascending; strides leave gaps."""
    run = run_touched(axis, ranges, bounds)
    if run is not None:
        return np.arange(*run, dtype=np.int64)
    if isinstance(axis, Digit):
        return distinct(touched(axis.axis, ranges, bounds) // axis.every % axis.size)
    spans = [(term.stride, *ranges.get(term.dim, (0, bounds[term.dim]))) for term in axis.terms]
    if len(spans) == 1:
        stride, low, high = spans[0]
        return np.arange(stride * low, stride * (high - 1) + 1, stride, dtype=np.int64)
    positions = np.zeros(1, dtype=np.int64)
    for stride, low, high in spans:
        positions = distinct(np.add.outer(positions, stride * np.arange(low, high, dtype=np.int64)))
    return positions
