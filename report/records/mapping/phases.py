"""Phases of a language model as a document states them."""

from __future__ import annotations

from pydantic import Field

from tilewright.report.records.mapping.operator import Record


class PhasesRecord(Record):
    """How often a prompt is read, how many tokens follow it, and which steps have layers of their own.

    Steps between two of them cost no more than the longer one, and no less than a layer that spans both.
    """

    text: str = Field(description="such as prefill:1,decode:200")
    lengths: list[int] = Field(description="tokens in the cache at steps that have layers of their own")
