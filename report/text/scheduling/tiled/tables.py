"""Plans on tiled machines as tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.scheduling.tiled.problem import tiled_objective
from tilewright.report.records.scheduling.tiled.document import PlanDocument, PlanMetricsRecord
from tilewright.report.records.scheduling.tiled.plan import MappedPlanRecord
from tilewright.report.text.quantities import (
    bytes_text,
    count_text,
    energy_text,
    percent_text,
    seconds_text,
    si_text,
)
from tilewright.report.text.scheduling.claims import claim_table
from tilewright.report.text.tables import head_text, plain_table

MOST_LAYERS = 12
"""Layers that the table of atoms shows, those with the most atoms."""


def plan_views(document: PlanDocument, seconds: float) -> list[RenderableType]:
    """Status, figures, energy by component, and the layers with the most atoms."""
    batch = document.problem.batch
    title = head_text(
        f"{document.workload} on {document.system}",
        f"objective {document.objective}",
        f"{document.layers} layers",
        *([f"batch {batch}"] if batch > 1 else []),
        document.settings.method,
    )
    over = "the space" if document.space else "all sizes"
    figures = claim_table(document, tiled_objective(document.objective), f"bound over {over}")
    views: list[RenderableType] = [title, "", figures]
    if document.metrics is not None:
        add_plan_figures(figures, document.metrics)
        views += ["", energy_table(document.metrics)]
    if document.plan is not None:
        views += ["", atoms_table(document)]
    if document.message and document.message != document.space:
        views += ["", Text(document.message)]
    return [*views, "", Text(f"space: {space_text(document)}", "dim"), Text(f"took {seconds_text(seconds)}")]


def space_text(document: PlanDocument) -> str:
    """Over which plans the claim is made."""
    rules = document.problem
    fused = "ride on the layer that they follow" if rules.fuse else "are layers of their own"
    sums = "a chain" if rules.partial_sums == "chain" else "parts and a reduction"
    plans = document.space or "all plans over all sizes of atoms"
    text = f"{plans}; element-wise layers {fused}, partial sums are {sums}"
    if isinstance(document.plan, MappedPlanRecord):
        kinds = document.plan.mappings
        proven = sum(kind.proven for kind in kinds)
        text += f"; {proven} of {len(kinds)} mappings of tasks are proven best"
    return text


def add_plan_figures(figures: Table, metrics: PlanMetricsRecord) -> None:
    """Rows for cycles, energy, utilization, traffic and buffers."""
    for name, text in figure_rows(metrics):
        figures.add_row(name, text)


def figure_rows(metrics: PlanMetricsRecord) -> list[tuple[str, str]]:
    """Names and texts of cycles, energy, utilization, traffic and buffers."""
    slack = (metrics.cycles - metrics.atoms_bound_cycles) / max(1, metrics.cycles)
    used = f"{percent_text(metrics.utilization, 1)}, {percent_text(metrics.compute_utilization, 1)} without"
    return [
        ("cycles", count_text(metrics.cycles)),
        ("least of these atoms", f"{count_text(metrics.atoms_bound_cycles)} ({percent_text(slack)} below)"),
        ("without memory delay", count_text(metrics.compute_cycles)),
        ("latency", si_text(metrics.time_s, "s")),
        ("energy", energy_text(metrics.energy_pj)),
        ("EDP", si_text(float(metrics.edp) * 1e-12, "J·cycle")),
        ("PE utilization, memory delay", used),
        ("DRAM read", bytes_text(metrics.dram_read_bytes, 8)),
        ("DRAM written", bytes_text(metrics.dram_write_bytes, 8)),
        ("results reused on chip", percent_text(metrics.reuse, 1)),
        ("network overhead", percent_text(metrics.network_overhead, 1)),
        ("busiest link", f"{metrics.busiest_link}, {si_text(metrics.busiest_link_bytes, 'B')}"),
        ("fullest buffer", bytes_text(max(metrics.peak_buffer_bytes), 8)),
        ("atoms, steps", f"{count_text(metrics.atoms)}, {count_text(metrics.steps)}"),
    ]


def energy_table(metrics: PlanMetricsRecord) -> Table:
    """Energy by component with its share of the whole."""
    table = plain_table([("energy", "left"), ("", "right"), ("share", "right")])
    whole = sum(metrics.energy_by_component_pj.values()) or 1
    for name, part in metrics.energy_by_component_pj.items():
        table.add_row(name, energy_text(part), percent_text(part / whole, 1))
    return table


def atoms_table(document: PlanDocument) -> Table:
    """Layers with the most atoms and into how many parts each axis is cut."""
    names = ("samples", "channels", "rows", "columns", "inputs")
    table = plain_table([("layer", "left"), ("atoms", "right"), *((name, "right") for name in names)])
    layers = [] if document.plan is None else document.plan.layers
    for row in sorted(layers, key=lambda layer: -layer.atoms)[:MOST_LAYERS]:
        table.add_row(row.layer, count_text(row.atoms), *(str(len(getattr(row, name)) - 1) for name in names))
    if len(layers) > MOST_LAYERS:
        rest = sum(sorted(row.atoms for row in layers)[:-MOST_LAYERS])
        table.add_row(f"{len(layers) - MOST_LAYERS} others", count_text(rest), *[""] * len(names))
    return table
