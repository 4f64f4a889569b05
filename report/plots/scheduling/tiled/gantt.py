"""Gantt chart of a plan: one row per engine, one colour per layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tilewright.report.plots.style import layer_colour, measured, write_figure
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan
from tilewright.report.records.scheduling.tiled.timeline import IDLE, timeline
from tilewright.report.text.quantities import si_text

_COLUMNS = 1200
_MOST_NAMES = 40
_FEW_ENGINES = 16
"""Engines up to which their rows stand apart."""
_PALE = 0.25
"""Of a colour's strength where a layer hardly runs."""


def draw_gantt(plan: JudgedPlan, path: Path) -> None:
    """Draw to a PNG, PDF or SVG file: in every cell the layer that runs longest, paler where it waits."""
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    assert plan.answer is not None
    assert plan.evaluation is not None
    machine = plan.problem.machine
    times = timeline(plan.answer, machine, plan.evaluation)
    names = [unit.name for unit in plan.problem.units]
    shades = np.array([to_rgb(layer_colour(unit)) for unit in range(len(names))] + [(1.0, 1.0, 1.0)])
    cells, _, busy = times.shares(_COLUMNS)
    end = times.cycles / (machine.clock_mhz * 1e6)
    height = 1.8 + min(9.0, 0.11 * times.engines + 0.4)
    figure = Figure(figsize=(11, height), layout="constrained")
    axes = figure.add_subplot()
    few = times.engines <= _FEW_ENGINES
    ink = (_PALE + (1 - _PALE) * busy)[..., None]
    image = 1 - ink * (1 - shades[np.where(cells == IDLE, len(names), cells)])
    axes.imshow(
        image, aspect="auto", interpolation="nearest", extent=(0.0, end, times.engines - 0.5, -0.5), zorder=2
    )
    if few:
        for edge in range(1, times.engines):
            axes.axhline(edge - 0.5, color="white", linewidth=3, zorder=3)
    axes.set_yticks(range(0, times.engines, 1 if few else max(1, machine.width)))
    axes.set_ylabel("engine")
    measured(axes.xaxis, "time", "s")
    axes.set_title(f"{plan.problem.network.name} on {machine.name}: {si_text(end, 's')}", fontsize=10)
    if len(names) <= _MOST_NAMES:
        handles = [Patch(color=layer_colour(unit), label=name) for unit, name in enumerate(names)]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(8, len(names)), fontsize=7)
    write_figure(figure, path, 150)
