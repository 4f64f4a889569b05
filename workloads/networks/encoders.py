"""BERT, vision transformers and CLIP: encoders that run in one pass.

J. Devlin et al., "BERT", NAACL 2019, section 3; A. Dosovitskiy et al., "An image is worth 16x16 words", ICLR
2021, table 1; A. Radford et al., "Learning transferable visual models from natural language supervision",
ICML 2021, table 20.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.foundation.options import option
from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.decoders import Heads, feed_forward, self_attention
from tilewright.workloads.blueprint.phases import MOST_TOKENS, Picture, size_option
from tilewright.workloads.blueprint.pictures import convolution
from tilewright.workloads.network import Network

#: features, blocks, heads
BERT_SIZES = {"base": (768, 12, 12), "large": (1024, 24, 16)}
BERT_WORDS, BERT_PLACES, SEGMENTS = 30_522, 512, 2
VIT_SIZES = {"B": (768, 12, 12), "L": (1024, 24, 16)}
CLASSES, PIXELS = 1000, 224
#: pixels of a patch; features, blocks and heads for pictures, then for text; common features
CLIP_SIZES = {
    "B32": (32, (768, 12, 12), (512, 12, 8), 512),
    "B16": (16, (768, 12, 12), (512, 12, 8), 512),
    "L14": (14, (1024, 24, 16), (768, 12, 12), 768),
}
CLIP_WORDS, CLIP_TOKENS = 49_408, 77


def blocks_before(net: Assembly, x: Data, blocks: int, heads: Heads, act: str) -> Data:
    """Encoder blocks with the normalisation before each part.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    blocks : how many
    heads : of every attention
    act : activation of the feed-forward parts
    """
    features = x.shape[-1]
    for i in range(blocks):
        with net.scope(f"block{i + 1}"):
            y = self_attention(net, net.norm(x, "attention_norm", shift=True), heads)
            x = net.add(x, y, "attention_sum")
            y = feed_forward(net, net.norm(x, "feed_forward_norm", shift=True), 4 * features, act, bias=True)
            x = net.add(x, y, "feed_forward_sum")
    return x


def even_heads(features: int, count: int) -> Heads:
    """Heads that share the features evenly, with biases everywhere."""
    return Heads(count, count, features // count, biased="qkvo")


def patches(net: Assembly, features: int, patch: int, *, bias: bool) -> Data:
    """A picture as tokens, one for each patch and one more, with vectors of places.

    Parameters
    ----------
    net : the network that grows
    features : of a token
    patch : pixels along each side
    bias : whether the convolution that makes the tokens has one
    """
    side, batch = PIXELS // patch, net.batch
    picture = net.outside("picture", (batch, 3, PIXELS, PIXELS))
    made = convolution(net, picture, features, patch, "patches", stride=patch, bias=bias)
    tokens = side * side + 1
    net.table("class_token", features)
    net.table("places", tokens * features)
    x = made.moved((batch, tokens, features), "Reshape", "Transpose", "Concat")
    return net.add(x, net.outside("places", (tokens, features), "Slice"), "placed")


def _first(x: Data) -> Data:
    """The first token."""
    batch, _, features = x.shape
    return x.part(1, 0, 1).rearranged((batch, 1, features), (0, 1, 2), (batch, features))


@dataclass(frozen=True)
class Bert(Picture):
    """BERT, with the pooled first token on top."""

    size: str = size_option("base", *BERT_SIZES)
    tokens: int = option(512, "tokens of each sequence", low=1, high=MOST_TOKENS)

    def network(self, name: str) -> Network:
        """Its layers."""
        features, blocks, count = BERT_SIZES[self.size]
        heads = even_heads(features, count)
        net = Assembly(name, self.batch, self.widths)
        for part, rows in (("words", BERT_WORDS), ("places", BERT_PLACES), ("segments", SEGMENTS)):
            net.table(part, rows * features)
        shape = (self.batch, self.tokens, features)
        x = net.add(
            net.outside("tokens", shape, "Gather"), net.outside("segments", shape, "Gather"), "with_segments"
        )
        x = net.add(x, net.outside("places", shape[1:], "Slice"), "placed")
        x = net.norm(x, "embedding_norm", shift=True)
        for i in range(blocks):
            with net.scope(f"block{i + 1}"):
                y = net.add(x, self_attention(net, x, heads), "attention_sum")
                y = net.norm(y, "attention_norm", shift=True)
                x = net.add(y, feed_forward(net, y, 4 * features, "Gelu", bias=True), "feed_forward_sum")
                x = net.norm(x, "feed_forward_norm", shift=True)
        net.pointwise("pooler_act", "Tanh", net.project(_first(x), features, "pooler", bias=True))
        return net.network()


@dataclass(frozen=True)
class ViT(Picture):
    """Vision transformers on patches of 16 x 16 pixels of 224 x 224, with 1,000 classes."""

    size: str = size_option("B", *VIT_SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        features, blocks, count = VIT_SIZES[self.size]
        net = Assembly(name, self.batch, self.widths)
        x = blocks_before(
            net, patches(net, features, 16, bias=True), blocks, even_heads(features, count), "Gelu"
        )
        x = net.norm(x, "last_norm", shift=True)
        net.project(_first(x), CLASSES, "classes", bias=True)
        return net.network()


@dataclass(frozen=True)
class Clip(Picture):
    """CLIP: as many pictures as texts of 77 tokens, and how well each goes with each."""

    size: str = size_option("B32", *CLIP_SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        patch, (features, blocks, count), (words, depth, heads), common = CLIP_SIZES[self.size]
        net, batch = Assembly(name, self.batch, self.widths), self.batch
        with net.scope("picture"):
            x = net.norm(patches(net, features, patch, bias=False), "first_norm", shift=True)
            x = blocks_before(net, x, blocks, even_heads(features, count), "QuickGelu")
            x = net.norm(_first(x), "last_norm", shift=True)
            picture = net.project(x, common, "common")
        with net.scope("text"):
            net.table("words", CLIP_WORDS * words)
            net.table("places", CLIP_TOKENS * words)
            x = net.outside("tokens", (batch, CLIP_TOKENS, words), "Gather")
            x = net.add(x, net.outside("places", (CLIP_TOKENS, words), "Slice"), "placed")
            x = blocks_before(net, x, depth, even_heads(words, heads), "QuickGelu")
            x = net.norm(x, "last_norm", shift=True)
            text = net.project(x.moved((batch, words), "Slice"), common, "common")
        net.table("temperature", 1)
        net.products(picture, text, (1, batch, batch, common), (batch, batch), "likeness")
        return net.network()
