"""The formats that can be read and written: one module each, loaded when it is asked for.

A reader has ``PEER`` (the program), ``TOPS`` (the keys at the top of a file that it reads),
``recognises(data)`` and ``read(top, bundle)``; a writer has ``PEER`` and ``write(bundle)``.  A further
program is one module per thing, and a row each.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.outputs import Output
from tilewright.report.exchange.source import Field

_HERE = "tilewright.report.exchange.mapping"


class Reader(Protocol):
    """A module that reads one thing of one program."""

    PEER: str
    TOPS: tuple[str, ...]

    def recognises(self, data: object) -> bool:
        """Whether a file's content has the thing."""

    def read(self, top: Field, bundle: Bundle) -> None:
        """Add it to what was read before; raises ``InputError``."""


class Writer(Protocol):
    """A module that writes one thing for one program."""

    PEER: str

    def write(self, bundle: Bundle) -> list[Output]:
        """The texts, none where there is no such thing; raises ``InputError`` for what cannot be said."""


READERS = [
    f"{_HERE}.timeloop_variables",
    f"{_HERE}.timeloop_energies",
    f"{_HERE}.timeloop_read_problem",
    f"{_HERE}.timeloop_read_constraints",
    f"{_HERE}.timeloop_read_architecture",
    f"{_HERE}.timeloop_read_mapping",
    f"{_HERE}.zigzag_read_workload",
    f"{_HERE}.zigzag_read_accelerator",
    f"{_HERE}.zigzag_read_mapping",
    f"{_HERE}.accelforge_read_arch",
    f"{_HERE}.gemmini_read_row",
]
"""Modules of readers, in the order in which one needs what another has read."""

WRITERS = [
    f"{_HERE}.tilewright_write",
    f"{_HERE}.timeloop_write_architecture",
    f"{_HERE}.timeloop_write_problem",
    f"{_HERE}.timeloop_write_mapping",
    f"{_HERE}.zigzag_write_accelerator",
    f"{_HERE}.zigzag_write_workload",
    f"{_HERE}.zigzag_write_mapping",
]
"""Modules of writers, in the order of what they write."""


def readers() -> list[Reader]:
    """Every reader."""
    return [cast(Reader, import_module(name)) for name in READERS]


def writers(peer: str) -> list[Writer]:
    """The writers for one program."""
    return [writer for writer in _writers() if peer == writer.PEER]


def targets() -> list[str]:
    """Programs that can be written for, this one first."""
    return list(dict.fromkeys(writer.PEER for writer in _writers()))


def _writers() -> list[Writer]:
    return [cast(Writer, import_module(name)) for name in WRITERS]
