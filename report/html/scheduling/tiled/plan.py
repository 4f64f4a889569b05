"""The report of a plan: engines and buffers over time, links, energy, the search, every layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.report.html.page import (
    Column,
    Plot,
    Section,
    Table,
    figures_table,
    filled,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.html.scheduling.claims import (
    SORTS,
    claim_fact,
    count_cell,
    course_sections,
    nothing_sections,
    versions_fact,
)
from tilewright.report.html.scheduling.tiled.figures import (
    buffers_figures,
    energy_figure,
    engines_figure,
    links_figure,
)
from tilewright.report.plots.style import layer_colour
from tilewright.report.records.scheduling.tiled.document import PlanDocument, PlanMetricsRecord
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan, judged_document, layer_rows
from tilewright.report.records.scheduling.tiled.timeline import LinkLoad, link_loads, timeline
from tilewright.report.text.quantities import percent_text, si_text
from tilewright.report.text.scheduling.tiled.tables import figure_rows, space_text


def write_plan_report(path: Path, document: PlanDocument, command: str = "") -> None:
    """Write the report of one plan.

    Parameters
    ----------
    command : the command line that made it, if one did

    Raises
    ------
    InputError : for a plan that does not fit its own problem
    OutputError : where the file cannot be written
    """
    batch = document.problem.batch
    facts = [
        f"{document.layers} layers, {batch} sample{'s' if batch > 1 else ''}, "
        f"objective {document.objective}, {document.settings.method}",
        claim_fact(document),
        f"space: {space_text(document)}",
        *([document.message] if document.message else []),
        versions_fact(document.versions),
    ]
    plan = judged_document(document)
    sections: list[Section] = []
    if plan is not None and plan.violation is not None:
        facts.append(f"illegal: {plan.violation}")
    elif plan is not None and document.metrics is not None:
        sections = _sections(document, plan, document.metrics)
    sections = sections or nothing_sections(document)
    write_page(path, f"{document.workload} on {document.system}", facts, sections, command)


def _sections(document: PlanDocument, plan: JudgedPlan, metrics: PlanMetricsRecord) -> list[Section]:
    assert plan.answer is not None
    assert plan.evaluation is not None
    machine = plan.problem.machine
    seconds = 1 / (machine.clock_mhz * 1_000_000)
    times = timeline(plan.answer, machine, plan.evaluation)
    settings = document.settings.method
    rows = layer_rows(plan)
    loads = link_loads(machine, plan.evaluation)
    notes = {
        "engines": "One row per engine, one colour per layer; colours repeat, neighbours differ.",
        "links": "Lines: the part of the time that a link needs for its bytes. Squares: percent of the time"
        " in which the engine computes; those framed in orange reach DRAM.",
    }
    return [
        figures_table("Figures", figure_rows(metrics)),
        Plot("Engines", [("", engines_figure(plan, times, seconds))], notes["engines"]),
        Plot("Buffers", buffers_figures(plan, seconds), "Bytes that lie in engines' buffers."),
        Plot("Links", [("", links_figure(plan, times))], notes["links"]),
        Plot("Energy", [("", energy_figure(metrics))], "By component, with its share of the whole."),
        *course_sections("Convergence", settings, document.objective, document.trace, document.wall_s),
        _layers(rows),
        _links(loads),
    ]


def _layers(rows: list[dict[str, Any]]) -> Table:
    places = {row["layer"]: index for index, row in enumerate(rows)}

    def share(row: dict[str, Any]) -> float:
        time = row["end"] - row["start"]
        return float(row["engine_cycles"] / (time * row["engines"])) if time > 0 and row["engines"] else 0.0

    return filled(
        "Layers",
        [
            (Column("layer"), lambda row: text_cell(row["layer"], chip=layer_colour(places[row["layer"]]))),
            (Column("atoms", True), lambda row: count_cell(row["atoms"])),
            (
                Column("cut", note="parts along samples, channels, rows, columns and partial sums"),
                lambda row: text_cell(" x ".join(map(str, row["cut"]))),
            ),
            (Column("start", True, "cycle"), lambda row: count_cell(round(row["start"]))),
            (Column("end", True, "cycle"), lambda row: count_cell(round(row["end"]))),
            (Column("engines", True), lambda row: count_cell(row["engines"])),
            (Column("engine cycles", True), lambda row: count_cell(round(row["engine_cycles"]))),
            (
                Column("busy", True, "of its engines between start and end"),
                lambda row: number_cell(percent_text(share(row), 1), share(row)),
            ),
        ],
        rows,
        SORTS,
        searchable=True,
    )


def _links(loads: list[LinkLoad]) -> Table:
    return filled(
        "All links",
        [
            (Column("link"), lambda load: text_cell(load.name)),
            (Column("bytes", True), lambda load: number_cell(si_text(load.bytes, "B"), load.bytes)),
            (
                Column("in use", True, "part of the time"),
                lambda load: number_cell(percent_text(load.busy, 1), load.busy),
            ),
        ],
        loads,
        SORTS,
        searchable=True,
    )
