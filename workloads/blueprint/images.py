"""Operations of convolutional networks, on values of batch x channels x rows x columns."""

from __future__ import annotations

from typing import Literal

from tilewright.workloads.blueprint.base import Base, Value
from tilewright.workloads.mapping.windows import Pair, pad_pair, pair

Padding = Pair | Literal["same"]
"""As `conv2d`'s, or ``same``: outputs = ceil(inputs / stride), the odd element of padding at the end."""


class Images(Base):
    """Convolutions, pooling, normalisation, and whatever joins branches."""

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: Pair,
        *,
        stride: Pair = 1,
        pad: Padding = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool | None = None,
        norm: bool = False,
        act: str | None = None,
        name: str = "conv",
    ) -> Value:
        """Convolution, with batch normalisation and an activation behind it where asked for.

        Parameters
        ----------
        channels : output channels of all groups together
        kernel, stride, dilation : one number or (rows, columns)
        bias : by default there is one unless a normalisation follows
        act : an ONNX operation such as ``Relu``, or ``swish``
        """
        kernels, strides = pair(name, "kernel", kernel), pair(name, "stride", stride)
        dilations = pair(name, "dilation", dilation)
        spans = tuple((k - 1) * d + 1 for k, d in zip(kernels, dilations, strict=True))
        pads = self._pads(x, spans, strides, pad, name)
        if x.channels % groups or channels % groups:
            raise self.error(name, f"{groups} groups do not divide {x.channels} and {channels} channels")
        operands: list[Value | str] = [
            x,
            self.weights(f"{name}.weight", (channels, x.channels // groups, *kernels)),
        ]
        if bias or (bias is None and not norm):
            operands.append(self.weights(f"{name}.bias", (channels,)))
        sizes = self._positions(x, spans, strides, pads, name)
        value = self.op(
            "Conv",
            operands,
            (x.shape[0], channels, *sizes),
            name,
            kernel_shape=kernels,
            strides=strides,
            dilations=dilations,
            group=groups,
            pads=pads,
        )
        return self.act(self.norm(value) if norm else value, act)

    def depthwise(self, x: Value, kernel: Pair, *, name: str = "depthwise", **options: object) -> Value:
        """Convolution of every channel by itself; options as `conv`'s.

        Parameters
        ----------
        x : batch x channels x rows x columns
        kernel : rows and columns of the filters, or one number for both
        name : of the layer, within the present scope
        options : those of `conv`
        """
        return self.conv(x, x.channels, kernel, groups=x.channels, name=name, **options)  # type: ignore[arg-type]

    def transposed(
        self,
        x: Value,
        channels: int,
        kernel: Pair,
        *,
        stride: Pair = 1,
        pad: Pair = 0,
        act: str | None = None,
        name: str = "upconv",
    ) -> Value:
        """Transposed convolution with a bias: ``(inputs - 1) * stride + kernel - padding`` rows.

        Parameters
        ----------
        x : batch x channels x rows x columns
        channels : of the result
        kernel : rows and columns of the filter, or one number for both
        stride : by which neighbouring inputs move apart in the result, one number or (rows, columns)
        pad : rows and columns that are cut off at each border of the result
        act : activation behind it; none by default
        name : of the layer, within the present scope
        """
        kernels, strides = pair(name, "kernel", kernel), pair(name, "stride", stride)
        (top, bottom), (left, right) = pad_pair(name, pad)
        rows = (x.shape[2] - 1) * strides[0] + kernels[0] - top - bottom
        columns = (x.shape[3] - 1) * strides[1] + kernels[1] - left - right
        operands: list[Value | str] = [
            x,
            self.weights(f"{name}.weight", (x.channels, channels, *kernels)),
            self.weights(f"{name}.bias", (channels,)),
        ]
        value = self.op(
            "ConvTranspose",
            operands,
            (x.shape[0], channels, rows, columns),
            name,
            kernel_shape=kernels,
            strides=strides,
            pads=(top, left, bottom, right),
        )
        return self.act(value, act)

    def norm(self, x: Value) -> Value:
        """Batch normalisation: a learned scale and shift per channel, and two running averages."""
        stored = [
            self._filled(f"{x.name}.{part}", (x.channels,), 1.0 if part == "variance" else 0.0)
            for part in ("scale", "shift", "mean", "variance")
        ]
        return self.op("BatchNormalization", [x, *stored], x.shape, epsilon=1e-5)

    def act(self, x: Value, kind: str | None = "Relu") -> Value:
        """An activation: an ONNX operation of one operand, ``relu6``, ``swish``, or none."""
        if kind is None:
            return x
        if kind == "relu6":
            return self.op("Clip", [x, self.scalar(0.0), self.scalar(6.0)], x.shape)
        if kind == "swish":
            return self.op("Mul", [x, self.op("Sigmoid", [x], x.shape)], x.shape)
        return self.op(kind, [x], x.shape)

    def local_response_norm(self, x: Value, size: int = 5) -> Value:
        """AlexNet's normalisation over neighbouring channels."""
        return self.op("LRN", [x], x.shape, size=size)

    def max_pool(
        self,
        x: Value,
        kernel: Pair,
        *,
        stride: Pair = 1,
        pad: Padding = 0,
        ceil: bool = False,
        name: str = "pool",
    ) -> Value:
        """Maximum of every window; ``ceil`` rounds the number of windows up.

        Parameters
        ----------
        x : batch x channels x rows x columns
        kernel : rows and columns of a window, or one number for both
        stride : one number or (rows, columns)
        pad : one number, (rows, columns), (top, left, bottom, right) or ``same``
        ceil : whether a window that the border cuts off counts as one more
        name : of the layer, within the present scope
        """
        return self._pool("MaxPool", x, kernel, stride, pad, ceil, name)

    def average_pool(
        self,
        x: Value,
        kernel: Pair,
        *,
        stride: Pair = 1,
        pad: Padding = 0,
        ceil: bool = False,
        name: str = "pool",
    ) -> Value:
        """Mean of every window.

        Parameters
        ----------
        x : batch x channels x rows x columns
        kernel : rows and columns of a window, or one number for both
        stride : one number or (rows, columns)
        pad : one number, (rows, columns), (top, left, bottom, right) or ``same``
        ceil : whether a window that the border cuts off counts as one more
        name : of the layer, within the present scope
        """
        return self._pool("AveragePool", x, kernel, stride, pad, ceil, name)

    def global_average(self, x: Value, name: str = "global_pool") -> Value:
        """Mean of every channel, one row and one column."""
        return self.op("GlobalAveragePool", [x], (*x.shape[:2], 1, 1), name)

    def add(self, *values: Value, name: str = "add", act: str | None = None) -> Value:
        """Sum of values of one shape."""
        first = values[0]
        for other in values[1:]:
            if other.shape != first.shape:
                raise self.error(name, f"adds {list(first.shape)} and {list(other.shape)}")
        kind = "Add" if len(values) == 2 else "Sum"
        return self.act(self.op(kind, values, first.shape, name), act)

    def multiply(self, x: Value, factor: Value, name: str = "multiply") -> Value:
        """Element-wise product; axes of one element of the factor broadcast."""
        if len(factor.shape) != len(x.shape) or any(
            f not in (1, s) for f, s in zip(factor.shape, x.shape, strict=True)
        ):
            raise self.error(name, f"multiplies {list(x.shape)} by {list(factor.shape)}")
        return self.op("Mul", [x, factor], x.shape, name)

    def concat(self, *values: Value, axis: int = 1, name: str = "concat") -> Value:
        """Values one after another along an axis; the other axes have to be equal."""
        first = values[0].shape
        for other in values[1:]:
            if any(a != b for i, (a, b) in enumerate(zip(first, other.shape, strict=True)) if i != axis):
                raise self.error(name, f"joins {list(first)} and {list(other.shape)} along axis {axis}")
        shape = list(first)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.op("Concat", values, shape, name, axis=axis)

    def crop(self, x: Value, size: tuple[int, int], name: str = "crop") -> Value:
        """The middle of a picture, so many rows and columns."""
        rows, columns = size
        top, left = (x.shape[2] - rows) // 2, (x.shape[3] - columns) // 2
        if top < 0 or left < 0:
            raise self.error(name, f"crops {list(x.shape)} to {rows} x {columns}")
        ends = [top + rows, left + columns]
        numbers = [self.constant(bounds) for bounds in ([top, left], ends, [2, 3])]
        return self.op("Slice", [x, *numbers], (*x.shape[:2], rows, columns), name)

    def pad(self, x: Value, pads: Pair, name: str = "pad") -> Value:
        """Zeros around a picture: one number, (rows, columns) or (top, left, bottom, right)."""
        (top, bottom), (left, right) = pad_pair(name, pads)
        numbers = self.constant([0, 0, top, left, 0, 0, bottom, right])
        shape = (*x.shape[:2], x.shape[2] + top + bottom, x.shape[3] + left + right)
        return self.op("Pad", [x, numbers], shape, name)

    def upsample(self, x: Value, factor: int, name: str = "upsample") -> Value:
        """Nearest-neighbour interpolation: every element ``factor`` times along rows and columns."""
        shape = (*x.shape[:2], x.shape[2] * factor, x.shape[3] * factor)
        return self.op("Resize", [x, "", "", self.constant(shape)], shape, name, mode="nearest")

    def _pool(
        self, kind: str, x: Value, kernel: Pair, stride: Pair, pad: Padding, ceil: bool, name: str
    ) -> Value:
        kernels, strides = pair(name, "kernel", kernel), pair(name, "stride", stride)
        pads = list(self._pads(x, kernels, strides, pad, name))
        if ceil:  # rounding up is the same as padding the end until the division is exact
            for i in (0, 1):
                rest = (x.shape[2 + i] + pads[i] + pads[2 + i] - kernels[i]) % strides[i]
                pads[2 + i] += (strides[i] - rest) % strides[i]
        sizes = self._positions(x, kernels, strides, pads, name)
        return self.op(
            kind, [x], (*x.shape[:2], *sizes), name, kernel_shape=kernels, strides=strides, pads=pads
        )

    def _pads(
        self, x: Value, spans: tuple[int, ...], strides: tuple[int, int], pad: Padding, name: str
    ) -> tuple[int, int, int, int]:
        """Padding (top, left, bottom, right)."""
        if len(x.shape) != 4:
            raise self.error(name, f"expected batch x channels x rows x columns, got {list(x.shape)}")
        if isinstance(pad, str):
            totals = [
                max(0, (-(-size // step) - 1) * step + span - size)
                for size, step, span in zip(x.shape[2:], strides, spans, strict=True)
            ]
            rows, columns = totals
            return rows // 2, columns // 2, rows - rows // 2, columns - columns // 2
        (top, bottom), (left, right) = pad_pair(name, pad)
        return top, left, bottom, right

    def _positions(
        self,
        x: Value,
        spans: tuple[int, ...],
        strides: tuple[int, int],
        pads: list[int] | tuple[int, ...],
        name: str,
    ) -> tuple[int, int]:
        """Rows and columns of window positions."""
        free = [x.shape[2 + i] + pads[i] + pads[2 + i] - spans[i] for i in (0, 1)]
        if min(free) < 0:
            raise self.error(name, f"a window of {spans[0]} x {spans[1]} does not fit {list(x.shape)}")
        return free[0] // strides[0] + 1, free[1] // strides[1] + 1
