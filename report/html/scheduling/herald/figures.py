"""Plots of schedules and partitions that respond: Gantt chart, shared memory, latency against energy."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from typing import Any

from tilewright.report.html.figures import PAPER, SECONDS, base_layout
from tilewright.report.html.page import Figure
from tilewright.report.pareto import pareto_front
from tilewright.report.plots.style import PALETTE, SHARED, colours
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PartitionPointRecord,
    PlacementRecord,
    variant_text,
)

_MEBIBYTE = 2**20


def gantt_figure(
    rows: Sequence[PlacementRecord], networks: MappingABC[str, str], engines: Sequence[str], seconds: float
) -> Figure:
    """One row per sub-accelerator, one colour per network; hovering shows the layer.

    Parameters
    ----------
    networks : the network of every run
    seconds : of one cycle
    """
    names = list(dict.fromkeys(networks.values()))
    colour = colours(names)
    data = []
    for name in names:
        bars = [row for row in rows if networks[row.instance] == name]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": [row.engine for row in bars],
                "base": [row.start * seconds for row in bars],
                "x": [(row.end - row.start) * seconds for row in bars],
                "text": [f"{row.task}<br>cycles {row.start:,} to {row.end:,}" for row in bars],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": colour[name], "line": {"color": PAPER, "width": 0.5}},
            }
        )
    layout = base_layout("time", "")
    layout["xaxis"].update(SECONDS)
    layout.update(barmode="overlay", height=170 + 70 * len(engines), bargap=0.25)
    layout["xaxis"]["range"] = [0, max((row.end for row in rows), default=0) * seconds]
    layout["yaxis"].update(
        type="category", categoryorder="array", categoryarray=[*engines], range=[len(engines) - 0.5, -0.5]
    )
    return {"data": data, "layout": layout}


def memory_figure(
    occupancy: Sequence[tuple[int, int]], makespan: int, capacity: int | None, seconds: float
) -> Figure:
    """Bytes of the shared memory in use over time, and how many there are.

    Parameters
    ----------
    occupancy : (cycle, bytes in use from then on), in the order of time
    makespan : cycles
    capacity : bytes of the shared memory; ``None`` for no limit
    seconds : of a cycle
    """
    steps = [*occupancy, (makespan, occupancy[-1][1] if occupancy else 0)]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "in use",
            "fill": "tozeroy",
            "line": {"shape": "hv", "color": PALETTE[0], "width": 1},
            "x": [cycle * seconds for cycle, _ in steps],
            "y": [used / _MEBIBYTE for _, used in steps],
            "hovertemplate": "%{y:.4g} MiB from %{x:.4s}s",
        }
    ]
    if capacity is not None:
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "capacity",
                "line": {"color": PALETTE[1], "dash": "dash"},
                "x": [0, makespan * seconds],
                "y": [capacity / _MEBIBYTE] * 2,
                "hovertemplate": "%{y:.4g} MiB",
            }
        )
    layout = base_layout("time", "shared memory [MiB]")
    layout["xaxis"].update(SECONDS)
    layout["yaxis"]["rangemode"] = "tozero"
    layout["height"] = 300
    return {"data": data, "layout": layout}


def partitions_figure(document: CodesignDocument, seconds: float) -> Figure:
    """Latency and energy of every partition, with the Pareto front and the best one."""

    def at(point: PartitionPointRecord) -> tuple[float, float]:
        return point.cycles * seconds, point.energy_pj * 1e-12

    def dots(name: str, points: Sequence[PartitionPointRecord], marker: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "marker": marker,
            "x": [at(point)[0] for point in points],
            "y": [at(point)[1] for point in points],
            "text": [division_text(point.partition, point.fields) for point in points],
            "hovertemplate": "%{text}<br>%{x:.4s}s, %{y:.4s}J",
        }

    front = pareto_front([at(point) for point in document.points])
    best = min(document.points, key=lambda point: point.value)
    data = [
        dots("Herald's schedule", [p for p in document.points if not p.scheduled], {"color": SHARED}),
        dots("scheduled with a bound", [p for p in document.points if p.scheduled], {"color": PALETTE[0]}),
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Pareto front",
            "line": {"shape": "hv", "color": PALETTE[5], "width": 1.5},
            "x": [x for x, _ in front],
            "y": [y for _, y in front],
            "hoverinfo": "skip",
        },
        dots(f"best {document.objective}", [best], {"color": PALETTE[1], "symbol": "star", "size": 14}),
    ]
    layout = base_layout("latency", "energy")
    layout["xaxis"].update(SECONDS)
    layout["yaxis"].update(tickformat="~s", ticksuffix="J", nticks=7)
    layout["height"] = 480
    return {"data": data, "layout": layout}


def division_text(partition: Sequence[MappingABC[str, float]], fields: MappingABC[str, object]) -> str:
    """PEs, bandwidths and what machine files have in one line."""
    pes = " / ".join(f"{part['pes']:g}" for part in partition)
    rates = " / ".join(f"{part['bytes_per_cycle']:g}" for part in partition)
    return ", ".join([f"{pes} PEs", f"{rates} B/cycle", *filter(None, [variant_text(fields)])])
