"""UNet: contraction, expansion, and copies of feature maps across.

O. Ronneberger, P. Fischer, T. Brox, "U-Net: convolutional networks for biomedical image segmentation",
MICCAI 2015, figure 1: a 572 x 572 grey picture, unpadded convolutions, 388 x 388 results of two classes.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value


def double(net: Blueprint, x: Value, channels: int) -> Value:
    """Two unpadded 3x3 convolutions."""
    x = net.conv(x, channels, 3, act="Relu", name="conv1")
    return net.conv(x, channels, 3, act="Relu", name="conv2")


def unet(batch: int) -> Blueprint:
    """UNet as in figure 1 of its paper."""
    net = Blueprint("unet", batch)
    x = net.image(1, 572)
    copies = []
    for level in range(4):
        with net.scope(f"down{level + 1}"):
            x = double(net, x, 64 * 2**level)
            copies.append(x)
            x = net.max_pool(x, 2, stride=2)
    with net.scope("bottom"):
        x = double(net, x, 1024)
    for level in reversed(range(4)):
        with net.scope(f"up{level + 1}"):
            x = net.transposed(x, x.channels // 2, 2, stride=2, name="upconv")
            copy = net.crop(copies[level], x.size)
            x = double(net, net.concat(copy, x), 64 * 2**level)
    net.conv(x, 2, 1, name="classes")
    return net


MODELS = {"unet": unet}
