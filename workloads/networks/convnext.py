"""ConvNeXt: a convolutional network after the vision transformers.

Z. Liu et al., "A ConvNet for the 2020s", CVPR 2022, section 3 (sizes and blocks), for 224 x 224 pixels and
1,000 classes.  The normalisation of channels is a pass of its own; the learned scale at the end of a block
belongs to the residual sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.phases import Picture, size_option
from tilewright.workloads.blueprint.pictures import convolution, global_average
from tilewright.workloads.network import Network

#: channels of the first stage, blocks of the four stages; channels double from stage to stage
SIZES = {
    "T": (96, (3, 3, 9, 3)),
    "S": (96, (3, 3, 27, 3)),
    "B": (128, (3, 3, 27, 3)),
    "L": (192, (3, 3, 27, 3)),
}


def _norm(net: Assembly, x: Data, name: str) -> Data:
    channels = x.shape[1]
    learned = net.learned((f"{name}.scale", channels), (f"{name}.shift", channels))
    return net.pointwise(name, "LayerNormalization", x, learned=learned)


def _block(net: Assembly, x: Data) -> Data:
    channels = x.shape[1]
    y = convolution(net, x, channels, 7, "depthwise", groups=channels)
    y = convolution(net, _norm(net, y, "norm"), 4 * channels, 1, "wide", act="Gelu")
    y = convolution(net, y, channels, 1, "narrow")
    return net.pointwise("sum", "MulAdd", x, y, learned=net.learned(("scale", channels)))


@dataclass(frozen=True)
class ConvNeXt(Picture):
    """ConvNeXt."""

    size: str = size_option("T", *SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        channels, stages = SIZES[self.size]
        net = Assembly(name, self.batch, self.widths)
        x = net.outside("picture", (self.batch, 3, 224, 224))
        for i, blocks in enumerate(stages):
            with net.scope(f"stage{i + 1}"):
                if i == 0:
                    x = _norm(net, convolution(net, x, channels, 4, "patches", stride=4), "patches_norm")
                else:
                    x = convolution(net, _norm(net, x, "norm"), channels << i, 2, "halved", stride=2)
                for j in range(blocks):
                    with net.scope(f"block{j + 1}"):
                        x = _block(net, x)
        pooled = global_average(net, x, "pool")
        net.project(net.norm(pooled, "last_norm", shift=True), 1000, "classes", bias=True)
        return net.network()
