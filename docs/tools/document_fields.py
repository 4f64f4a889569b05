"""Tables of the fields of JSON documents, from the schemas that ship and the documents of the reference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tilewright.report.records.schemas import result_schema

KINDS = ("result", "schedule", "codesign", "plan", "compare", "explore", "sweep")
"""Documents; a record that several have stands on the page of the first one."""
WHOLE = {"ResultDocument": "result", "ScheduleDocument": "schedule", "ExploreDocument": "explore"}
"""Documents that others hold whole."""
WIDEST = 44
DOCUMENTS = Path(__file__).parents[1] / "reference" / "documents"
NOTES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "documents.yaml").read_text(encoding="utf-8")
)


def schema(kind: str) -> dict[str, Any]:
    return result_schema(f"{kind}-1.schema.json")


def example(kind: str) -> Any:
    """The whole document of a small call."""
    return json.loads((DOCUMENTS / f"{kind}.json").read_text(encoding="utf-8"))


def records(kind: str) -> dict[str, dict[str, Any]]:
    """All records of a document, by name, in the order in which a reader meets them."""
    whole = schema(kind)
    found = {f"{kind}/1": whole}
    for record in (waiting := [whole]):
        for name in _named(record):
            if name not in found and name not in WHOLE:
                found[name] = whole["$defs"][name]
                waiting.append(found[name])
    return found


def home(name: str, record: dict[str, Any]) -> str:
    """The document on whose page a record stands."""
    return next(kind for kind in KINDS if records(kind).get(name) == record)


def _named(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        for key, value in node.items():
            if key != "$defs":
                yield from _named(value)
    elif isinstance(node, list):
        for value in node:
            yield from _named(value)


def kind_of(field: dict[str, Any]) -> str:
    """A field's type in a few words."""
    if "$ref" in field:
        return _anchor(field["$ref"].rpartition("/")[2])
    if "const" in field or "enum" in field:
        return " or ".join(
            f"`{value}`" if value else "empty" for value in field.get("enum", [field.get("const")])
        )
    if "anyOf" in field:
        kinds = list(dict.fromkeys(kind_of(one) for one in field["anyOf"]))
        return " or ".join(one for one in kinds if not (one == "integer" and "number" in kinds))
    match field.get("type"):
        case "array" if "prefixItems" in field:
            return "list of " + ", ".join(kind_of(one) for one in field["prefixItems"])
        case "array":
            return f"list of {kind_of(field.get('items', {}))}"
        case "object":
            inside = field.get("additionalProperties")
            return f"names to {kind_of(inside)}" if isinstance(inside, dict) else "mapping"
        case "string":
            return "fraction" if field.get("pattern", "").startswith("^[0-9]+(") else "text"
        case None:
            return "any"
        case other:
            return str(other)


def _anchor(name: str) -> str:
    return f"RECORD:{name}"


def meaning(record: str, field: str, said: str | None) -> str:
    """The schema's words, or those of ``documents.yaml``."""
    text = said or NOTES["records"].get(record, {}).get(field) or NOTES["everywhere"].get(field)
    if text is None:
        raise LookupError(f"documents.yaml: {record}.{field} has no entry")
    return str(text)


def examples(kind: str) -> dict[tuple[str, str], Any]:
    """Of every field of every record, the first value in the example that says something."""
    found: dict[tuple[str, str], Any] = {}
    defs = schema(kind)["$defs"]

    def visit(value: Any, node: dict[str, Any], name: str | None) -> None:
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            node = defs[name]
        for choice in node.get("anyOf", []):
            if value is not None and _fits(value, choice, defs):
                visit(value, choice, None)
                return
        if isinstance(value, dict):
            fields = node.get("properties", {})
            for key, inside in value.items():
                if key in fields and name is not None and found.get((name, key)) in (None, [], {}, ""):
                    found[name, key] = inside
                rest = node.get("additionalProperties")
                visit(inside, fields.get(key) or (rest if isinstance(rest, dict) else {}), None)
        elif isinstance(value, list):
            for one in value:
                visit(one, node.get("items") if isinstance(node.get("items"), dict) else {}, None)

    visit(example(kind), schema(kind), f"{kind}/1")
    return found


def _fits(value: Any, node: dict[str, Any], defs: dict[str, Any]) -> bool:
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        return node.get("type") == "object" and set(node.get("required", [])) <= set(value)
    return isinstance(value, list) == (node.get("type") == "array") and node.get("type") != "object"


def shown(value: Any) -> str:
    """A value in a cell of a table."""
    if value is None:
        return "–"
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > WIDEST:
        text = text[: WIDEST - 1].rstrip() + "…"
    return f"`{text}`"


def tables(kind: str) -> Iterator[str]:
    """All tables of a document's page."""
    values = examples(kind)
    for name, record in records(kind).items():
        if home(name, record) != kind:
            continue
        if name != f"{kind}/1":
            yield from ("", f"### {name}", "", f"{record.get('description', '').strip()}", "")
        required = set(record.get("required", ()))
        yield "| field | type | example | meaning |"
        yield "|---|---|---|---|"
        for field, info in record.get("properties", {}).items():
            about = meaning(name, field, info.get("description"))
            if field not in required and info.get("default") is not None:
                about += f" (absent: `{json.dumps(info['default'])}`)"
            cells = (f"`{field}`", _links(kind_of(info), kind), shown(values.get((name, field))), about)
            yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _links(text: str, kind: str) -> str:
    """Names of records as links to where they stand."""
    words = []
    for word in text.split(" "):
        if word.startswith("RECORD:"):
            name = word.removeprefix("RECORD:").rstrip(",")
            place = WHOLE.get(name) or home(name, schema(kind)["$defs"][name])
            page = "" if place == kind else f"{place}.md"
            word = f"[{name}]({page}#{'fields' if name in WHOLE else name.lower()})"
        words.append(word)
    return " ".join(words)


def unused() -> list[str]:
    """Entries of ``documents.yaml`` that no table shows."""
    fields = [
        (name, field, info)
        for kind in KINDS
        for name, record in records(kind).items()
        for field, info in record.get("properties", {}).items()
    ]
    silent = {(name, field) for name, field, info in fields if not info.get("description")}
    own = {(name, field) for name, entries in NOTES["records"].items() for field in entries}
    wrong = [f"{name}.{field}" for name, field in sorted(own - silent)]
    common = {field for name, field in silent - own}
    return wrong + [f"everywhere.{field}" for field in sorted(set(NOTES["everywhere"]) - common)]
