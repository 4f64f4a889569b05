"""Models and layers by name: whatever a user writes for MODEL or LAYER."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.foundation.loading import begin_reading
from tilewright.workloads.families import FAMILIES, family_network, is_family
from tilewright.workloads.linked_layers import linked_network
from tilewright.workloads.mapping.layer_fields import KINDS
from tilewright.workloads.mapping.layer_text import (
    NamedOperator,
    is_layer_text,
    parse_layer,
    read_linked_layers,
)
from tilewright.workloads.network import Layer, Network
from tilewright.workloads.onnx.options import OnnxOptions

if TYPE_CHECKING:
    import onnx

    from tilewright.workloads.networks import Builder

PREFIX = "onnx:"
TRAINING = ":training"
_FILE_PREFIXES = ("light_bvlc_", "light_")


def builders() -> dict[str, Builder]:
    """The builder of every built-in network by name; they load much that single layers do without."""
    from tilewright.workloads import networks

    return networks.builders()


def builder(name: str) -> Builder | None:
    """The builder of a built-in network; ``None`` for an unknown name."""
    from tilewright.workloads import networks

    return networks.builder(name)


def list_models() -> tuple[str, ...]:
    """Names of all models that need no file.

    They are the built-in networks, the families with parameters, and those that the onnx package ships.
    """
    return (*sorted([*builders(), *FAMILIES.names()]), *(PREFIX + name for name in _shipped()))


def is_built_in(text: str) -> bool:
    """Whether a built-in network or family has this name, so that the name alone gives the layers."""
    return is_family(text) or builder(text) is not None


def resolve_model(text: str, batch: int | None = None, options: OnnxOptions | None = None) -> Network:
    """The network that a MODEL or LAYER text stands for.

    Parameters
    ----------
    text : an ONNX file, ``onnx:NAME`` for a model that the onnx package ships, the name of a built-in
        network, a family such as ``llama3[phase=decode,cached=8191]``, a layer text such as
        ``gemm:M=512,N=768,K=768``, or a YAML file of layers; any of them with ``:training`` behind it for
        the training graph
    batch : samples; ``None`` for the model's own number
    options : how an ONNX model is imported

    Returns
    -------
    The network; layers from a YAML file are linked as far as the file says who reads whom

    Raises
    ------
    InputError : for a name that is not known, with the nearest one, and for any fault of the file or text
    """
    if batch is not None and batch < 1:
        raise InputError(text, "batch", f"expected at least 1, got {batch}")
    if not text.strip():
        raise InputError("model", None, f"the name is empty{_EXPECTED}")
    if text.endswith(TRAINING):
        from tilewright.workloads.training import training_network

        return training_network(resolve_model(text.removesuffix(TRAINING), batch, options))
    if text.startswith(PREFIX):
        return _load_shipped(text, batch, options)
    suffix = Path(text).suffix.lower()
    if options is not None and options.given and suffix != ".onnx":
        raise InputError(options.given, None, f"is for ONNX models, which {text} is not")
    if is_layer_text(text):
        return _unlinked(text, (parse_layer(text, batch),), batch)
    if suffix == ".onnx":
        from tilewright.workloads.onnx.importer import load_onnx

        return load_onnx(text, batch, options=options)
    if suffix in (".yaml", ".yml"):
        return _from_file(Path(text), batch)
    if is_built_in(text):
        begin_reading()
        return family_network(text, batch) if builder(text) is None else _built_in(text, batch or 1)
    kind, colon, _ = text.partition(":")
    if colon and not os.path.exists(text):
        known = (*KINDS, PREFIX.removesuffix(":"))
        raise InputError(text, None, f"unknown layer kind {kind!r}{did_you_mean(kind, known)}{_EXPECTED}")
    if os.path.exists(text):
        raise InputError(text, None, f"expected a file that ends in .onnx, .yaml or .yml{_EXPECTED}")
    names = {name.removeprefix(PREFIX): name for name in list_models()}
    nearest = f", did you mean {names[text]!r}?" if text in names else did_you_mean(text, list_models())
    nearest = nearest or did_you_mean(text.partition("[")[0], FAMILIES.names())
    nearest = nearest or did_you_mean(PREFIX + text, list_models())
    raise InputError(text, None, f"no such model{nearest}{_EXPECTED}")


def builtin_onnx(text: str, batch: int | None = None) -> onnx.ModelProto:
    """The ONNX model of a built-in network, its weights zeros.

    Raises
    ------
    InputError : for anything else
    """
    from tilewright.workloads.blueprint import Blueprint

    build = builder(text)
    blueprint = build(batch or 1) if build is not None else None
    if not isinstance(blueprint, Blueprint):
        raise InputError(
            text, None, f"only built-in networks can be written as ONNX{did_you_mean(text, builders())}"
        )
    return blueprint.onnx()


_EXPECTED = (
    " (expected an ONNX or YAML file, a name that `tilewright list models` shows, "
    "or a layer such as gemm:M=512,N=768,K=768)"
)


@cache
def _built_in(name: str, batch: int) -> Network:
    """A built-in network, built once: networks do not change."""
    build = builder(name)
    assert build is not None
    made = build(batch)
    return made if isinstance(made, Network) else made.network()


def _from_file(path: Path, batch: int | None) -> Network:
    """The layers of a YAML file, linked as far as it says what they read of each other."""
    layers, reads = read_linked_layers(path, batch)
    if not reads:
        return _unlinked(path.stem, layers, batch)
    return linked_network(path.stem, layers, reads, batch)


def _unlinked(name: str, layers: tuple[NamedOperator, ...], batch: int | None) -> Network:
    made = [
        Layer(title, operator, operator.kind, stored_weights=operator.kind != "matmul")
        for title, operator in layers
    ]
    own = (op.bounds["N"] for _, op in layers if op.kind not in ("gemm", "matmul", "nest"))
    return Network(name, made, batch=batch or max(own, default=1))


def _shipped() -> dict[str, Path]:
    """Models in the onnx package by short name: ``light_resnet50.onnx`` is ``resnet50``."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    models = {}
    for path in sorted(folder.glob("*.onnx")):
        name = path.stem
        for prefix in _FILE_PREFIXES:
            name = name.removeprefix(prefix)
        models[name] = path
    return dict(sorted(models.items()))


def _load_shipped(text: str, batch: int | None, options: OnnxOptions | None) -> Network:
    name, shipped = text.removeprefix(PREFIX), _shipped()
    if name not in shipped:
        listed = ", ".join(shipped) or "none: the onnx package has no models"
        raise InputError(
            text, None, f"no such model{did_you_mean(name, shipped)} (expected one of: {listed})"
        )
    from tilewright.workloads.onnx.importer import load_onnx

    return load_onnx(shipped[name], batch, name, options, bounded=False)
