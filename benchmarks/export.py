"""Rows as files and texts: CSV, Parquet, JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tilewright.benchmarks.rows import Row
from tilewright.foundation.disk import check_writable, suffix_error, write_file
from tilewright.foundation.extras import PARQUET
from tilewright.report.text.csv_text import csv_lines

SUFFIXES = (".csv", ".parquet", ".json")
COLUMNS = tuple(field.name for field in fields(Row))


def check_export(path: Path) -> None:
    """Raise ``InputError`` for a suffix that stands for no format, or a file that cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise suffix_error(path, SUFFIXES)
    if path.suffix.lower() == ".parquet":
        _arrow()
    check_writable(path)


def export_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows in the format that the file's suffix names."""
    check_export(path)
    match path.suffix.lower():
        case ".csv":
            write_file(path, csv_text(rows))
        case ".json":
            write_file(path, json_text(rows))
        case _:
            _write_parquet(rows, path)


def csv_text(rows: Sequence[Row]) -> str:
    """A line per row; what is not known is empty."""
    return csv_lines([COLUMNS, *(asdict(row).values() for row in rows)])


def json_text(rows: Sequence[Row]) -> str:
    """A list of objects; what is not known is null."""
    return json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n"


def _write_parquet(rows: Sequence[Row], path: Path) -> None:
    arrow, parquet = _arrow()
    kinds = {"str": arrow.string(), "int": arrow.int64(), "float": arrow.float64()}
    schema = arrow.schema([(field.name, kinds[str(field.type).split(" ")[0]]) for field in fields(Row)])
    data = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    for name in ("energy_pj", "value"):
        data[name] = [None if value is None else float(value) for value in data[name]]
    stream = io.BytesIO()
    parquet.write_table(arrow.table(data, schema=schema), stream)
    write_file(path, stream.getvalue())


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise PARQUET.missing("--export", "Parquet") from None
    return pyarrow, pyarrow.parquet
