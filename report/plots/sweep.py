"""A sweep on paper: time beside both limits, and energy, over the last axis that varies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.report.plots.style import canvas, colours, save
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
        _plot(time, line, [row.seconds for row in line.rows], "o-", own, line.name or "mappings")
        joules = [None if row.energy_pj is None else row.energy_pj * 1e-12 for row in line.rows]
        _plot(energy, line, joules, "o-", own, line.name or "mappings")
        for field, name, dashes in LIMITS:
            seconds = [getattr(row, field) for row in line.rows]
            _plot(time, line, seconds, dashes, own, f"_{name}" if number else name)
    for axis, label in ((time, "time of all runs [s]"), (energy, "energy of one sequence [J]")):
        axis.set_xlabel(axis_title(document))
        axis.set_ylabel(label)
        if all(line.numeric for line in lines):
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
        axis.legend(fontsize=6.5)
    machine = document.points[0].exploration.machine if document.points else ""
    figure.suptitle(f"{document.model} on {machine}", fontsize=8)
    return figure


def _plot(
    axis: Axes, line: SweepLine, ys: Sequence[float | None], style: str, colour: str, label: str
) -> None:
    points = [(x, y) for x, y in zip(line.xs, ys, strict=True) if y is not None]
    xs, known = [x for x, _ in points], [y for _, y in points]
    axis.plot(xs, known, style, color=colour, markersize=3, label=label)
