"""The report of a contest: a comparison of methods, and every run."""

from __future__ import annotations

from pathlib import Path

from tilewright.formulation.scheduling.tiled.problem import tiled_objective
from tilewright.report.curves import unit
from tilewright.report.html.figures import base_layout
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
from tilewright.report.html.scheduling.claims import SORTS, versions_fact
from tilewright.report.plots.style import PALETTE
from tilewright.report.records.scheduling.tiled.compare import CompareDocument, RunRecord, ranked
from tilewright.report.text.quantities import gap_text, objective_text, percent_text, seconds_text
from tilewright.report.text.scheduling.tiled.compare import (
    FIGURES,
    VALUES,
    figure_texts,
    typical,
    value_texts,
    winner_text,
)


def write_contest_report(path: Path, document: CompareDocument, command: str = "") -> None:
    """Write the report of one contest; raises ``OutputError`` where the file cannot be written.

    Parameters
    ----------
    command : the command line that made it, if one did
    """
    bound = objective_text(tiled_objective(document.objective), document.bound)
    settings = document.settings
    facts = [
        f"batch {document.batch}, objective {document.objective}, "
        f"{seconds_text(settings.time_limit_s)} a run, {settings.seeds} seeds for random methods",
        winner_text(document),
        f"bound over all sizes of atoms and all plans {bound}",
        *([] if document.complete else ["not every run has ended"]),
        versions_fact(document.versions),
    ]
    sections: list[Section] = [_methods(document)]
    if any(entry.best is not None for entry in document.contestants):
        note = "Bars: the median, if that run has a plan. Dots: every run. Dashed: lower bound of all plans."
        sections.append(Plot("Values", [("", values_figure(document))], note))
    sections.append(_runs(document))
    write_page(path, f"{document.workload} on {document.system}: methods compared", facts, sections, command)


def values_figure(document: CompareDocument) -> Figure:
    """A bar up to each method's median, a dot per run, and a line at the bound."""
    scale, label = unit(str(tiled_objective(document.objective)))
    rows = [
        contestant for contestant in reversed(ranked(document.contestants)) if contestant.best is not None
    ]
    bars = [(contestant.method, run) for contestant in rows if (run := typical(contestant)) is not None]
    dots = [
        (contestant.method, run) for contestant in rows for run in contestant.runs if run.value is not None
    ]
    bound = float(document.bound) * scale
    layout = {**base_layout(label, ""), "height": 140 + 34 * len(rows), "showlegend": False}
    layout["xaxis"]["rangemode"] = "tozero"
    layout["yaxis"].update(categoryorder="array", categoryarray=[contestant.method for contestant in rows])
    layout["shapes"] = [
        {
            "type": "line",
            "x0": bound,
            "x1": bound,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"dash": "dash", "color": PALETTE[1]},
        }
    ]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": [float(run.value or 0) * scale for _, run in bars],
                "y": [name for name, _ in bars],
                "marker": {"color": PALETTE[4]},
            },
            {
                "type": "scatter",
                "mode": "markers",
                "x": [float(run.value or 0) * scale for _, run in dots],
                "y": [name for name, _ in dots],
                "marker": {"color": PALETTE[0], "size": 7},
            },
        ],
        "layout": layout,
    }


def _methods(document: CompareDocument) -> Table:
    columns = [Column(title, side == "right") for title, side in (*VALUES, *FIGURES[1:])]
    rows = []
    for contestant in ranked(document.contestants):
        run = typical(contestant)
        figures = [""] * (len(FIGURES) - 1) if run is None else figure_texts(run)
        rows.append([text_cell(text) for text in (*value_texts(document, contestant), *figures)])
    return Table("Methods", columns, rows, "Other figures are those of the median run.")


def _runs(document: CompareDocument) -> Table:
    objective = tiled_objective(document.objective)

    def value(run: RunRecord) -> str:
        return "" if run.value is None else objective_text(objective, run.value)

    return filled(
        "Runs",
        [
            (Column("method"), lambda row: text_cell(row[0])),
            (Column("seed", True), lambda row: number_cell(str(row[1].seed), row[1].seed)),
            (Column("status"), lambda row: text_cell(row[1].status)),
            (Column("value", True), lambda row: number_cell(value(row[1]), row[1].value)),
            (Column("gap", True), lambda row: number_cell(gap_text(row[1].gap), row[1].gap)),
            (
                Column("utilization", True),
                lambda row: number_cell(
                    "" if row[1].utilization is None else percent_text(row[1].utilization, 1),
                    row[1].utilization,
                ),
            ),
            (Column("time", True), lambda row: number_cell(seconds_text(row[1].wall_s), row[1].wall_s)),
            (Column("message"), lambda row: text_cell(row[1].message)),
        ],
        [(contestant.method, run) for contestant in document.contestants for run in contestant.runs],
        SORTS,
        searchable=True,
    )
