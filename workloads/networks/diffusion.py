"""The U-Net of Stable Diffusion 1: one step of denoising a latent picture under a text.

R. Rombach et al., "High-resolution image synthesis with latent diffusion models", CVPR 2022, appendix E;
blocks and channels of the published configuration (``docs/networks.md``).  ``pixels`` is the side of the
picture; the latent one has an eighth of it.  The text arrives as 77 vectors of 768 features, the step as a
vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.decoders import Heads, attend
from tilewright.workloads.blueprint.phases import Picture, size_option
from tilewright.workloads.blueprint.pictures import convolution, norm_of_groups
from tilewright.workloads.network import Network

CHANNELS, LEVELS, BLOCKS, HEADS = 320, (1, 2, 4, 4), 2, 8
TEXT, TEXT_FEATURES, LATENT = 77, 768, 4
STEP = 4 * CHANNELS
DEEPEST = len(LEVELS) - 1


@dataclass(frozen=True)
class StableDiffusion(Picture):
    """Stable Diffusion 1.5."""

    size: str = size_option("1.5", "1.5")
    pixels: int = option(512, "rows and columns of the picture, a multiple of 64", low=64, high=4096)

    def network(self, name: str) -> Network:
        """Its layers; raises ``InputError`` for a side that the levels do not divide."""
        if self.pixels % 64:
            nearest = max(64, round(self.pixels / 64) * 64)
            raise InputError(name, "pixels", f"expected a multiple of 64, got {self.pixels}, try {nearest}")
        return _Denoiser(name, self).network()


class _Denoiser:
    """The network in the making.

    Parameters
    ----------
    name : of the network
    family : its parameters
    """

    def __init__(self, name: str, family: StableDiffusion) -> None:
        self.net = Assembly(name, family.batch, family.widths)
        self.side = family.pixels // 8
        self.text = self.net.outside("text", (family.batch, TEXT, TEXT_FEATURES))
        self.step = self.embedded()

    def network(self) -> Network:
        """Down, through the middle, up again with what was kept on the way."""
        net = self.net
        x = net.outside("latent", (net.batch, LATENT, self.side, self.side))
        x = convolution(net, x, CHANNELS, 3, "first")
        kept = [x]
        for level, factor in enumerate(LEVELS):
            for i in range(BLOCKS):
                with net.scope(f"down{level + 1}_{i + 1}"):
                    x = self.stage(x, CHANNELS * factor, level)
                kept.append(x)
            if level < DEEPEST:
                x = convolution(net, x, x.shape[1], 3, f"down{level + 1}.halved", stride=2)
                kept.append(x)
        with net.scope("middle"):
            with net.scope("first"):
                x = self.transformed(self.residual(x, x.shape[1]))
            with net.scope("second"):
                x = self.residual(x, x.shape[1])
        for level in reversed(range(len(LEVELS))):
            for i in range(BLOCKS + 1):
                with net.scope(f"up{level + 1}_{i + 1}"):
                    x = self.stage(x.joined(1, kept.pop()), CHANNELS * LEVELS[level], level)
            if level:
                batch, channels, rows, columns = x.shape
                x = x.moved((batch, channels, 2 * rows, 2 * columns), "Resize")
                x = convolution(net, x, channels, 3, f"up{level + 1}.doubled")
        x = norm_of_groups(net, x, "last_norm", act="Silu")
        convolution(net, x, LATENT, 3, "last")
        return net.network()

    def embedded(self) -> Data:
        """The step as a vector, through two projections."""
        net = self.net
        with net.scope("step"):
            x = net.project(net.outside("waves", (net.batch, CHANNELS)), STEP, "first", bias=True)
            x = net.project(net.pointwise("first_act", "Silu", x), STEP, "second", bias=True)
            return net.pointwise("second_act", "Silu", x)

    def stage(self, x: Data, channels: int, level: int) -> Data:
        """A residual block, and but on the deepest level a transformer behind it."""
        x = self.residual(x, channels)
        return x if level == DEEPEST else self.transformed(x)

    def residual(self, x: Data, channels: int) -> Data:
        """Two convolutions, between them the step; the way around them has one where channels change."""
        net = self.net
        with net.scope("residual"):
            y = norm_of_groups(net, x, "norm1", act="Silu")
            y = convolution(net, y, channels, 3, "convolution1")
            step = net.project(self.step, channels, "step", bias=True)
            y = net.pointwise(
                "stepped",
                "Add",
                y,
                step.rearranged((net.batch, channels), (0, 1), (net.batch, channels, 1, 1), "Reshape"),
            )
            y = convolution(net, norm_of_groups(net, y, "norm2", act="Silu"), channels, 3, "convolution2")
            if channels != x.shape[1]:
                x = convolution(net, x, channels, 1, "around")
            return net.add(x, y, "sum")

    def transformed(self, x: Data) -> Data:
        """Attention of the pixels over themselves and over the text, and a gated feed-forward part."""
        net = self.net
        batch, channels, rows, columns = x.shape
        with net.scope("transformer"):
            y = convolution(net, norm_of_groups(net, x, "norm"), channels, 1, "into")
            pixels = rows * columns
            apart, beside = (batch, channels, pixels), (batch, pixels, channels)
            y = y.rearranged(apart, (0, 2, 1), beside, "Reshape", "Transpose")
            z = net.norm(y, "self_norm", shift=True)
            y = net.add(y, self.attention(z, z, "self"), "self_sum")
            z = net.norm(y, "cross_norm", shift=True)
            y = net.add(y, self.attention(z, self.text, "cross"), "cross_sum")
            z = net.project(net.norm(y, "feed_norm", shift=True), 8 * channels, "feed_up", bias=True)
            halves = (z.part(2, start, 4 * channels) for start in (0, 4 * channels))
            z = net.pointwise("feed_gated", "GeluMul", *halves)
            y = net.add(y, net.project(z, channels, "feed_down", bias=True), "feed_sum")
            y = y.rearranged(beside, (0, 2, 1), x.shape, "Transpose", "Reshape")
            return net.add(x, convolution(net, y, channels, 1, "out"), "sum")

    def attention(self, x: Data, memory: Data, name: str) -> Data:
        """Attention without biases but behind it."""
        net = self.net
        batch, tokens, channels = x.shape
        context, heads = memory.shape[1], Heads(HEADS, HEADS, channels // HEADS)
        pairs = batch * HEADS
        with net.scope(name):
            own, other = ((batch, count, HEADS, heads.width) for count in (tokens, context))
            queries, keys, values = (
                net.project(read, channels, name).rearranged(split, order, shape, "Transpose")
                for read, name, split, order, shape in (
                    (x, "query", own, (0, 2, 1, 3), (pairs, tokens, heads.width)),
                    (memory, "key", other, (0, 2, 3, 1), (pairs, heads.width, context)),
                    (memory, "value", other, (0, 2, 1, 3), (pairs, context, heads.width)),
                )
            )
            mixed = attend(net, queries, keys, values, (pairs, tokens, context, heads.width, heads.width))
            headed = (batch, HEADS, tokens, heads.width)
            together = mixed.rearranged(headed, (0, 2, 1, 3), x.shape, "Transpose")
            return net.project(together, channels, "result", bias=True)
