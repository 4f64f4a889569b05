"""Gantt chart of a plan: one row per engine, one colour per layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tilewright.report.plots.style import layer_colour, write_figure
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan
from tilewright.report.records.scheduling.tiled.timeline import IDLE, timeline

_COLUMNS = 1200
_MOST_NAMES = 40
_FEW_ENGINES = 16
"""Engines up to which their rows stand apart."""


def draw_gantt(plan: JudgedPlan, path: Path) -> None:
    """Draw to a PNG, PDF or SVG file: in every cell of time the layer that takes most of it."""
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    assert plan.answer is not None
    assert plan.evaluation is not None
    machine = plan.problem.machine
    times = timeline(plan.answer, machine, plan.evaluation)
    milliseconds = 1 / (machine.clock_mhz * 1000)
    names = [unit.name for unit in plan.problem.units]
    shades = np.array([to_rgb(layer_colour(unit)) for unit in range(len(names))] + [(1.0, 1.0, 1.0)])
    cells = times.raster(_COLUMNS)
    end = times.cycles * milliseconds
    height = 1.8 + min(9.0, 0.11 * times.engines + 0.4)
    figure = Figure(figsize=(11, height), layout="constrained")
    axes = figure.add_subplot()
    image = shades[np.where(cells == IDLE, len(names), cells)]
    axes.imshow(
        image, aspect="auto", interpolation="nearest", extent=(0.0, end, times.engines - 0.5, -0.5), zorder=2
    )
    if times.engines <= _FEW_ENGINES:
        for edge in range(1, times.engines):
            axes.axhline(edge - 0.5, color="white", linewidth=3, zorder=3)
    axes.set_yticks(range(0, times.engines, max(1, machine.width)))
    axes.set_ylabel("engine")
    axes.set_xlabel("time in ms")
    axes.set_title(f"{plan.problem.network.name} on {machine.name}: {end:,.4g} ms", fontsize=10)
    if len(names) <= _MOST_NAMES:
        handles = [Patch(color=layer_colour(unit), label=name) for unit, name in enumerate(names)]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(8, len(names)), fontsize=7)
    write_figure(figure, path, 150)
