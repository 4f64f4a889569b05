"""A sweep as a table for a terminal of 80 columns, and its curves as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.report.records.mapping.sweep import PREFIX, SweepDocument, SweepRow, sweep_rows
from tilewright.report.text.csv_text import csv_lines
from tilewright.report.text.mapping.explore import short_field
from tilewright.report.text.mapping.phases import phases_text
from tilewright.report.text.quantities import energy_text, gap_text, seconds_text, si_text
from tilewright.report.text.tables import head_text, plain_table


def short(field: str) -> str:
    """``batch`` of ``model.batch``, ``SPM.capacity`` of ``levels.SPM.capacity``."""
    return short_field(field.removeprefix(PREFIX))


def axis_title(document: SweepDocument) -> str:
    """The fields of the last axis."""
    return ":".join(short(field) for field in document.vary[-1].fields)


def fields_text(fields: dict[str, Any]) -> str:
    """A point in one line."""
    return ", ".join(f"{short(field)} {value}" for field, value in fields.items())


def sweep_views(document: SweepDocument) -> list[RenderableType]:
    """All points in a table, and where another limit begins."""
    rows, points = sweep_rows(document), document.points
    first = points[0].exploration if points else None
    title = head_text(
        document.model,
        *((first.machine, f"objective {first.goal}") if first is not None else ()),
        f"{len(points)} points",
    )
    views: list[RenderableType] = [title, ""]
    if first is not None and first.phases is not None:
        views += [Text(f"{phases_text(first.phases)} (of the first point)"), ""]
    designs = any(row.design for row in rows)
    heads = [*(short(field) for axis in document.vary for field in axis.fields)]
    heads += [
        "time",
        "per s",
        "J each",
        "PEs",
        "transfers",
        "limit",
        "gap",
        *(["machine"] if designs else []),
    ]
    table = plain_table([(head, "left" if head in ("machine", "limit") else "right") for head in heads])
    for row in rows:
        cells = [str(value) for value in row.fields.values()]
        table.add_row(*cells, *_figures(row), *([fields_text(row.design)] if designs else []))
    views += [table, "", *map(Text, limit_lines(document, rows))]
    done = f"layers on machines: {_cells(document)}; {seconds_text(document.wall_s)}"
    return [*views, Text(done)]


def limit_lines(document: SweepDocument, rows: Sequence[SweepRow]) -> list[str]:
    """From which value of the last axis another limit is the longer one, for each value of the others."""
    last = [*document.vary[-1].fields]
    lines: list[str] = []
    for before, row in pairwise(rows):
        same = all(before.fields[name] == row.fields[name] for name in row.fields if name not in last)
        if same and before.limit and row.limit and before.limit != row.limit:
            lines.append(f"bound by {row.limit} from {fields_text(row.fields)} on, by {before.limit} before")
    return lines


def _figures(row: SweepRow) -> list[str]:
    if row.seconds is None or row.energy_pj is None or row.per_second is None:
        return ["-"] * 7
    return [
        si_text(row.seconds, "s"),
        si_text(row.per_second),
        energy_text(row.energy_pj),
        si_text(row.compute_seconds or 0, "s"),
        si_text(row.transfer_seconds or 0, "s"),
        row.limit,
        gap_text(row.gap or 0.0),
    ]


def _cells(document: SweepDocument) -> str:
    counts: dict[str, int] = {}
    for point in document.points:
        for how, count in point.exploration.totals.cells.items():
            counts[how] = counts.get(how, 0) + count
    return ", ".join(f"{count} {how}" for how, count in counts.items() if count) or "none"


def sweep_csv(document: SweepDocument) -> str:
    """One line per point."""
    fields = [field for axis in document.vary for field in axis.fields]
    varied = document.points[0].exploration.vary if document.points else []
    designs = [field for axis in varied for field in axis.fields]
    figures = [name for name in SweepRow.__dataclass_fields__ if name not in ("fields", "design")]
    lines = [
        [
            *(row.fields[field] for field in fields),
            *(row.design.get(field) for field in designs),
            *(getattr(row, name) for name in figures),
        ]
        for row in sweep_rows(document)
    ]
    return csv_lines([[*fields, *designs, *figures], *lines])
