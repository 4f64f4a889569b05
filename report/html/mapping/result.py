"""The report of a results document: totals, layers, energy, latency, roofline, machine, and every layer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.curves import Convergence, convergence, unit
from tilewright.report.html.figures import convergence_figure
from tilewright.report.html.mapping.details import layer_details
from tilewright.report.html.mapping.figures import (
    component_figure,
    front_figure,
    latency_figure,
    level_figure,
    role_figure,
    roofline_figure,
)
from tilewright.report.html.mapping.machine import machine_drawing
from tilewright.report.html.mapping.model import model_sections
from tilewright.report.html.page import (
    Column,
    Figure,
    Plot,
    Section,
    Table,
    TableCell,
    figures_table,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.records.claims import TraceRecord
from tilewright.report.records.mapping.breakdown import EnergyPart, LatencyPart, energy_parts, latency_parts
from tilewright.report.records.mapping.document import LayerRecord, MetricsRecord, ResultDocument
from tilewright.report.records.mapping.roofline import dram_bytes
from tilewright.report.text.mapping.spaces import record_text
from tilewright.report.text.quantities import (
    bytes_text,
    count_text,
    energy_text,
    gap_text,
    objective_text,
    percent_text,
    seconds_text,
    si_text,
)
from tilewright.report.text.tables import left_out_text

_STYLES = {"optimal": "good", "feasible": "fair"}
Solved = Sequence[tuple[LayerRecord, MetricsRecord]]


def write_result_report(path: Path, document: ResultDocument, command: str = "") -> None:
    """Write the report of a document; raises ``InputError`` where the file cannot be written.

    Parameters
    ----------
    command : the command line that made it, if one did
    """
    totals = document.totals
    facts = [
        f"{document.model}, batch {document.batch}, on {document.arch.name}; objective {document.objective}, "
        f"{document.cost_model} model",
        (", ".join(f"{count} {status}" for status, count in totals.statuses.items()) or "no layer reached")
        + ("" if totals.energy_pj is None else f"; {energy_text(totals.energy_pj)} in all")
        + ("" if totals.cycles is None else f", {si_text(totals.cycles)} cycles"),
        *([f"not reached: {', '.join(document.missing)}"] if document.missing else []),
        *_lacking(document),
        *(f"space: {text}" for text in _spaces(document)),
        *document.notes,
        "written with " + ", ".join(f"{name} {version}" for name, version in document.versions.items()),
    ]
    write_page(path, f"{document.model} on {document.arch.name}", facts, _sections(document), command)


def _lacking(document: ResultDocument) -> list[str]:
    """What the totals lack."""
    names = ", ".join(document.totals.without_mapping)
    nodes = [left_out_text(len(document.left_out)), *document.left_out] if document.left_out else []
    return ([f"no totals: {names} without a mapping"] if names else []) + nodes


def _spaces(document: ResultDocument) -> list[str]:
    texts = (record_text(layer.space) for layer in document.layers if layer.space is not None)
    return [*dict.fromkeys(texts)]


def _sections(document: ResultDocument) -> list[Section]:
    engine, objective = document.arch.engine.build(), parse_objective(document.objective)
    solved = [(layer, layer.metrics) for layer in document.layers if layer.metrics is not None]
    latencies = {layer.name: _latency(layer, engine, document.cost_model) for layer, _ in solved}
    sections: list[Section] = [_totals(document, engine, solved), _layers(document)]
    if solved:
        sections += model_sections(document, engine)
        sections += _energy(solved, engine)
        note = "What every level's transfers add to compute, after all levels outside it; of one of n layers."
        figure = latency_figure([(layer.name, latencies[layer.name]) for layer, _ in solved])
        sections.append(Plot("Latency", [("", figure)], note))
        roofline = roofline_figure(solved, engine)
        if roofline is not None:
            note = "Roofs: all PEs in every cycle, and the widest that DRAM can be read and written."
            sections.append(Plot("Roofline", [("", roofline)], note))
    fronts = [
        (layer.name, _front(layer))
        for layer in document.layers
        if layer.front and len(layer.front.points) > 1
    ]
    if fronts:
        sections.append(Plot("Fronts", fronts, "Energy and cycles of the mappings that no other one beats."))
    sections.append(machine_drawing(engine))
    sections += _courses(document)
    if document.layers:
        sections.append(layer_details(document.layers, engine, objective, latencies))
    return sections


def _latency(layer: LayerRecord, engine: Engine, model: str) -> list[LatencyPart]:
    assert layer.mapping is not None
    mapping = Mapping.from_data(layer.mapping.nodes, layer.name)
    return latency_parts(layer.operator.build(layer.name), engine, model, mapping)


def _totals(document: ResultDocument, engine: Engine, solved: Solved) -> Table:
    totals, objective = document.totals, parse_objective(document.objective)
    rows = [("layers", f"{totals.layers}, {totals.distinct} distinct")]
    rows.append(("multiply-accumulates", f"{si_text(totals.macs)} MAC"))
    if totals.energy_pj is not None:
        rows.append(("energy", energy_text(totals.energy_pj)))
    if totals.cycles is not None:
        rows.append(("cycles", count_text(totals.cycles)))
    if totals.time_s is not None:
        rows.append(("latency", si_text(totals.time_s, "s")))
    if totals.edp is not None:
        rows.append(("energy times cycles", si_text(totals.edp * 1e-12, "J·cycle")))
    if totals.edp_bound is not None:
        rows.append(("bound of that", si_text(totals.edp_bound * 1e-12, "J·cycle")))
    if totals.sum_of_layer_edp is not None and totals.layers > 1:
        rows.append(("sum of layer edp", si_text(totals.sum_of_layer_edp * 1e-12, "J·cycle")))
    if totals.cycles and totals.macs:
        rows.append(
            ("MACs per PE and cycle", percent_text(totals.macs / totals.cycles / engine.instances, 1))
        )
    if solved and len(solved) == len(document.layers):
        moved = sum(
            (record.count * dram_bytes(record, metrics, engine) for record, metrics in solved), Fraction(0)
        )
        rows.append((f"{engine.levels[0].name} traffic", bytes_text(int(moved), 8)))
    if totals.bound is not None:
        rows.append((f"bound of {objective}", objective_text(objective, totals.bound)))
        rows.append(("gap", gap_text(totals.gap)))
    rows.append(("search time", seconds_text(sum(layer.wall_s for layer in document.layers))))
    return figures_table("Totals", rows)


def _energy(solved: Solved, engine: Engine) -> list[Section]:
    bars = [
        (layer.name, energy_parts(metrics, engine, layer.operator.build(layer.name)))
        for layer, metrics in solved
    ]
    counts = [layer.count for layer, _ in solved]
    every = [
        EnergyPart(part.component, part.tensor, part.role, count * part.picojoules)
        for (_, parts), count in zip(bars, counts, strict=True)
        for part in parts
    ]
    shown = [("by level", level_figure(every))]
    if len(bars) > 1:
        shown += [("by layer and level", component_figure(bars)), ("by layer and tensor", role_figure(bars))]
    note = "Levels from the outside in; all layers together." if len(bars) > 1 else "From the outside in."
    more = " By layer: of one of n equal ones." if len(bars) > 1 else ""
    return [Plot("Energy", shown, note + more)]


def _front(layer: LayerRecord) -> Figure:
    assert layer.front is not None
    chosen = None if layer.metrics is None else (layer.metrics.cycles, float(layer.metrics.energy_pj))
    return front_figure(layer.front.points, chosen)


def _courses(document: ResultDocument) -> list[Section]:
    traced = [layer for layer in document.layers if any(point.value is not None for point in layer.trace)]
    if not traced:
        return []
    scale, label = unit(document.objective)
    shown = [
        (layer.name, convergence_figure([course(layer.solver, layer.trace, layer.wall_s)], label, scale))
        for layer in traced
    ]
    return [Plot("Convergence", shown, "Value (full) and bound (dashed).")]


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
        Column("time", True, "of the search"),
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

    note = "Of one of n equal layers. A click on a heading sorts."
    return Table("Layers", columns, [row(layer) for layer in document.layers], note, searchable=True)


def course(name: str, trace: Sequence[TraceRecord], seconds: float) -> Convergence:
    """Value and bound over time, from the trace of a document."""

    def number(shown: float | int | None) -> float | None:
        return None if shown is None else float(shown)

    points = ((point.seconds, number(point.value), number(point.bound)) for point in trace)
    return convergence(name, points, seconds)
