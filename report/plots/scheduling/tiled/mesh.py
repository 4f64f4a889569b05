"""The links of a plan: the grid with the part of the time that each needs, or bars where there is no grid."""

from __future__ import annotations

from pathlib import Path

from tilewright.report.plots.style import LOADS, PALETTE, load_colour, write_figure
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan
from tilewright.report.records.scheduling.tiled.timeline import drawn_links, link_loads, timeline

_MOST = 30


def draw_links(plan: JudgedPlan, path: Path) -> None:
    """Draw to a PNG, PDF or SVG file; engines show the percentage of the time in which they compute."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    assert plan.answer is not None
    assert plan.evaluation is not None
    machine = plan.problem.machine
    title = f"{plan.problem.network.name} on {machine.name}"
    lines = drawn_links(machine, plan.evaluation)
    if not lines:
        loads = link_loads(machine, plan.evaluation)[:_MOST]
        figure = Figure(figsize=(8, 1 + 0.22 * len(loads)), layout="constrained")
        axes = figure.add_subplot()
        axes.barh([load.name for load in loads], [100 * load.busy for load in loads], color=PALETTE[0])
        axes.invert_yaxis()
        axes.set_xlabel("percent of the time in use")
        axes.set_title(title, fontsize=10)
        write_figure(figure, path, 150)
        return
    most = max(load.load.busy for load in lines)
    side = 0.75
    size = max(4.6, 1.8 + side * machine.width), max(2.6, 1.2 + side * machine.height)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.add_collection(
        LineCollection(
            [[load.start, load.end] for load in lines],
            colors=[load_colour(load.load.busy / most) for load in lines],
            linewidths=4,
        )
    )
    ports = {*machine.dram_ports}
    busy = timeline(plan.answer, machine, plan.evaluation).busy
    for engine in range(machine.engines):
        x, y = machine.position(engine)
        edge = PALETTE[1] if (x, y) in ports else "black"
        axes.add_patch(Rectangle((x - 0.19, y - 0.19), 0.38, 0.38, facecolor="white", edgecolor=edge))
        axes.text(x, y, f"{100 * busy[engine]:.0f}", ha="center", va="center", fontsize=7)
    axes.set_xlim(-0.6, machine.width - 0.4)
    axes.set_ylim(machine.height - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.set_xticks(range(0, machine.width, -(-machine.width // 16)))
    axes.set_yticks(range(0, machine.height, -(-machine.height // 16)))
    figure.suptitle(f"{title}: links in use", fontsize=10)
    handles = [
        Patch(color=colour, label=f"up to {100 * most * (index + 1) / len(LOADS):.3g} %")
        for index, colour in enumerate(LOADS)
    ]
    figure.legend(handles=handles, loc="outside right center", fontsize=7)
    write_figure(figure, path, 150)
