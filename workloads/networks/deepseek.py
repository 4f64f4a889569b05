"""DeepSeek-V3: attention over a latent cache, routed experts and a shared one.

DeepSeek-AI, "DeepSeek-V3 technical report", arXiv:2412.19437, section 4.2; DeepSeek-AI, "DeepSeek-V2",
arXiv:2405.04434, section 2.1 on the attention.  The cache holds one latent vector of 512 features and one
turned key of 64 for each token, for all heads.  In prefill keys and values of every head are made from it.
In decode the projections that would make them are applied to the queries and to the mixed latents instead, so
that the heads read the cache itself.  The module that predicts further tokens is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.decoders import Experts, append, attend, gated, mixture
from tilewright.workloads.blueprint.phases import Phased, decoder, size_option
from tilewright.workloads.network import Network
from tilewright.workloads.networks.llama import shares_option
from tilewright.workloads.phases import DECODE
from tilewright.workloads.widths import Kind

WORDS, FEATURES, BLOCKS = 129_280, 7168, 61
DENSE_BLOCKS, DENSE_INNER = 3, 18_432
EXPERTS, CHOSEN, INNER = 256, 8, 2048
HEADS, CONTENT, TURNED, VALUE = 128, 128, 64, 128
QUERY_RANK, RANK = 1536, 512


def latent_attention(net: Assembly, x: Data, cached: int, *, absorbed: bool) -> Data:
    """Attention of tokens over a cache of latents.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    cached : tokens in the cache
    absorbed : whether heads read the latents themselves, as in decode
    """
    batch, tokens, features = x.shape
    with net.scope("attention"):
        low = net.norm(net.project(x, QUERY_RANK, "query_down"), "query_norm")
        queries = net.project(low, HEADS * (CONTENT + TURNED), "query_up")
        content = queries.moved((batch, tokens, HEADS * CONTENT), "Slice")
        turned = queries.moved((batch, tokens, HEADS * TURNED), "Slice")
        turned = net.pointwise("query_rotary", "RotaryEmbedding", turned)
        compressed = net.project(x, RANK + TURNED, "latent")
        latent = net.norm(compressed.moved((batch, tokens, RANK), "Slice"), "latent_norm")
        key = compressed.moved((batch, tokens, TURNED), "Slice")
        key = net.pointwise("key_rotary", "RotaryEmbedding", key)
        latents, keys = append(net, latent, cached, "latent"), append(net, key, cached, "key")
        form = _absorbed if absorbed else _expanded
        mixed = form(net, content, turned, latents, keys)
        return net.project(mixed.moved((batch, tokens, HEADS * VALUE), "Reshape"), features, "result")


def _expanded(net: Assembly, content: Data, turned: Data, latents: Data, keys: Data) -> Data:
    """Keys and values of every head, made from the latents of the whole context."""
    batch, tokens, _ = content.shape
    context, width, pairs = latents.shape[1], CONTENT + TURNED, batch * HEADS
    made = net.project(latents, HEADS * (CONTENT + VALUE), "latent_up")
    own = made.moved((pairs, CONTENT, context), "Slice", "Transpose")
    joined = Data((pairs, width, context), (*own.pieces, *keys.moved(keys.shape, "Expand").pieces))
    values = made.moved((pairs, context, VALUE), "Slice", "Transpose")
    queries = Data((pairs, tokens, width), (*content.pieces, *turned.pieces))
    queries = queries.moved(queries.shape, "Concat", "Transpose")
    return attend(net, queries, joined, values, (pairs, tokens, context, width, VALUE))


def _absorbed(net: Assembly, content: Data, turned: Data, latents: Data, keys: Data) -> Data:
    """Queries brought into the latents' space, and the mixed latents out of it, head by head."""
    batch, tokens, _ = content.shape
    context, width, rows = latents.shape[1], RANK + TURNED, batch * tokens
    stored = net.learned(("latent_up.weight", RANK * HEADS * (CONTENT + VALUE)))
    queries = net.products(
        content.moved((HEADS, rows, CONTENT), "Transpose"),
        stored,
        (HEADS, rows, RANK, CONTENT),
        (HEADS, rows, RANK),
        "query_absorbed",
    )
    joined = Data((batch, HEADS * tokens, width), (*queries.pieces, *turned.pieces))
    joined = joined.moved(joined.shape, "Concat", "Transpose")
    cache = Data((batch, width, context), (*latents.pieces, *keys.pieces), Kind.CACHE)
    mixed = attend(
        net,
        joined,
        cache.moved(cache.shape, "Concat", "Transpose"),
        latents,
        (batch, HEADS * tokens, context, width, RANK),
    )
    return net.products(
        mixed.moved((HEADS, rows, RANK), "Transpose"),
        stored,
        (HEADS, rows, VALUE, RANK),
        (HEADS, rows, VALUE),
        "value_absorbed",
    )


@dataclass(frozen=True)
class DeepSeekV3(Phased):
    """DeepSeek-V3."""

    size: str = size_option("671B", "671B")
    shares: tuple[int, ...] = shares_option()

    def network(self, name: str) -> Network:
        """Its layers."""
        experts = Experts(EXPERTS, CHOSEN, INNER, self.shares)

        def block(net: Assembly, x: Data, index: int) -> Data:
            y = net.norm(x, "attention_norm")
            y = latent_attention(net, y, self.past, absorbed=self.phase == DECODE)
            x = net.add(x, y, "attention_sum")
            y = net.norm(x, "feed_forward_norm")
            if index < DENSE_BLOCKS:
                return net.add(x, gated(net, y, DENSE_INNER), "feed_forward_sum")
            return net.add(x, mixture(net, y, experts, shared=INNER), "feed_forward_sum")

        return decoder(self, name, (WORDS, FEATURES, BLOCKS), block)
