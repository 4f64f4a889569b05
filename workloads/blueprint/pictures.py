"""Layers of convolutional networks on an `Assembly`, on data of batch x channels x rows x columns.

Batch normalisation is folded into the convolution before it; its scales and shifts count as parameters.
"""

from __future__ import annotations

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.mapping.operators import conv2d, pool2d


def convolution(
    net: Assembly,
    x: Data,
    channels: int,
    kernel: int,
    name: str,
    *,
    stride: int = 1,
    groups: int = 1,
    bias: bool = True,
    folded: bool = False,
    act: str | None = None,
) -> Data:
    """Convolution with half a kernel of padding on every side, and an activation behind it where asked for.

    Parameters
    ----------
    net : the network that grows
    x : batch x channels x rows x columns
    channels : of the result, all groups together
    kernel : rows and columns of the filters
    name : of the layer, inside the present scope
    stride : along rows and columns; where it is the kernel's size, there is no padding
    groups : of channels
    bias : whether one is added
    folded : whether a batch normalisation is folded in
    act : activation, a layer of its own
    """
    batch, inputs, rows, columns = x.shape
    pad = 0 if stride == kernel else kernel // 2
    operator = conv2d(
        n=batch,
        k=channels,
        c=inputs,
        r=kernel,
        s=kernel,
        h=rows,
        w=columns,
        stride=stride,
        pad=pad,
        groups=groups,
    )
    size = [(edge + 2 * pad - kernel) // stride + 1 for edge in (rows, columns)]
    parts = [(f"{name}.weight", channels * (inputs // groups) * kernel * kernel)]
    parts += [(f"{name}.bias", channels)] if bias else []
    parts += [(f"{name}.scale", channels), (f"{name}.shift", channels)] if folded else []
    shape = (batch, channels, *size)
    made = net.layer(name, "Conv", operator, {"I": x}, shape, learned=net.learned(*parts), before=(pad, pad))
    return made if act is None else net.pointwise(f"{name}_act", act, made)


def global_average(net: Assembly, x: Data, name: str) -> Data:
    """Mean of every channel, as batch x channels."""
    batch, channels, rows, columns = x.shape
    operator = pool2d(n=batch, c=channels, h=rows, w=columns)
    return net.layer(name, "GlobalAveragePool", operator, {"I": x}, (batch, channels), before=(0, 0))


def scaled(net: Assembly, x: Data, factors: Data, name: str) -> Data:
    """Every channel times its factor.

    Parameters
    ----------
    net : the network that grows
    x : batch x channels x rows x columns
    factors : batch x channels
    name : of the layer, inside the present scope
    """
    batch, channels = x.shape[:2]
    return net.pointwise(name, "Mul", x, factors.moved((batch, channels, 1, 1), "Reshape"))


def norm_of_groups(net: Assembly, x: Data, name: str, *, act: str | None = None) -> Data:
    """Normalisation of groups of channels, and an activation behind it where asked for.

    Parameters
    ----------
    net : the network that grows
    x : batch x channels x rows x columns
    name : of the layer, inside the present scope
    act : activation, a layer of its own
    """
    learned = net.learned((f"{name}.scale", x.shape[1]), (f"{name}.shift", x.shape[1]))
    made = net.pointwise(name, "GroupNormalization", x, learned=learned)
    return made if act is None else net.pointwise(f"{name}_act", act, made)
