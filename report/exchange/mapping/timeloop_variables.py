"""Timeloop's variables, of which arithmetic in every file may speak: nothing of a machine by themselves."""

from __future__ import annotations

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.source import Field

PEER = "timeloop"
TOPS: tuple[str, ...] = ("variables",)


def recognises(data: object) -> bool:
    """Whether a file has variables."""
    return isinstance(data, dict) and isinstance(data.get("variables"), dict)


def read(top: Field, bundle: Bundle) -> None:
    """Nothing is left to do: fields know the variables of all files."""
