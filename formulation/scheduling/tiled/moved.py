"""How an operand lies along what makes it, behind reshaping, transposing, slicing and concatenation.

A link's view says which element of the result stands where in the operand, as digits of the result's
row-major order.  Where every axis of the operand runs along one coordinate of the result, reads are
products over coordinates as anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.coordinates import coordinate_of
from tilewright.formulation.scheduling.tiled.overlap import OperandAxes, depends_on
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor
from tilewright.workloads.network import Link
from tilewright.workloads.views import Digits

Run = tuple[int, int, int]
"""Coordinate, and step and number of the positions along it."""


@dataclass(frozen=True)
class Moved:
    """How an operand lies along what makes it.

    Parameters
    ----------
    runs : per axis of the operand, the positions that it runs along; ``None`` for an axis of one element
    sizes : per axis, its elements; more than its run has where others lie beside it
    before : per axis, its elements before the run
    first : where the operand begins along channels, rows and columns
    """

    runs: tuple[Run | None, ...]
    sizes: tuple[int, ...]
    before: tuple[int, ...]
    first: tuple[int, int, int]


def moved(maker: Operator, link: Link | None) -> Moved | None:
    """How the operand of a link lies along its maker's result; ``None`` where that is not known, or where an
    axis mixes coordinates.
    """
    view = None if link is None or link.rows else link.view
    # results made in strides may be cropped, so that their sizes are not those of the view
    if view is None or any(axis.is_compound for axis in maker.output.axes):
        return None
    result = _Result(maker)
    runs = tuple(result.run(extent.digits) for extent in view.axes)
    if any(run is None and extent.size > 1 for run, extent in zip(runs, view.axes, strict=True)):
        return None
    before = tuple(extent.start for extent in view.axes)
    return Moved(runs, view.shape, before, result.position(view.first))


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
    per_axis: list[OperandAxes] = []
    for coordinate in range(3):
        along = sorted(
            (run[1], place) for place, run in enumerate(lies.runs) if run is not None and run[0] == coordinate
        )
        step = 1
        for number, (stride, place) in enumerate(along):
            run, axis = lies.runs[place], tensor.axes[place]
            assert run is not None
            # the innermost axis may have padding, other tensors or a window; the others are whole loops
            if stride != step or axis.size != lies.sizes[place] or not (number == 0 or _is_loop(axis, run)):
                return None
            step *= run[2]
        axes = tuple(tensor.axes[place] for _, place in reversed(along))
        depends = tuple(sorted(depends_on(operator, axes)))
        innermost = along[0][1] if along else None
        run = None if innermost is None else lies.runs[innermost]
        per_axis.append(
            OperandAxes(
                axes,
                1 if run is None else run[2],
                0 if innermost is None else lies.before[innermost],
                -lies.first[coordinate],
                depends,
            )
        )
    return tuple(per_axis)


def _is_loop(axis: Axis, run: Run) -> bool:
    """Whether an axis is one loop along a run, all of it."""
    return len(axis.terms) == 1 and axis.terms[0].stride == 1 and axis.size == run[2]


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

    def run(self, digits: Digits) -> Run | None:
        """The positions that digits run along; ``None`` for those of several coordinates, or with gaps."""
        known: Run | None = None
        for part in self._parts(digits):
            if part is None:
                return None
            coordinate, step, count = part
            if known is None:
                known = part
            elif known[0] == coordinate and known[1] * known[2] == step:
                known = coordinate, known[1], known[2] * count
            else:
                return None
        return known

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
