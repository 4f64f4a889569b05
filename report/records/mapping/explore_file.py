"""Documents of explorations read back."""

from __future__ import annotations

from tilewright.report.records.files import parse_kind
from tilewright.report.records.mapping.explore import ExploreDocument


def is_exploration(data: object) -> bool:
    """Whether data look like the document of an exploration."""
    return ExploreDocument.is_kind_of(data)


def parse_exploration(data: object, where: str) -> ExploreDocument:
    """The document that plain data hold; raises ``InputError`` that names the field at fault."""
    return parse_kind(data, where, ExploreDocument)
