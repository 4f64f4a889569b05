"""Deep residual networks.

K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016, table 1 (depths 18
to 152, ImageNet); "Identity mappings in deep residual networks", ECCV 2016, table 3 and appendix (depth 1001,
CIFAR-10, pre-activation bottlenecks); S. Xie et al., "Aggregated residual transformations for deep neural
networks", CVPR 2017, table 1 (ResNeXt-50 32x4d).

Bottlenecks stride in their 3x3 convolution, as the authors' later code and all common frameworks do; the
paper's first version strides in the 1x1 before it (3.8 instead of 4.1 GMAC at depth 50).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewright.workloads.blueprint import Blueprint, Value

PLAIN = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
BOTTLENECK = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


def stem(net: Blueprint, x: Value) -> Value:
    """7x7 convolution and pooling to a quarter of the rows and columns."""
    x = net.conv(x, 64, 7, stride=2, pad=3, norm=True, act="Relu", name="conv1")
    return net.max_pool(x, 3, stride=2, pad=1, name="pool1")


def plain_block(net: Blueprint, x: Value, channels: int, stride: int) -> Value:
    """Two 3x3 convolutions around which the input is added.

    Parameters
    ----------
    net : the network that grows
    x : the block's input
    channels : of both convolutions
    stride : of the first one
    """
    y = net.conv(x, channels, 3, stride=stride, pad=1, norm=True, act="Relu", name="conv1")
    y = net.conv(y, channels, 3, pad=1, norm=True, name="conv2")
    return net.add(y, shortcut(net, x, channels, stride), act="Relu")


def bottleneck(
    net: Blueprint, x: Value, channels: int, stride: int, *, width: int | None = None, groups: int = 1
) -> Value:
    """1x1, 3x3 (in groups), 1x1; the inner two have a quarter of the channels, or ``width``.

    Parameters
    ----------
    net : the network that grows
    x : the block's input
    channels : of the result
    stride : of the 3x3 convolution
    width : channels of the inner two convolutions; by default a quarter of ``channels``
    groups : of the 3x3 convolution (ResNeXt)
    """
    inner = width or channels // 4
    y = net.conv(x, inner, 1, norm=True, act="Relu", name="conv1")
    y = net.conv(y, inner, 3, stride=stride, pad=1, groups=groups, norm=True, act="Relu", name="conv2")
    y = net.conv(y, channels, 1, norm=True, name="conv3")
    return net.add(y, shortcut(net, x, channels, stride), act="Relu")


def shortcut(net: Blueprint, x: Value, channels: int, stride: int) -> Value:
    """The input itself, or its projection where the shape changes.

    Parameters
    ----------
    net : the network that grows
    x : the block's input
    channels, stride : of the block that it goes around
    """
    if stride == 1 and x.channels == channels:
        return x
    return net.conv(x, channels, 1, stride=stride, norm=True, name="shortcut")


def classifier(net: Blueprint, x: Value, classes: int = 1000) -> Value:
    """Average of every channel and one fully connected layer."""
    return net.softmax(net.dense(net.flatten(net.global_average(x)), classes, name="fc"))


def residual(
    batch: int,
    *,
    name: str,
    depths: tuple[int, ...],
    block: Callable[[Blueprint, Value, int, int], Value],
    expansion: int,
) -> Blueprint:
    """An ImageNet network of four stages, 64 to 512 channels times the block's expansion.

    Parameters
    ----------
    batch : samples
    name : of the network
    depths : blocks of each of the four stages
    block : adds a block of so many channels and that stride
    expansion : channels of a block's result per channel of the stage
    """
    net = Blueprint(name, batch)
    x = stem(net, net.image(3, 224))
    for stage, depth in enumerate(depths):
        for i in range(depth):
            with net.scope(f"conv{stage + 2}_{i + 1}"):
                x = block(net, x, 64 * 2**stage * expansion, 2 if stage and not i else 1)
    classifier(net, x)
    return net


def resnext50(batch: int) -> Blueprint:
    """ResNeXt-50 (32x4d): 32 groups, inner widths 128 to 1024."""

    def block(net: Blueprint, x: Value, channels: int, stride: int) -> Value:
        return bottleneck(net, x, channels, stride, width=channels // 2, groups=32)

    return residual(batch, name="resnext50", depths=(3, 4, 6, 3), block=block, expansion=4)


def resnet1001(batch: int) -> Blueprint:
    """Depth 1001 for 32x32 pictures: three stages of 111 pre-activation bottlenecks."""
    net = Blueprint("resnet1001", batch)
    x = net.conv(net.image(3, 32), 16, 3, pad=1, bias=False, name="conv1")
    for stage, channels in enumerate((64, 128, 256)):
        for i in range(111):
            with net.scope(f"conv{stage + 2}_{i + 1}"):
                x = pre_activation(net, x, channels, 2 if stage and not i else 1)
    x = net.act(net.norm(x))
    classifier(net, x, 10)
    return net


def pre_activation(net: Blueprint, x: Value, channels: int, stride: int) -> Value:
    """Normalisation and activation before every convolution; a projection reads them too.

    Parameters
    ----------
    net : the network that grows
    x : the block's input, before normalisation
    channels : of the result
    stride : of the first convolution
    """
    inner = channels // 4
    active = net.act(net.norm(x))
    y = net.conv(active, inner, 1, stride=stride, norm=True, act="Relu", name="conv1")
    y = net.conv(y, inner, 3, pad=1, norm=True, act="Relu", name="conv2")
    y = net.conv(y, channels, 1, bias=False, name="conv3")
    if stride == 1 and x.channels == channels:
        return net.add(y, x)
    return net.add(y, net.conv(active, channels, 1, stride=stride, bias=False, name="shortcut"))


MODELS = {
    **{n: partial(residual, name=n, depths=d, block=plain_block, expansion=1) for n, d in PLAIN.items()},
    **{n: partial(residual, name=n, depths=d, block=bottleneck, expansion=4) for n, d in BOTTLENECK.items()},
    "resnet1001": resnet1001,
    "resnext50": resnext50,
}
