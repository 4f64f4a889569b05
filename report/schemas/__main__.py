"""Print the JSON Schema of result documents."""

from __future__ import annotations

import json

from tilewright.report.schemas import generated_schema

print(json.dumps(generated_schema(), indent=2))
