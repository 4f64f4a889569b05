"""Built-in networks, one module per family.

A module here has ``MODELS``: for every model name, a function of the batch that returns the network's
`tilewright.workloads.blueprint.Blueprint` (or, where that does not fit, a
`tilewright.workloads.network.Network`).  A new module is found by itself; one that holds families with
parameters has lines in `tilewright.workloads.families` instead.  Installed packages add networks by
entry points in the group ``tilewright.networks``, imported files by `ADDED`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from tilewright.foundation.errors import InputError
from tilewright.foundation.extensions import Extension, extensions, load_imported
from tilewright.workloads.network import Network

if TYPE_CHECKING:
    from tilewright.workloads.blueprint import Blueprint  # loads onnx

Builder = Callable[[int], "Blueprint | Network"]


ADDED: dict[str, Builder] = {}
"""Builders of networks that a program adds while it runs."""


def builder(name: str) -> Builder | None:
    """The builder of one network; ``None`` for an unknown name.

    Raises
    ------
    InputError : for an imported file that fails
    """
    return _shipped(tuple(__path__)).get(name) or builders().get(name)


def builders() -> dict[str, Builder]:
    """The builder of every built-in network by name, in alphabetical order.

    Raises
    ------
    InputError : for an imported file that fails
    """
    load_imported()
    installed = {name: _deferred(network) for name, network in extensions("networks").items()}
    return dict(sorted({**installed, **ADDED, **_shipped(tuple(__path__))}.items()))


@cache
def _shipped(folders: tuple[str, ...]) -> dict[str, Builder]:
    listed: dict[str, Builder] = {}
    for module in pkgutil.iter_modules(folders):
        listed |= getattr(importlib.import_module(f"{__name__}.{module.name}"), "MODELS", {})
    return listed


def _deferred(extension: Extension) -> Builder:
    """A builder that loads its package when it is called."""

    def build(batch: int) -> Blueprint | Network:
        from tilewright.workloads.blueprint import Blueprint

        function = extension.load()
        network = function(batch) if callable(function) else function
        if not isinstance(network, Blueprint | Network):
            expected = (
                f"expected {extension.package} to name a function of the batch that returns a Blueprint"
            )
            returned = f"that returns a Blueprint or a Network, got {type(network).__name__}"
            raise InputError(extension.name, None, f"{expected} {returned}")
        return network

    return build
