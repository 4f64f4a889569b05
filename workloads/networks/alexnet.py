"""The first deep convolutional networks for ImageNet.

A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with deep convolutional neural networks",
NIPS 2012, section 3.5 and figure 2: the two halves of the figure are two groups of channels; 227 x 227
pixels, with which the printed sizes of the feature maps come out.  M. Zeiler, R. Fergus, "Visualizing and
understanding convolutional networks", ECCV 2014, figure 3 (ZFNet).
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value


def classify(net: Blueprint, x: Value) -> None:
    """Three fully connected layers."""
    x = net.flatten(x)
    for i in (6, 7):
        x = net.dense(x, 4096, act="Relu", name=f"fc{i}")
    net.softmax(net.dense(x, 1000, name="fc8"))


def alexnet(batch: int) -> Blueprint:
    """AlexNet with its two groups."""
    net = Blueprint("alexnet", batch)
    x = net.conv(net.image(3, 227), 96, 11, stride=4, act="Relu", name="conv1")
    x = net.max_pool(net.local_response_norm(x), 3, stride=2, name="pool1")
    x = net.conv(x, 256, 5, pad=2, groups=2, act="Relu", name="conv2")
    x = net.max_pool(net.local_response_norm(x), 3, stride=2, name="pool2")
    x = net.conv(x, 384, 3, pad=1, act="Relu", name="conv3")
    x = net.conv(x, 384, 3, pad=1, groups=2, act="Relu", name="conv4")
    x = net.conv(x, 256, 3, pad=1, groups=2, act="Relu", name="conv5")
    classify(net, net.max_pool(x, 3, stride=2, name="pool5"))
    return net


def zfnet(batch: int) -> Blueprint:
    """ZFNet; the padding is the one with which the printed sizes of the feature maps come out."""
    net = Blueprint("zfnet", batch)
    x = net.conv(net.image(3, 224), 96, 7, stride=2, pad=1, act="Relu", name="conv1")
    x = net.local_response_norm(net.max_pool(x, 3, stride=2, ceil=True, name="pool1"))
    x = net.conv(x, 256, 5, stride=2, act="Relu", name="conv2")
    x = net.local_response_norm(net.max_pool(x, 3, stride=2, ceil=True, name="pool2"))
    for i, channels in ((3, 384), (4, 384), (5, 256)):
        x = net.conv(x, channels, 3, pad=1, act="Relu", name=f"conv{i}")
    classify(net, net.max_pool(x, 3, stride=2, name="pool5"))
    return net


MODELS = {"alexnet": alexnet, "zfnet": zfnet}
