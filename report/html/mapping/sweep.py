"""The report of a sweep: curves of time and energy with the limits, and a table of all points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.report.html.figures import SECONDS, base_layout, logarithmic
from tilewright.report.html.page import (
    Column,
    Figure,
    Plot,
    Section,
    Table,
    filled,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.plots.style import PALETTE
from tilewright.report.plots.sweep import LIMITS
from tilewright.report.records.mapping.sweep import (
    SweepDocument,
    SweepLine,
    SweepRow,
    sweep_lines,
    sweep_rows,
)
from tilewright.report.text.mapping.sweep import axis_title, fields_text, limit_lines, short
from tilewright.report.text.quantities import energy_text, gap_text, si_text


def write_sweep_report(path: Path, document: SweepDocument, command: str = "") -> None:
    """Write the report of a sweep.

    Parameters
    ----------
    command : the command line that made it, if one did

    Raises
    ------
    InputError : for a file that is no HTML
    OutputError : where it cannot be written
    """
    lines, rows = sweep_lines(document), sweep_rows(document)
    facts = [f"{len(rows)} points", *limit_lines(document, rows)]
    if document.points:
        first = document.points[0].exploration
        facts.insert(0, f"{first.machine}, objective {first.goal}, {first.cost_model} model")
    sections: list[Section] = [
        Plot("Curves", [("time", _times(document, lines)), ("energy", _energies(document, lines))]),
        _table(document, rows),
    ]
    write_page(path, f"Sweep of {document.model}", facts, sections, command)


def _times(document: SweepDocument, lines: Sequence[SweepLine]) -> Figure:
    figures = (("seconds", "mappings", "solid"), *LIMITS)
    dashes = {"--": "dash", ":": "dot"}
    curves = [
        _curve(line, [getattr(row, field) for row in line.rows], name, dashes.get(dash, dash), index)
        for index, line in enumerate(lines)
        for field, name, dash in figures
    ]
    return _figure(document, lines, curves, "time of all runs", SECONDS)


def _energies(document: SweepDocument, lines: Sequence[SweepLine]) -> Figure:
    curves = [
        _curve(
            line,
            [None if row.energy_pj is None else row.energy_pj * 1e-12 for row in line.rows],
            "mappings",
            "solid",
            index,
        )
        for index, line in enumerate(lines)
    ]
    joules = {"tickformat": "~s", "ticksuffix": "J"}
    return _figure(document, lines, curves, "energy of one sequence", joules)


def _curve(line: SweepLine, ys: Sequence[float | None], name: str, dash: str, index: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers" if dash == "solid" else "lines",
        "name": f"{line.name}, {name}" if line.name else name,
        "x": [*line.xs],
        "y": [*ys],
        "line": {"dash": dash, "color": PALETTE[index % len(PALETTE)]},
        "hovertemplate": "%{x}: %{y:.4s}<extra></extra>",
    }


def _figure(
    document: SweepDocument,
    lines: Sequence[SweepLine],
    curves: list[dict[str, Any]],
    title: str,
    ticks: dict[str, Any],
) -> Figure:
    layout = base_layout(axis_title(document), title)
    if all(line.numeric for line in lines):
        layout["xaxis"].update(logarithmic([float(x) for line in lines for x in line.xs]))
    else:
        layout["xaxis"]["type"] = "category"
    ys = [y for curve in curves for y in curve["y"] if y is not None]
    layout["yaxis"].update({**logarithmic(ys), **ticks})
    layout["showlegend"] = True
    return {"data": curves, "layout": layout}


def _table(document: SweepDocument, rows: Sequence[SweepRow]) -> Table:
    def number(value: float | None, text: Any) -> Any:
        return number_cell("-" if value is None else text(value), value)

    fields = [field for axis in document.vary for field in axis.fields]
    columns: list[tuple[Column, Any]] = [
        (Column(short(field)), lambda row, field=field: text_cell(str(row.fields[field]))) for field in fields
    ]
    if any(row.design for row in rows):
        columns.append((Column("best machine"), lambda row: text_cell(fields_text(row.design))))
    seconds = (("time", "seconds"), ("PEs", "compute_seconds"), ("transfers", "transfer_seconds"))
    for head, name in seconds:
        columns.append(
            (
                Column(head, is_number=True),
                lambda row, name=name: number(getattr(row, name), lambda value: si_text(value, "s")),
            )
        )
    columns += [
        (Column("per second", is_number=True), lambda row: number(row.per_second, si_text)),
        (Column("energy of one", is_number=True), lambda row: number(row.energy_pj, energy_text)),
        (Column("limit"), lambda row: text_cell(row.limit)),
        (Column("gap", is_number=True), lambda row: number(row.gap, gap_text)),
    ]
    return filled("Points", columns, rows)
