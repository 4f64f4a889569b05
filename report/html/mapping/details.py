"""What a report states of every layer: figures, loop nest, accesses with their energy, further mappings."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import Objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.html.page import (
    Column,
    Details,
    Drawing,
    Entry,
    Listing,
    Table,
    figures_table,
    filled,
    number_cell,
    text_cell,
)
from tilewright.report.records.mapping.breakdown import LatencyPart, bits_of, energy_parts
from tilewright.report.records.mapping.document import LayerRecord, MetricsRecord, SolutionRecord
from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.records.mapping.picture import picture_of
from tilewright.report.svg.mapping.drawing import mapping_drawing
from tilewright.report.text.mapping.answer_sets import best_title, front_title, key_of, optima_title
from tilewright.report.text.mapping.loop_nest import loop_nest
from tilewright.report.text.mapping.spaces import out_of_space_text
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
from tilewright.workloads.mapping.operator import Operator

_MOST = 100
"""Further mappings that a table shows; the document has all."""
_STEPS = (
    "A step is a round of the loops around the inner stores: a tile comes in (↓), the tile of an output "
    "begins (+), or a tile stays."
)


def layer_details(
    layers: Sequence[LayerRecord],
    engine: Engine,
    objective: Objective,
    latencies: dict[str, list[LatencyPart]],
) -> Details:
    """An entry per layer.

    Parameters
    ----------
    latencies : by layer, where its cycles go
    """
    entries = [_entry(layer, engine, objective, latencies.get(layer.name, [])) for layer in layers]
    return Details("Layer by layer", entries, "Loop nest, accesses, energy and cycles; a click unfolds.")


def _entry(layer: LayerRecord, engine: Engine, objective: Objective, latency: list[LatencyPart]) -> Entry:
    operator = layer.operator.build(layer.name)
    rows = [("result", layer.status if layer.gap is None else f"{layer.status}, gap {gap_text(layer.gap)}")]
    if layer.value is not None:
        rows.append((str(objective), objective_text(objective, layer.value)))
    if layer.bound is not None:
        rows.append((f"bound of {objective}", objective_text(objective, layer.bound)))
    parts: list[Table | Listing | Drawing] = []
    metrics = layer.metrics
    if metrics is not None:
        rows += [
            ("energy", energy_text(metrics.energy_pj)),
            ("cycles", count_text(metrics.cycles)),
            ("latency", si_text(metrics.time_s, "s")),
            ("EDP", si_text(metrics.edp * 1e-12, "J·cycle")),
            ("utilization", percent_text(metrics.utilization, 1)),
            *((f"of the cycles: {part.name}", count_text(part.cycles)) for part in latency if part.cycles),
            *((name, count_text(value)) for name, value in metrics.details.items()),
        ]
    rows += [
        ("solver", f"{layer.solver} {layer.solver_version}"),
        ("search time", seconds_text(layer.wall_s)),
    ]
    note = " ".join(text for text in (layer.message, out_of_space_text(layer, objective) or "") if text)
    if len(layer.names) > 1:
        note = f"Also: {', '.join(layer.names[1:])}. {note}"
    parts.append(figures_table("Figures", rows, note))
    if metrics is not None and layer.mapping is not None:
        mapping = Mapping.from_data(layer.mapping.nodes, layer.name)
        mapping.validate(operator, engine, layer.name)
        picture = mapping_drawing(picture_of(layer.name, operator, engine, mapping, metrics))
        still, steps = ([panel.svg() for panel in panels] for panels in (picture.still, picture.steps))
        parts.append(Drawing("Mapping", still, steps, _STEPS if steps else ""))
        parts.append(Listing("Loop nest", loop_nest(operator, engine, mapping)))
        parts.append(accesses_table(metrics, engine, operator))
    if layer.front is not None:
        parts.append(_solutions(str(front_title(layer)), layer.front.points, objective))
    if layer.best is not None:
        parts.append(_solutions(str(best_title(layer)), layer.best.mappings, objective))
    if layer.optima is not None:
        parts.append(_solutions(str(optima_title(layer)), layer.optima.mappings, objective))
    return Entry(layer.name, f"{operator.kind} {shape_text(operator)}", parts)


def accesses_table(metrics: MetricsRecord, engine: Engine, operator: Operator) -> Table:
    """Tile, reads, fills, updates and energy per level and tensor, levels from the outside in."""
    levels = [level.name for level in engine.levels]
    energies = {
        (part.component, part.tensor): part.picojoules for part in energy_parts(metrics, engine, operator)
    }

    def energy(level: str, tensor: str) -> str:
        energy = energies.get((level, tensor))
        return "-" if energy is None else energy_text(energy)

    return filled(
        "Accesses and energy",
        [
            (Column("level"), lambda row: text_cell(row.level)),
            (Column("tensor"), lambda row: text_cell(row.tensor)),
            (
                Column("tile", True),
                lambda row: number_cell(
                    bytes_text(row.tile, bits_of(engine, operator, row.level, row.tensor)), row.tile
                ),
            ),
            (Column("reads", True), lambda row: number_cell(si_text(row.reads), row.reads)),
            (Column("fills", True), lambda row: number_cell(si_text(row.fills), row.fills)),
            (Column("updates", True), lambda row: number_cell(si_text(row.updates), row.updates)),
            (
                Column("energy", True),
                lambda row: number_cell(energy(row.level, row.tensor), energies.get((row.level, row.tensor))),
            ),
        ],
        sorted(metrics.accesses, key=lambda row: levels.index(row.level)),
        "Elements; fills come from the level outside, updates from inside.",
    )


def _solutions(title: str, mappings: Sequence[SolutionRecord], objective: Objective) -> Table:
    least = min((key_of(objective, mapping) for mapping in mappings), default=None)
    rows = [*enumerate(mappings, 1)]
    shown = rows[:_MOST]
    note = f"The first {_MOST}; the document has all." if len(shown) < len(rows) else ""
    return filled(
        title,
        [
            (Column("#", True), lambda row: number_cell(str(row[0]), row[0])),
            (
                Column("energy", True),
                lambda row: number_cell(energy_text(row[1].energy_pj), row[1].energy_pj),
            ),
            (Column("cycles", True), lambda row: number_cell(count_text(row[1].cycles), row[1].cycles)),
            (
                Column("EDP", True),
                lambda row: number_cell(si_text(row[1].edp * 1e-12, "J·cycle"), float(row[1].edp)),
            ),
            (
                Column(f"least {objective}"),
                lambda row: text_cell("yes" if key_of(objective, row[1]) == least else "no"),
            ),
        ],
        shown,
        note,
    )
