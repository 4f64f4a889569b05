"""Results as tables and figures for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import Objective
from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.breakdown import bits_of, energy_parts
from tilewright.report.records.mapping.document import (
    LayerRecord,
    MetricsRecord,
    ResultDocument,
    TotalsRecord,
)
from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.text.fitting import FittingTable
from tilewright.report.text.mapping.loop_nest import loop_nest
from tilewright.report.text.mapping.spaces import out_of_space_text, record_text
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

STYLES = {
    "optimal": "green",
    "feasible": "yellow",
    "infeasible": "red",
    "unknown": "yellow",
    "interrupted": "yellow",
    "error": "red",
}
_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def plain_table(columns: Sequence[tuple[str, str]], title: str | None = None, names: int = 1) -> Table:
    """A table without lines, which cuts nothing on a narrow terminal.

    Parameters
    ----------
    columns : heading and justification (``left`` or ``right``)
    names : how many of the first columns name a row
    """
    table = FittingTable(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    table.names = names
    for heading, justify in columns:
        table.add_column(
            heading, justify="right" if justify == "right" else "left", no_wrap=True, overflow="fold"
        )
    return table


def layers_table(document: ResultDocument, objective: Objective) -> Table:
    """One line per distinct layer, and their totals."""
    shows_edp = objective.name not in ("energy", "cycles")
    columns = [("layer", "left"), ("n", "right"), ("energy", "right"), ("cycles", "right"), ("util", "right")]
    if shows_edp:
        columns.append(("J·cycle", "right"))
    columns += [("result", "left"), ("time", "right")]
    table = plain_table(columns)
    for layer in document.layers:
        cells: list[str | Text] = [layer.name, str(layer.count), *_metric_cells(layer.metrics, shows_edp)]
        table.add_row(*cells, status_text(layer.status, layer.gap), seconds_text(layer.wall_s))
    if len(document.layers) > 1:
        totals = document.totals
        table.add_section()
        table.add_row(
            "total",
            str(totals.layers),
            *_total_cells(totals, shows_edp),
            "" if (gap := _gap_of(totals)) is None else f"gap {gap_text(gap)}",
            seconds_text(sum(layer.wall_s for layer in document.layers)),
            style="bold",
        )
    return table


def conflicts(document: ResultDocument) -> list[RenderableType]:
    """Why layers have no mapping: a blank line, and a line for each of which it is known."""
    lines = [
        Text(f"{layer.name}: {layer.message}", STYLES[layer.status])
        for layer in document.layers
        if layer.clash
    ]
    return ["", *lines] if lines else []


def _metric_cells(metrics: MetricsRecord | None, shows_edp: bool) -> list[str]:
    if metrics is None:
        return ["-"] * (4 if shows_edp else 3)
    cells = [energy_text(metrics.energy_pj), si_text(metrics.cycles), percent_text(metrics.utilization, 1)]
    return [*cells, si_text(metrics.edp * 1e-12)] if shows_edp else cells


def _total_cells(totals: TotalsRecord, shows_edp: bool) -> list[str]:
    energy = "-" if totals.energy_pj is None else energy_text(totals.energy_pj)
    cycles = "-" if totals.cycles is None else si_text(totals.cycles)
    edp = "-" if totals.edp is None else si_text(totals.edp * 1e-12)
    return [energy, cycles, "", edp] if shows_edp else [energy, cycles, ""]


def _gap_of(totals: TotalsRecord) -> float | None:
    """That of the objective; of edp, which each layer minimises by itself, that of the totals."""
    if totals.edp and totals.edp_bound is not None:
        return max(0.0, float(1 - totals.edp_bound / totals.edp))
    return totals.gap


def status_text(status: str, gap: float | None) -> Text:
    """The status, with the gap behind it where there is one: ``feasible, gap 1.20 %``."""
    if status == "feasible":
        shown = "feasible, no bound" if gap is None else f"feasible, gap {gap_text(gap)}"
    else:
        shown = status if gap in (None, 0) else f"{status}, gap {gap_text(gap)}"
    return Text(shown, style=STYLES.get(status, ""))


def summary_text(document: ResultDocument, seconds: float) -> Text:
    """The last line: how many layers ended how, and how long it took."""
    statuses = document.totals.statuses
    total = document.totals.layers
    parts = [f"{count} {status}" if total > 1 else str(status) for status, count in statuses.items()]
    if parts and total > 1:
        first = next(iter(statuses))
        parts[0] = f"{statuses[first]} of {total} layers {first}"
    if document.missing:
        parts.append(f"{len(document.missing)} not reached")
    if document.left_out:
        parts.append(left_out_text(len(document.left_out)))
    whole = not document.missing and not document.left_out
    style = "bold green" if set(statuses) == {"optimal"} and whole else "bold yellow"
    return Text(f"{', '.join(parts) or 'no layer reached'} in {seconds_text(seconds)}", style=style)


def left_out_text(count: int) -> str:
    """How many nodes of a model are in no layer, and every status of the others."""
    return f"{count} computing node{'' if count == 1 else 's'} left out"


def lacking(document: ResultDocument) -> list[RenderableType]:
    """What the totals lack: layers without a mapping, and nodes of the model that are in no layer."""
    lines = []
    if document.totals.without_mapping:
        lines.append(f"no totals: {', '.join(document.totals.without_mapping)} without a mapping")
    lines += [f"left out: {reported}" for reported in document.left_out]
    return ["", *(Text(line, "yellow") for line in lines)] if lines else []


def head_text(title: str, *parts: str) -> Text:
    """A bold title with whatever belongs to it."""
    return Text.assemble((title, "bold"), "".join(f" · {part}" for part in parts))


def layer_view(layer: LayerRecord, operator: Operator, engine: Engine, objective: Objective) -> Group:
    """Everything about one layer: figures, energy, loop nest and traffic.

    Parameters
    ----------
    layer : its record
    operator, engine, objective : built from the document
    """
    figures = Table.grid(padding=(0, 3, 0, 0))
    ended = f"after {seconds_text(layer.wall_s)} ({layer.solver} {layer.solver_version})"
    figures.add_row("result", Text.assemble(status_text(layer.status, layer.gap), f" {ended}"))
    if layer.value is not None:
        figures.add_row(str(objective), objective_text(objective, layer.value))
    if layer.bound is not None:
        figures.add_row("bound", f"{objective_text(objective, layer.bound)}, gap {gap_text(layer.gap)}")
    if layer.space is not None:
        figures.add_row("space", record_text(layer.space))
    beside = out_of_space_text(layer, objective)
    if beside is not None:
        figures.add_row("beside", Text(beside, "yellow"))
    parts: list[RenderableType] = [
        head_text(layer.name, f"{operator.kind} {shape_text(operator)}", _work(operator)),
        "",
        figures,
    ]
    if layer.message:
        figures.add_row("message", layer.message)
    if layer.metrics is not None and layer.mapping is not None:
        add_figures(figures, layer.metrics, engine, objective)
        mapping = Mapping.from_data(layer.mapping.nodes, layer.name)
        mapping.validate(operator, engine, layer.name)
        parts += ["", *metrics_views(layer.metrics, operator, engine, mapping)]
    return Group(*parts)


def _work(operator: Operator) -> str:
    return f"{si_text(operator.iterations)} {'MACs' if operator.is_mac else 'operations'}"


def add_figures(figures: Table, metrics: MetricsRecord, engine: Engine, objective: Objective) -> None:
    """Energy, cycles, product and utilization as lines of a grid.

    Parameters
    ----------
    figures : a grid of two columns, which grows
    metrics : of a mapping
    engine : gives the clock and the number of PEs
    objective : whose own figure is there already
    """
    if objective.name != "energy":
        figures.add_row("energy", energy_text(metrics.energy_pj))
    clock = f"{si_text(metrics.time_s, 's')} at {exact(engine.clock_mhz)} MHz"
    figures.add_row("cycles", f"{count_text(metrics.cycles)}, {clock}")
    if objective.name != "edp":
        figures.add_row("edp", si_text(metrics.edp * 1e-12, "J·cycle"))
    figures.add_row("utilization", f"{percent_text(metrics.utilization, 1)} of {engine.instances} PEs")


def metrics_views(
    metrics: MetricsRecord, operator: Operator, engine: Engine, mapping: Mapping
) -> list[RenderableType]:
    """Energy by component, the loop nest, and accesses by level and tensor.

    Parameters
    ----------
    metrics : of the mapping
    operator, engine : the layer and the machine
    mapping : shown as a loop nest
    """
    nest = Text(loop_nest(operator, engine, mapping), no_wrap=True, overflow="ignore")
    views: list[RenderableType] = [
        energy_table(metrics),
        "",
        Text("loop nest", style="bold"),
        nest,
        traffic_table(metrics, engine, operator),
    ]
    if metrics.details:
        views += ["", details_table(metrics)]
    return views


def energy_table(metrics: MetricsRecord) -> Table:
    """Energy by component with its share of the whole."""
    table = plain_table([("energy", "left"), ("", "right"), ("share", "right"), ("", "left")])
    parts = metrics.energy_by_component_pj
    whole = sum(parts.values()) or 1
    for name, part in parts.items():
        share = part / whole
        table.add_row(name, energy_text(part), percent_text(share, 1), Text(_bar(share), style="cyan"))
    return table


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def traffic_table(metrics: MetricsRecord, engine: Engine, operator: Operator) -> Table:
    """Tile, reads, fills, updates and energy per level and tensor, levels from the outside in."""
    table = plain_table(
        [
            ("level", "left"),
            ("tensor", "left"),
            ("tile", "right"),
            ("reads", "right"),
            ("fills", "right"),
            ("updates", "right"),
            ("energy", "right"),
        ],
        names=2,
    )
    parts = energy_parts(metrics, engine, operator)
    energies = {(part.component, part.tensor): energy_text(part.picojoules) for part in parts}
    levels = [level.name for level in engine.levels]
    last = ""
    for row in sorted(metrics.accesses, key=lambda access: levels.index(access.level)):
        counts = [si_text(count) if count else "-" for count in (row.reads, row.fills, row.updates)]
        name = row.level if row.level != last else ""
        energy = energies.get((row.level, row.tensor), "-")
        bits = bits_of(engine, operator, row.level, row.tensor)
        table.add_row(name, row.tensor, bytes_text(row.tile, bits), *counts, energy)
        last = row.level
    return table


def details_table(metrics: MetricsRecord) -> Table:
    """Further figures of the cost model."""
    table = plain_table([("figure", "left"), ("", "right")])
    for name, value in metrics.details.items():
        table.add_row(name, count_text(value))
    return table


def listing(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table of texts."""
    table = plain_table(columns)
    for row in rows:
        table.add_row(*row)
    return table
