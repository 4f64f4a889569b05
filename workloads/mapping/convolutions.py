"""Builders of convolutions: dense, grouped, depthwise and transposed.

Tensors are listed as ``I``, ``W``, ``O``, axes outermost first (the ONNX layouts): input ``N (G) C rows
columns``, weights ``(G) K C R S``, output ``N (G) K P Q``.  The loop ``G`` over groups is there only where
there are several groups, and ``K`` and ``C`` then count the channels of one group.  Every other loop is
listed even when its bound is 1.
"""

from __future__ import annotations

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Axis, Operator, Role, Tensor
from tilewright.workloads.mapping.windows import (
    Pair,
    axes,
    check_positive,
    dimensions,
    pad_pair,
    pair,
    windows,
)


def conv2d(
    *,
    n: int = 1,
    k: int,
    c: int,
    r: int,
    s: int,
    p: int | None = None,
    q: int | None = None,
    h: int | None = None,
    w: int | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    pad: Pair = 0,
    groups: int = 1,
) -> Operator:
    """Two-dimensional convolution, dense, grouped or depthwise.

    Parameters
    ----------
    n, k, c : batch, output channels and input channels of all groups together
    r, s : filter rows and columns
    p, q : output rows and columns; the input then is exactly what the filter touches
    h, w : input rows and columns without padding, instead of (or consistent with) ``p`` and ``q``
    stride, dilation : one number or (rows, columns)
    pad : one number, (rows, columns) or (top, left, bottom, right)
    groups : channel groups; as many as input channels make a depthwise convolution

    Returns
    -------
    An operator of kind ``conv2d``, or of kind ``depthwise`` with loops ``N G (K) P Q R S``, where ``K`` is
    the channel multiplier and is listed only where it exceeds 1.  The input's row axis has the padded size
    ``h + top + bottom``, or ``(p - 1) * stride + (r - 1) * dilation + 1`` where ``h`` is not given.

    Raises
    ------
    InputError : for a size below 1, sizes that contradict each other, or groups that do not divide the
        channels
    """
    where = "conv"
    check_positive(where, {"N": n, "K": k, "C": c})
    rows, columns = windows(where, (p, q), (h, w), (r, s), stride, dilation, pad)
    _check_groups(where, groups, k=k, c=c)
    depthwise = groups > 1 and groups == c
    bounds = {"N": n}
    if groups > 1:
        bounds["G"] = groups
    if not depthwise or k > groups:
        bounds["K"] = k // groups
    if not depthwise:
        bounds["C"] = c // groups
    bounds |= {"P": rows.outputs, "Q": columns.outputs, "R": r, "S": s}
    channels = [name for name in ("G", "C") if name in bounds]
    filters = [name for name in ("G", "K", "C") if name in bounds]
    results = [name for name in ("N", "G", "K") if name in bounds]
    return Operator(
        "depthwise" if depthwise else "conv2d",
        dimensions(bounds),
        (
            Tensor("I", Role.INPUT, (*axes(bounds, ["N", *channels]), rows.axis, columns.axis)),
            Tensor("W", Role.WEIGHT, axes(bounds, [*filters, "R", "S"])),
            Tensor("O", Role.OUTPUT, axes(bounds, [*results, "P", "Q"])),
        ),
    )


def depthwise_conv2d(
    *,
    n: int = 1,
    c: int,
    r: int,
    s: int,
    multiplier: int = 1,
    p: int | None = None,
    q: int | None = None,
    h: int | None = None,
    w: int | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    pad: Pair = 0,
) -> Operator:
    """Depthwise convolution: ``multiplier`` filters on each of ``c`` channels; see `conv2d`.

    Parameters
    ----------
    n : batch
    c : input channels, each convolved alone
    r, s : filter rows and columns
    multiplier : filters, and so output channels, per input channel
    p, q : output rows and columns; the input then is exactly what the filter touches
    h, w : input rows and columns without padding, instead of (or consistent with) ``p`` and ``q``
    stride, dilation : one number or (rows, columns)
    pad : one number, (rows, columns) or (top, left, bottom, right)
    """
    check_positive("depthwise", {"C": c, "multiplier": multiplier})
    return conv2d(
        n=n,
        k=c * multiplier,
        c=c,
        r=r,
        s=s,
        p=p,
        q=q,
        h=h,
        w=w,
        stride=stride,
        dilation=dilation,
        pad=pad,
        groups=c,
    )


def transposed_conv2d(
    *,
    n: int = 1,
    k: int,
    c: int,
    p: int,
    q: int,
    r: int,
    s: int,
    stride: Pair = 1,
    dilation: Pair = 1,
    pad: Pair = 0,
    output_padding: Pair = 0,
    groups: int = 1,
) -> Operator:
    """Transposed convolution in scatter form: every input element adds a scaled filter to the output.

    The loops ``P`` and ``Q`` run over *input* positions, and the output's row axis is indexed by
    ``P * stride + R * dilation``; it is allocated uncropped, ``(p - 1) * stride + (r - 1) * dilation + 1 +
    output_padding``.  Padding only crops that output, so it changes neither the loops nor the
    multiply-accumulates.  Weights are laid out as ONNX does, ``(G) C K R S``.

    Parameters
    ----------
    n, k, c : batch, output channels and input channels of all groups together
    p, q : input rows and columns
    r, s : filter rows and columns
    stride, dilation, pad, groups : as in `conv2d`
    output_padding : rows and columns added at the bottom and at the right of the output

    Raises
    ------
    InputError : for a size below 1, a crop that leaves no output, or groups that do not divide the channels
    """
    where = "tconv"
    check_positive(where, {"N": n, "K": k, "C": c, "P": p, "Q": q})
    _check_groups(where, groups, k=k, c=c)
    rows, columns = windows(where, (p, q), (None, None), (r, s), stride, dilation, 0)
    crops = pad_pair(where, pad)
    extra = pair(where, "output_padding", output_padding)
    scattered = []
    for scattering, crop, more in zip((rows, columns), crops, extra, strict=True):
        size = scattering.size + more
        if more < 0 or size <= sum(crop):
            raise InputError(where, "pad", f"cropping {sum(crop)} of {size} output elements leaves none")
        scattered.append(Axis(scattering.axis.terms, size))
    bounds = {"N": n} | ({"G": groups} if groups > 1 else {})
    bounds |= {"K": k // groups, "C": c // groups, "P": p, "Q": q, "R": r, "S": s}
    group = "G" if groups > 1 else ""
    return Operator(
        "transposed_conv2d",
        dimensions(bounds),
        (
            Tensor("I", Role.INPUT, axes(bounds, f"N{group}CPQ")),
            Tensor("W", Role.WEIGHT, axes(bounds, f"{group}CKRS")),
            Tensor("O", Role.OUTPUT, (*axes(bounds, f"N{group}K"), *scattered)),
        ),
    )


def _check_groups(where: str, groups: int, *, k: int, c: int) -> None:
    check_positive(where, {"groups": groups})
    for name, channels in (("C", c), ("K", k)):
        if channels % groups:
            raise InputError(where, "groups", f"{groups} does not divide {name}={channels}")
