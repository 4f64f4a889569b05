"""Plots of plans that respond: engines over time, buffers over time, loads of links, energy by component."""

from __future__ import annotations

from typing import Any

from tilewright.report.html.figures import INK, PAPER, SECONDS, base_layout
from tilewright.report.html.page import Figure
from tilewright.report.plots.style import LOADS, PALETTE, layer_colour, load_colour
from tilewright.report.records.scheduling.tiled.document import PlanMetricsRecord
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan
from tilewright.report.records.scheduling.tiled.timeline import (
    IDLE,
    Timeline,
    drawn_links,
    held_bytes,
    link_loads,
)

MOST_BARS = 3000
"""Spans up to which every one is drawn; beyond it a cell shows the layer that takes most of its time."""
COLUMNS = 400
"""Cells of time in such a picture."""
MOST_LINKS = 40
_KIBIBYTE = 1024


def engines_figure(plan: JudgedPlan, times: Timeline, seconds: float) -> Figure:
    """One row per engine, one colour per layer (colours repeat); hovering shows the layer.

    Parameters
    ----------
    seconds : of one cycle
    """
    names = [unit.name for unit in plan.problem.units]
    engine, layer, start, end, tasks = times.spans()
    if len(engine) <= MOST_BARS:
        data: dict[str, Any] = {
            "type": "bar",
            "orientation": "h",
            "width": 0.86,
            "y": engine.tolist(),
            "base": (start * seconds).tolist(),
            "x": ((end - start) * seconds).tolist(),
            "text": [
                f"{names[unit]}<br>engine {e}, {count} atoms<br>cycles {low:,.0f} to {high:,.0f}"
                for e, unit, low, high, count in zip(
                    engine.tolist(), layer.tolist(), start, end, tasks.tolist(), strict=True
                )
            ],
            "marker": {"color": [layer_colour(unit) for unit in layer.tolist()], "line": {"width": 0}},
        }
    else:
        cells = times.raster(COLUMNS)
        share = 1 / len(names)
        width = times.cycles * seconds / COLUMNS
        data = {
            "type": "heatmap",
            "x0": width / 2,
            "dx": width,
            "y": list(range(times.engines)),
            "z": [[None if unit == IDLE else unit for unit in row] for row in cells.tolist()],
            "text": [["" if unit == IDLE else names[unit] for unit in row] for row in cells.tolist()],
            "zmin": -0.5,
            "zmax": len(names) - 0.5,
            "colorscale": [
                [edge, layer_colour(unit)]
                for unit in range(len(names))
                for edge in (unit * share, 1 if unit + 1 == len(names) else (unit + 1) * share)
            ],
            "showscale": False,
            "hoverongaps": False,
        }
    data |= {"textposition": "none"} if data["type"] == "bar" else {}
    data["hovertemplate"] = "%{text}<extra></extra>"
    layout = base_layout("time", "engine")
    layout.update(height=150 + max(9, min(40, 700 // times.engines)) * times.engines, showlegend=False)
    layout["xaxis"].update(SECONDS, range=[0, times.cycles * seconds])
    layout["yaxis"].update(
        range=[times.engines - 0.5, -0.5], dtick=max(1, plan.problem.machine.width), showgrid=False
    )
    return {"data": [data], "layout": layout}


def buffers_figures(plan: JudgedPlan, seconds: float) -> list[tuple[str, Figure]]:
    """What buffers hold over time: the fullest and the mean, and every one."""
    assert plan.answer is not None
    assert plan.evaluation is not None
    machine = plan.problem.machine
    moments, held = held_bytes(plan.answer, machine, plan.evaluation, COLUMNS)
    xs = (moments * seconds).tolist()

    def line(name: str, ys: Any, colour: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": xs,
            "y": (ys / _KIBIBYTE).tolist(),
            "line": {"color": colour, "width": 1.5, **more},
            "hovertemplate": "%{y:.4g} KiB at %{x:.4s}s",
        }

    full = held.max(axis=0) * 0 + machine.engine.buffer_bytes
    layout = base_layout("time", "buffer [KiB]")
    layout["xaxis"].update(SECONDS)
    layout["yaxis"]["rangemode"] = "tozero"
    layout["height"] = 320
    lines = [
        line("fullest", held.max(axis=0), PALETTE[0]),
        line("mean", held.mean(axis=0), PALETTE[2]),
        line("capacity", full, PALETTE[1], dash="dash"),
    ]
    every = base_layout("time", "engine")
    every.update(height=150 + max(9, min(40, 700 // machine.engines)) * machine.engines)
    every["xaxis"].update(SECONDS)
    every["yaxis"].update(autorange="reversed", dtick=max(1, machine.width))
    heat = {
        "type": "heatmap",
        "x0": xs[0],
        "dx": xs[1] - xs[0],
        "z": (held / _KIBIBYTE).round(2).tolist(),
        "zmin": 0,
        "zmax": machine.engine.buffer_bytes / _KIBIBYTE,
        "colorscale": [[i / (len(LOADS) - 1), colour] for i, colour in enumerate(LOADS)],
        "colorbar": {"title": {"text": "KiB", "side": "right"}, "thickness": 12},
        "hovertemplate": "engine %{y}: %{z:.4g} KiB at %{x:.4s}s<extra></extra>",
    }
    return [
        ("fullest and mean", {"data": lines, "layout": layout}),
        ("every engine", {"data": [heat], "layout": every}),
    ]


def links_figure(plan: JudgedPlan, times: Timeline) -> Figure:
    """The grid: links by the part of the time that they need, engines by the part in which they compute.

    An H-tree has its busiest links as bars.
    """
    assert plan.evaluation is not None
    machine = plan.problem.machine
    lines = drawn_links(machine, plan.evaluation)
    if not lines:
        return _bars(plan)
    most = max(line.load.busy for line in lines)
    data: list[dict[str, Any]] = []
    for index, colour in enumerate(LOADS):
        coloured = [line for line in lines if load_colour(line.load.busy / most) == colour]
        if not coloured:
            continue
        low, high = most * index / len(LOADS), most * (index + 1) / len(LOADS)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{low:.0%} to {high:.0%}",
                "line": {"color": colour, "width": 5},
                "x": [x for line in coloured for x in (line.start[0], line.end[0], None)],
                "y": [y for line in coloured for y in (line.start[1], line.end[1], None)],
                "hoverinfo": "skip",
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "showlegend": False,
            "marker": {"size": 12, "opacity": 0},
            "x": [line.middle[0] for line in lines],
            "y": [line.middle[1] for line in lines],
            "text": [
                f"{line.load.name}<br>{line.load.bytes:,.0f} B<br>{line.load.busy:.1%} of the time"
                for line in lines
            ],
            "hovertemplate": "%{text}<extra></extra>",
        }
    )
    ports = {*machine.dram_ports}
    places = [machine.position(engine) for engine in range(machine.engines)]
    data.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "showlegend": False,
            "x": [x for x, _ in places],
            "y": [y for _, y in places],
            "marker": {
                "symbol": "square",
                "size": 22,
                "color": PAPER,
                "line": {"color": [PALETTE[1] if place in ports else INK for place in places], "width": 1.5},
            },
            "text": [f"{busy:.0%}".rstrip("%") for busy in times.busy],
            "textfont": {"size": 10},
            "hovertext": [
                f"engine {engine}, computes {busy:.1%} of the time{', DRAM port' if place in ports else ''}"
                for engine, (busy, place) in enumerate(zip(times.busy, places, strict=True))
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
    )
    layout = base_layout("", "")
    layout["legend"]["title"] = {"text": "link in use"}
    for axis, size in (("xaxis", machine.width), ("yaxis", machine.height)):
        layout[axis].update(range=[-0.6, size - 0.4], dtick=1, showgrid=False, constrain="domain")
    layout["yaxis"].update(range=[machine.height - 0.4, -0.6], scaleanchor="x")
    layout["height"] = 120 + max(180, min(640, 76 * machine.height))
    return {"data": data, "layout": layout}


def _bars(plan: JudgedPlan) -> Figure:
    """The busiest links."""
    assert plan.evaluation is not None
    loads = link_loads(plan.problem.machine, plan.evaluation)[:MOST_LINKS]
    layout = base_layout("part of the time in use", "")
    layout["xaxis"]["tickformat"] = ".0%"
    layout["yaxis"]["autorange"] = "reversed"
    layout["height"] = 120 + 18 * len(loads)
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [load.name for load in loads],
        "x": [load.busy for load in loads],
        "text": [f"{load.bytes:,.0f} B" for load in loads],
        "textposition": "none",
        "marker": {"color": PALETTE[0]},
        "hovertemplate": "%{y}: %{x:.1%}, %{text}<extra></extra>",
    }
    return {"data": [bars], "layout": layout}


def energy_figure(metrics: PlanMetricsRecord) -> Figure:
    """A bar per component."""
    parts = metrics.energy_by_component_pj
    whole = sum(parts.values()) or 1
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [*parts],
        "x": [value * 1e-12 for value in parts.values()],
        "text": [f"{value / whole:.1%}" for value in parts.values()],
        "textposition": "auto",
        "marker": {"color": PALETTE[0]},
        "hovertemplate": "%{y}: %{x:.4s}J, %{text}<extra></extra>",
    }
    layout = base_layout("energy", "")
    layout["xaxis"].update(tickformat="~s", ticksuffix="J", nticks=6)
    layout["yaxis"]["autorange"] = "reversed"
    layout["height"] = 280
    return {"data": [bars], "layout": layout}
