"""The report of an exploration: heat map, front, and every design."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tilewright.formulation.objective import Objective
from tilewright.report.curves import unit
from tilewright.report.html.figures import base_layout, spread
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
from tilewright.report.records.mapping.explore import DesignRecord, ExploreDocument
from tilewright.report.text.mapping.explore import (
    axis_titles,
    fields_text,
    figure_of,
    other_figure,
    summary_lines,
)
from tilewright.report.text.mapping.explore_grid import design_grid, value_scale
from tilewright.report.text.quantities import gap_text, objective_text

_LIGHT = ("#f2f7fb", "#9cc9e3", "#5a9bd0")
_DARK = "#101418"
"""Cells are light and their texts dark in either style of the page, so that all can be read."""


def write_explore_report(path: Path, document: ExploreDocument, command: str = "") -> None:
    """Write the report of an exploration.

    Parameters
    ----------
    command : the command line that made it, if one did

    Raises
    ------
    InputError : for a file that is no HTML
    OutputError : where it cannot be written
    """
    objective = document.goal.layer
    facts = [
        f"{document.machine}, objective {document.goal}, {document.cost_model} model, batch {document.batch}",
        *_best_facts(document, objective),
        *summary_lines(document),
    ]
    write_page(path, f"Designs for {document.model}", facts, _sections(document, objective), command)


def _best_facts(document: ExploreDocument, objective: Objective) -> list[str]:
    best = document.best
    if best is None:
        return ["no design has a value"]
    claim = "proven optimal" if best.optimal else f"feasible, gap {gap_text(best.gap)}"
    value = f"{figure_of(document)} {objective_text(objective, best.value)}"
    other = other_figure(document)
    return [f"best: {fields_text(best.fields)}: {value}, {claim}", *([other] if other else [])]


def _sections(document: ExploreDocument, objective: Objective) -> list[Section]:
    sections: list[Section] = [
        Plot(
            "Designs",
            [("heat map", _heat_map(document, objective))],
            "Darker is more, on a logarithmic scale. ≥ marks designs discarded by their bound, "
            "brackets the best one.",
        )
    ]
    if document.front is not None:
        reported = "proven complete" if document.front.complete else "not proven complete"
        sections.append(
            Plot(
                f"Front of {figure_of(document)} and {document.front.against}",
                [("front", _front(document))],
                reported,
            )
        )
    if document.layer_bests:
        sections.append(_layer_bests(document, objective))
    return [*sections, _designs(document, objective)]


def _heat_map(document: ExploreDocument, objective: Objective) -> Figure:
    grid = design_grid(document)
    scale, unit = value_scale(document)
    numbers: list[list[float | None]] = []
    texts: list[list[str]] = []
    for row in grid.cells:
        shown = [cell.value if cell.value is not None else cell.bound for cell in row]
        numbers.append([None if value is None or value <= 0 else math.log10(value) for value in shown])
        texts.append(
            [
                "" if value is None else _marked(f"{value * scale:.4g}", cell.value is None, cell.is_best)
                for value, cell in zip(shown, row, strict=True)
            ]
        )
    layout = base_layout(grid.column_title, grid.row_title)
    layout["xaxis"]["type"] = layout["yaxis"]["type"] = "category"
    layout["yaxis"]["autorange"] = "reversed"
    layout["height"] = 160 + 44 * max(2, len(grid.rows))
    known = [number for row in numbers for number in row if number is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    ticks = [low + (high - low) * part / 4 for part in range(5 if low < high else 1)]
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "x": grid.columns,
            "y": grid.rows,
            "z": numbers,
            "text": texts,
            "texttemplate": "%{text}",
            "textfont": {"size": 12, "color": _DARK},
            "colorscale": [[0, _LIGHT[0]], [0.5, _LIGHT[1]], [1, _LIGHT[2]]],
            "colorbar": {
                "title": {"text": f"{figure_of(document)} [{unit}]", "side": "right"},
                "tickvals": ticks,
                "ticktext": [f"{10**tick * scale:.4g}" for tick in ticks],
            },
            "hovertemplate": f"%{{x}}, %{{y}}: %{{text}} {unit}<extra></extra>",
        }
    ]
    return {"data": data, "layout": layout}


def _marked(text: str, bounded: bool, best: bool) -> str:
    reported = f"≥ {text}" if bounded else text
    return f"[{reported}]" if best else reported


def _front(document: ExploreDocument) -> Figure:
    front = document.front
    assert front is not None
    chosen = {*front.designs}
    known = [design for design in document.designs if design.value is not None]
    scale, label = unit(str(document.goal.layer))
    if figure_of(document) != str(document.goal.layer):
        label = f"sum of layer {label}"
    data = []
    for name, some, line in (
        ("beaten", [design for design in known if design.index not in chosen], False),
        (
            "front",
            sorted(
                (design for design in known if design.index in chosen), key=lambda design: design.cost or 0
            ),
            True,
        ),
    ):
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if line else "markers",
                "name": name,
                "x": [design.cost for design in some],
                "y": [float(design.value or 0) * scale for design in some],
                "text": [fields_text(design.fields) for design in some],
                "line": {"shape": "hv", "color": "#0072B2"},
                "marker": {"color": "#0072B2" if line else "#B0B0B0"},
                "hovertemplate": "%{text}<br>%{x:,}: %{y:.4s}<extra></extra>",
            }
        )
    layout = base_layout(f"{front.against} [B]" if front.against == "capacity" else front.against, label)
    layout["xaxis"].update(tickformat="~s", nticks=6)
    values = [float(design.value or 0) * scale for design in known]
    layout["yaxis"].update(spread(values, {"tickformat": "~s"}))
    return {"data": data, "layout": layout}


def _layer_bests(document: ExploreDocument, objective: Objective) -> Table:
    return filled(
        "Best design for each layer alone",
        [
            (Column("layer"), lambda best: text_cell(best.layer)),
            (Column("design"), lambda best: text_cell(fields_text(best.fields))),
            (
                Column(str(objective), is_number=True),
                lambda best: number_cell(objective_text(objective, best.value), best.value),
            ),
            (Column("status"), lambda best: text_cell("optimal" if best.optimal else "feasible")),
        ],
        document.layer_bests,
    )


def _designs(document: ExploreDocument, objective: Objective) -> Table:
    def figure(value: float | None) -> Any:
        return number_cell("-" if value is None else objective_text(objective, value), value)

    def count(value: float | None) -> Any:
        return number_cell("-" if value is None else f"{value:,.6g}", value)

    def standing(design: DesignRecord) -> Any:
        return text_cell(f"{design.status} ({design.rule})" if design.rule else design.status)

    columns: list[tuple[Column, Any]] = [(Column("#", is_number=True), lambda design: count(design.index))]
    for axis, title in zip(document.vary, axis_titles(document), strict=True):
        paths = tuple(axis.fields)
        columns.append(
            (
                Column(title),
                lambda design, paths=paths: text_cell(
                    ":".join(dict.fromkeys(str(design.fields[path]) for path in paths))
                ),
            )
        )
    columns += [
        (Column(figure_of(document), is_number=True), lambda design: figure(design.value)),
        (Column("bound", is_number=True), lambda design: figure(design.bound)),
        (Column("status"), standing),
        (Column("PEs", is_number=True), lambda design: count(design.pes)),
        (Column("memory [B]", is_number=True), lambda design: count(design.capacity_bytes)),
    ]
    return filled("All designs", columns, document.designs, searchable=True)
