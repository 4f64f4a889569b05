"""What searches tell, kept until it is their turn to be heard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.formulation.result import TracePoint
from tilewright.solvers.observer import Observer
from tilewright.workloads.selection import SelectedLayer

Told = tuple[str, tuple[Any, ...]]
"""A method of `Observer`, and its arguments."""


class Kept:
    """An observer that hands on its notifications as data.

    Parameters
    ----------
    keep : is given each of them
    """

    def __init__(self, keep: Callable[[Told], object]) -> None:
        self._keep = keep

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        self._keep(("layer", (index, total, layer)))

    def point(self, point: TracePoint) -> None:
        self._keep(("point", (point,)))

    def phase(self, text: str) -> None:
        self._keep(("phase", (text,)))

    def note(self, text: str) -> None:
        self._keep(("note", (text,)))


def tell(observer: Observer, told: Told) -> None:
    """Notify an observer of what was kept."""
    name, arguments = told
    getattr(observer, name)(*arguments)
