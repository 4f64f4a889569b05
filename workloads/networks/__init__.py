"""Built-in networks, one module per family.

A module here has ``MODELS``: for every model name, a function of the batch that returns the network's
`tilewright.workloads.blueprint.Blueprint` (or, where that does not fit, a
`tilewright.workloads.network.Network`).  A new module is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.network import Network

Builder = Callable[[int], Blueprint | Network]


def builders() -> dict[str, Builder]:
    """The builder of every built-in network by name, in alphabetical order."""
    found: dict[str, Builder] = {}
    for module in pkgutil.iter_modules(__path__):
        found.update(importlib.import_module(f"{__name__}.{module.name}").MODELS)
    return dict(sorted(found.items()))
