"""Runs and their summary on stdout, in every format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.benchmarks import export
from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.summary import COLUMNS, Line, cells, gap_text, markdown, proofs, summary
from tilewright.cli.terminal.console import results_console, show, write
from tilewright.report.text.csv_text import csv_lines
from tilewright.report.text.quantities import seconds_text
from tilewright.report.text.tables import STYLES, head_text, plain_table

_BY = ("objective", "method")
_EXPENDABLE = ("integral", "≤10 %", "≤1 %", "time", "=0", "runs")
"""Columns of a summary that give way on a narrow terminal, the first one first."""


def show_summary(rows: Sequence[Row], form: str, by: Sequence[str] = _BY) -> None:
    """Per method: how far from the optimum."""
    match form:
        case "json":
            write(json.dumps(_data(rows, by), indent=2, ensure_ascii=False) + "\n")
        case "csv":
            write(_csv(_data(rows, by)["methods"], [*by, *_FIGURES]))
        case "markdown":
            write(markdown(rows, by))
        case _:
            show(*summary_views(rows, by))


def show_runs(rows: Sequence[Row], form: str, most: int) -> None:
    """Run by run, at most so many of them in a table."""
    match form:
        case "json":
            write(export.json_text(rows))
        case "csv":
            write(export.csv_text(rows))
        case _:
            shown = rows[:most] if most else rows
            for (suite, arch, objective), group in groupby(
                shown, lambda row: (row.suite, row.arch, row.objective)
            ):
                show(head_text(suite, arch, f"objective {objective}"), "", _runs_table([*group]), "")
            if len(rows) > len(shown):
                show(Text(f"and {len(rows) - len(shown)} more (--most 0 shows all)", "dim"), "")


_FIGURES = (
    "runs",
    "missing",
    "empty",
    "unjudged",
    "mean",
    "median",
    "worst",
    "within_10",
    "within_1",
    "at_optimum",
    "seconds",
    "primal_integral",
)


def _data(rows: Sequence[Row], by: Sequence[str]) -> dict[str, Any]:
    def line_data(line: Line) -> dict[str, Any]:
        return {**dict(zip(by, line.group, strict=True)), **{name: getattr(line, name) for name in _FIGURES}}

    reported = [
        {
            **dict(zip(("objective", "arch", "solver"), proof.group, strict=True)),
            **{name: value for name, value in asdict(proof).items() if name != "group"},
        }
        for proof in proofs(rows)
    ]
    return {"methods": [line_data(line) for line in summary(rows, by)], "proofs": reported}


def _csv(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    return csv_lines([columns, *([record[name] for name in columns] for record in records)])


def _runs_table(rows: Sequence[Row]) -> RenderableType:
    columns = [
        ("layer", "left"),
        ("method", "left"),
        ("seed", "right"),
        ("result", "left"),
        ("gap", "right"),
        ("to 1 %", "right"),
        ("time", "right"),
    ]
    table = plain_table(columns, names=3)
    last = ""
    for row in rows:
        name = f"{row.layer} ×{row.count}" if row.count > 1 else row.layer
        times = ["-" if s is None else seconds_text(s) for s in (row.seconds_1, row.wall_s)]
        result = Text(row.status, STYLES.get(row.status, "dim"))
        seed = str(row.seed) if row.is_method else ""
        method = Text(row.method, "" if row.is_method else "bold")
        table.add_row(name if name != last else "", method, seed, result, gap_text(row.gap), *times)
        last = name
    return table


def summary_views(rows: Sequence[Row], by: Sequence[str]) -> list[RenderableType]:
    """The summary as a table, and what the proofs were."""
    lines = summary(rows, by)
    if not lines:
        return [Text("no method was run", "yellow")]
    columns: dict[str, list[str]] = {field: [] for field in (*by, *COLUMNS)}
    for before, line in zip([None, *lines], lines, strict=False):
        repeats = by[0] != "method" and before is not None and before.group[0] == line.group[0]
        group = ["" if repeats else line.group[0], *line.group[1:]]
        for column, text in zip(columns.values(), [*group, *cells(line)], strict=True):
            column.append(text)
    if not any(line.empty for line in lines):
        del columns["none"]
    _fit(columns, results_console().width)
    table = plain_table([(name, "left" if name in by else "right") for name in columns], names=len(by))
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    note = Text(
        "gaps are value / proven optimum - 1, over even storage and the cost model's own tiles; "
        "shares of runs at most so far from it; median time",
        "dim",
    )
    reported = [
        Text(
            f"{proof.group[0]} on {proof.group[1]}: {proof.proven} of {proof.problems} optima proven "
            f"by {proof.group[2]}, median {seconds_text(proof.median_s)}, "
            f"longest {seconds_text(proof.worst_s)}",
            "green" if proof.proven == proof.problems else "yellow",
        )
        for proof in proofs(rows)
    ]
    unjudged = sum(line.unjudged for line in lines)
    if unjudged:
        reported.append(Text(f"{unjudged} runs have no gap: their optimum is not proven", "yellow"))
    return [table, "", note, *reported]


def _fit(columns: dict[str, list[str]], width: int) -> None:
    """Leave out what matters least until the table fits."""
    for name in _EXPENDABLE:
        needed = sum(2 + max(map(len, (heading, *texts))) for heading, texts in columns.items())
        if needed > width and name in columns:
            del columns[name]
