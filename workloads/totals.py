"""Totals of the models that need no file, kept between calls: to build all these networks takes seconds.

They stand in the cache folder under a digest of what they follow from: this package's modules about
workloads, and the release of onnx, whose models are among them.  Networks that other packages or programs add
are built each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tilewright.foundation import trust
from tilewright.foundation.caches import cache_folder
from tilewright.foundation.errors import InputError
from tilewright.foundation.extensions import extensions, load_imported
from tilewright.workloads.families import FAMILIES
from tilewright.workloads.networks import ADDED


@dataclass(frozen=True, slots=True)
class ModelTotals:
    """What a list of models shows of each.

    Parameters
    ----------
    layers, distinct : that multiply and accumulate, and how many of these differ
    """

    name: str
    layers: int
    distinct: int
    macs: int
    parameters: int


def totals_of_models(failed: Callable[[InputError], None]) -> list[ModelTotals]:
    """Those of all models, in the order of `list_models`.

    Parameters
    ----------
    failed : is told why a network that an installed package provides is left out

    Raises
    ------
    InputError : for an imported file that fails
    """
    load_imported()
    others = _others()
    kept = _kept()
    if kept and not others:
        return kept
    from tilewright.workloads.catalog import list_models

    known = {totals.name: totals for totals in kept}
    every: list[ModelTotals] = []
    for name in list_models():
        try:
            every.append(known[name] if name in known else _built(name))
        except InputError as error:
            failed(error)
    own = [totals for totals in every if totals.name not in others]
    if not kept:
        with suppress(OSError):  # no folder takes it
            trust.write(_file(), json.dumps([asdict(totals) for totals in own]).encode())
    return every


def _others() -> set[str]:
    """Names of networks that are not this package's."""
    added = (name for name in FAMILIES.names() if not FAMILIES.entry(name).module.startswith("tilewright."))
    return {*extensions("networks"), *ADDED, *added}


def _kept() -> list[ModelTotals]:
    """What an earlier call kept; nothing where there is none, or it was damaged."""
    try:
        return [ModelTotals(**row) for row in json.loads(trust.read(_file()) or b"[]")]
    except (ValueError, TypeError, OSError):
        return []


def _file() -> Path:
    return cache_folder() / f"models-{_digest()[:16]}.json"


@cache
def _digest() -> str:
    digest = hashlib.sha256(version("onnx").encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _built(name: str) -> ModelTotals:
    from tilewright.workloads.catalog import resolve_model

    network = resolve_model(name)
    distinct = network.distinct_layers(mac_only=True)
    return ModelTotals(name, len(network.mac_layers), len(distinct), network.macs, network.parameters)
