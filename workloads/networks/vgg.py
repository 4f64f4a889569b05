"""Very deep networks of 3x3 convolutions.

K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015,
table 1, configurations D (16 layers) and E (19 layers).
"""

from __future__ import annotations

from functools import partial

from tilewright.workloads.blueprint import Blueprint, Value

CHANNELS = (64, 128, 256, 512, 512)
DEPTHS = {"vgg16": (2, 2, 3, 3, 3), "vgg19": (2, 2, 4, 4, 4)}


def features(net: Blueprint, x: Value, depths: tuple[int, ...]) -> list[Value]:
    """The convolutional part: the result of every stage before its pooling."""
    stages: list[Value] = []
    for stage, (depth, channels) in enumerate(zip(depths, CHANNELS, strict=True), 1):
        if stages:
            x = net.max_pool(x, 2, stride=2, name=f"pool{stage - 1}")
        for i in range(depth):
            x = net.conv(x, channels, 3, pad=1, act="Relu", name=f"conv{stage}_{i + 1}")
        stages.append(x)
    return stages


def vgg(batch: int, *, name: str) -> Blueprint:
    """A VGG network of the given name."""
    net = Blueprint(name, batch)
    x = features(net, net.image(3, 224), DEPTHS[name])[-1]
    x = net.flatten(net.max_pool(x, 2, stride=2, name="pool5"))
    for i in (6, 7):
        x = net.dense(x, 4096, act="Relu", name=f"fc{i}")
    net.softmax(net.dense(x, 1000, name="fc8"))
    return net


MODELS = {name: partial(vgg, name=name) for name in DEPTHS}
