"""Print the JSON Schema of a kind of documents: ``result``, ``schedule``, ``codesign`` or ``plan``."""

from __future__ import annotations

import json
import sys

from pydantic import BaseModel

from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.report.records.schemas import generated_schema

_KINDS: dict[str, type[BaseModel]] = {
    "result": ResultDocument,
    "schedule": ScheduleDocument,
    "codesign": CodesignDocument,
    "plan": PlanDocument,
}

print(json.dumps(generated_schema(_KINDS[(sys.argv[1:] or ["result"])[0]]), indent=2))
