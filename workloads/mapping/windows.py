"""Sliding windows: how many positions a kernel takes along one axis, and what the input axis holds.

Along each axis ``outputs = floor((inputs + before + after - span) / stride) + 1`` with
``span = (kernel - 1) * dilation + 1`` (the ONNX and PyTorch definition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Axis, Dimension, Term

Pair = int | Sequence[int]
"""One number for rows and columns alike, or (rows, columns)."""


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of a window operator.

    Parameters
    ----------
    position, offset : names of the loop over window positions and of the loop inside the window
    outputs, kernel : their bounds
    stride, dilation : input elements between neighbouring positions, and between neighbouring taps
    size : elements of the padded input axis
    """

    position: str
    offset: str
    outputs: int
    kernel: int
    stride: int
    dilation: int
    size: int

    @property
    def axis(self) -> Axis:
        """The index ``position * stride + offset * dilation``."""
        return Axis((Term(self.position, self.stride), Term(self.offset, self.dilation)), self.size)


def window(
    where: str,
    names: tuple[str, str, str],
    *,
    outputs: int | None,
    inputs: int | None,
    kernel: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    ceil: bool = False,
) -> Window:
    """Work out one axis from its output size, its input size, or both.

    Parameters
    ----------
    where : the operator kind, for messages
    names : names of the output, input and kernel sizes, such as ``("P", "H", "R")``
    outputs, inputs : elements without padding; at least one is given
    pads : elements of padding before and after
    ceil : round the number of positions up (pooling's ``ceil_mode``); a window never starts in the
        padding that follows the input

    Raises
    ------
    InputError : for a missing or non-positive size, a kernel larger than the padded input, or output and
        input sizes that contradict each other
    """
    output_name, input_name, kernel_name = names
    check_positive(where, {kernel_name: kernel, "stride": stride, "dilation": dilation})
    span = (kernel - 1) * dilation + 1
    if inputs is None:
        if outputs is None:
            raise InputError(where, output_name, f"missing, expected {output_name} or {input_name}")
        check_positive(where, {output_name: outputs})
        padded = (outputs - 1) * stride + span
        if padded <= sum(pads):
            raise InputError(
                where, "pad", f"{sum(pads)} elements of padding leave no input of the {padded} that are read"
            )
        return Window(output_name, kernel_name, outputs, kernel, stride, dilation, padded)
    check_positive(where, {input_name: inputs})
    padded = inputs + sum(pads)
    if padded < span:
        raise InputError(
            where, kernel_name, f"the kernel spans {span} elements, the padded input has only {padded}"
        )
    positions = (padded - span) // stride + 1
    if ceil:
        positions = -(-(padded - span) // stride) + 1
        if (positions - 1) * stride >= inputs + pads[0]:
            positions -= 1
    if outputs is not None and outputs != positions:
        raise InputError(
            where, output_name, f"{outputs} contradicts {input_name}={inputs}, which gives {positions}"
        )
    size = max(padded, (positions - 1) * stride + span)
    return Window(output_name, kernel_name, positions, kernel, stride, dilation, size)


def windows(
    where: str,
    outputs: tuple[int | None, int | None],
    inputs: tuple[int | None, int | None],
    kernel: tuple[int, int],
    stride: Pair,
    dilation: Pair,
    pad: Pair,
    *,
    ceil: bool = False,
) -> tuple[Window, Window]:
    """The row and column windows of an operator with loops ``P Q R S`` over an input of ``H`` x ``W``.

    Parameters
    ----------
    outputs, inputs, kernel : (rows, columns); see `window`
    stride, dilation, pad : as in `tilewright.workloads.mapping.convolutions.conv2d`

    Raises
    ------
    InputError : see `window`
    """
    strides, dilations = pair(where, "stride", stride), pair(where, "dilation", dilation)
    pads = pad_pair(where, pad)
    names = (("P", "H", "R"), ("Q", "W", "S"))
    rows, columns = (
        window(
            where,
            names[i],
            outputs=outputs[i],
            inputs=inputs[i],
            kernel=kernel[i],
            stride=strides[i],
            dilation=dilations[i],
            pads=pads[i],
            ceil=ceil,
        )
        for i in (0, 1)
    )
    return rows, columns


def check_positive(where: str, sizes: dict[str, int]) -> None:
    """Raise ``InputError`` for the first size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise InputError(where, name, f"expected at least 1, got {size}")


def pair(where: str, field: str, value: Pair) -> tuple[int, int]:
    """Rows and columns from one number or two; raises ``InputError`` for any other count."""
    values = (value, value) if isinstance(value, int) else tuple(value)
    if len(values) != 2:
        raise InputError(where, field, f"expected 1 or 2 numbers, got {len(values)}")
    return values[0], values[1]


def pad_pair(where: str, value: Pair) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding ``((top, bottom), (left, right))``.

    Parameters
    ----------
    value : one number for all four sides, (rows, columns), or (top, left, bottom, right) in ONNX's order

    Raises
    ------
    InputError : for another count or a negative number
    """
    values = (value,) if isinstance(value, int) else tuple(value)
    if len(values) not in (1, 2, 4):
        raise InputError(where, "pad", f"expected 1, 2 or 4 numbers, got {len(values)}")
    if min(values) < 0:
        raise InputError(where, "pad", f"expected at least 0, got {min(values)}")
    top, left, bottom, right = {1: values * 4, 2: values * 2, 4: values}[len(values)]
    return (top, bottom), (left, right)


def dimensions(bounds: dict[str, int], like: dict[str, str] | None = None) -> tuple[Dimension, ...]:
    """Loops in the order given, each corresponding to the convolution loop of its own name unless given."""
    renamed = like or {}
    return tuple(Dimension(name, bound, renamed.get(name, name)) for name, bound in bounds.items())


def axes(bounds: dict[str, int], names: str | Sequence[str]) -> tuple[Axis, ...]:
    """One plain axis per dimension name (a string names one-letter dimensions)."""
    return tuple(Axis((Term(name),), bounds[name]) for name in names)
