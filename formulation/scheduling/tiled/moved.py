"""How an operand lies along what makes it, behind reshaping, transposing, slicing and concatenation.

A link's view says which element of the result stands where in the operand, as digits of the result's
row-major order.  Where every axis of the operand runs along one coordinate of the result, reads are
products over coordinates as anywhere else.  An axis may run along several by digits of its own: a tile of it
reads the product of what its positions have of each, which is more than they are where it crosses the end of
a run of the inner ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.coordinates import Digit, coordinate_of
from tilewright.formulation.scheduling.tiled.overlap import OperandAxes, depends_on
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor
from tilewright.workloads.network import Link
from tilewright.workloads.views import Digits

Run = tuple[int, int, int]
"""Coordinate, and step and number of the positions along it."""

Runs = tuple[Run, ...]
"""Digits of an axis by what they run along, the innermost first; none for an axis of one element."""


@dataclass(frozen=True)
class Moved:
    """How an operand lies along what makes it.

    Parameters
    ----------
    runs : per axis of the operand, the positions that it runs along
    sizes : per axis, its elements; more than its run has where others lie beside it
    before : per axis, its elements before the run
    first : where the operand begins along channels, rows and columns
    """

    runs: tuple[Runs, ...]
    sizes: tuple[int, ...]
    before: tuple[int, ...]
    first: tuple[int, int, int]

    @property
    def mixed(self) -> bool:
        """Whether an axis runs along several coordinates."""
        return any(len(runs) > 1 for runs in self.runs)


def moved(maker: Operator, link: Link | None) -> Moved | None:
    """How the operand of a link lies along its maker's result; ``None`` where that is not known, or where
    positions along an axis have gaps.
    """
    view = None if link is None else link.view
    # results made in strides may be cropped, so that their sizes are not those of the view
    if view is None or maker.output.overlaps:
        return None
    result = _Result(maker)
    runs = []
    for extent in view.axes:
        along = result.runs(extent.digits)
        if along is None or (len(along) > 1 and not extent.is_full) or (not along and extent.size > 1):
            return None
        runs.append(along)
    before = tuple(extent.start for extent in view.axes)
    return Moved(tuple(runs), view.shape, before, result.position(view.first))


def moved_axes(operator: Operator, tensor: Tensor, lies: Moved) -> tuple[OperandAxes, ...] | None:
    """As `operand_axes` for an operand whose axes are known one by one.

    Parameters
    ----------
    operator, tensor : the consumer and its operand
    lies : of `moved`

    Returns
    -------
    ``None`` where the operand has gaps; coordinates may depend on the same axes of the tiling
    """
    if len(lies.runs) != len(tensor.axes):
        return None
    digits = [
        (coordinate, step, count, place, math.prod(inner[2] for inner in runs[:at]))
        for place, runs in enumerate(lies.runs)
        for at, (coordinate, step, count) in enumerate(runs)
    ]
    per_axis: list[OperandAxes] = []
    for coordinate in range(3):
        along = sorted(digit[1:] for digit in digits if digit[0] == coordinate)
        axes: list[Axis | Digit] = []
        reached = 1
        for step, count, place, every in along:
            axis, runs = tensor.axes[place], lies.runs[place]
            # the innermost axis may have padding, other tensors or a window; the others are whole loops
            plain = not axes and len(runs) == 1
            if step != reached or axis.size != lies.sizes[place] or not (plain or _is_loop(axis, runs)):
                return None
            axes.insert(0, axis if len(runs) == 1 else Digit(axis, every, count))
            reached *= count
        _, inner, place, _ = along[0] if along else (1, 1, 0, 1)
        before = lies.before[place] if along else 0
        depends = tuple(sorted(depends_on(operator, axes)))
        per_axis.append(OperandAxes(tuple(axes), inner, before, -lies.first[coordinate], depends))
    return tuple(per_axis)


def _is_loop(axis: Axis, runs: Runs) -> bool:
    """Whether an axis is one loop along its runs, all of them."""
    return len(axis.terms) == 1 and axis.terms[0].stride == 1 and axis.size == math.prod(n for *_, n in runs)


class _Result:
    """The axes of a result: per axis coordinate, steps along the coordinate and in row-major order, size."""

    def __init__(self, maker: Operator) -> None:
        like = {dimension.name: dimension.like for dimension in maker.dimensions}
        steps = [1, 1, 1]
        order = 1
        self._axes: list[tuple[int, int, int, int]] = []  # the innermost first
        for axis in reversed(maker.output.axes):
            dim = axis.terms[0].dim
            size = maker.bounds[dim]
            if size > 1:
                coordinate = coordinate_of(like[dim])
                self._axes.append((coordinate, steps[coordinate], order, size))
                steps[coordinate] *= size
                order *= size

    def position(self, element: int) -> tuple[int, int, int]:
        """Where an element lies along the coordinates."""
        at = [0, 0, 0]
        for coordinate, step, order, size in self._axes:
            at[coordinate] += element // order % size * step
        return at[0], at[1], at[2]

    def runs(self, digits: Digits) -> Runs | None:
        """The positions that digits run along; ``None`` where they have gaps."""
        runs: list[Run] = []
        for part in self._parts(digits):
            if part is None:
                return None
            coordinate, step, count = part
            if runs and runs[-1][0] == coordinate and runs[-1][1] * runs[-1][2] == step:
                runs[-1] = coordinate, runs[-1][1], runs[-1][2] * count
            else:
                runs.append(part)
        return tuple(runs)

    def _parts(self, digits: Digits) -> Iterator[Run | None]:
        """Digits divided where an axis of the result ends, the innermost first."""
        for size, stride in reversed(digits):
            left, at = size, stride
            for coordinate, step, order, count in self._axes:
                if left == 1 or not order <= at < order * count:
                    continue
                jump, rest = divmod(at, order)
                taken = min(left, count // jump)
                if rest or count % jump or left % taken:
                    yield None
                    return
                yield coordinate, jump * step, taken
                left //= taken
                at *= taken
            if left > 1:
                yield None
                return
