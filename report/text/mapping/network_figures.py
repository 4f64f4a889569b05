"""A mapped network in figures: totals with units, energy by level and tensor, the roofline."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.breakdown import in_machine_order, in_role_order
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.model_roofline import has_kinds, kind_rows, phase_rows
from tilewright.report.records.mapping.network_energy import network_energy
from tilewright.report.records.mapping.roofline import dram_rate, roofline
from tilewright.report.text.mapping.phases import phases_text
from tilewright.report.text.quantities import count_text, energy_text, percent_text, si_text
from tilewright.report.text.tables import plain_table
from tilewright.workloads.phases import PREFILL


def totals_line(document: ResultDocument, engine: Engine) -> Text | None:
    """Energy, cycles, time and EDP of the whole network; nothing where a layer has no mapping."""
    totals = document.totals
    if totals.energy_pj is None or totals.cycles is None:
        return None
    seconds = totals.cycles / float(engine.clock_mhz) / 1e6
    parts = [
        f"energy {energy_text(totals.energy_pj)}",
        f"{count_text(totals.cycles)} cycles",
        f"{si_text(seconds, 's')} at {exact(engine.clock_mhz)} MHz",
    ]
    if totals.edp is not None:
        parts.append(f"edp {si_text(totals.edp * 1e-12, 'J·cycle')}")
    return Text("total: " + ", ".join(parts))


def network_energy_table(document: ResultDocument, engine: Engine) -> Table | None:
    """Energy per level and tensor of the network, with shares; nothing where no layer has a mapping."""
    parts = network_energy(document, engine)
    if not parts:
        return None
    roles = in_role_order({part.role for part in parts})
    heads = [(role or "undivided", "right") for role in roles]
    table = plain_table([("energy", "left"), *heads, ("total", "right"), ("share", "right")])
    known = {(part.component, part.role): part for part in parts}
    for component in in_machine_order(dict.fromkeys(part.component for part in parts), engine):
        own = [known.get((component, role)) for role in roles]
        present = [part for part in own if part is not None]
        table.add_row(
            component,
            *("-" if part is None else energy_text(part.picojoules) for part in own),
            energy_text(sum(part.picojoules for part in present)),
            percent_text(sum(part.share for part in present), 1),
        )
    return table


def roofline_views(document: ResultDocument, engine: Engine) -> list[RenderableType]:
    """Every layer's intensity, what it does per cycle, and the roof above it; nothing without such layers."""
    points = roofline(document, engine)
    if not points:
        return []
    columns = ["MAC/B", "MAC/cycle", "roof", "of it"]
    table = plain_table([("roofline", "left"), *((column, "right") for column in columns), ("limit", "left")])
    for point in points:
        share = percent_text(point.macs_per_cycle / point.roof, 1)
        figures = [si_text(figure, like=1) for figure in (point.intensity, point.macs_per_cycle, point.roof)]
        table.add_row(point.name, *figures, share, point.limit)
    rate = dram_rate(engine)
    corner = "" if rate is None else f", {si_text(float(rate), 'B')}/cycle of {engine.levels[0].name}"
    return [table, Text(f"peak {engine.instances} MAC/cycle{corner}")]


def kinds_table(document: ResultDocument, engine: Engine) -> Table | None:
    """Time by kind of layer beside both limits, phase by phase; nothing where all layers are of one kind."""
    if not has_kinds(document):
        return None
    rows = kind_rows(document, engine)
    outermost = engine.levels[0].name
    columns = ["layers", "time", "share", "PEs", outermost, "of limit", "energy"]
    table = plain_table([("kind", "left"), *((column, "right") for column in columns)])
    phase = ""
    for row in rows:
        if row.phase != phase:
            table.add_row(Text(row.phase, style="bold"))
        phase = row.phase
        figures = [si_text(each, "s") for each in (row.seconds, row.compute_seconds, row.transfer_seconds)]
        table.add_row(
            row.kind,
            f"{row.layers}" if row.layers == row.proven else f"{row.layers} ({row.proven} proven)",
            figures[0],
            percent_text(row.share, 1),
            *figures[1:],
            percent_text(row.seconds / row.limit, 0) if row.limit else "-",
            energy_text(row.energy_pj),
        )
    return table


def phase_lines(document: ResultDocument, engine: Engine) -> Text | None:
    """Seconds to the first token, for one more token, and what they cost."""
    if document.phases is None:
        return None
    lines = [phases_text(document.phases)]
    for row in phase_rows(document, engine):
        what = "to the first token" if row.phase == PREFILL else "for a token of each sequence"
        energy = energy_text(row.energy_pj)
        lines.append(f"{row.phase}: {si_text(row.seconds, 's')} {what}, {energy} per sequence")
    return Text("\n".join(lines))


def figures_views(document: ResultDocument, engine: Engine) -> list[RenderableType]:
    """Totals, phases and energy of a network, each behind an empty line."""
    views = [
        totals_line(document, engine),
        phase_lines(document, engine),
        kinds_table(document, engine),
        network_energy_table(document, engine),
    ]
    return [part for view in views if view is not None for part in ("", view)]
