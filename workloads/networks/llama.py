"""Decoders with grouped queries and gated parts: Llama 3, Qwen3, and Mixtral with its experts.

Llama team, "The Llama 3 herd of models", arXiv:2407.21783, table 3; Qwen team, "Qwen3 technical report",
arXiv:2505.09388, tables 1 and 2; A. Q. Jiang et al., "Mixtral of experts", arXiv:2401.04088, table 1.
Features inside feed-forward parts and sizes of vocabularies stand in the published configurations
(``docs/networks.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.decoders import Experts, Heads, gated, mixture, self_attention
from tilewright.workloads.blueprint.phases import Phased, decoder, size_option
from tilewright.workloads.network import Network


@dataclass(frozen=True, slots=True)
class Configuration:
    """A published configuration.

    Parameters
    ----------
    words, features, blocks : of the vocabulary, of a token's vector, of the whole
    heads : of every attention
    inner : features inside the feed-forward part, or inside each expert
    experts, chosen : experts of a block, and those of a token; 0 for none
    tied : whether words are predicted by the table of word vectors
    """

    words: int
    features: int
    blocks: int
    heads: Heads
    inner: int
    experts: int = 0
    chosen: int = 0
    tied: bool = False


def grouped_decoder(family: Phased, name: str, shape: Configuration, shares: tuple[int, ...] = ()) -> Network:
    """A decoder of blocks with grouped queries and a gated part, or gated experts.

    Parameters
    ----------
    family : its parameters
    name : of the network
    shape : its configuration
    shares : of the assignments that active experts get; empty for equal ones
    """

    def block(net: Assembly, x: Data, _: int) -> Data:
        y = self_attention(net, net.norm(x, "attention_norm"), shape.heads, cached=family.past)
        x = net.add(x, y, "attention_sum")
        y = net.norm(x, "feed_forward_norm")
        if shape.experts:
            y = mixture(net, y, Experts(shape.experts, shape.chosen, shape.inner, shares))
        else:
            y = gated(net, y, shape.inner)
        return net.add(x, y, "feed_forward_sum")

    sizes = (shape.words, shape.features, shape.blocks)
    return decoder(family, name, sizes, block, tied=shape.tied)


LLAMA3 = {
    "8B": Configuration(128_256, 4096, 32, Heads(32, 8, 128, rotary=True), 14_336),
    "70B": Configuration(128_256, 8192, 80, Heads(64, 8, 128, rotary=True), 28_672),
}
QWEN3 = {
    "8B": Configuration(151_936, 4096, 36, Heads(32, 8, 128, rotary=True, normalised=True), 12_288),
    "30B-A3B": Configuration(
        151_936, 2048, 48, Heads(32, 4, 128, rotary=True, normalised=True), 768, experts=128, chosen=8
    ),
}
MIXTRAL = {
    "8x7B": Configuration(32_000, 4096, 32, Heads(32, 8, 128, rotary=True), 14_336, experts=8, chosen=2),
    "8x22B": Configuration(32_768, 6144, 56, Heads(48, 8, 128, rotary=True), 16_384, experts=8, chosen=2),
}


def parse_shares(text: str) -> tuple[int, ...]:
    """Shares of assignments as users write them, ``even`` or ``4/2/1/1``; raises ``ValueError``."""
    if text == "even":
        return ()
    parts = text.split("/")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 and int(part) for part in parts):
        raise ValueError(f"expected even, or whole numbers above 0 such as 4/2/1/1, got {text!r}")
    return tuple(int(part) for part in parts)


def shares_text(shares: tuple[int, ...]) -> str:
    """The inverse of `parse_shares`."""
    return "/".join(map(str, shares)) or "even"


def shares_option() -> tuple[int, ...]:
    """The parameter ``shares`` of families with experts."""
    return option(
        (),
        "of the assignments of tokens to experts that each active expert gets: even, or such as 4/2/1/1",
        read=parse_shares,
        show=shares_text,
    )


@dataclass(frozen=True)
class Llama3(Phased):
    """Llama 3."""

    size: str = size_option("8B", *LLAMA3)

    def network(self, name: str) -> Network:
        """Its layers."""
        return grouped_decoder(self, name, LLAMA3[self.size])


@dataclass(frozen=True)
class Qwen3(Phased):
    """Qwen3, dense or with experts."""

    size: str = size_option("8B", *QWEN3)
    shares: tuple[int, ...] = shares_option()

    def network(self, name: str) -> Network:
        """Its layers; raises ``InputError`` for shares of a size without experts."""
        shape = QWEN3[self.size]
        if self.shares and not shape.experts:
            raise InputError(name, "shares", f"size {self.size} has no experts, expected size=30B-A3B")
        return grouped_decoder(self, name, shape, self.shares)


@dataclass(frozen=True)
class Mixtral(Phased):
    """Mixtral: eight experts, two of them for each token."""

    size: str = size_option("8x7B", *MIXTRAL)
    shares: tuple[int, ...] = shares_option()

    def network(self, name: str) -> Network:
        """Its layers."""
        return grouped_decoder(self, name, MIXTRAL[self.size], self.shares)
