"""Loops and weights of all atoms of one unit, as products over the axes of its tiling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import (
    COLUMN,
    PART,
    ROW,
    Range,
    loop_ranges,
    shape_of,
    touched,
)
from tilewright.formulation.scheduling.tiled.costs import AtomShapes
from tilewright.formulation.scheduling.tiled.own_costs import Window
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.formulation.scheduling.tiled.widths import stated_bits
from tilewright.foundation.arrays import Int64s
from tilewright.workloads.mapping.operator import Axis, Operator, Role, Tensor


@dataclass(frozen=True)
class Trips:
    """Trips of the loops along one axis for one tile, by what they do."""

    samples: int = 1
    groups: int = 1
    outputs: int = 1
    inputs: int = 1
    rows: int = 1
    columns: int = 1
    taps: int = 1
    positions: int = 1


def operator_kind(operator: Operator) -> str:
    """``mac``, ``depthwise`` or ``vector``."""
    if not operator.is_mac:
        return "vector"
    return "depthwise" if operator.kind == "depthwise" else "mac"


def atom_shapes(operator: Operator, tiling: Tiling) -> AtomShapes:
    """Loops of all atoms, without the slot of a reduction: samples x channels x rows x columns x parts."""
    tiles = tiling.every(operator)
    borders = np.array(tiling.samples, dtype=np.int64)
    samples = borders[1:] - borders[:-1]
    trips = [
        [axis_trips(operator, axis, low, high) for low, high in itertools.pairwise(cuts)]
        for axis, cuts in enumerate(tiles)
    ]
    shape = shape_of(operator)
    rest = math.prod(bound for name, bound in operator.bounds.items() if name not in shape.covered)

    def spread(value: Callable[[Trips], int], factor: int = 1) -> Int64s:
        products = np.full(1, factor, dtype=np.int64)
        for per_tile in trips:
            products = np.multiply.outer(products, np.array([value(t) for t in per_tile], dtype=np.int64))
        per_sample: Int64s = products.ravel()
        return np.broadcast_to(per_sample, (len(samples), per_sample.size)).ravel()

    return AtomShapes(
        kind=operator_kind(operator),
        samples=np.repeat(samples, math.prod(len(cuts) - 1 for cuts in tiles)) * spread(lambda t: t.samples),
        groups=spread(lambda t: t.groups),
        outputs=spread(lambda t: t.outputs),
        inputs=spread(lambda t: t.inputs),
        rows=spread(lambda t: t.rows),
        columns=spread(lambda t: t.columns),
        taps=spread(lambda t: t.taps, rest),
        input_positions=spread(lambda t: t.positions),
        window=window_of(operator),
        bits=stated_bits(operator),
    )


def window_of(operator: Operator) -> Window | None:
    """The window of a convolution's inputs; ``None`` where there is none, or several windows."""
    likes = {dimension.name: dimension.like for dimension in operator.dimensions}
    taps: dict[str, tuple[int, int, int]] = {}
    for tensor in operator.inputs:
        for axis in tensor.axes if tensor.role is Role.INPUT else ():
            if len(axis.terms) != 2:
                continue
            by_like = {likes[term.dim]: term for term in axis.terms}
            for place, tap in (("P", "R"), ("Q", "S")):
                if by_like.keys() == {place, tap}:
                    taps[tap] = (
                        operator.bounds[by_like[tap].dim],
                        by_like[place].stride,
                        by_like[tap].stride,
                    )
    rows, columns = taps.get("R", (1, 1, 1)), taps.get("S", (1, 1, 1))
    return (rows[0], columns[0], rows[1], columns[1], rows[2], columns[2]) if taps else None


def whole_tiling(operator: Operator, batch: int) -> Tiling:
    """A whole layer as one atom."""
    shape = shape_of(operator)
    c, h, w = shape.sizes
    return Tiling((0, batch), (0, c), (0, h), (0, w), (0, shape.parts))


def whole_shapes(operator: Operator, batch: int) -> AtomShapes:
    """Loops of a whole layer as one atom."""
    return atom_shapes(operator, whole_tiling(operator, batch))


def axis_trips(operator: Operator, axis: int, low: int, high: int) -> Trips:
    """Trips of the loops along one axis for the results from ``low`` up to ``high``.

    Parameters
    ----------
    operator : whose loops they are
    axis : of a tiling: `CHANNEL`, `ROW`, `COLUMN`, `PART` or `ACROSS`
    low, high : results along the axis; of `PART` and `ACROSS`, iterations of the sum
    """
    shape = shape_of(operator)
    ranges = loop_ranges(operator, axis, low, high)
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    counts = {"N": 1, "G": 1, "K": 1, "C": 1, "P": 1, "Q": 1}
    window = shape.scattered[axis] if axis < PART else None
    if window is not None:
        position, offset = window.terms
        places = position.stride * np.arange(*ranges[position.dim])[:, None]
        hits = places + offset.stride * np.arange(operator.bounds[offset.dim])[None, :]
        counts["P" if axis == ROW else "Q"] = int(((hits >= low) & (hits < high)).sum())
        return Trips(rows=counts["P"], columns=counts["Q"], positions=places.size)
    for name, (begin, end) in ranges.items():
        # rows and columns of a window that is divided are read as often as samples are
        key = like[name] if like[name] in counts and (axis < PART or like[name] == "C") else "N"
        counts[key] *= end - begin
    return Trips(
        counts["N"],
        counts["G"],
        counts["K"],
        counts["C"],
        counts["P"],
        counts["Q"],
        positions=_input_positions(operator, axis, ranges) if axis in (ROW, COLUMN) else 1,
    )


def _input_positions(operator: Operator, axis: int, ranges: dict[str, Range]) -> int:
    """Positions of the input along rows or columns that results in these ranges touch.

    For one iteration of a loop that lies outside of rows and columns: samples count those.
    """
    like = {tensor_axis.name: tensor_axis.like for tensor_axis in operator.dimensions}
    ranges = {
        name: span if like[name] in ("P", "Q") else (span[0], span[0] + 1) for name, span in ranges.items()
    }
    inputs: Sequence[Axis] = next((t.axes for t in operator.inputs if t.role is Role.INPUT), ())
    moving = [tensor_axis for tensor_axis in inputs if any(term.dim in ranges for term in tensor_axis.terms)]
    return math.prod(len(touched(tensor_axis, ranges, operator.bounds)) for tensor_axis in moving)


def weight_blocks(operator: Operator, tiling: Tiling) -> tuple[Int64s, Int64s]:
    """Weights of all atoms of one sample range: elements per block, and which block an atom reads.

    Returns
    -------
    elements : per block
    block : per tile of channels x rows x columns x parts x strips (flat), the number of its block

    Both are empty where the operator has no weights.
    """
    tensors = [tensor for tensor in operator.inputs if tensor.role is Role.WEIGHT]
    if not tensors:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return tensor_tiles(operator, tensors[0], tiling.every(operator))[:2]


def tensor_tiles(operator: Operator, tensor: Tensor, tiles: Sequence[Borders]) -> tuple[Int64s, Int64s, int]:
    """Shares of a tensor that atoms read.

    Returns
    -------
    elements : per share
    share : per tile of channels x rows x columns x parts x strips (flat), the number of its share
    total : elements of the whole tensor
    """
    elements = np.ones(1, dtype=np.int64)
    share = np.zeros(1, dtype=np.int64)
    covered: set[Axis] = set()
    for axis, cuts in enumerate(tiles):
        spans = [loop_ranges(operator, axis, low, high) for low, high in itertools.pairwise(cuts)]
        moving = [
            tensor_axis
            for tensor_axis in tensor.axes
            if any(term.dim in spans[0] for term in tensor_axis.terms)
        ]
        count = len(cuts) - 1
        if not moving:
            share = np.add.outer(share, np.zeros(count, dtype=np.int64)).ravel()
            continue
        covered |= set(moving)
        sizes = [
            math.prod(len(touched(tensor_axis, span, operator.bounds)) for tensor_axis in moving)
            for span in spans
        ]
        elements = np.multiply.outer(elements, np.array(sizes, dtype=np.int64)).ravel()
        share = np.add.outer(share * count, np.arange(count, dtype=np.int64)).ravel()
    rest = math.prod(
        len(touched(tensor_axis, {}, operator.bounds))
        for tensor_axis in tensor.axes
        if tensor_axis not in covered
    )
    total = math.prod(len(touched(tensor_axis, {}, operator.bounds)) for tensor_axis in tensor.axes)
    return elements * rest, share, total
