"""A whole model on a page: its phases, and its kinds of layers below the roofs and beside both limits."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.html.figures import INK, base_layout, logarithmic
from tilewright.report.html.page import Figure, Plot
from tilewright.report.plots.style import PALETTE
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.model_roofline import KindRow, Roofs, kind_rows, roofs


def model_sections(document: ResultDocument, engine: Engine) -> list[Plot]:
    """Plots of a model's kinds of layers; none where all are of one kind."""
    rows = kind_rows(document, engine)
    if len({row.kind for row in rows}) < 2:
        return []
    figures = [("time", _times(rows, engine))]
    below = roofs(rows, engine)
    if below is not None:
        figures.append(("roofline", _roofs(rows, below)))
    note = (
        f"Limits: all PEs in every cycle; what must cross the ports of {engine.levels[0].name} once. "
        "Operations are iterations of loops, those of norms and softmax too."
    )
    return [Plot("Kinds of layers", figures, note)]


def _times(rows: Sequence[KindRow], engine: Engine) -> Figure:
    """A bar per phase and kind, with a mark at each limit."""
    names = [f"{row.phase} {row.kind}".strip() for row in rows]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": "mappings",
            "x": [row.seconds for row in rows],
            "y": names,
            "marker": {"color": PALETTE[0]},
            "text": [f"{row.proven} of {row.layers} proven" for row in rows],
            "textposition": "none",
            "hovertemplate": "%{y}: %{x:.4s}s, %{text}<extra></extra>",
        }
    ]
    limits = (
        ("PEs", "line-ns-open", [row.compute_seconds for row in rows]),
        (engine.levels[0].name, "diamond-open", [row.transfer_seconds for row in rows]),
    )
    for limit, symbol, seconds in limits:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"limit of {limit}",
                "x": seconds,
                "y": names,
                "marker": {"symbol": symbol, "size": 11, "color": INK, "line": {"width": 2}},
                "hovertemplate": f"%{{y}}, {limit}: %{{x:.4s}}s<extra></extra>",
            }
        )
    layout = base_layout("time of all runs", "")
    every = [seconds for row in rows for seconds in (row.seconds, row.compute_seconds, row.transfer_seconds)]
    layout["xaxis"].update(logarithmic([seconds for seconds in every if seconds]), ticksuffix="s")
    layout["yaxis"]["autorange"] = "reversed"
    layout["height"] = 140 + 26 * len(rows)
    layout["showlegend"] = True
    return {"data": data, "layout": layout}


def _roofs(rows: Sequence[KindRow], below: Roofs) -> Figure:
    """Operations per cycle over those per byte that must cross the outermost ports, below both roofs."""
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "roof",
            "line": {"color": INK, "width": 1.5},
            "x": [*below.ends],
            "y": [*below.heights],
            "hoverinfo": "skip",
        }
    ]
    for index, phase in enumerate(dict.fromkeys(row.phase for row in rows)):
        own = [
            (row, x, y)
            for row, x, y in zip(rows, below.reach, below.rates, strict=True)
            if row.phase == phase
        ]
        data.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": phase or "layers",
                "x": [x for _, x, _ in own],
                "y": [y for _, _, y in own],
                "text": [row.kind for row, _, _ in own],
                "textposition": "bottom right",
                "marker": {
                    "color": PALETTE[index],
                    "size": [8 + 30 * row.share**0.5 for row, _, _ in own],
                    "opacity": 0.7,
                },
                "hovertemplate": "%{text}: %{x:.4g} per byte, %{y:.4g} per cycle<extra></extra>",
            }
        )
    layout = base_layout("operations per byte", "operations per cycle")
    layout["xaxis"].update(logarithmic([*below.ends]))
    layout["yaxis"].update(logarithmic([*below.heights, *below.rates]))
    layout["showlegend"] = True
    return {"data": data, "layout": layout}
