"""Print the JSON Schema of a kind of documents, such as ``result`` or ``plan``."""

from __future__ import annotations

import json
import sys

from pydantic import BaseModel

from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.report.records.schemas import generated_schema

_KINDS: dict[str, type[BaseModel]] = {
    "result": ResultDocument,
    "explore": ExploreDocument,
    "schedule": ScheduleDocument,
    "codesign": CodesignDocument,
    "plan": PlanDocument,
    "compare": CompareDocument,
}

print(json.dumps(generated_schema(_KINDS[(sys.argv[1:] or ["result"])[0]]), indent=2))
