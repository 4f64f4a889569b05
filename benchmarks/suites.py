"""Suites: named lists of layers that benchmarks run over.  A new one is one line in ``_SUITES``."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from pathlib import Path

from tilewright.benchmarks import shapes
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.workloads.catalog import list_models, resolve_model
from tilewright.workloads.families import is_family
from tilewright.workloads.mapping.layer_text import is_layer_text, parse_layer
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.selection import select_layers

RANDOM_LAYERS, RANDOM_SEED = 40, 20
_FILES = (".onnx", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Case:
    """One layer of a suite, with how often it occurs."""

    name: str
    operator: Operator
    count: int = 1


@dataclass(frozen=True, slots=True)
class Suite:
    """What a suite is, and how its layers are made.

    Parameters
    ----------
    model : the network that it takes its layers from, if it needs one
    """

    description: str
    build: Callable[[], list[Case]]
    model: str | None = None


def _texts(texts: MappingABC[str, str]) -> Callable[[], list[Case]]:
    return lambda: [Case(name, parse_layer(text)[1]) for name, text in texts.items()]


def _layers(title: str, texts: MappingABC[str, str]) -> Suite:
    return Suite(title, _texts(texts))


def _network(model: str) -> Suite:
    return Suite(f"The distinct layers of {model}, batch 1.", lambda: _cases(resolve_model(model)), model)


def _transformer(title: str, tokens: int, width: int, heads: int) -> Suite:
    texts = shapes.transformer_texts(tokens, width, heads)
    return Suite(
        f"One block of {title}, {tokens} tokens: projections, attention, feed-forward.",
        lambda: [Case(name, parse_layer(text)[1], count) for name, (text, count) in texts.items()],
    )


_SUITES: dict[str, Suite] = {
    "standard": _layers(
        "The tables in docs/benchmarks.md: the six layers of the dMazeRunner paper and eight of other kinds.",
        {**shapes.DMAZERUNNER, **shapes.FURTHER_STANDARD},
    ),
    "dmazerunner": _layers(
        "The six ResNet layers of the dMazeRunner paper (section 6), batch 4.", shapes.DMAZERUNNER
    ),
    "resnet50": _network("onnx:resnet50"),
    "mobilenet-v2": _network("mobilenet-v2"),
    "vgg19": _network("onnx:vgg19"),
    "squeezenet": _network("onnx:squeezenet"),
    "shufflenet": _network("onnx:shufflenet"),
    "inception_v2": _network("onnx:inception_v2"),
    "densenet121": _network("onnx:densenet121"),
    "bert-base": _transformer("BERT base", tokens=128, width=768, heads=12),
    "gpt-2": _transformer("GPT-2 small", tokens=1024, width=768, heads=12),
    "primes": _layers("Twenty convolutions in which no dimension has a divisor.", shapes.prime_texts()),
    "random": _layers(
        f"{RANDOM_LAYERS} small convolutions and matrix products of random sizes, seed {RANDOM_SEED}.",
        shapes.random_texts(RANDOM_LAYERS, RANDOM_SEED),
    ),
    "tiny": _layers(
        "Five of random sizes up to 6: solved in a blink.", shapes.random_texts(5, RANDOM_SEED, most=6)
    ),
}


def suite_names() -> list[str]:
    """All suites whose layers can be made here."""
    known = set(list_models())
    return [name for name, shipped in _SUITES.items() if shipped.model is None or shipped.model in known]


def description(name: str) -> str:
    """What a suite is, in one sentence; raises ``KeyError``."""
    return _SUITES[name].description


@dataclass(frozen=True, slots=True)
class SuiteLayers:
    """The layers of a suite, each name once, and what is left out of the file that they are from."""

    cases: list[Case]
    left_out: tuple[str, ...] = ()


def suite(name: str) -> list[Case]:
    """The layers of a suite, each name once; see `suite_layers`."""
    return suite_layers(name).cases


def suite_layers(name: str, batch: int | None = None, options: OnnxOptions | None = None) -> SuiteLayers:
    """The layers of a suite.

    Parameters
    ----------
    name : a suite; or an ONNX file, a YAML file of layers, a layer text or a family, whose layers are one
    batch : samples of a file or text; suites state their own
    options : how an ONNX file is imported

    Raises
    ------
    InputError : for an unknown suite, with the nearest name, and for a fault of a file or text
    """
    if is_layer_text(name) or Path(name).suffix.lower() in _FILES or is_family(name):
        is_onnx = Path(name).suffix.lower() == ".onnx"
        network = resolve_model(name, batch, options if is_onnx else None)
        return SuiteLayers(_cases(network), network.left_out)
    known = suite_names()
    if name not in known:
        raise InputError("SUITE", None, unknown_name(name, known))
    if batch is not None:
        raise InputError("--batch", None, f"is for files and texts, the suite {name} states its own sizes")
    return SuiteLayers(_SUITES[name].build())


def _cases(network: Network) -> list[Case]:
    selected = select_layers(network)
    return [Case(layer.name, layer.operator, len(layer.names)) for layer in selected]
