"""Print the JSON Schema of a kind of documents, such as ``result`` or ``plan``."""

from __future__ import annotations

import json
import sys

from tilewright.report.records.kinds import KINDS
from tilewright.report.records.schemas import generated_schema

_asked = f"tilewright.{(sys.argv[1:] or ['result'])[0]}/"
_kind = {kind.schema_text().rstrip("0123456789"): kind for kind in KINDS}[_asked]
print(json.dumps(generated_schema(_kind), indent=2))
