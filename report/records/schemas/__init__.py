"""JSON Schemas of the documents that Tilewright writes.

``python -m tilewright.report.records.schemas`` prints the schema of
`tilewright.report.records.mapping.document` again; another kind of document stands behind it: ``explore``,
``sweep``, ``fused``, ``schedule``, ``codesign``, ``plan`` or ``compare``.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from tilewright.report.records.head import AnyDocument
from tilewright.report.records.mapping.document import ResultDocument

RESULT = "result-1.schema.json"
SCHEDULE = "schedule-1.schema.json"
CODESIGN = "codesign-1.schema.json"
PLAN = "plan-1.schema.json"
COMPARE = "compare-1.schema.json"
EXPLORE = "explore-1.schema.json"
FUSED = "fused-1.schema.json"
SWEEP = "sweep-1.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def result_schema(file: str = RESULT) -> dict[str, Any]:
    """The JSON Schema of ``tilewright.result/1`` (or of another document, by its file) as it ships."""
    text = resources.files(__name__).joinpath(file).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def generated_schema(document: type[AnyDocument] = ResultDocument) -> dict[str, Any]:
    """The JSON Schema that the records of a document amount to."""
    schema = document.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": _DIALECT, **_without_titles(schema), "title": document.schema_text()}


def _without_titles(node: Any) -> Any:
    """Titles that only repeat a field's name are left out."""
    if isinstance(node, dict):
        is_fields = all(isinstance(value, dict) for value in node.values())
        kept = {key: value for key, value in node.items() if is_fields or key != "title"}
        return {key: _without_titles(value) for key, value in kept.items()}
    if isinstance(node, list):
        return [_without_titles(entry) for entry in node]
    return node
