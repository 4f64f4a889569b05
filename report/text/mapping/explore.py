"""An exploration as tables for a terminal of 80 columns, and its designs as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.formulation.objective import Objective
from tilewright.report.records.mapping.explore import DesignRecord, ExploreDocument
from tilewright.report.text.csv_text import csv_lines
from tilewright.report.text.mapping.phases import phases_text
from tilewright.report.text.quantities import gap_text, objective_text, seconds_text
from tilewright.report.text.tables import head_text, listing

SHOWN = 12
"""Rows of the table of designs."""
_RULES = {
    "compulsory": "by compulsory traffic",
    "carried": "by a bound carried from another design",
    "capped": "by a search for anything better",
    "searched": "by the optima of some of their layers",
}


def labels(document: ExploreDocument) -> list[list[str]]:
    """Per axis, its points in a few characters."""
    return [[_label(row) for row in axis.values] for axis in document.vary]


def axis_titles(document: ExploreDocument) -> list[str]:
    """Per axis, its fields without what they have in common with all others of it."""
    return [":".join(short_field(field) for field in axis.fields) for axis in document.vary]


def short_field(path: str) -> str:
    """``SPM.capacity`` of ``levels.SPM.capacity``."""
    return path.removeprefix("levels.")


def _label(row: Sequence[Any]) -> str:
    texts = [str(value) for value in row]
    return texts[0] if len({*texts}) == 1 else ":".join(texts)


def fields_text(fields: dict[str, Any]) -> str:
    """A design in one line."""
    return ", ".join(f"{short_field(path)} {value}" for path, value in fields.items())


def explore_views(document: ExploreDocument) -> list[RenderableType]:
    """The best design, how it was proven, the best ones in a table, and the front."""
    objective, layers = document.goal.layer, document.instances
    sizes = ", ".join(
        f"{title} ({len(axis.values)})"
        for title, axis in zip(axis_titles(document), document.vary, strict=True)
    )
    title = head_text(
        document.model,
        document.machine,
        f"objective {document.goal}",
        f"{document.cost_model} model",
        f"{len(document.designs)} designs",
        f"{layers} layers" if layers > 1 else "1 layer",
    )
    views: list[RenderableType] = [title, Text(f"varied: {sizes}"), ""]
    if document.best is None:
        views.append(Text("no design has a value"))
    else:
        best = document.best
        claim = (
            "proven optimal"
            if best.optimal
            else f"bound {objective_text(objective, best.bound)}, gap {gap_text(best.gap)}{_others(document)}"
        )
        views += [
            Text(f"best: {fields_text(best.fields)}", style="bold"),
            Text(f"      {figure_of(document)} {objective_text(objective, best.value)}, {claim}"),
        ]
        other = other_figure(document)
        views += [Text(f"      {other}")] if other else []
    views += ["", _table(document, objective)]
    if document.layer_bests:
        views += ["", _layer_table(document, objective)]
    if document.front is not None:
        views += ["", *_front(document, objective)]
    return [*views, "", *map(Text, summary_lines(document))]


def figure_of(document: ExploreDocument) -> str:
    """What values are."""
    return document.goal.figure(document.instances)


def _others(document: ExploreDocument) -> str:
    """Whether the best design is known to be the best, though not how good it is."""
    best = document.best
    if best is None:
        return ""
    others = [record.bound_exact for record in document.designs if record.index != best.index]
    least = min((Fraction(bound) for bound in others if bound is not None), default=None)
    return "" if least is not None and least < Fraction(best.value_exact) else "; no other design has less"


def other_figure(document: ExploreDocument) -> str:
    """Of the best design the sum of layers' objectives, or the objective of totals: what values are not."""
    goal, best = document.goal, document.best
    if best is None or not goal.ambiguous(document.instances):
        return ""
    record = document.designs[best.index]
    if not goal.summed:
        reported = 0 if record.sum_of_layers is None else record.sum_of_layers
        return f"sum of layer {goal.layer} {objective_text(goal.layer, reported)}"
    of_totals = goal.layer.key(Fraction(record.energy_pj or 0), record.cycles or 0)
    return f"{goal.layer} (of total energy and cycles) {objective_text(goal.layer, float(of_totals))}"


def summary_lines(document: ExploreDocument) -> list[str]:
    """How the space was explored."""
    totals = document.totals
    lines = [] if document.phases is None else [phases_text(document.phases)]
    lines += [
        f"{totals.designs} designs: " + ", ".join(f"{n} {status}" for status, n in totals.statuses.items())
    ]
    if totals.rules:
        lines.append("discarded " + ", ".join(f"{n} {_RULES[rule]}" for rule, n in totals.rules.items()))
    cells = ", ".join(f"{n} {how}" for how, n in totals.cells.items() if n)
    lines.append(
        f"{totals.unsearched} designs without any search; layers on designs: {cells or 'none'}; "
        f"{seconds_text(document.wall_s)}"
    )
    return lines


def _table(document: ExploreDocument, objective: Objective) -> RenderableType:
    """The best designs by value, then those by bound."""
    columns = [("design", "left"), (figure_of(document), "right"), ("bound", "right"), ("status", "left")]
    known = sorted(
        (design for design in document.designs if design.bound is not None),
        key=lambda design: (
            design.value is None,
            design.value if design.value is not None else design.bound,
            design.index,
        ),
    )
    rows = [[_point(document, design), *_figures(design, objective)] for design in known[:SHOWN]]
    if len(known) > SHOWN:
        rows.append([f"… {len(known) - SHOWN} more", *[""] * (len(columns) - 1)])
    return listing(columns, rows)


def _point(document: ExploreDocument, design: DesignRecord) -> str:
    """A design's point on every axis."""
    values = list(design.fields.values())
    cells: list[str] = []
    for axis in document.vary:
        cells.append(_label(values[: len(axis.fields)]))
        values = values[len(axis.fields) :]
    return ", ".join(cells)


def _figures(design: DesignRecord, objective: Objective) -> list[str]:
    value = "-" if design.value is None else objective_text(objective, design.value)
    bound = "-" if design.bound is None else objective_text(objective, design.bound)
    rule = f" ({design.rule})" if design.rule else ""
    return [value, bound, design.status + rule]


def _layer_table(document: ExploreDocument, objective: Objective) -> RenderableType:
    columns = [("best for", "left"), ("design", "left"), (str(objective), "right"), ("", "left")]
    by_index = {best.index: best for best in document.designs}
    rows = [
        [
            best.layer,
            _point(document, by_index[best.index]),
            objective_text(objective, best.value),
            "proven" if best.optimal else "not proven",
        ]
        for best in document.layer_bests
    ]
    return listing(columns, rows)


def _front(document: ExploreDocument, objective: Objective) -> list[RenderableType]:
    front = document.front
    assert front is not None
    by_index = {design.index: design for design in document.designs}
    chosen = [by_index[index] for index in front.designs]
    columns = [("design", "left"), ("cost", "right"), (figure_of(document), "right")]
    rows = [
        [
            _point(document, design),
            "-" if design.cost is None else f"{design.cost:,.6g}",
            "-" if design.value is None else objective_text(objective, design.value),
        ]
        for design in chosen
    ]
    reported = "proven complete" if front.complete else "not proven complete"
    table = listing(columns, rows)
    return [Text(f"front of {figure_of(document)} and {front.against}, {reported}"), table]


def explore_csv(document: ExploreDocument) -> str:
    """One row per design."""
    paths = [path for axis in document.vary for path in axis.fields]
    names = [
        "status",
        "value",
        "bound",
        "energy_pj",
        "cycles",
        "pes",
        "capacity_bytes",
        "cost",
        "proven_layers",
    ]
    names += ["rule", "carried_from", "message", "sum_of_layers"]
    rows = [
        [design.index, *(design.fields[path] for path in paths), *(getattr(design, name) for name in names)]
        for design in document.designs
    ]
    return csv_lines([["index", *paths, *names], *rows])
