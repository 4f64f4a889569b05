"""EfficientNet-B0.

M. Tan, Q. Le, "EfficientNet: rethinking model scaling for convolutional neural networks", ICML 2019, table
1: inverted residuals of MobileNetV2 with squeeze-and-excitation (a quarter of the block's input channels) and
the swish activation.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value
from tilewright.workloads.networks.resnet import classifier

STAGES = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)
"""Expansion, kernel, output channels, repetitions, stride of the first."""


def squeeze_excite(net: Blueprint, x: Value, inner: int) -> Value:
    """Every channel scaled by a small network of all channels' means."""
    y = net.conv(net.global_average(x, "squeeze"), inner, 1, act="swish", name="reduce")
    y = net.conv(y, x.channels, 1, act="Sigmoid", name="excite")
    return net.multiply(x, y, name="scale")


def block(net: Blueprint, x: Value, expansion: int, kernel: int, channels: int, stride: int) -> Value:
    """Expansion, depthwise convolution, squeeze-and-excitation, linear projection.

    Parameters
    ----------
    net : the network that grows
    x : the block's input
    expansion : output channels of the expansion per input channel; 1 for no expansion
    kernel : rows and columns of the depthwise filter
    channels : of the result
    stride : of the depthwise convolution; the input is added only where it is 1
    """
    y = x
    if expansion > 1:
        y = net.conv(y, x.channels * expansion, 1, norm=True, act="swish", name="expand")
    y = net.depthwise(y, kernel, stride=stride, pad="same", norm=True, act="swish", name="depthwise")
    y = squeeze_excite(net, y, x.channels // 4)
    y = net.conv(y, channels, 1, norm=True, name="project")
    return net.add(y, x) if stride == 1 and x.channels == channels else y


def efficientnet_b0(batch: int) -> Blueprint:
    """EfficientNet-B0, 224 x 224."""
    net = Blueprint("efficientnet-b0", batch)
    x = net.conv(net.image(3, 224), 32, 3, stride=2, pad="same", norm=True, act="swish", name="stem")
    for stage, (expansion, kernel, channels, repetitions, first) in enumerate(STAGES, 1):
        for i in range(repetitions):
            with net.scope(f"block{stage}_{i + 1}"):
                x = block(net, x, expansion, kernel, channels, 1 if i else first)
    classifier(net, net.conv(x, 1280, 1, norm=True, act="swish", name="head"))
    return net


MODELS = {"efficientnet-b0": efficientnet_b0}
