"""How value and bound of runs on one problem come together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.benchmarks.curves import cell_convergence
from tilewright.benchmarks.plots.selection import best_runs, one_problem, problem_title
from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.store import Store
from tilewright.report.curves import UNITS, Convergence
from tilewright.report.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(store: Store, rows: Sequence[Row]) -> Figure:
    """Values as full lines, bounds as dashed ones, both axes logarithmic; dots mark every seed's end."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import EngFormatter

    solved = one_problem(rows, "convergence")
    scale, label = UNITS.get(solved[0].objective, (1.0, solved[0].objective))
    names = [row.method for row in best_runs(solved)]
    colours, markers = style.colours(names), style.markers(names)
    cells = {cell.key: cell for cell in store.cells()}
    figure, (axis,) = style.canvas(1, 3.4)
    for row in solved:
        run = cell_convergence(row.method, cells[row.key], row.objective)
        _run(axis, run, colours[row.method], markers[row.method], scale)
    optimum = next((row.optimum for row in solved if row.optimum is not None), None)
    lines = [
        Line2D([], [], color=colours[name], marker=markers[name], markersize=3, label=name) for name in names
    ]
    lines += [
        Line2D([], [], color="black", label="value"),
        Line2D([], [], color="black", linestyle="--", label="bound"),
    ]
    if optimum is not None:
        axis.axhline(optimum * scale, color="black", linewidth=0.8, linestyle=":")
        lines.append(Line2D([], [], color="black", linewidth=0.8, linestyle=":", label="proven optimum"))
    style.logarithmic(axis)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axis.yaxis.set_minor_formatter(EngFormatter(sep=" "))
    axis.set_xlabel("time [s]")
    axis.set_ylabel(label)
    figure.suptitle(problem_title(solved[0]))
    figure.legend(handles=lines, loc="outside right center")
    return figure


def _run(axis: Axes, run: Convergence, colour: str, marker: str, scale: float) -> None:
    for curve, dash in ((run.value, "-"), (run.bound, "--")):
        if curve.xs:
            xs = [*curve.xs, max(run.seconds, curve.xs[-1])]
            ys = [scale * y for y in (*curve.ys, curve.ys[-1])]
            axis.plot(xs, ys, drawstyle="steps-post", color=colour, linestyle=dash, linewidth=1.2, alpha=0.9)
            if dash == "-":
                axis.plot(xs[-1], ys[-1], marker, color=colour, markersize=3.5)
