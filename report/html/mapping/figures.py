"""Plots of mapped layers: energy by level and role, latency as a stack, the roofline, fronts."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.html.figures import INK, PAPER, base_layout, logarithmic
from tilewright.report.html.page import Figure
from tilewright.report.plots.style import PALETTE, SHARED, TENSORS
from tilewright.report.records.mapping.breakdown import COMPUTE, EnergyPart, LatencyPart, in_role_order
from tilewright.report.records.mapping.document import LayerRecord, MetricsRecord, SolutionRecord
from tilewright.report.records.mapping.roofline import dram_bytes, dram_rate

MOST = 8
"""Entries of a legend; what comes after the largest ones is one entry more."""
_REST = "other"
NO_TENSOR = "not by tensor"
_ROLES = {**dict(zip(("inputs", "weights", "outputs"), TENSORS, strict=False)), "": SHARED}
_LEVELS = (*PALETTE[:6], "#8C6BB1")

Bars = Sequence[tuple[str, MappingABC[str, float]]]


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantity's axis.

    Parameters
    ----------
    scale : from the numbers of documents to the unit
    unit : behind the SI prefix of the ticks
    """

    title: str
    unit: str
    scale: float


ENERGY = Axis("energy", "J", 1e-12)
CYCLES = Axis("cycles", "", 1.0)


def level_figure(parts: Sequence[EnergyPart]) -> Figure:
    """A bar per component in machine order, in pieces by role."""
    roles = in_role_order(part.role for part in parts)
    bars: dict[str, dict[str, float]] = {}
    for part in parts:
        pieces = bars.setdefault(part.component, {})
        pieces[part.role] = pieces.get(part.role, 0.0) + part.picojoules
    shown = [(name, {_role(role): size for role, size in pieces.items()}) for name, pieces in bars.items()]
    return stacked_figure(shown, {_role(role): _ROLES[role] for role in roles}, ENERGY)


def role_figure(bars: Sequence[tuple[str, Sequence[EnergyPart]]]) -> Figure:
    """A bar per title, in pieces by role."""
    roles = in_role_order(part.role for _, parts in bars for part in parts)
    shown = [(title, _sums((_role(part.role), part.picojoules) for part in parts)) for title, parts in bars]
    return stacked_figure(shown, {_role(role): _ROLES[role] for role in roles}, ENERGY)


def component_figure(bars: Sequence[tuple[str, Sequence[EnergyPart]]]) -> Figure:
    """A bar per title, in pieces by component, in machine order."""
    shown = [(title, _sums((part.component, part.picojoules) for part in parts)) for title, parts in bars]
    names = [*dict.fromkeys(part.component for _, parts in bars for part in parts)]
    colours = {name: _LEVELS[index % len(_LEVELS)] for index, name in enumerate(names)}
    if "MAC" in colours:
        colours["MAC"] = SHARED
    return stacked_figure(shown, colours, ENERGY)


def latency_figure(bars: Sequence[tuple[str, Sequence[LatencyPart]]]) -> Figure:
    """A bar per layer: compute, and what of each level's transfers nothing hides."""
    shown = [(title, {part.name: float(part.cycles) for part in parts}) for title, parts in bars]
    names = [*dict.fromkeys(name for _, pieces in shown for name in pieces)]
    transfers = [name for name in names if name != COMPUTE]
    colours = {COMPUTE: SHARED} | {name: _LEVELS[i % len(_LEVELS)] for i, name in enumerate(transfers)}
    return stacked_figure(shown, {name: colours[name] for name in names}, CYCLES)


def _role(role: str) -> str:
    return role or NO_TENSOR


def _sums(pieces: Any) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, size in pieces:
        sums[name] = sums.get(name, 0.0) + size
    return sums


def stacked_figure(bars: Bars, colours: MappingABC[str, str], axis: Axis) -> Figure:
    """Horizontal stacked bars, in the sequence of the titles and colours.

    Parameters
    ----------
    colours : of every piece; beyond eight pieces the smallest ones become one
    """
    whole = {name: sum(pieces.get(name, 0.0) for _, pieces in bars) for name in colours}
    names = [name for name in colours if whole[name] > 0]
    if len(names) > MOST:
        largest = {*sorted(names, key=lambda name: -whole[name])[: MOST - 1]}
        groups = [(name, [name]) for name in names if name in largest]
        groups.append((_REST, [name for name in names if name not in largest]))
    else:
        groups = [(name, [name]) for name in names]
    titles = [title for title, _ in bars]
    data = []
    for name, some in groups:
        sizes = [axis.scale * sum(pieces.get(piece, 0.0) for piece in some) for _, pieces in bars]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": titles,
                "x": sizes,
                "marker": {"color": colours.get(name, PALETTE[6]), "line": {"color": PAPER, "width": 0.5}},
                "hovertemplate": f"%{{y}}, {name}: %{{x:.4s}}{axis.unit}<extra></extra>",
            }
        )
    layout = base_layout(axis.title, "")
    layout["barmode"] = "stack"
    layout["bargap"] = 0.25
    layout["xaxis"].update(tickformat="~s", ticksuffix=axis.unit, nticks=6)
    layout["yaxis"].update(autorange="reversed", type="category", dtick=1)
    layout["legend"]["traceorder"] = "normal"
    layout["height"] = 120 + max(60, 26 * len(bars))
    layout["showlegend"] = True
    return {"data": data, "layout": layout}


def roofline_figure(layers: Sequence[tuple[LayerRecord, MetricsRecord]], engine: Engine) -> Figure | None:
    """Every layer's multiply-accumulates per cycle over those per byte of DRAM, below the two roofs.

    ``None`` where no layer multiplies or nothing crosses the outermost level's ports.
    """
    points = [
        (layer.name, float(metrics.macs / traffic), metrics.macs / metrics.cycles)
        for layer, metrics in layers
        if metrics.macs and (traffic := dram_bytes(layer, metrics, engine))
    ]
    if not points:
        return None
    peak, rate = float(engine.instances), dram_rate(engine)
    xs = [x for _, x, _ in points]
    corner = peak / float(rate) if rate is not None else min(xs)
    low, high = min([*xs, corner]) / 2, max([*xs, corner]) * 2
    roof = [(corner, peak), (high, peak)]
    if rate is not None:
        roof.insert(0, (low, low * float(rate)))
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "roof",
            "line": {"color": INK, "width": 1.5},
            "x": [x for x, _ in roof],
            "y": [y for _, y in roof],
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "layer",
            "marker": {"color": PALETTE[0], "size": 9, "opacity": 0.75},
            "x": xs,
            "y": [y for _, _, y in points],
            "text": [name for name, _, _ in points],
            "hovertemplate": "%{text}<br>%{x:.4g} MAC/B, %{y:.4g} MAC/cycle<extra></extra>",
        },
    ]
    layout = base_layout("MACs per byte of DRAM traffic", "MACs per cycle")
    layout["xaxis"].update(logarithmic([low, high]))
    layout["yaxis"].update(logarithmic([y for _, y in roof] + [y for _, _, y in points]))
    layout["showlegend"] = False
    return {"data": data, "layout": layout}


def front_figure(points: Sequence[SolutionRecord], chosen: tuple[int, float] | None) -> Figure:
    """Energy over cycles, a step from point to point.

    Parameters
    ----------
    chosen : cycles and pJ of the mapping that the objective chose
    """
    ordered = sorted(points, key=lambda point: point.cycles)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "front",
            "line": {"shape": "hv", "color": PALETTE[0]},
            "x": [point.cycles for point in ordered],
            "y": [point.energy_pj * ENERGY.scale for point in ordered],
            "hovertemplate": "%{x:,} cycles, %{y:.4s}J<extra></extra>",
        }
    ]
    if chosen is not None:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "the objective's choice",
                "marker": {"symbol": "star", "size": 14, "color": PALETTE[1]},
                "x": [chosen[0]],
                "y": [chosen[1] * ENERGY.scale],
                "hovertemplate": "%{x:,} cycles, %{y:.4s}J<extra></extra>",
            }
        )
    layout = base_layout("cycles", "energy")
    layout["xaxis"].update(tickformat="~s", nticks=6)
    layout["yaxis"].update(tickformat="~s", ticksuffix="J", nticks=7)
    layout["showlegend"] = chosen is not None
    return {"data": data, "layout": layout}
