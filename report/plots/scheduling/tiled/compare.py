"""A contest as a picture: every run of every method, and the bound."""

from __future__ import annotations

from pathlib import Path

from tilewright.formulation.scheduling.tiled.problem import tiled_objective
from tilewright.report.curves import unit
from tilewright.report.plots.style import PALETTE, write_figure
from tilewright.report.records.scheduling.tiled.compare import CompareDocument, ranked
from tilewright.report.text.scheduling.tiled.compare import typical


def draw_contest(document: CompareDocument, path: Path) -> None:
    """Draw to a PNG, PDF or SVG file: a bar up to each median there is, a dot per run, the bound."""
    from matplotlib.figure import Figure

    scale, label = unit(str(tiled_objective(document.objective)))
    rows = [
        (contestant, typical(contestant))
        for contestant in ranked(document.contestants)
        if contestant.best is not None
    ]
    figure = Figure(figsize=(7.0, 1.2 + 0.32 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for place, (contestant, run) in enumerate(rows):
        if run is not None:
            axes.barh(place, float(run.value or 0) * scale, color=PALETTE[4], height=0.6)
        values = [float(other.value) * scale for other in contestant.runs if other.value is not None]
        axes.plot(values, [place] * len(values), ".", color=PALETTE[0], markersize=5)
    axes.axvline(float(document.bound) * scale, color=PALETTE[1], linestyle="--", label="bound")
    axes.set_yticks(range(len(rows)), [contestant.method for contestant, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(label)
    figure.legend(loc="outside upper right", fontsize=8)  # bars leave no room inside
    axes.set_title(f"{document.workload} on {document.system}, batch {document.batch}", fontsize=10)
    write_figure(figure, path, 150)
