"""MobileNetV3: inverted residuals with squeeze-and-excitation.

A. Howard et al., "Searching for MobileNetV3", ICCV 2019, tables 1 and 2, for 224 x 224 pixels and 1,000
classes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.phases import Picture, size_option
from tilewright.workloads.blueprint.pictures import convolution, global_average, scaled
from tilewright.workloads.network import Network

RELU, SWISH = "Relu", "HardSwish"
#: kernel, expanded channels, channels, squeeze-and-excitation, activation, stride
LARGE = (
    (3, 16, 16, False, RELU, 1),
    (3, 64, 24, False, RELU, 2),
    (3, 72, 24, False, RELU, 1),
    (5, 72, 40, True, RELU, 2),
    (5, 120, 40, True, RELU, 1),
    (5, 120, 40, True, RELU, 1),
    (3, 240, 80, False, SWISH, 2),
    (3, 200, 80, False, SWISH, 1),
    (3, 184, 80, False, SWISH, 1),
    (3, 184, 80, False, SWISH, 1),
    (3, 480, 112, True, SWISH, 1),
    (3, 672, 112, True, SWISH, 1),
    (5, 672, 160, True, SWISH, 2),
    (5, 960, 160, True, SWISH, 1),
    (5, 960, 160, True, SWISH, 1),
)
SMALL = (
    (3, 16, 16, True, RELU, 2),
    (3, 72, 24, False, RELU, 2),
    (3, 88, 24, False, RELU, 1),
    (5, 96, 40, True, SWISH, 2),
    (5, 240, 40, True, SWISH, 1),
    (5, 240, 40, True, SWISH, 1),
    (5, 120, 48, True, SWISH, 1),
    (5, 144, 48, True, SWISH, 1),
    (5, 288, 96, True, SWISH, 2),
    (5, 576, 96, True, SWISH, 1),
    (5, 576, 96, True, SWISH, 1),
)
#: blocks, channels of the last convolution, features of the classifier
SIZES = {"large": (LARGE, 960, 1280), "small": (SMALL, 576, 1024)}


def _eighths(channels: int) -> int:
    """A quarter of the channels, rounded to a multiple of 8, and up where that loses more than a tenth."""
    quarter = channels / 4
    rounded = max(8, int(quarter + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * quarter else rounded


def _excited(net: Assembly, x: Data) -> Data:
    """Channels times factors that follow from their means."""
    with net.scope("excitation"):
        squeezed = net.project(global_average(net, x, "pool"), _eighths(x.shape[1]), "squeeze", bias=True)
        wide = net.project(net.pointwise("act", RELU, squeezed), x.shape[1], "excite", bias=True)
        return scaled(net, x, net.pointwise("gate", "HardSigmoid", wide), "scaled")


def _block(net: Assembly, x: Data, shape: tuple[int, int, int, bool, str, int]) -> Data:
    kernel, expanded, channels, excited, act, stride = shape
    y = x
    if expanded != x.shape[1]:
        y = convolution(net, y, expanded, 1, "expand", bias=False, folded=True, act=act)
    y = convolution(
        net,
        y,
        expanded,
        kernel,
        "depthwise",
        stride=stride,
        groups=expanded,
        bias=False,
        folded=True,
        act=act,
    )
    if excited:
        y = _excited(net, y)
    y = convolution(net, y, channels, 1, "project", bias=False, folded=True)
    return net.add(x, y, "sum") if stride == 1 and channels == x.shape[1] else y


@dataclass(frozen=True)
class MobileNetV3(Picture):
    """MobileNetV3."""

    size: str = size_option("large", *SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        blocks, last, features = SIZES[self.size]
        net = Assembly(name, self.batch, self.widths)
        x = net.outside("picture", (self.batch, 3, 224, 224))
        x = convolution(net, x, 16, 3, "first", stride=2, bias=False, folded=True, act=SWISH)
        for i, shape in enumerate(blocks):
            with net.scope(f"block{i + 1}"):
                x = _block(net, x, shape)
        x = convolution(net, x, last, 1, "last", bias=False, folded=True, act=SWISH)
        x = net.project(global_average(net, x, "pool"), features, "features", bias=True)
        net.project(net.pointwise("features_act", SWISH, x), 1000, "classes", bias=True)
        return net.network()
