"""GPT-2 and GPT-3: decoders with plain feed-forward parts, layer normalisation and learned places.

A. Radford et al., "Language models are unsupervised multitask learners", 2019, table 2; T. Brown et al.,
"Language models are few-shot learners", NeurIPS 2020, table 2.1 and section 2.1.  GPT-3 alternates dense and
locally banded sparse attention; all of it is taken as dense.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.decoders import Heads, feed_forward, self_attention
from tilewright.workloads.blueprint.phases import Phased, decoder, size_option
from tilewright.workloads.network import Network

WORDS = 50_257
#: features, blocks, heads
GPT2_SIZES = {"small": (768, 12, 12), "medium": (1024, 24, 16), "large": (1280, 36, 20), "xl": (1600, 48, 25)}
GPT3_SIZES = {"6.7B": (4096, 32, 32), "175B": (12_288, 96, 96)}


def _gpt(family: Phased, name: str, shape: tuple[int, int, int], context: int) -> Network:
    features, blocks, count = shape
    heads = Heads(count, count, features // count, biased="qkvo")

    def block(net: Assembly, x: Data, _: int) -> Data:
        y = net.norm(x, "attention_norm", shift=True)
        x = net.add(x, self_attention(net, y, heads, cached=family.past), "attention_sum")
        y = net.norm(x, "feed_forward_norm", shift=True)
        return net.add(x, feed_forward(net, y, 4 * features, "Gelu", bias=True), "feed_forward_sum")

    return decoder(family, name, (WORDS, features, blocks), block, tied=True, shift=True, places=context)


@dataclass(frozen=True)
class GPT2(Phased):
    """GPT-2; its tables have 1,024 places."""

    size: str = size_option("small", *GPT2_SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        return _gpt(self, name, GPT2_SIZES[self.size], 1024)


@dataclass(frozen=True)
class GPT3(Phased):
    """GPT-3; its tables have 2,048 places."""

    size: str = size_option("6.7B", *GPT3_SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        return _gpt(self, name, GPT3_SIZES[self.size], 2048)
