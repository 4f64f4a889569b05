"""Documents of explorations read back."""

from __future__ import annotations

from tilewright.foundation.errors import InputError
from tilewright.report.records.files import parse_record
from tilewright.report.records.mapping.explore import SCHEMA, ExploreDocument


def is_exploration(data: object) -> bool:
    """Whether data look like the document of an exploration."""
    return isinstance(data, dict) and str(data.get("schema", "")).startswith("tilewright.explore/")


def parse_exploration(data: object, where: str) -> ExploreDocument:
    """The document that plain data hold; raises ``InputError`` that names the field at fault."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        reported = data.get("schema") if isinstance(data, dict) else data
        raise InputError(where, "schema", f"expected {SCHEMA}, got {reported!r}")
    return parse_record(data, ExploreDocument, where)
