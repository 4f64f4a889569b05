"""Layers that no network file holds: the paper's six, prime shapes, random shapes, transformer blocks."""

from __future__ import annotations

import random

#: The six ResNet layers of the dMazeRunner paper (section 6), batch 4.
DMAZERUNNER = {
    "conv1": "conv:N=4,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3",
    "conv2_2": "conv:N=4,K=64,C=64,H=56,W=56,R=3,S=3,pad=1",
    "conv3_2": "conv:N=4,K=128,C=128,H=28,W=28,R=3,S=3,pad=1",
    "conv4_2": "conv:N=4,K=256,C=256,H=14,W=14,R=3,S=3,pad=1",
    "conv5_1": "conv:N=4,K=512,C=256,H=14,W=14,R=3,S=3,stride=2,pad=1",
    "conv5_2": "conv:N=4,K=512,C=512,H=7,W=7,R=3,S=3,pad=1",
}

#: Shapes in which no dimension but the batch has a divisor: K, C, P, Q, R = S.
_PRIMES = [
    (17, 13, 31, 29, 3),
    (31, 29, 23, 19, 3),
    (61, 37, 13, 11, 3),
    (127, 61, 13, 13, 1),
    (67, 67, 7, 7, 3),
    (257, 131, 7, 7, 1),
    (97, 89, 17, 17, 5),
    (53, 47, 29, 29, 3),
    (251, 127, 11, 11, 3),
    (509, 257, 5, 5, 3),
    (23, 3, 113, 113, 7),
    (43, 41, 37, 37, 3),
    (113, 109, 19, 19, 1),
    (79, 73, 23, 23, 5),
    (193, 97, 13, 13, 3),
    (131, 137, 7, 11, 3),
    (19, 17, 59, 61, 3),
    (521, 263, 7, 7, 1),
    (71, 3, 53, 53, 11),
    (1021, 509, 3, 3, 3),
]

#: One layer of each character that the standard suite has in addition to the paper's six.
FURTHER_STANDARD = {
    "pointwise": "conv:N=1,K=256,C=64,P=56,Q=56,R=1,S=1",
    "strided-pointwise": "conv:N=1,K=512,C=256,H=56,W=56,R=1,S=1,stride=2",
    "wide-feature-map": "conv:N=1,K=64,C=64,P=224,Q=224,R=3,S=3,pad=1",
    "deep-feature-map": "conv:N=1,K=512,C=512,P=14,Q=14,R=3,S=3,pad=1",
    "large-filter": "conv:N=1,K=96,C=3,H=227,W=227,R=11,S=11,stride=4",
    "odd-sizes": "conv:N=1,K=35,C=27,P=21,Q=15,R=5,S=5,pad=2",
    "classifier": "conv:N=1,K=1000,C=2048,P=1,Q=1,R=1,S=1",
    "token-projection": "conv:N=1,K=768,C=768,P=128,Q=1,R=1,S=1",
}


def prime_texts() -> dict[str, str]:
    """Twenty convolutions of prime sizes by name."""
    return {f"{k}x{c}x{p}x{q}x{r}": f"conv:K={k},C={c},P={p},Q={q},R={r},S={r}" for k, c, p, q, r in _PRIMES}


def random_texts(count: int, seed: int, most: int = 12) -> dict[str, str]:
    """Small convolutions and matrix products of random sizes, the same for the same seed.

    Parameters
    ----------
    most : the largest size of a dimension; filters have at most 3 rows
    """
    source = random.Random(seed)
    texts: dict[str, str] = {}
    for index in range(count):
        if index % 3 == 2:
            m, n, k = (source.randint(2, 2 * most) for _ in range(3))
            texts[f"{index:03d}-gemm-{m}x{n}x{k}"] = f"gemm:M={m},N={n},K={k}"
            continue
        k, c, p, q = (source.randint(1, most) for _ in range(4))
        r, stride = source.choice((1, 2, 3)), source.choice((1, 1, 2))
        name = f"{index:03d}-conv-{k}x{c}x{p}x{q}x{r}s{stride}"
        texts[name] = f"conv:K={k},C={c},P={p},Q={q},R={r},S={r},stride={stride}"
    return texts


def transformer_texts(tokens: int, width: int, heads: int) -> dict[str, tuple[str, int]]:
    """Matrix products of one encoder or decoder block, each with how often the block has it."""
    depth = width // heads
    return {
        "projection": (f"gemm:M={tokens},N={width},K={width}", 4),
        "scores": (f"matmul:B={heads},M={tokens},N={tokens},K={depth}", 1),
        "context": (f"matmul:B={heads},M={tokens},N={depth},K={tokens}", 1),
        "expand": (f"gemm:M={tokens},N={4 * width},K={width}", 1),
        "contract": (f"gemm:M={tokens},N={width},K={4 * width}", 1),
    }
