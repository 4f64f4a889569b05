"""Which axis of a layer's result becomes which axis of its reader's operand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.workloads.mapping.operator import Operator, Tensor
from tilewright.workloads.network import Link
from tilewright.workloads.views import View

LAST_AXIS = frozenset(
    (
        "Hardmax",
        "LayerNormalization",
        "LogSoftmax",
        "LpNormalization",
        "RMSNormalization",
        "RotaryEmbedding",
        "SimplifiedLayerNormalization",
        "Softmax",
    )
)
"""Operations in which an element needs others along the last axis, unless they say otherwise."""
ALL_BUT_SAMPLES = frozenset(
    ("CumSum", "GroupNormalization", "InstanceNormalization", "LRN", "MeanVarianceNormalization")
)
"""Operations in which an element needs others of its sample, or of any at all."""


def rows_of(op: str, axes: int, axis: int = -1, *, behind: bool = False) -> tuple[int, ...]:
    """Axes of a result along which every element needs all others.

    Parameters
    ----------
    op : the operation
    axes : how many the result has
    axis : which it works along, where it says so; negative ones count from the end
    behind : whether it works along all axes behind that one, too
    """
    if op in LAST_AXIS and axes:
        first = axis % axes
        return tuple(range(first, axes)) if behind else (first,)
    if op in ALL_BUT_SAMPLES:
        return tuple(range(0 if op in ("CumSum", "MeanVarianceNormalization") else 1, axes))
    return ()


_SEVERAL = "the operand is put together from several tensors"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Data that arrives at an operand.

    Parameters
    ----------
    view : of the result that it is; ``None`` where that is not known
    moves : what was done to it on the way
    alone : whether the operand is nothing else
    before : elements of padding before the first row and column of the operand's windows
    """

    view: View | None
    moves: tuple[str, ...] = ()
    alone: bool = True
    before: tuple[int, ...] = ()


def aligned(link: Link, producer: Operator, reader: Operator, arrival: Arrival) -> Link:
    """A link with the axes that are known of it, or why they are not.

    Parameters
    ----------
    link : between the two layers
    producer, reader : what they compute
    arrival : the data
    """
    view = arrival.view and _as_operand(arrival.view, reader.tensor(link.operand), arrival.before)
    if not arrival.alone:
        return replace(link, view=view, unknown=_SEVERAL)
    if arrival.view is None:
        between = arrival.moves[-1] if arrival.moves else "its layer"
        return replace(link, unknown=f"{between} moves elements in a way that is not followed")
    if view is None:
        return replace(link, unknown="an axis of the operand is made of parts of several axes")
    return _settled(replace(link, view=view), producer.output)


def _settled(link: Link, result: Tensor) -> Link:
    """A link with the axes that its view gives."""
    assert link.view is not None
    sizes = [axis.size for axis in result.axes]
    if not result.is_plain:
        return replace(link, unknown="the result is made in strides", axes=None, offsets=())
    reason = link.view.reason(sizes)
    if reason:
        return replace(link, unknown=reason, axes=None, offsets=())
    offsets = tuple(axis.start for axis in link.view.axes)
    return replace(link, unknown="", axes=link.view.alignment(sizes), offsets=offsets)


def _as_operand(view: View, operand: Tensor, before: Sequence[int]) -> View | None:
    """The view with the operand's axes, padding included."""
    sizes = [axis.size for axis in operand.axes]
    windows = len(before)
    if windows:
        if len(view.shape) < windows:
            return None
        sizes[-windows:] = view.shape[-windows:]
    if math.prod(sizes) != math.prod(view.shape):
        return None
    whole = view.reshaped(sizes)
    for place, start in enumerate(before, len(sizes) - windows):
        if whole is not None:
            whole = whole.placed(place, start, operand.axes[place].size)
    return whole


def passed_through(link: Link, earlier: Link, producer: Operator, rows: Sequence[int]) -> Link:
    """The link from an earlier layer to a reader, over a layer between them that works element by element.

    Parameters
    ----------
    link : from the layer between to the reader
    earlier : from the earlier layer to the one between, which reads nothing else
    producer : what the earlier layer computes
    rows : axes of the result of the layer between along which its elements need each other
    """
    joined = replace(link, producer=earlier.producer, tensor=earlier.tensor, elements=earlier.elements)
    if link.view is None or earlier.view is None or _SEVERAL in (link.unknown, earlier.unknown):
        reason = link.unknown or earlier.unknown or "what lies between is not followed"
        return replace(joined, view=None, axes=None, offsets=(), rows=(), unknown=reason)
    view = link.view.through(earlier.view)
    if view is None:
        return replace(joined, view=None, axes=None, offsets=(), rows=(), unknown="axes are mixed on the way")
    own = {place for row in rows for place in _places(link.view, _row_strides(link, earlier), row)}
    own |= {place for row in earlier.rows for place in _places(link.view, _row_strides(link, earlier), row)}
    return _settled(replace(joined, view=view, rows=tuple(sorted({*link.rows, *own}))), producer.output)


def _row_strides(link: Link, earlier: Link) -> list[int]:
    """Strides of the axes of the layer between, whose result has its operand's axes."""
    assert earlier.view is not None
    shape = earlier.view.shape
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))] + [math.prod(shape)]


def _places(view: View, strides: Sequence[int], row: int) -> list[int]:
    """Axes of an operand that run through elements along one axis of the result that it views."""
    low, high = strides[row], strides[row - 1] if row else strides[-1]
    return [
        place
        for place, axis in enumerate(view.axes)
        if any(stride < high and stride * size > low for size, stride in axis.digits)
    ]
