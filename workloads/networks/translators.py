"""T5 and Whisper: an encoder's result, read by a decoder.

C. Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer", JMLR
2020, section 3.1.2; A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML
2023, table 1. Prefill runs the encoder, caches its keys and values for every block of the decoder, and reads
the decoder's first tokens.  Decode runs the decoder alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from tilewright.foundation.options import option
from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.decoders import Heads, cross_attention, feed_forward, self_attention
from tilewright.workloads.blueprint.phases import MOST_TOKENS, Phased, size_option
from tilewright.workloads.mapping.operators import conv2d
from tilewright.workloads.network import Network
from tilewright.workloads.networks.encoders import blocks_before
from tilewright.workloads.phases import DECODE, PREFILL

T5_WORDS, BUCKETS = 32_128, 32
#: features, inner features, heads of 64 (128 for 11B and 3B), blocks of each side
T5_SIZES = {
    "small": (512, 2048, 8, 64, 6),
    "base": (768, 3072, 12, 64, 12),
    "large": (1024, 4096, 16, 64, 24),
    "3B": (1024, 16_384, 32, 128, 24),
    "11B": (1024, 65_536, 128, 128, 24),
}
#: features, blocks of each side, heads; words, bands of the spectrogram
WHISPER_SIZES = {
    "tiny": (384, 4, 6, 51_865, 80),
    "base": (512, 6, 8, 51_865, 80),
    "small": (768, 12, 12, 51_865, 80),
    "medium": (1024, 24, 16, 51_865, 80),
    "large": (1280, 32, 20, 51_866, 128),
}
FRAMES, SOUNDS, PLACES = 3000, 1500, 448


@dataclass(frozen=True)
class Translator(Phased):
    """A decoder that reads an encoder's result."""

    def network(self, name: str) -> Network:
        """Its layers; in decode the encoder's parameters count, though it does not run."""
        net = self.assembled(name)
        if self.phase == DECODE:
            net.hold(replace(self, phase=PREFILL).assembled(name).network())
        return net.network()

    def assembled(self, name: str) -> Assembly:
        """The layers in the making."""
        raise NotImplementedError


@dataclass(frozen=True)
class T5(Translator):
    """T5; ``source`` tokens are read by the encoder."""

    size: str = size_option("base", *T5_SIZES)
    source: int = option(512, "tokens of each sequence that the encoder reads", low=1, high=MOST_TOKENS)

    def assembled(self, name: str) -> Assembly:
        """The layers in the making."""
        features, inner, count, width, blocks = T5_SIZES[self.size]
        heads = Heads(count, count, width)
        net = Assembly(name, self.batch, self.widths)
        net.table("words", T5_WORDS * features)
        memory: Data | tuple[int, int, int] = (self.batch, self.source, features)
        if self.phase == PREFILL:
            net.table("encoder.places", BUCKETS * count)
            x = net.outside("source", (self.batch, self.source, features), "Gather")
            for i in range(blocks):
                with net.scope(f"encoder{i + 1}"):
                    y = self_attention(net, net.norm(x, "attention_norm"), heads)
                    x = net.add(x, y, "attention_sum")
                    y = feed_forward(net, net.norm(x, "feed_forward_norm"), inner, "Relu")
                    x = net.add(x, y, "feed_forward_sum")
            memory = net.norm(x, "encoder_norm")
        net.table("decoder.places", BUCKETS * count)
        x = net.outside("tokens", (self.batch, self.new, features), "Gather")
        for i in range(blocks):
            with net.scope(f"decoder{i + 1}"):
                y = self_attention(net, net.norm(x, "attention_norm"), heads, cached=self.past)
                x = net.add(x, y, "attention_sum")
                y = cross_attention(net, net.norm(x, "cross_attention_norm"), memory, heads)
                x = net.add(x, y, "cross_attention_sum")
                y = feed_forward(net, net.norm(x, "feed_forward_norm"), inner, "Relu")
                x = net.add(x, y, "feed_forward_sum")
        self.head(net, net.norm(x, "decoder_norm"), T5_WORDS, "words")
        return net


@dataclass(frozen=True)
class Whisper(Translator):
    """Whisper on 30 seconds of sound."""

    size: str = size_option("small", *WHISPER_SIZES)

    def assembled(self, name: str) -> Assembly:
        """The layers in the making."""
        features, blocks, count, words, bands = WHISPER_SIZES[self.size]
        heads = Heads(count, count, features // count, biased="qvo")
        net = Assembly(name, self.batch, self.widths)
        net.table("words", words * features)
        net.table("places", PLACES * features)
        net.table("encoder.places", SOUNDS * features)
        memory: Data | tuple[int, int, int] = (self.batch, SOUNDS, features)
        if self.phase == PREFILL:
            with net.scope("encoder"):
                memory = self._encoded(net, heads, blocks, bands)
        x = net.outside("tokens", (self.batch, self.new, features), "Gather")
        x = net.add(x, net.outside("places", (self.new, features), "Slice"), "placed")
        norm = partial(net.norm, shift=True)
        for i in range(blocks):
            with net.scope(f"decoder{i + 1}"):
                y = self_attention(net, norm(x, "attention_norm"), heads, cached=self.past)
                x = net.add(x, y, "attention_sum")
                y = cross_attention(net, norm(x, "cross_attention_norm"), memory, heads)
                x = net.add(x, y, "cross_attention_sum")
                y = feed_forward(net, norm(x, "feed_forward_norm"), 4 * features, "Gelu", bias=True)
                x = net.add(x, y, "feed_forward_sum")
        self.head(net, norm(x, "decoder_norm"), words, "words")
        return net

    @staticmethod
    def _encoded(net: Assembly, heads: Heads, blocks: int, bands: int) -> Data:
        """Two convolutions over the spectrogram, and the blocks of the encoder."""
        features, batch = heads.queries * heads.width, net.batch
        x = net.outside("sound", (batch, bands, 1, FRAMES))
        frames = FRAMES
        for i, stride in enumerate((1, 2)):
            channels, name = x.shape[1], f"convolution{i + 1}"
            operator = conv2d(
                n=batch, k=features, c=channels, r=1, s=3, h=1, w=frames, stride=(1, stride), pad=(0, 1, 0, 1)
            )
            frames //= stride
            learned = net.learned((f"{name}.weight", 3 * channels * features), (f"{name}.bias", features))
            shape = (batch, features, 1, frames)
            x = net.layer(name, "Conv", operator, {"I": x}, shape, learned=learned)
            x = net.pointwise(f"{name}_act", "Gelu", x)
        x = x.moved((batch, frames, features), "Transpose")
        x = net.add(x, net.outside("places", (frames, features)), "placed")
        return net.norm(blocks_before(net, x, blocks, heads, "Gelu"), "last_norm", shift=True)
