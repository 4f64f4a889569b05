"""Which element of a layer's result stands where in a tensor made of it by moving data.

An axis of a tensor runs through *digits*: loops over the result's elements in row-major order, each with a
size and a stride.  Reshaping splits and joins digits, transposing changes their order, slicing and padding
change where they begin.  What digits cannot express has no view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.workloads.mapping.operator import Tensor

Digits = tuple[tuple[int, int], ...]
"""(size, stride) of loops over a result's elements, the outermost first, none of size 1."""


@dataclass(frozen=True, slots=True)
class Extent:
    """One axis of a view.

    Parameters
    ----------
    size : elements of the axis
    digits : the result's elements along it
    start : elements of the axis before the result's first one
    """

    size: int
    digits: Digits
    start: int = 0

    @property
    def filled(self) -> int:
        """Elements that are the result's."""
        return math.prod(size for size, _ in self.digits)

    @property
    def is_full(self) -> bool:
        return self.filled == self.size


@dataclass(frozen=True, slots=True)
class View:
    """A tensor whose elements are those of a result.

    Parameters
    ----------
    axes : of the tensor
    first : the place among the result's elements of the first one that it holds
    """

    axes: tuple[Extent, ...]
    first: int = 0

    @classmethod
    def whole(cls, shape: Sequence[int]) -> View:
        """The result itself, with axes of some sizes."""
        return cls(tuple(Extent(size, digits) for size, digits in zip(shape, _strides(shape), strict=True)))

    @classmethod
    def of(cls, result: Tensor) -> View | None:
        """A layer's result itself; ``None`` where it is made in strides."""
        return cls.whole([axis.size for axis in result.axes]) if result.is_plain else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(axis.size for axis in self.axes)

    @property
    def last(self) -> int:
        """The place among the result's elements of the last one that it holds."""
        return self.first + sum((size - 1) * stride for axis in self.axes for size, stride in axis.digits)

    def transposed(self, order: Sequence[int]) -> View:
        """Axes in another order: at each place the old axis of that number."""
        return replace(self, axes=tuple(self.axes[place] for place in order))

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """The same elements under other axes; ``None`` where an axis mixes what was apart.

        Parameters
        ----------
        shape : sizes whose product is the number of elements
        """
        if math.prod(shape) != math.prod(self.shape):
            return None
        old = [axis for axis in self.axes if axis.size > 1]
        made: list[Extent] = []
        while len(made) < len(shape):
            wanted, taken = [shape[len(made)]], list[Extent]()
            while (missing := math.prod(wanted) - math.prod(axis.size for axis in taken)) != 0:
                if missing > 0:
                    taken.append(old.pop(0))
                else:
                    wanted.append(shape[len(made) + len(wanted)])
            extents = _regrouped(taken, wanted)
            if extents is None:
                return None
            made += extents
        return replace(self, axes=tuple(made))

    def sliced(self, axis: int, start: int, size: int) -> View | None:
        """A part of one axis; ``None`` where its elements are no loop."""
        extent = self.axes[axis]
        low, high = max(start, extent.start), min(start + size, extent.start + extent.filled)
        if high <= low:
            return None
        inside = _part(extent.digits, low - extent.start, high - low)
        if inside is None:
            return None
        first, digits = inside
        cut = Extent(size, digits, low - start)
        return View((*self.axes[:axis], cut, *self.axes[axis + 1 :]), self.first + first)

    def placed(self, axis: int, start: int, size: int) -> View:
        """Inside a longer axis, behind ``start`` other elements."""
        extent = self.axes[axis]
        longer = replace(extent, size=size, start=start + extent.start)
        return replace(self, axes=(*self.axes[:axis], longer, *self.axes[axis + 1 :]))

    def through(self, before: View) -> View | None:
        """A view of this view's result, where that result is itself a view of an earlier one.

        Parameters
        ----------
        before : of the earlier result, full along all axes
        """
        if not all(axis.is_full for axis in before.axes):
            return None
        inner = _joined(tuple(digit for axis in before.axes for digit in axis.digits))
        axes: list[Extent] = []
        for axis in self.axes:
            digits: list[tuple[int, int]] = []
            for size, stride in axis.digits:
                looked_up = _looked_up(inner, size, stride)
                if looked_up is None:
                    return None
                digits += looked_up
            axes.append(Extent(axis.size, _joined(tuple(digits)), axis.start))
        first = 0
        rest = self.first
        for size, stride in reversed(inner):
            first += rest % size * stride
            rest //= size
        return View(tuple(axes), before.first + first)

    def reason(self, result: Sequence[int]) -> str:
        """Why the axes are not those of a result, each once and whole; empty where they are.

        Parameters
        ----------
        result : sizes of the result's axes
        """
        if math.prod(axis.filled for axis in self.axes) != math.prod(result):
            return "only a part of the result is read"
        wanted = [digits for digits in _strides(result) if digits]
        for axis in self.axes:
            if len(axis.digits) > 1 or (axis.digits and axis.digits not in wanted):
                return "an axis is made of several axes of the result, or of a part of one"
        if len(self.axes) != len(result):
            return f"the result has {len(result)} axes, the operand {len(self.axes)}"
        return ""

    def alignment(self, result: Sequence[int]) -> tuple[int, ...]:
        """Per axis, the axis of the result that it is; only where there is no `reason` against it."""
        digits = _strides(result)
        free = [place for place, own in enumerate(digits) if not own]
        return tuple(digits.index(axis.digits) if axis.digits else free.pop(0) for axis in self.axes)


def _strides(shape: Sequence[int]) -> list[Digits]:
    return [((size, math.prod(shape[i + 1 :])),) if size > 1 else () for i, size in enumerate(shape)]


def _joined(digits: Digits) -> Digits:
    """Neighbours that run on as one loop, joined."""
    joined: list[tuple[int, int]] = []
    for size, stride in digits:
        if joined and joined[-1][1] == size * stride:
            joined[-1] = (joined[-1][0] * size, stride)
        else:
            joined.append((size, stride))
    return tuple(joined)


def _regrouped(taken: Sequence[Extent], sizes: Sequence[int]) -> list[Extent] | None:
    """Axes of other sizes with the same elements in the same order."""
    inner = [size for size in sizes if size > 1]
    if len(taken) == 1 and len(inner) == 1:
        return [taken[0] if size > 1 else Extent(1, ()) for size in sizes]
    if not all(axis.is_full for axis in taken):
        return None
    digits = list(_joined(tuple(digit for axis in taken for digit in axis.digits)))
    made: list[Extent] = []
    for size in sizes:
        own: list[tuple[int, int]] = []
        left = size
        while left > 1:
            number, stride = digits.pop(0)
            if left % number == 0:
                own.append((number, stride))
                left //= number
            elif number % left == 0:
                own.append((left, stride * (number // left)))
                digits.insert(0, (number // left, stride))
                left = 1
            else:
                return None
        made.append(Extent(size, _joined(tuple(own))))
    return made


def _part(digits: Digits, start: int, size: int) -> tuple[int, Digits] | None:
    """The first element and the digits of a range; ``None`` where it is no loop."""
    whole = math.prod(number for number, _ in digits)
    if (start, size) == (0, whole):
        return 0, digits
    if not digits:
        return None
    (number, stride), inner = digits[0], digits[1:]
    each = whole // number
    if start % each == 0 and size % each == 0:
        trips = size // each
        return start // each * stride, (((trips, stride),) if trips > 1 else ()) + inner
    if start // each == (start + size - 1) // each:
        part = _part(inner, start % each, size)
        return None if part is None else (start // each * stride + part[0], part[1])
    return None


def _looked_up(inner: Digits, size: int, stride: int) -> list[tuple[int, int]] | None:
    """The digits that a loop over places runs through, where places count through ``inner``."""
    trips_and_steps: list[tuple[int, int]] = []
    below = 1
    for number, step in reversed(inner):
        if size == 1:
            break
        above = below * number
        if stride < above:
            if stride % below:
                return None
            place = stride // below
            if number % place:
                return None
            trips = min(size, number // place)
            if size % trips or (trips < size and trips * place != number):
                return None
            if trips > 1:
                trips_and_steps.insert(0, (trips, step * place))
            size //= trips
            stride = above
        below = above
    return trips_and_steps if size == 1 else None
