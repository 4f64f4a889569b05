"""Networks with parameters: ``llama3[size=8B,phase=decode,cached=8191,batch=32]``.

A family is a frozen dataclass whose fields are options (`tilewright.foundation.options.option`) and whose
``network(name)`` builds the layers.  The name of a network states every parameter, those included that the
text leaves out, so that a document says what it is about.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from tilewright.foundation.errors import InputError
from tilewright.foundation.method_text import MethodText, parse_method
from tilewright.foundation.options import option_text, options_of
from tilewright.foundation.registry import Entry, Registry
from tilewright.workloads.network import Network

BATCH = "batch"


class Family(Hashable, Protocol):
    """A network that follows from its parameters."""

    batch: int

    def network(self, name: str) -> Network:
        """The layers; raises ``InputError`` where parameters contradict each other."""
        ...

    def settled(self) -> Family:
        """The same with values for parameters whose default depends on others."""
        ...


def _entry(module: str, family: str, about: str, source: str) -> Entry:
    return Entry(f"tilewright.workloads.networks.{module}", family, about, source)


FAMILIES: Registry[Family] = Registry(
    "model",
    {
        "bert": _entry("encoders", "Bert", "encoder", "Devlin et al., NAACL 2019"),
        "clip": _entry("encoders", "Clip", "encoders of pictures and texts", "Radford et al., ICML 2021"),
        "convnext": _entry("convnext", "ConvNeXt", "convolutional network", "Liu et al., CVPR 2022"),
        "deepseek-v3": _entry("deepseek", "DeepSeekV3", "decoder, latent cache, experts", "arXiv:2412.19437"),
        "gpt2": _entry("gpt", "GPT2", "decoder", "Radford et al., 2019"),
        "gpt3": _entry("gpt", "GPT3", "decoder", "Brown et al., NeurIPS 2020"),
        "llama3": _entry("llama", "Llama3", "decoder, grouped queries", "arXiv:2407.21783"),
        "mamba": _entry("mamba", "Mamba", "selective state space", "arXiv:2312.00752"),
        "mixtral": _entry("llama", "Mixtral", "decoder, experts", "arXiv:2401.04088"),
        "mobilenet-v3": _entry(
            "mobilenet_v3", "MobileNetV3", "convolutional network", "Howard et al., ICCV 2019"
        ),
        "qwen3": _entry("llama", "Qwen3", "decoder, dense or with experts", "arXiv:2505.09388"),
        "stable-diffusion": _entry("diffusion", "StableDiffusion", "U-Net", "Rombach et al., CVPR 2022"),
        "t5": _entry("translators", "T5", "encoder and decoder", "Raffel et al., JMLR 2020"),
        "vit": _entry("encoders", "ViT", "encoder of pictures", "Dosovitskiy et al., ICLR 2021"),
        "whisper": _entry(
            "translators", "Whisper", "speech, encoder and decoder", "Radford et al., ICML 2023"
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a family as tables show it."""

    name: str
    value: str
    default: str
    about: str


def is_family(text: str) -> bool:
    """Whether a text names a family, with parameters behind it or not."""
    return text.partition("[")[0].strip() in FAMILIES


def family_network(text: str, batch: int | None = None) -> Network:
    """The network that a family's name and parameters stand for.

    Parameters
    ----------
    batch : samples, where the text does not say how many

    Raises
    ------
    InputError : for an unknown parameter or value, with the nearest one, and a batch that contradicts the
        text
    """
    family = _made(text, batch)
    return _built(_named(parse_method(text, "model").name, family), family)


def with_parameters(text: str, changes: Mapping[str, object]) -> str:
    """A family's text with some parameters changed.

    Parameters
    ----------
    changes : by parameter, its value; ``model.`` before a name is left out
    """
    read = parse_method(text, "model")
    changed = {name.removeprefix("model."): str(value) for name, value in changes.items()}
    return str(MethodText(read.name, {**read.options, **changed}))


def parameters_of(text: str) -> tuple[Parameter, ...]:
    """The parameters of the family that a text names, with their values there; none for another model."""
    if not is_family(text):
        return ()
    family = _made(text, None)
    shown = type(family)().settled()
    return tuple(
        Parameter(
            field.name,
            option_text(field, getattr(family, field.name)),
            option_text(field, getattr(shown, field.name)),
            field.metadata["option"]["about"],
        )
        for field in options_of(type(family))
    )


def completions(incomplete: str) -> Iterator[str]:
    """What may continue a half-written text such as ``llama3[size=8B,ph``."""
    name, bracket, inside = incomplete.partition("[")
    if not bracket or name not in FAMILIES:
        return
    done, comma, last = inside.rpartition(",")
    given = {part.partition("=")[0] for part in done.split(",")}
    for field in options_of(type(FAMILIES.make(name))):
        if field.name in given:
            continue
        choices = field.metadata["option"]["choices"] or ()
        for text in [f"{field.name}=", *(f"{field.name}={choice}" for choice in choices)]:
            if text.startswith(last) and text != last:
                yield f"{name}[{done}{comma}{text}"


def _made(text: str, batch: int | None) -> Family:
    read = parse_method(text, "model")
    if batch is not None:
        own = read.options.get(BATCH)
        if own is not None and own != str(batch):
            raise InputError(text, BATCH, f"{own} contradicts the batch {batch}")
        read = MethodText(read.name, {**read.options, BATCH: str(batch)})
    return FAMILIES.make(read, "model").settled()


def _named(name: str, family: Any) -> str:
    values = (
        f"{field.name}={option_text(field, getattr(family, field.name))}"
        for field in options_of(type(family))
    )
    return f"{name}[{','.join(values)}]"


@cache
def _built(name: str, family: Family) -> Network:
    """A network, built once: networks do not change."""
    return family.network(name)
