"""MobileNets: convolutions split into a depthwise and a pointwise part.

A. Howard et al., "MobileNets: efficient convolutional neural networks for mobile vision applications", 2017,
table 1 (width 1.0, 224 x 224); M. Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks",
CVPR 2018, table 2.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value
from tilewright.workloads.networks.resnet import classifier

SEPARABLE = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
)
"""MobileNetV1: output channels and stride of every separable convolution."""
INVERTED = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""MobileNetV2: expansion, output channels, repetitions, stride of the first."""


def separable(net: Blueprint, x: Value, channels: int, stride: int) -> Value:
    """3x3 depthwise and 1x1 convolution, each with normalisation and activation.

    Parameters
    ----------
    net : the network that grows
    x : its input
    channels : of the result, made by the 1x1 convolution
    stride : of the depthwise convolution
    """
    x = net.depthwise(x, 3, stride=stride, pad="same", norm=True, act="relu6", name="depthwise")
    return net.conv(x, channels, 1, norm=True, act="relu6", name="pointwise")


def v1_trunk(net: Blueprint, x: Value) -> list[Value]:
    """MobileNetV1 up to its last convolution: the results of all 14 convolution blocks."""
    x = net.conv(x, 32, 3, stride=2, pad="same", norm=True, act="relu6", name="conv0")
    stages = [x]
    for i, (channels, stride) in enumerate(SEPARABLE, 1):
        with net.scope(f"conv{i}"):
            x = separable(net, x, channels, stride)
        stages.append(x)
    return stages


def mobilenet_v1(batch: int) -> Blueprint:
    """MobileNetV1, width 1.0, 224 x 224."""
    net = Blueprint("mobilenet-v1", batch)
    classifier(net, v1_trunk(net, net.image(3, 224))[-1])
    return net


def inverted_residual(net: Blueprint, x: Value, expansion: int, channels: int, stride: int) -> Value:
    """Pointwise expansion, depthwise convolution, linear pointwise projection; added to its input.

    Parameters
    ----------
    net : the network that grows
    x : the block's input, added to the result where the shape stays
    expansion : channels inside per input channel; 1 for no expansion
    channels : of the result
    stride : of the depthwise convolution
    """
    y = x
    if expansion > 1:
        y = net.conv(y, x.channels * expansion, 1, norm=True, act="relu6", name="expand")
    y = net.depthwise(y, 3, stride=stride, pad=1, norm=True, act="relu6", name="depthwise")
    y = net.conv(y, channels, 1, norm=True, name="project")
    return net.add(y, x) if stride == 1 and x.channels == channels else y


def mobilenet_v2(batch: int) -> Blueprint:
    """MobileNetV2, width 1.0, 224 x 224."""
    net = Blueprint("mobilenet-v2", batch)
    x = net.conv(net.image(3, 224), 32, 3, stride=2, pad=1, norm=True, act="relu6", name="conv1")
    for stage, (expansion, channels, repetitions, first) in enumerate(INVERTED, 1):
        for i in range(repetitions):
            with net.scope(f"bottleneck{stage}_{i + 1}"):
                x = inverted_residual(net, x, expansion, channels, 1 if i else first)
    classifier(net, net.conv(x, 1280, 1, norm=True, act="relu6", name="conv2"))
    return net


MODELS = {"mobilenet-v1": mobilenet_v1, "mobilenet-v2": mobilenet_v2}
