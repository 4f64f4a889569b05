"""A network of the catalog as SET sees it: its units (element-wise layers may ride on others) as boxes and
windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, COLUMN, ROW, coordinate_of, shape_of
from tilewright.formulation.scheduling.tiled.set.leaf.layers import (
    CONVOLUTION,
    GROUPED,
    SAMPLING,
    SUMMED,
    Producer,
    SetLayer,
    SetNetwork,
)
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Axis, Operator, Role, Tensor

KINDS = ("conv2d", "transposed_conv2d", "depthwise", "gemm", "matmul", "pool", "elementwise")
"""Operators whose reads are windows of boxes, and so are nests that are products, as of patches and filters;
weight updates sum over all samples instead.
"""

UPDATE = "Update"
"""Source of layers that compute the gradient of stored weights (training graphs)."""


def set_network(units: Sequence[Unit], name: str) -> SetNetwork:
    """The units of a network as SET's layers, in the same order.

    Raises
    ------
    InputError : for an operator that is none of `KINDS` and no product, or a dilated window
    """
    layers: list[SetLayer] = []
    for unit in units:
        layers.append(_layer(unit, layers, name))
    return SetNetwork(name, tuple(layers))


def _layer(unit: Unit, before: Sequence[SetLayer], name: str) -> SetLayer:
    operator = unit.layer.operator
    if unit.layer.source == UPDATE:
        return _update(unit, before, name)
    if operator.kind not in KINDS and not _is_product(operator):
        raise InputError(name, unit.name, f"{operator.kind} has no window of boxes, expected one of {KINDS}")
    shape = shape_of(operator)
    channels, rows, columns = shape.sizes
    main = next(tensor for tensor in operator.inputs if tensor.role is Role.INPUT)
    sizes, axes = _operand(operator, main)
    groups = (
        math.prod(tensor.bound for tensor in operator.dimensions if tensor.like == "G")
        if operator.is_mac
        else 1
    )
    spread = shape.scattered[ROW] is not None or shape.scattered[COLUMN] is not None
    windows = [axis for axis in axes if axis is not None and len(axis.terms) == 2]
    if any(axis.terms[1].stride > 1 for axis in windows):
        raise InputError(name, unit.name, "its window is dilated, which trees have no boxes for")
    taps_rows, stride_rows = _window(operator, shape.scattered[ROW] or axes[ROW])
    taps_columns, stride_columns = _window(operator, shape.scattered[COLUMN] or axes[COLUMN])
    operands = sum(tensor.role is Role.INPUT for tensor in operator.inputs)
    producers: list[Producer] = []
    external = 0
    real = [sizes[1], sizes[2]] if spread else [rows, columns]
    for read in unit.reads:
        role = next(tensor.role for tensor in read.layer.operator.inputs if tensor.name == read.operand)
        if read.producer is None:
            if role is Role.INPUT and not read.late:
                external = sizes[CHANNEL]
                real = _unpadded(read, sizes, (taps_rows, taps_columns))
            continue
        made = before[read.producer]
        weights = role is Role.WEIGHT
        regular = not weights and _is_regular(read, made, operator, sizes)
        if regular and not read.late:
            real = [made.rows, made.columns]
        offset = (read.link.channel or 0) if read.link is not None and regular else 0
        extent = made.channels if regular else channels if weights or read.late else sizes[CHANNEL]
        producers.append(Producer(read.producer, offset, extent, weights, not regular, read.late))
    need_rows = (rows - 1) * stride_rows + taps_rows
    need_columns = (columns - 1) * stride_columns + taps_columns
    if spread:
        need_rows, need_columns = (rows - 1) // stride_rows + 1, (columns - 1) // stride_columns + 1
    stored = sum(_elements(tensor) for tensor in operator.inputs if tensor.role is Role.WEIGHT)
    grouped = CONVOLUTION if groups == 1 else GROUPED
    window = grouped if operator.is_mac else SAMPLING
    return SetLayer(
        name=unit.name,
        window=window,
        is_mac=operator.is_mac,
        channels=channels,
        rows=rows,
        columns=columns,
        inputs=channels if window == SAMPLING else sizes[CHANNEL],
        taps_rows=taps_rows,
        taps_columns=taps_columns,
        stride_rows=stride_rows,
        stride_columns=stride_columns,
        groups=groups,
        spread=spread,
        operands=operands if window == SAMPLING else 1,
        input_rows=min(real[0], need_rows),
        input_columns=min(real[1], need_columns),
        pad_rows=0 if spread else max(0, need_rows - real[0]) // 2,
        pad_columns=0 if spread else max(0, need_columns - real[1]) // 2,
        producers=tuple(producers),
        external=external,
        weight_bytes=stored,
        is_output=unit.is_output,
    )


def _update(unit: Unit, before: Sequence[SetLayer], name: str) -> SetLayer:
    """A weight update: output channels x (input channels x filter rows) x filter columns, summed over samples
    and positions.
    """
    operator = unit.layer.operator
    shape = shape_of(operator)
    channels, rows, columns = shape.sizes
    main = next((tensor for tensor in operator.inputs if tensor.role is Role.INPUT), None)
    arriving = next((tensor for tensor in operator.inputs if tensor.role is Role.WEIGHT), None)
    product = operator.kind in ("gemm", "matmul")
    positions = [tensor for tensor in operator.reduction_dims if product or tensor != "N"]
    plain = main is not None and arriving is not None and len(operator.inputs) == 2
    if not plain or any(shape.scattered) or not 1 <= len(positions) <= 2:
        raise InputError(name, unit.name, f"{operator.kind} updates no weights of a convolution or product")
    assert main is not None
    taps = [*(operator.bounds[tensor] for tensor in sorted(positions)), 1][:2]
    groups = math.prod(tensor.bound for tensor in operator.dimensions if tensor.like == "G")
    filters = operator.bounds["R"] if "R" in shape.loops[ROW] else 1
    inputs = groups * (rows // filters)
    (_, high, wide), axes = _operand(operator, main)
    axis = axes[ROW]
    hop = (
        next((tensor.stride for tensor in axis.terms if tensor.dim in positions), 1)
        if axis is not None
        else 1
    )
    sizes = (inputs, taps[0], taps[1]) if product else (inputs, high // (rows // filters), wide)
    producers: list[Producer] = []
    external = outside = 0
    real = [sizes[1], sizes[2]]
    for read in unit.reads:
        is_error = read.operand != main.name
        if read.producer is None:
            if is_error:
                outside = channels * taps[0] * taps[1]
            else:
                external, real = inputs, _unpadded(read, sizes, (filters, operator.bounds.get("S", 1)))
            continue
        made = before[read.producer]
        whole = made.channels == channels and [made.rows, made.columns] == taps
        regular = read.link is not None and read.link.channel is not None and (whole or not is_error)
        offset = (read.link.channel or 0) if read.link is not None and regular else 0
        if not is_error and regular:
            real = [made.rows, made.columns]
        extent = made.channels if regular else channels if is_error else inputs
        producers.append(Producer(read.producer, offset, extent, is_error, not regular))
    return SetLayer(
        name=unit.name,
        window=SUMMED,
        is_mac=True,
        channels=channels,
        rows=rows,
        columns=columns,
        inputs=inputs,
        taps_rows=taps[0],
        taps_columns=taps[1],
        stride_rows=filters,
        groups=groups,
        input_rows=real[0],
        input_columns=real[1],
        pad_rows=max(0, (taps[0] - 1) * hop + filters - real[0]) // 2,
        producers=tuple(producers),
        external=external,
        weight_bytes=outside,
        is_output=unit.is_output,
        hop_rows=hop,
    )


def _is_product(operator: Operator) -> bool:
    """Whether every result sums, over all input channels, inputs at its own position times stored weights."""
    like = {dimension.name: dimension.like for dimension in operator.dimensions}

    def along(tensor: Tensor) -> list[str]:
        return sorted(like[term.dim] for axis in tensor.axes for term in axis.terms)

    read = {tensor.role: along(tensor) for tensor in operator.inputs}
    positions = [name for name in along(operator.output) if name != "K"]
    simple = all(len(axis.terms) == 1 for tensor in operator.tensors for axis in tensor.axes)
    expected = {Role.INPUT: sorted(["C", *positions]), Role.WEIGHT: ["C", "K"]}
    plain = operator.is_mac and len(operator.inputs) == 2 and {*positions} <= {"N", "P", "Q"}
    return plain and simple and read == expected


def _operand(operator: Operator, tensor: Tensor) -> tuple[tuple[int, int, int], tuple[Axis | None, ...]]:
    """Channels, rows and columns of an operand, and the innermost axis along each."""
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    sizes, axes = [1, 1, 1], [None, None, None]  # type: tuple[list[int], list[Axis | None]]
    for axis in tensor.axes:
        coordinate = coordinate_of(like[axis.terms[0].dim]) if axis.terms else CHANNEL
        sizes[coordinate] *= axis.size
        axes[coordinate] = axis
    return (sizes[0], sizes[1], sizes[2]), tuple(axes)


def _window(operator: Operator, axis: Axis | None) -> tuple[int, int]:
    """Taps and stride along an axis of rows or columns."""
    if axis is None or len(axis.terms) < 2:
        return 1, 1
    position, offset = axis.terms
    return operator.bounds[offset.dim], position.stride


def _elements(tensor: Tensor) -> int:
    return math.prod(axis.size for axis in tensor.axes)


def _unpadded(read: Read, sizes: tuple[int, int, int], taps: tuple[int, int]) -> list[int]:
    """Rows and columns of an input of the network, less padding that its number of elements betrays: of
    several ways to pad, the one most in proportion to the window.
    """
    channels, rows, columns = sizes
    if read.link is None or read.link.elements % channels:
        return [rows, columns]
    area = read.link.elements // channels
    ways = []
    for high in range(max(1, rows - 2 * taps[0] + 2), rows + 1):
        wide, rest = divmod(area, high)
        if not rest and 0 <= columns - wide <= 2 * taps[1] - 2:
            uneven = abs((rows - high) * (taps[1] - 1) - (columns - wide) * (taps[0] - 1))
            ways.append((uneven, rows - high, [high, wide]))
    return min(ways)[2] if ways else [rows, columns]


def _is_regular(read: Read, made: SetLayer, operator: Operator, sizes: tuple[int, int, int]) -> bool:
    """Whether boxes of the operand are boxes of the producer's results."""
    if read.link is None:
        return False
    if read.link.channel is None:
        return (made.rows, made.columns) == (1, 1) and read.link.elements == made.channels == sizes[CHANNEL]
    if read.late:
        _, rows, columns = shape_of(operator).sizes
        return (made.rows, made.columns) == (rows, columns)
    if operator.kind in ("conv2d", "transposed_conv2d", "depthwise", "pool"):
        return True
    return (made.rows, made.columns) == (sizes[ROW], sizes[COLUMN])
