"""Suites: named lists of layers that benchmarks run over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.layer_text import parse_layer
from tilewright.workloads.operator import Operator


@dataclass(frozen=True, slots=True)
class Case:
    """One layer of a suite, with how often it occurs."""

    name: str
    operator: Operator
    count: int = 1


#: The six ResNet layers of the dMazeRunner paper (section 6), batch 4.
_DMAZERUNNER = {
    "conv1": "conv:N=4,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3",
    "conv2_2": "conv:N=4,K=64,C=64,H=56,W=56,R=3,S=3,pad=1",
    "conv3_2": "conv:N=4,K=128,C=128,H=28,W=28,R=3,S=3,pad=1",
    "conv4_2": "conv:N=4,K=256,C=256,H=14,W=14,R=3,S=3,pad=1",
    "conv5_1": "conv:N=4,K=512,C=256,H=14,W=14,R=3,S=3,stride=2,pad=1",
    "conv5_2": "conv:N=4,K=512,C=512,H=7,W=7,R=3,S=3,pad=1",
}

#: Shapes in which no dimension but the batch has a divisor.
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


def _transformer_block(tokens: int, width: int, heads: int) -> list[Case]:
    """Matrix products of one encoder or decoder block: projections, attention, feed-forward."""
    depth = width // heads
    texts = {
        "projection": (f"gemm:M={tokens},N={width},K={width}", 4),
        "scores": (f"matmul:B={heads},M={tokens},N={tokens},K={depth}", 1),
        "context": (f"matmul:B={heads},M={tokens},N={depth},K={tokens}", 1),
        "expand": (f"gemm:M={tokens},N={4 * width},K={width}", 1),
        "contract": (f"gemm:M={tokens},N={width},K={4 * width}", 1),
    }
    return [Case(name, parse_layer(text)[1], count) for name, (text, count) in texts.items()]


def _network(name: str) -> Callable[[], list[Case]]:
    def cases() -> list[Case]:
        distinct = resolve_model(name).distinct_layers(mac_only=True)
        return [Case(layer.layer.name, layer.layer.operator, layer.count) for layer in distinct]

    return cases


def _texts(texts: dict[str, str]) -> Callable[[], list[Case]]:
    return lambda: [Case(name, parse_layer(text)[1]) for name, text in texts.items()]


def _prime_texts() -> dict[str, str]:
    return {f"{k}x{c}x{p}x{q}x{r}": f"conv:K={k},C={c},P={p},Q={q},R={r},S={r}" for k, c, p, q, r in _PRIMES}


_SUITES: dict[str, Callable[[], list[Case]]] = {
    "dmazerunner": _texts(_DMAZERUNNER),
    "resnet50": _network("onnx:resnet50"),
    "vgg19": _network("onnx:vgg19"),
    "squeezenet": _network("onnx:squeezenet"),
    "shufflenet": _network("onnx:shufflenet"),
    "inception_v2": _network("onnx:inception_v2"),
    "densenet121": _network("onnx:densenet121"),
    "bert-base": lambda: _transformer_block(tokens=128, width=768, heads=12),
    "gpt-2": lambda: _transformer_block(tokens=1024, width=768, heads=12),
    "primes": lambda: _texts(_prime_texts())(),
}


def suite_names() -> list[str]:
    """All suites."""
    return [*_SUITES]


def suite(name: str) -> list[Case]:
    """The layers of a suite; raises ``KeyError``."""
    return _SUITES[name]()
