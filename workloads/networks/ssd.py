"""Single-shot detectors of the MLPerf inference suite (version 0.5).

W. Liu et al., "SSD: single shot multibox detector", ECCV 2016, on two other trunks.  SSD-ResNet34 is MLPerf's
1200 x 1200 form: ResNet-34 without its last stage, whose third stage does not stride, five further pairs of
convolutions, and heads that stride by 3, so that there are 15130 boxes of 81 classes.  SSD-MobileNetV1 is the
300 x 300 form of TensorFlow's detection models: heads of 1x1 convolutions, 1917 boxes of 91 classes.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value
from tilewright.workloads.networks.mobilenet import v1_trunk
from tilewright.workloads.networks.resnet import plain_block, stem

EXTRA = ((256, 512, 2, 1), (256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 2, 0), (128, 256, 1, 0))
"""SSD-ResNet34: inner and output channels, stride and padding of every further pair of convolutions."""
EXTRA_MOBILE = ((256, 512), (128, 256), (128, 256), (64, 128))


def heads(
    net: Blueprint, maps: list[Value], boxes: tuple[int, ...], classes: int, kernel: int, stride: int = 1
) -> None:
    """Places and classes of all boxes: two convolutions on every feature map, joined.

    Parameters
    ----------
    net : the network that grows
    maps : feature maps, the largest first
    boxes : per map, the boxes at each of its places
    classes : that each box is scored for, the background among them
    kernel : rows and columns of the filters
    stride : of both convolutions
    """
    outputs: dict[str, list[Value]] = {"place": [], "class": []}
    for i, (x, count) in enumerate(zip(maps, boxes, strict=True)):
        for kind, each in (("place", 4), ("class", classes)):
            y = net.conv(x, count * each, kernel, stride=stride, pad=kernel // 2, name=f"head{i}.{kind}")
            outputs[kind].append(net.reshape(y, (net.batch, each, count * y.shape[2] * y.shape[3])))
    net.output(*(net.concat(*values, axis=2, name=kind) for kind, values in outputs.items()))


def ssd_resnet34(batch: int) -> Blueprint:
    """SSD-ResNet34, 1200 x 1200."""
    net = Blueprint("ssd-resnet34", batch)
    x = stem(net, net.image(3, 1200))
    for stage, (depth, channels, stride) in enumerate([(3, 64, 1), (4, 128, 2), (6, 256, 1)], 2):
        for i in range(depth):
            with net.scope(f"conv{stage}_{i + 1}"):
                x = plain_block(net, x, channels, 1 if i else stride)
    maps = [x]
    for i, (inner, channels, stride, pad) in enumerate(EXTRA, 7):
        x = net.conv(x, inner, 1, act="Relu", name=f"extra{i}_1")
        x = net.conv(x, channels, 3, stride=stride, pad=pad, act="Relu", name=f"extra{i}_2")
        maps.append(x)
    heads(net, maps, (4, 6, 6, 6, 4, 4), classes=81, kernel=3, stride=3)
    return net


def ssd_mobilenet_v1(batch: int) -> Blueprint:
    """SSD-MobileNetV1, 300 x 300."""
    net = Blueprint("ssd-mobilenet-v1", batch)
    trunk = v1_trunk(net, net.image(3, 300))
    x = trunk[-1]
    maps = [trunk[11], x]
    for i, (inner, channels) in enumerate(EXTRA_MOBILE, 14):
        x = net.conv(x, inner, 1, norm=True, act="relu6", name=f"extra{i}_1")
        x = net.conv(x, channels, 3, stride=2, pad="same", norm=True, act="relu6", name=f"extra{i}_2")
        maps.append(x)
    heads(net, maps, (3, 6, 6, 6, 6, 6), classes=91, kernel=1)
    return net


MODELS = {"ssd-resnet34": ssd_resnet34, "ssd-mobilenet-v1": ssd_mobilenet_v1}
