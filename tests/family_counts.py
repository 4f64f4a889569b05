"""Parameters, multiply-accumulates and elements moved of language models, in closed form.

The figures of configurations stand here a second time, and nothing is taken from the networks that are
judged.  Counts are of products alone; ``elements`` are those that products read and write, every tensor once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Product = tuple[int, int, int, int]
"""How many alike, rows, columns, length of the sum."""


@dataclass(frozen=True)
class Sizes:
    """A decoder of equal blocks.

    ``gated`` blocks have three matrices in the feed-forward part, others two.
    """

    vocabulary: int
    hidden: int
    blocks: int
    queries: int
    keys: int
    head: int
    inner: int
    gated: bool = True
    experts: int = 0
    top: int = 0
    tied: bool = False
    vectors: int = 0
    """Parameters of a block that are no matrix: norms and biases."""
    tables: int = 0
    """Parameters outside the blocks besides word vectors."""


def parameters(sizes: Sizes) -> int:
    """All learned parameters."""
    attention = sizes.hidden * sizes.head * (2 * sizes.queries + 2 * sizes.keys)
    feed = (3 if sizes.gated else 2) * sizes.hidden * sizes.inner * max(1, sizes.experts)
    router = sizes.hidden * sizes.experts
    words = sizes.vocabulary * sizes.hidden * (1 if sizes.tied else 2)
    return sizes.blocks * (attention + feed + router + sizes.vectors) + words + sizes.tables


def products(sizes: Sizes, batch: int, tokens: int, cached: int) -> Iterator[Product]:
    """All products of one pass that predicts one word per sequence."""
    rows, context = batch * tokens, cached + tokens
    for _ in range(sizes.blocks):
        yield 1, rows, sizes.queries * sizes.head, sizes.hidden
        yield 1, rows, sizes.keys * sizes.head, sizes.hidden
        yield 1, rows, sizes.keys * sizes.head, sizes.hidden
        shared = sizes.queries // sizes.keys * tokens
        yield batch * sizes.keys, shared, context, sizes.head
        yield batch * sizes.keys, shared, sizes.head, context
        yield 1, rows, sizes.hidden, sizes.queries * sizes.head
        if sizes.experts:
            yield 1, rows, sizes.experts, sizes.hidden
            yield from _expert_products(sizes, rows)
        else:
            for _ in range(2 if sizes.gated else 1):
                yield 1, rows, sizes.inner, sizes.hidden
            yield 1, rows, sizes.hidden, sizes.inner
    yield 1, batch, sizes.vocabulary, sizes.hidden


def _expert_products(sizes: Sizes, rows: int) -> Iterator[Product]:
    """Assignments dealt to experts one after the other, like cards."""
    hands = [0] * sizes.experts
    for card in range(rows * sizes.top):
        hands[card % sizes.experts] += 1
    for hand in hands:
        if hand:
            yield 1, hand, sizes.inner, sizes.hidden
            yield 1, hand, sizes.inner, sizes.hidden
            yield 1, hand, sizes.hidden, sizes.inner


def macs(all_products: Iterator[Product]) -> int:
    """Multiply-accumulates of some products."""
    return sum(count * m * n * k for count, m, n, k in all_products)


def elements(all_products: Iterator[Product]) -> int:
    """Elements that some products read and write."""
    return sum(count * (m * k + k * n + m * n) for count, m, n, k in all_products)


LLAMA_8B = Sizes(128_256, 4096, 32, 32, 8, 128, 14_336, vectors=2 * 4096, tables=4096)
LLAMA_70B = Sizes(128_256, 8192, 80, 64, 8, 128, 28_672, vectors=2 * 8192, tables=8192)
QWEN_8B = Sizes(151_936, 4096, 36, 32, 8, 128, 12_288, vectors=2 * 4096 + 2 * 128, tables=4096)
QWEN_30B = Sizes(
    151_936, 2048, 48, 32, 4, 128, 768, experts=128, top=8, vectors=2 * 2048 + 2 * 128, tables=2048
)
MIXTRAL_7B = Sizes(32_000, 4096, 32, 32, 8, 128, 14_336, experts=8, top=2, vectors=2 * 4096, tables=4096)
MIXTRAL_22B = Sizes(32_768, 6144, 56, 48, 8, 128, 16_384, experts=8, top=2, vectors=2 * 6144, tables=6144)


def gpt(hidden: int, blocks: int, heads: int, places: int) -> Sizes:
    """GPT-2 or GPT-3: norms with scale and shift, biases everywhere, learned places."""
    return Sizes(
        50_257,
        hidden,
        blocks,
        heads,
        heads,
        hidden // heads,
        4 * hidden,
        gated=False,
        tied=True,
        vectors=2 * 2 * hidden + 4 * hidden + 4 * hidden + hidden,
        tables=places * hidden + 2 * hidden,
    )
