"""A sweep on paper: time beside both limits, and energy, over the last axis that varies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.report.plots.style import INK, canvas, colours, logarithmic_quantities, measured, save
from tilewright.report.records.mapping.sweep import SweepDocument, SweepLine, sweep_lines
from tilewright.report.text.mapping.sweep import axis_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMITS = (("compute_seconds", "limit of PEs", ":"), ("transfer_seconds", "limit of transfers", "--"))


def plot_sweep(document: SweepDocument, path: Path) -> None:
    """Draw the curves of a sweep; raises ``OutputError`` where the file cannot be written."""
    save(lambda: _draw(document), path)


def _draw(document: SweepDocument) -> Figure:
    lines = sweep_lines(document)
    figure, (time, energy) = canvas(2, 3.2)
    colour = colours([line.name for line in lines])
    for number, line in enumerate(lines):
        own = colour[line.name]
        for field, name, dashes in LIMITS:
            seconds = [getattr(row, field) for row in line.rows]
            limit = {"label": f"_{name}" if number else name, "color": INK if len(lines) == 1 else own}
            _plot(time, line, seconds, dashes, linewidth=1.0, zorder=3, **limit)
        mappings: dict[str, Any] = {"color": own, "label": line.name or "mappings", "markersize": 4}
        _plot(time, line, [row.seconds for row in line.rows], "o-", **mappings)
        joules = [None if row.energy_pj is None else row.energy_pj * 1e-12 for row in line.rows]
        _plot(energy, line, joules, "o-", **mappings)
    numeric = all(line.numeric for line in lines)
    for axis, label, unit in ((time, "time of all runs", "s"), (energy, "energy of one sequence", "J")):
        axis.set_xlabel(axis_title(document))
        scale = logarithmic_quantities if numeric else measured
        if numeric:
            axis.set_xscale("log")
            axis.set_yscale("log")
            _numbered(axis, [float(x) for line in lines for x in line.xs])
        scale(axis.yaxis, label, unit)
    time.legend(fontsize=6.5)
    machine = document.points[0].exploration.machine if document.points else ""
    figure.suptitle(f"{document.model} on {machine}", fontsize=8)
    return figure


def _numbered(axis: Axes, xs: Sequence[float]) -> None:
    """Ticks at the values themselves; at every second one, or fewer, where there are many."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    different = sorted(set(xs))
    axis.xaxis.set_major_locator(FixedLocator(different[:: 1 + len(different) // 9]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _plot(axis: Axes, line: SweepLine, ys: Sequence[float | None], style: str, **look: Any) -> None:
    points = [(x, y) for x, y in zip(line.xs, ys, strict=True) if y is not None]
    axis.plot([x for x, _ in points], [y for _, y in points], style, **look)
