"""All kinds of documents, of both wings."""

from __future__ import annotations

from typing import Final

from tilewright.report.records.files import parse_kind
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.sweep import SweepDocument
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.records.scheduling.tiled.document import PlanDocument

AnyRecord = (
    ResultDocument
    | ExploreDocument
    | SweepDocument
    | FusedDocument
    | ScheduleDocument
    | CodesignDocument
    | PlanDocument
    | CompareDocument
)
KINDS: Final[tuple[type[AnyRecord], ...]] = (
    ResultDocument,
    ExploreDocument,
    SweepDocument,
    FusedDocument,
    ScheduleDocument,
    CodesignDocument,
    PlanDocument,
    CompareDocument,
)


def parse_any(data: object, where: str) -> AnyRecord:
    """The document that plain data hold; raises ``InputError`` that names the field at fault."""
    return parse_kind(data, where, *KINDS)
