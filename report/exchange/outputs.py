"""Texts that a conversion writes, and what it refuses to write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """One file.

    Parameters
    ----------
    kind : ``machine``, ``layers``, ``constraints``, ``mapping``, ``energies`` or a peer's word
    name : of the file, without a folder
    text : its content, ending in a newline
    """

    kind: str
    name: str
    text: str


class NotStatedError(ValueError):
    """Something that a format has no words for; its text says what, to follow the name of the thing."""
