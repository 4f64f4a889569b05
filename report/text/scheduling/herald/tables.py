"""Schedules and partitions as tables."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    ScheduleDocument,
    ScheduleMetricsRecord,
    objective_name,
    variant_text,
)
from tilewright.report.text.quantities import (
    count_text,
    energy_text,
    objective_text,
    percent_text,
    seconds_text,
    si_text,
)
from tilewright.report.text.scheduling.claims import claim_table
from tilewright.report.text.tables import head_text, plain_table

_MOST = 8


def _claims(document: ScheduleDocument | CodesignDocument) -> Table:
    """Status, value, bound and gap; further rows follow."""
    return claim_table(document, parse_objective(objective_name(ScheduleObjective(document.objective))))


def space_line(document: ScheduleDocument | CodesignDocument) -> Text:
    """What the claim is about: every schedule over these mappings, on these machines."""
    text = f"space: schedules over one mapping per layer and dataflow, of least {document.settings.metric}"
    if isinstance(document, CodesignDocument):
        steps = f"{document.pe_step} PEs and {document.bandwidth_step} B/cycle"
        text += f"; partitions in steps of {steps}, {document.search} search"
        if document.vary:
            text += f"; {variants_text(document)}"
    if document.open_text:
        text += f"; {document.open_text}"
    return Text(text, "dim")


def schedule_views(document: ScheduleDocument, seconds: float) -> list[RenderableType]:
    """Status, figures, and what each engine does."""
    title = head_text(
        f"{document.workload} on {document.system.name}",
        f"objective {document.objective}",
        f"{document.tasks} layers",
        document.settings.method,
    )
    figures = _claims(document)
    views: list[RenderableType] = [title, "", figures]
    if document.metrics is not None:
        add_schedule_figures(figures, document.metrics)
        views += ["", engines_table(document.metrics, [row.engine for row in document.schedule or ()])]
    if document.message:
        views += ["", Text(document.message)]
    return [*views, "", space_line(document), Text(f"took {seconds_text(seconds)}")]


def add_schedule_figures(figures: Table, metrics: ScheduleMetricsRecord) -> None:
    """Rows for makespan, energy and memory."""
    figures.add_row("makespan", f"{count_text(metrics.makespan)} cycles")
    figures.add_row("latency", si_text(metrics.time_s, "s"))
    figures.add_row("energy", energy_text(metrics.energy_pj))
    figures.add_row("EDP", si_text(float(metrics.edp) * 1e-12, "J·cycle"))
    figures.add_row("peak memory", f"{count_text(metrics.peak_memory_bytes)} B")


def engines_table(metrics: ScheduleMetricsRecord, engines: Sequence[str]) -> Table:
    """What every sub-accelerator does; ``engines`` has the one of every layer."""
    table = plain_table(
        [("sub-accelerator", "left"), ("layers", "right"), ("busy", "right"), ("energy", "right")]
    )
    for name, share in metrics.utilization.items():
        energy = energy_text(metrics.energy_by_engine_pj[name])
        table.add_row(name, str(engines.count(name)), percent_text(share), energy)
    return table


def _scheduled_text(document: CodesignDocument) -> str:
    """How many partitions the exact scheduler was asked for, and why it may be none."""
    if document.scheduled:
        return str(document.scheduled)
    if document.status == "optimal":
        return "0 (list schedules and bounds settle every partition)"
    return "0 (the search ended before)"


def variants_text(document: CodesignDocument) -> str:
    """How many variants of machine files there are, and how many of them are no machines or too large."""
    known = len({json.dumps(point.fields) for point in document.points})
    every = math.prod(len(axis.values) for axis in document.vary)
    return f"{known} of {every} variants of machine files"


def codesign_views(document: CodesignDocument, seconds: float) -> list[RenderableType]:
    """The best partition, the proof, and the partitions that come next."""
    title = head_text(
        f"{document.workload}, class {document.accelerator_class}",
        " + ".join(document.dataflows),
        f"objective {document.objective}",
        f"{document.search} search",
    )
    objective = parse_objective(objective_name(ScheduleObjective(document.objective)))
    figures = _claims(document)
    figures.add_row("partitions", str(document.partitions))
    figures.add_row("discarded by bound", str(document.discarded))
    figures.add_row("scheduled exactly", _scheduled_text(document))
    varies = [("variant", "left")] if document.vary else []
    table = plain_table(
        [
            *varies,
            ("PEs", "left"),
            ("GB/s at 1 GHz", "left"),
            ("cycles", "right"),
            ("energy", "right"),
            (document.objective, "right"),
            ("bound", "right"),
        ]
    )
    for point in sorted(document.points, key=lambda candidate: candidate.value)[:_MOST]:
        table.add_row(
            *([", ".join(map(str, point.fields.values()))] if document.vary else []),
            " / ".join(f"{part['pes']:g}" for part in point.partition),
            " / ".join(f"{part['bytes_per_cycle']:g}" for part in point.partition),
            count_text(point.cycles),
            energy_text(point.energy_pj),
            objective_text(objective, point.value),
            objective_text(objective, point.bound),
        )
    message: list[RenderableType] = ["", Text(document.message)] if document.message else []
    ending = [space_line(document), Text(f"took {seconds_text(seconds)}")]
    variant: list[RenderableType] = [Text(f"best variant: {variant_text(document.fields)}"), ""]
    variant = variant if document.fields else []
    return [title, "", figures, "", *variant, table, *message, "", *ending]
