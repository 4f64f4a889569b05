"""Layers of convolutional networks on an `Assembly`, on data of batch x channels x rows x columns.

Batch normalisation is folded into the convolution before it; its scales and shifts count as parameters.
"""

from __future__ import annotations

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.mapping.einsum import nest
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

    Windows that neither overlap nor leave anything out are patches: then it is a product of patches and
    filters, as vision transformers compute it.

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
    size = [(edge + 2 * pad - kernel) // stride + 1 for edge in (rows, columns)]
    in_patches = stride == kernel > 1 == groups and rows % stride == columns % stride == 0
    if in_patches:
        split = (batch, inputs, size[0], kernel, size[1], kernel)
        sizes = (batch, inputs * kernel * kernel, size[0] * size[1])
        x = x.rearranged(split, (0, 1, 3, 5, 2, 4), sizes, "Reshape", "Transpose", "Reshape")
        bounds = dict(zip("nkcm", (batch, channels, *sizes[1:]), strict=True))
        operator = nest(
            "O[n,k,m] += I[n,c,m] * W[k,c]", bounds=bounds, like=dict(zip("nkcm", "NKCP", strict=True))
        )
    else:
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
    parts = [(f"{name}.weight", channels * (inputs // groups) * kernel * kernel)]
    parts += [(f"{name}.bias", channels)] if bias else []
    parts += [(f"{name}.scale", channels), (f"{name}.shift", channels)] if folded else []
    shape = (batch, channels, *size)
    learned, before = net.learned(*parts), () if in_patches else (pad, pad)
    made = net.layer(name, "Conv", operator, {"I": x}, shape, learned=learned, before=before)
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
