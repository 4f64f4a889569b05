"""The later Inception networks.

C. Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, table 1 and figures
5 to 7 and 10, in the authors' published form (Inception-v3: factorised 7x7 convolutions, batch normalisation
everywhere), without the auxiliary classifier.  C. Szegedy et al., "Inception-v4, Inception-ResNet and the
impact of residual connections on learning", AAAI 2017, figures 10 to 14 (Inception-ResNet-v1).
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value
from tilewright.workloads.networks.resnet import classifier

Kernel = int | tuple[int, int]


def unit(net: Blueprint, x: Value, channels: int, kernel: Kernel, name: str, *, stride: int = 1) -> Value:
    """Convolution, normalisation, activation; a strided one is not padded.

    Parameters
    ----------
    net : the network that grows
    x : its input
    channels : of the result
    kernel : rows and columns of the filter
    name : of its layers
    stride : 1 for padding that keeps the size
    """
    pad = "same" if stride == 1 else 0
    return net.conv(x, channels, kernel, stride=stride, pad=pad, norm=True, act="Relu", name=name)  # type: ignore[arg-type]


def chain(net: Blueprint, x: Value, name: str, *steps: tuple[int, Kernel], stride: int = 1) -> Value:
    """Convolutions one after another, (channels, kernel) each; the last one strides.

    Parameters
    ----------
    net : the network that grows
    x : its input
    name : of the chain; units are numbered behind it
    steps : channels and filter of each convolution
    stride : of the last one
    """
    for i, (channels, kernel) in enumerate(steps, 1):
        last = stride if i == len(steps) else 1
        x = unit(net, x, channels, kernel, f"{name}_{i}", stride=last)
    return x


def stem(net: Blueprint, x: Value) -> Value:
    """299 x 299 pixels to 71 x 71 x 192."""
    x = net.conv(x, 32, 3, stride=2, norm=True, act="Relu", name="conv1")
    x = net.conv(x, 32, 3, norm=True, act="Relu", name="conv2")
    x = net.conv(x, 64, 3, pad=1, norm=True, act="Relu", name="conv3")
    x = net.max_pool(x, 3, stride=2, name="pool1")
    x = net.conv(x, 80, 1, norm=True, act="Relu", name="conv4")
    return net.conv(x, 192, 3, norm=True, act="Relu", name="conv5")


def pooled(net: Blueprint, x: Value, channels: int) -> Value:
    """Average of 3x3 neighbours and a projection."""
    return unit(net, net.average_pool(x, 3, pad=1), channels, 1, "projection")


def grid35(net: Blueprint, x: Value, projection: int) -> Value:
    """Figure 5: 5x5 and two 3x3 convolutions in parallel branches."""
    return net.concat(
        unit(net, x, 64, 1, "1x1"),
        chain(net, x, "5x5", (48, 1), (64, 5)),
        chain(net, x, "3x3", (64, 1), (96, 3), (96, 3)),
        pooled(net, x, projection),
    )


def grid17(net: Blueprint, x: Value, inner: int) -> Value:
    """Figure 6: 7x7 convolutions as pairs of 1x7 and 7x1."""
    return net.concat(
        unit(net, x, 192, 1, "1x1"),
        chain(net, x, "7x7", (inner, 1), (inner, (1, 7)), (192, (7, 1))),
        chain(
            net, x, "double7x7", (inner, 1), (inner, (7, 1)), (inner, (1, 7)), (inner, (7, 1)), (192, (1, 7))
        ),
        pooled(net, x, 192),
    )


def grid8(net: Blueprint, x: Value) -> Value:
    """Figure 7: 1x3 and 3x1 convolutions side by side."""
    three = unit(net, x, 384, 1, "3x3_reduce")
    double = chain(net, x, "double3x3", (448, 1), (384, 3))
    return net.concat(
        unit(net, x, 320, 1, "1x1"),
        unit(net, three, 384, (1, 3), "1x3"),
        unit(net, three, 384, (3, 1), "3x1"),
        unit(net, double, 384, (1, 3), "double1x3"),
        unit(net, double, 384, (3, 1), "double3x1"),
        pooled(net, x, 192),
    )


def inception_v3(batch: int) -> Blueprint:
    """Inception-v3, 299 x 299."""
    net = Blueprint("inception-v3", batch)
    x = net.max_pool(stem(net, net.image(3, 299)), 3, stride=2, name="pool2")
    for i, projection in enumerate((32, 64, 64), 1):
        with net.scope(f"mixed35_{i}"):
            x = grid35(net, x, projection)
    with net.scope("reduce17"):
        x = net.concat(
            unit(net, x, 384, 3, "3x3", stride=2),
            chain(net, x, "double3x3", (64, 1), (96, 3), (96, 3), stride=2),
            net.max_pool(x, 3, stride=2),
        )
    for i, inner in enumerate((128, 160, 160, 192), 1):
        with net.scope(f"mixed17_{i}"):
            x = grid17(net, x, inner)
    with net.scope("reduce8"):
        x = net.concat(
            chain(net, x, "3x3", (192, 1), (320, 3), stride=2),
            chain(net, x, "7x7x3", (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), stride=2),
            net.max_pool(x, 3, stride=2),
        )
    for i in (1, 2):
        with net.scope(f"mixed8_{i}"):
            x = grid8(net, x)
    classifier(net, x)
    return net


def residual(net: Blueprint, x: Value, *branches: Value, act: bool = True) -> Value:
    """Branches joined, projected to the input's channels, scaled and added to it.

    Parameters
    ----------
    net : the network that grows
    x : what the branches read; its channels are the result's
    branches : of equal rows and columns, joined along the channels
    act : whether an activation follows the sum
    """
    up = net.conv(net.concat(*branches), x.channels, 1, name="up")
    scaled = net.op("Mul", [up, net.scalar(0.1)], up.shape)
    return net.add(x, scaled, act="Relu" if act else None)


def inception_resnet_v1(batch: int) -> Blueprint:
    """Inception-ResNet-v1, 299 x 299: 5 + 10 + 5 residual modules; the classifier has 1000 classes."""
    net = Blueprint("inception-resnet-v1", batch)
    x = net.conv(stem(net, net.image(3, 299)), 256, 3, stride=2, norm=True, act="Relu", name="conv6")
    for i in range(5):
        with net.scope(f"a{i + 1}"):
            x = residual(
                net,
                x,
                unit(net, x, 32, 1, "1x1"),
                chain(net, x, "3x3", (32, 1), (32, 3)),
                chain(net, x, "double3x3", (32, 1), (32, 3), (32, 3)),
            )
    with net.scope("reduce_a"):
        x = net.concat(
            net.max_pool(x, 3, stride=2),
            unit(net, x, 384, 3, "3x3", stride=2),
            chain(net, x, "double3x3", (192, 1), (192, 3), (256, 3), stride=2),
        )
    for i in range(10):
        with net.scope(f"b{i + 1}"):
            seven = chain(net, x, "7x7", (128, 1), (128, (1, 7)), (128, (7, 1)))
            x = residual(net, x, unit(net, x, 128, 1, "1x1"), seven)
    with net.scope("reduce_b"):
        x = net.concat(
            net.max_pool(x, 3, stride=2),
            chain(net, x, "3x3", (256, 1), (384, 3), stride=2),
            chain(net, x, "narrow3x3", (256, 1), (256, 3), stride=2),
            chain(net, x, "double3x3", (256, 1), (256, 3), (256, 3), stride=2),
        )
    for i in range(5):
        with net.scope(f"c{i + 1}"):
            three = chain(net, x, "3x3", (192, 1), (192, (1, 3)), (192, (3, 1)))
            x = residual(net, x, unit(net, x, 192, 1, "1x1"), three)
    classifier(net, x)
    return net


MODELS = {"inception-v3": inception_v3, "inception-resnet-v1": inception_resnet_v1}
