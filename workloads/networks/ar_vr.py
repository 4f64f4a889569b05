"""The two networks of Herald's table I that have no common name: hand pose and depth with focal length.

Both papers draw their networks without listing every layer, and their figures were not at hand.  What is
known is built as published there; what is not is chosen here and named as such, so these two are
*reconstructions*.  `docs/networks.md` compares them with the figures that Herald's table I gives.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value
from tilewright.workloads.networks.vgg import features

FINGERS = ("palm", "thumb", "index", "middle", "ring", "little")
POSE = {"palm": 9, "thumb": 9, "index": 12, "middle": 12, "ring": 12, "little": 12}


def handpose(batch: int) -> Blueprint:
    """Hand pose from depth: a tree of local branches, and their fusion.

    M. Madadi et al., "End-to-end global to local CNN learning for hand pose recovery in depth data", 2017.
    Published: convolutions shared by all, one branch for the palm and one per finger, and a fusion network
    on the branches' features that regresses the whole pose.  From Herald's table I: one channel of 64 rows
    (ratio 1/64) and fully connected layers of 1024 inputs.  Chosen here: the numbers of filters, one
    convolution and two hidden layers per branch.
    """
    net = Blueprint("handpose", batch)
    x = net.image(1, 64)
    for i, channels in enumerate((32, 64, 64), 1):
        x = net.conv(x, channels, 5 if i == 1 else 3, pad="same", act="Relu", name=f"conv{i}")
        x = net.max_pool(x, 2, stride=2, name=f"pool{i}")
    local = [branch(net, x, finger) for finger in FINGERS]
    with net.scope("fusion"):
        y = net.concat(*local, name="features")
        for i in (1, 2):
            y = net.dense(y, 1024, act="Relu", name=f"fc{i}")
        net.dense(y, sum(POSE.values()), name="pose")
    return net


def branch(net: Blueprint, x: Value, finger: str) -> Value:
    """Features of one part of the hand; its own pose is an output next to the fused one."""
    with net.scope(finger):
        y = net.conv(x, 64, 3, pad=1, act="Relu", name="conv")
        y = net.flatten(net.max_pool(y, 2, stride=2))
        for i in (1, 2):
            y = net.dense(y, 1024, act="Relu", name=f"fc{i}")
        net.dense(y, POSE[finger], name="pose")
        return y


def depthnet(batch: int) -> Blueprint:
    """Depth from one picture and its focal length.

    L. He, G. Wang, Z. Hu, "Learning depth from single images with deep neural network embedding focal
    length", IEEE TIP 2018.  Published there: a VGG trunk, global features through fully connected layers into
    which the focal length is embedded, and their fusion with middle-level features on the way up.  From
    Herald: the second fully connected layer is 4096 x 4096, and rows are restored by up-convolutions.  Chosen
    here: the 16-layer trunk at 224 x 224, 64 features for the focal length, a 14 x 14 map of 64 channels
    behind the fully connected layers, and the channels of the way up.
    """
    net = Blueprint("depthnet", batch)
    stages = features(net, net.image(3, 224), (2, 2, 3, 3, 3))
    focal = net.dense(net.input("focal_length", (1,)), 64, act="Relu", name="focal")
    y = net.flatten(net.max_pool(stages[-1], 2, stride=2, name="pool5"))
    for i in (1, 2):
        y = net.dense(y, 4096, act="Relu", name=f"fc{i}")
    y = net.dense(net.concat(y, focal, name="embedded"), 64 * 14 * 14, act="Relu", name="fc3")
    x = net.reshape(y, (batch, 64, 14, 14))
    for i, channels in ((5, 256), (4, 128), (3, 64), (2, 32)):
        with net.scope(f"up{i}"):
            middle = net.conv(stages[i - 1], channels, 1, act="Relu", name="middle")
            x = net.conv(net.concat(x, middle), channels, 3, pad=1, act="Relu", name="fuse")
            x = net.transposed(x, channels, 2, stride=2, act="Relu", name="upconv")
    net.conv(x, 1, 3, pad=1, name="depth")
    return net


MODELS = {"handpose": handpose, "depthnet": depthnet}
