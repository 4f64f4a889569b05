"""DarkNet-19.

J. Redmon, A. Farhadi, "YOLO9000: better, faster, stronger", CVPR 2017, table 6: the classification network at
224 x 224; 3x3 convolutions with 1x1 convolutions between them, the last convolution gives the classes.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint

STAGES = (
    (32,),
    (64,),
    (128, 64, 128),
    (256, 128, 256),
    (512, 256, 512, 256, 512),
    (1024, 512, 1024, 512, 1024),
)
"""Channels of the convolutions between two poolings; every second one has a 1x1 kernel."""


def darknet19(batch: int) -> Blueprint:
    """DarkNet-19, 224 x 224."""
    net = Blueprint("darknet19", batch)
    x = net.image(3, 224)
    for stage, widths in enumerate(STAGES, 1):
        if stage > 1:
            x = net.max_pool(x, 2, stride=2, name=f"pool{stage - 1}")
        for i, channels in enumerate(widths):
            kernel = 1 if i % 2 else 3
            x = net.conv(
                x, channels, kernel, pad=kernel // 2, norm=True, act="LeakyRelu", name=f"conv{stage}_{i + 1}"
            )
    x = net.conv(x, 1000, 1, name="classes")
    net.softmax(net.flatten(net.global_average(x)))
    return net


MODELS = {"darknet19": darknet19}
