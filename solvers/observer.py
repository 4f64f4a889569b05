"""Who is notified of what a search over several layers does, while it does it."""

from __future__ import annotations

from typing import Protocol

from tilewright.formulation.result import TracePoint
from tilewright.workloads.selection import SelectedLayer


class Observer(Protocol):
    """Receives the events of a search, from the thread of the caller except for ``point``."""

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        """The search for one layer begins, the ``index``-th of ``total``, counted from 1."""

    def point(self, point: TracePoint) -> None:
        """A search found a better answer or bound."""

    def phase(self, text: str) -> None:
        """Something else is searched for in the same layer."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


class Unobserved:
    """Nobody is notified."""

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        """Nothing."""

    def point(self, point: TracePoint) -> None:
        """Nothing."""

    def phase(self, text: str) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""
