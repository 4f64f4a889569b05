"""GoogLeNet, the first Inception network.

C. Szegedy et al., "Going deeper with convolutions", CVPR 2015, table 1; without the two auxiliary
classifiers, which are dropped after training.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value

MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""Channels of 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection, as the table's columns."""


def inception(net: Blueprint, x: Value, widths: tuple[int, ...]) -> Value:
    """Four branches side by side."""
    single, reduce3, three, reduce5, five, projection = widths
    branches = [net.conv(x, single, 1, act="Relu", name="1x1")]
    y = net.conv(x, reduce3, 1, act="Relu", name="3x3_reduce")
    branches.append(net.conv(y, three, 3, pad=1, act="Relu", name="3x3"))
    y = net.conv(x, reduce5, 1, act="Relu", name="5x5_reduce")
    branches.append(net.conv(y, five, 5, pad=2, act="Relu", name="5x5"))
    y = net.max_pool(x, 3, pad=1)
    branches.append(net.conv(y, projection, 1, act="Relu", name="projection"))
    return net.concat(*branches)


def googlenet(batch: int) -> Blueprint:
    """GoogLeNet, 224 x 224."""
    net = Blueprint("googlenet", batch)
    x = net.conv(net.image(3, 224), 64, 7, stride=2, pad=3, act="Relu", name="conv1")
    x = net.local_response_norm(net.max_pool(x, 3, stride=2, ceil=True, name="pool1"))
    x = net.conv(x, 64, 1, act="Relu", name="conv2_reduce")
    x = net.local_response_norm(net.conv(x, 192, 3, pad=1, act="Relu", name="conv2"))
    for name, widths in MODULES.items():
        if name.endswith("a"):
            x = net.max_pool(x, 3, stride=2, ceil=True, name=f"pool{int(name[0]) - 1}")
        with net.scope(f"inception{name}"):
            x = inception(net, x, widths)
    net.softmax(net.dense(net.flatten(net.global_average(x)), 1000, name="classifier"))
    return net


MODELS = {"googlenet": googlenet}
