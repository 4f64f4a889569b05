"""Rows as comma-separated values that a spreadsheet shows and does not compute."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that spreadsheets take for a formula."""


def csv_line(values: Iterable[Any]) -> str:
    """One row: ``None`` is an empty cell, and an apostrophe stands before a text that reads as a formula.

    Numbers stay as they are, whatever their sign.
    """
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(map(_cell, values))
    return stream.getvalue()


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Several rows."""
    return "".join(map(csv_line, rows))


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
