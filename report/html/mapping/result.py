"""The report of a results document: layers, where their energy goes, and how they were proven."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from tilewright.report.curves import UNITS, Convergence, convergence
from tilewright.report.html import figures
from tilewright.report.html.page import (
    Column,
    Plot,
    Section,
    Table,
    TableCell,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.records.mapping.breakdown import energy_parts
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument, TraceRecord
from tilewright.report.text.mapping.spaces import record_text
from tilewright.report.text.quantities import energy_text, gap_text, percent_text, seconds_text, si_text

_STYLES = {"optimal": "good", "feasible": "fair"}


def write_result_report(path: Path, document: ResultDocument) -> None:
    """Write the report of a document; raises ``InputError`` where the file cannot be written."""
    totals = document.totals
    facts = [
        f"{document.model}, batch {document.batch}, on {document.arch.name}; objective {document.objective}, "
        f"{document.cost_model} model",
        ", ".join(f"{count} {status}" for status, count in totals.statuses.items())
        + ("" if totals.energy_pj is None else f"; {energy_text(totals.energy_pj)} in all")
        + ("" if totals.cycles is None else f", {si_text(totals.cycles)} cycles"),
        *(f"space: {text}" for text in _spaces(document)),
        "written with " + ", ".join(f"{name} {version}" for name, version in document.versions.items()),
    ]
    write_page(path, f"{document.model} on {document.arch.name}", facts, _sections(document))


def _spaces(document: ResultDocument) -> list[str]:
    texts = (record_text(layer.space) for layer in document.layers if layer.space is not None)
    return [*dict.fromkeys(texts)]


def _sections(document: ResultDocument) -> list[Section]:
    sections: list[Section] = [_layers(document)]
    engine = document.arch.engine.build()
    solved = [layer for layer in document.layers if layer.metrics is not None]
    if solved:
        bars = [(layer.name, energy_parts(layer.metrics, engine)) for layer in solved if layer.metrics]
        sections.append(
            Plot("Energy", [("", figures.energy_figure(bars))], "By level and tensor; one of n equal layers.")
        )
    traced = [layer for layer in document.layers if any(point.value is not None for point in layer.trace)]
    if traced:
        scale, label = UNITS.get(document.objective, (1.0, document.objective))
        shown = [
            (
                layer.name,
                figures.convergence_figure([course(layer.solver, layer.trace, layer.wall_s)], label, scale),
            )
            for layer in traced
        ]
        sections.append(Plot("Convergence", shown, "Value (full) and bound (dashed)."))
    return sections


def _layers(document: ResultDocument) -> Table:
    columns = [
        Column("layer"),
        Column("n", True, "equal layers"),
        Column("operator"),
        Column("shape"),
        Column("result"),
        Column("gap", True, "(value - bound) / value"),
        Column("energy", True),
        Column("cycles", True),
        Column("utilization", True),
        Column("EDP", True, "J·cycle"),
        Column("solver"),
        Column("time", True),
    ]

    def row(layer: LayerRecord) -> list[TableCell]:
        metrics = layer.metrics
        shape = " ".join(f"{dim}{bound}" for dim, bound in layer.bounds.items() if bound > 1)
        figures_of = [number_cell("-", None)] * 4
        if metrics is not None:
            figures_of = [
                number_cell(energy_text(metrics.energy_pj), float(Fraction(metrics.energy_pj_exact))),
                number_cell(si_text(metrics.cycles), metrics.cycles),
                number_cell(percent_text(metrics.utilization, 1), metrics.utilization),
                number_cell(si_text(metrics.edp * 1e-12), float(metrics.edp)),
            ]
        return [
            text_cell(layer.name),
            number_cell(str(layer.count), layer.count),
            text_cell(layer.operator.kind),
            text_cell(shape),
            text_cell(layer.status, _STYLES.get(layer.status, "bad")),
            number_cell(gap_text(layer.gap), layer.gap),
            *figures_of,
            text_cell(layer.solver),
            number_cell(seconds_text(layer.wall_s), layer.wall_s),
        ]

    note = "A click on a heading sorts."
    return Table("Layers", columns, [row(layer) for layer in document.layers], note, searchable=True)


def course(name: str, trace: Sequence[TraceRecord], seconds: float) -> Convergence:
    """Value and bound over time, from the trace of a document."""

    def number(shown: float | int | None) -> float | None:
        return None if shown is None else float(shown)

    points = ((point.seconds, number(point.value), number(point.bound)) for point in trace)
    return convergence(name, points, seconds)
