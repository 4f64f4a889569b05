"""Result documents on disk: written whole or not at all, read back with one-line errors."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from tilewright.foundation.disk import DOCUMENT_BYTES, is_stream, read_text, suffix_error
from tilewright.foundation.errors import InputError, one_line, unknown_name
from tilewright.foundation.yaml_file import read_yaml
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.head import AnyDocument, kind_of
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument, layer_data
from tilewright.report.records.mapping.network_energy import energy_cells, energy_columns
from tilewright.report.records.mapping.operator import Record
from tilewright.report.text.csv_text import csv_line
from tilewright.report.text.mapping.spaces import record_text

FORMATS = ("json", "jsonl", "csv", "yaml")
_SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".yaml": "yaml", ".yml": "yaml"}
_LONG, _SHORT = 600, 200  # characters of a line in a document: of flat rows, and of what is nested deeper
_DEEP = 5
_DIGITS = 400
"""Of an integer in a document, at most; Python itself reads 4,300."""

Document = TypeVar("Document", bound=Record)
Whole = TypeVar("Whole", bound=AnyDocument)

CSV_FIELDS = (
    "name",
    "count",
    "operator",
    "shape",
    "status",
    "value",
    "bound",
    "gap",
    "energy_pj",
    "cycles",
    "edp",
    "macs",
    "utilization",
    "time_s",
    "solver",
    "wall_s",
    "space",
)


def format_of(path: Path) -> str:
    """The format that a file's suffix states; JSON where it has no known one."""
    return _SUFFIXES.get(path.suffix.lower(), "json")


def output_format(path: Path, form: str, known: Collection[str] = FORMATS) -> str:
    """The format of a file that is to be written.

    A known suffix decides; without one, the format of standard output where it is one of a file's.  What is
    no regular file (a device, a pipe) needs no suffix: JSON.

    Parameters
    ----------
    form : the format of standard output
    known : formats that the document can have

    Raises
    ------
    InputError : for an unknown suffix where ``form`` does not decide
    """
    suffixes = tuple(suffix for suffix, name in _SUFFIXES.items() if name in known)
    if path.suffix.lower() in suffixes:
        return _SUFFIXES[path.suffix.lower()]
    if form in known:
        return form
    if is_stream(path):
        return "json"
    forms = " or ".join(name for name in known if name in ("json", "jsonl", "csv"))
    raise suffix_error(path, suffixes, f" (or --format {forms})")


def render(document: ResultDocument, form: str) -> str:
    """The document as text that ends in a newline."""
    match form:
        case "json":
            return json.dumps(document.to_data(), indent=2, ensure_ascii=False) + "\n"
        case "jsonl":
            lines = [jsonl_head(document), *map(jsonl_layer, document.layers), jsonl_totals(document)]
            return "".join(lines)
        case "csv":
            engine = document.arch.build(document.model)
            return csv_head(engine) + "".join(csv_row(layer, engine) for layer in document.layers)
    return str(
        yaml.safe_dump(document.to_data(), sort_keys=False, allow_unicode=True, default_flow_style=None)
    )


def jsonl_head(document: ResultDocument) -> str:
    """The first line of a JSON-lines document: all but layers and totals."""
    data = document.to_data()
    for field in ("layers", "totals", "complete", "missing"):
        del data[field]
    return _line({"type": "head", **data})


def jsonl_layer(layer: LayerRecord) -> str:
    """One layer's line."""
    return _line({"type": "layer", **layer_data(layer)})


def jsonl_totals(document: ResultDocument) -> str:
    """The last line."""
    totals = document.to_data()["totals"]
    return _line(
        {"type": "totals", "complete": document.complete, "missing": document.missing, "totals": totals}
    )


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False) + "\n"


def csv_head(engine: Engine) -> str:
    """The line with the names of the columns; the last ones divide the energy by level and tensor."""
    return csv_line([*CSV_FIELDS, *energy_columns(engine)])


def csv_row(layer: LayerRecord, engine: Engine) -> str:
    """One layer's line."""
    flat: dict[str, Any] = {**layer.model_dump(), **(layer.metrics.model_dump() if layer.metrics else {})}
    flat["operator"] = layer.operator.kind
    flat["space"] = None if layer.space is None else record_text(layer.space)
    flat["shape"] = " ".join(f"{dim}{bound}" for dim, bound in layer.bounds.items())
    return csv_line([*(flat.get(field) for field in CSV_FIELDS), *energy_cells(layer, engine)])


def json_text(data: object) -> str:
    """Plain data as JSON that ends in a newline; what is flat enough stands on a line of its own."""
    return _json_lines(data, "") + "\n"


def _json_lines(data: Any, margin: str) -> str:
    inner = margin + "  "
    height = _height(data)
    if height < _DEEP:
        text = json.dumps(data, ensure_ascii=False)
        if height == 0 or len(text) <= (_LONG if height <= 2 else _SHORT):
            return text
    if isinstance(data, dict):
        rows = [
            f"{json.dumps(key, ensure_ascii=False)}: {_json_lines(value, inner)}"
            for key, value in data.items()
        ]
        marks = "{}"
    else:
        rows = [_json_lines(value, inner) for value in data]
        marks = "[]"
    return f"{marks[0]}\n{inner}" + f",\n{inner}".join(rows) + f"\n{margin}{marks[1]}"


def _height(data: Any) -> int:
    """Levels of containers inside each other, counted up to five; an empty one is none."""
    if not isinstance(data, dict | list) or not data:
        return 0
    inside = data.values() if isinstance(data, dict) else data
    most = 0
    for value in inside:
        most = max(most, _height(value))
        if most >= _DEEP - 1:
            break
    return most + 1


def read_data(path: Path) -> Any:
    """The plain data of a JSON, JSON-lines or YAML file; raises ``InputError``."""
    form = format_of(path)
    if form == "csv":
        raise InputError(
            str(path), None, "a CSV table has no mappings, expected a .json, .jsonl or .yaml file"
        )
    if form == "yaml":
        return read_yaml(path)
    text = read_text(path, DOCUMENT_BYTES, "a document in JSON")
    if form == "jsonl":
        return _joined([_json(path, line, i) for i, line in enumerate(text.splitlines(), 1) if line.strip()])
    return _json(path, text)


def _json(path: Path, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=_number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno if line is None else line}, column {error.colno}"
        raise InputError(str(path), place, f"not valid JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(str(path), None, "not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(str(path), None, f"not valid JSON: {one_line(error)}") from None


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"an integer of {len(text):,} digits, expected at most {_DIGITS:,}")
    return int(text)


def _number(text: str) -> float:
    """A finite number; raises ``ValueError`` for ``NaN``, ``Infinity`` and what is as large."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {text[:40]}")
    return number


def _joined(lines: list[Any]) -> Any:
    """The document that JSON lines make up; layers without totals are an incomplete one."""
    if not lines or not isinstance(lines[0], dict) or lines[0].get("type") != "head":
        return lines
    document: dict[str, Any] = {"complete": False, "missing": [], **lines[0], "layers": []}
    for line in lines[1:]:
        if isinstance(line, dict) and line.get("type") == "layer":
            document["layers"].append({key: value for key, value in line.items() if key != "type"})
        elif isinstance(line, dict):
            document.update(line)
    del document["type"]
    return document


def is_result(data: object) -> bool:
    """Whether data look like a result document."""
    return ResultDocument.is_kind_of(data)


def parse_document(data: object, where: str) -> ResultDocument:
    """The result document that plain data hold; raises ``InputError``."""
    return parse_kind(data, where, ResultDocument)


def parse_kind(data: object, where: str, *kinds: type[Whole]) -> Whole:
    """The document of one of some kinds that plain data hold; raises ``InputError`` that names the field."""
    return parse_record(data, kind_of(data, kinds, where), where)


def parse_record(data: object, kind: type[Document], where: str) -> Document:
    """Plain data as a record; raises ``InputError`` that names the first field at fault."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        finding = error.errors(include_url=False)[0]
        raise InputError(where, _place(finding["loc"]), _message(finding, kind)) from None


def _place(location: tuple[int | str, ...]) -> str | None:
    """``layers[3].metrics.cycles``."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or None


def _message(finding: Any, kind: type[Record]) -> str:
    if finding["type"] == "extra_forbidden":
        return unknown_name(str(finding["loc"][-1]), kind.model_fields)
    if finding["type"] == "missing":
        return "missing"
    value = repr(finding["input"])
    return f"{finding['msg'].lower()}, got {value if len(value) <= 60 else value[:59] + '…'}"
