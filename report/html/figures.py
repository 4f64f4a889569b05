"""Plots that respond, as data and layout for Plotly: the same curves and colours as on paper."""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from typing import Any

from tilewright.report.curves import Convergence, Curve
from tilewright.report.html.page import Figure
from tilewright.report.plots.style import DASHES, MARKERS, colours, dashes, markers

_DASHES = dict(zip(DASHES, ("solid", "dash", "dashdot", "dot"), strict=True))
_SYMBOLS = dict(zip(MARKERS, ("circle", "square", "triangle-up", "diamond"), strict=True))
_MOST_TICKS = 6
_SUBS = ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
INK, PAPER = "#000000", "#ffffff"
"""Colours of text and background, which the page replaces by those of its style, light or dark."""
_WIDE = 8
"""Ratio of values beyond which their axis is logarithmic."""
_LEAST_GAP = 0.001
"""Percent at which a gap of 0 is drawn on a logarithmic axis."""


def curves_figure(
    curves: Sequence[Curve], x_title: str, y_title: str, end: float, dotted: Curve | None = None
) -> Figure:
    """Step curves of shares over a logarithmic axis, level to its end.

    Parameters
    ----------
    curves : step curves, one per name, with shares from 0 to 1
    x_title, y_title : of the axes, with units
    end : where every curve is continued to
    dotted : one more curve for reference
    """
    names = [curve.name for curve in curves]
    colour, dash = colours(names), dashes(names)
    first = min((curve.xs[0] for curve in curves if curve.xs), default=end)
    data = [_steps(curve, first, end, colour[curve.name], _DASHES[dash[curve.name]]) for curve in curves]
    if dotted is not None:
        data.append(_steps(dotted, first, end, INK, "dot"))
    layout = base_layout(x_title, y_title)
    layout["xaxis"].update(logarithmic([first, end, *(x for curve in curves for x in curve.xs)]))
    layout["yaxis"].update(tickformat=".0%", range=[0, 1.03])
    return {"data": data, "layout": layout}


def _steps(curve: Curve, first: float, end: float, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": curve.name,
        "line": {"shape": "hv", "color": colour, "dash": dash},
        "x": [min([first, *curve.xs[:1]]), *curve.xs, max([end, *curve.xs[-1:]])],
        "y": [0, *curve.ys, *(curve.ys[-1:] or [0])],
        "hovertemplate": "%{y:.1%} at %{x:.3g}",
    }


def gaps_figure(by_method: MappingABC[str, Sequence[float]]) -> Figure:
    """Boxes with a dot per run over a logarithmic axis of percent."""
    colour = colours([*by_method])
    data = [
        {
            "type": "box",
            "name": name,
            "orientation": "h",
            "x": [max(100 * gap, _LEAST_GAP) for gap in some],
            "boxpoints": "all",
            "jitter": 0.5,
            "pointpos": 0,
            "marker": {"size": 3, "opacity": 0.6},
            "line": {"color": colour[name], "width": 1.2},
            "showlegend": False,
            "hovertemplate": "%{x:.3g} %",
        }
        for name, some in by_method.items()
    ]
    layout = base_layout("gap to the optimum [%]", "")
    shares = [max(100 * gap, _LEAST_GAP) for some in by_method.values() for gap in some]
    layout["xaxis"].update(logarithmic(shares), tickangle=0)
    layout["yaxis"].update(autorange="reversed")
    layout["height"] = 140 + 36 * len(by_method)
    return {"data": data, "layout": layout}


def convergence_figure(
    runs: Sequence[Convergence], label: str, scale: float, optimum: float | None = None
) -> Figure:
    """Values as full lines, bounds as dashed ones; a click on a name hides the runs of a method.

    Parameters
    ----------
    runs : each with the curves of its value and its bound, in seconds
    label : of the values' axis, with its unit
    scale : shown units per unit of the curves
    optimum : drawn as a line across, where it is known
    """
    names = list(dict.fromkeys(run.name for run in runs))
    colour, markers_of = colours(names), markers(names)
    seen, data = set(), []
    for run in runs:
        for curve, dash, what in ((run.value, "solid", "value"), (run.bound, "dash", "bound")):
            if not curve.xs:
                continue
            first = run.name not in seen
            seen.add(run.name)
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": run.name,
                    "legendgroup": run.name,
                    "marker": {"size": 5, "symbol": _SYMBOLS[markers_of[run.name]]},
                    "showlegend": first,
                    "line": {"shape": "hv", "color": colour[run.name], "dash": dash},
                    "x": [*curve.xs, max(run.seconds, curve.xs[-1])],
                    "y": [scale * y for y in (*curve.ys, curve.ys[-1])],
                    "hovertemplate": f"{what} %{{y:.4g}} at %{{x:.3g}} s",
                }
            )
    layout = base_layout("search time [s]", label)
    curves = [curve for run in runs for curve in (run.value, run.bound)]
    times = [x for curve in curves for x in curve.xs] + [run.seconds for run in runs]
    layout["xaxis"].update(spread(times, {}))
    layout["yaxis"].update(spread([scale * y for curve in curves for y in curve.ys], {"tickformat": "~s"}))
    if optimum is not None:
        layout["shapes"] = [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": scale * optimum,
                "y1": scale * optimum,
                "line": {"color": INK, "width": 1, "dash": "dot"},
            }
        ]
    return {"data": data, "layout": layout}


def spread(values: Sequence[float], ticks: dict[str, Any]) -> dict[str, Any]:
    """A logarithmic axis with these ticks where values lie far apart, a plain one where they do not."""
    if values and max(values) > _WIDE * min(values) > 0:
        return {**logarithmic(values), **ticks}
    return {"exponentformat": "SI"}


def logarithmic(values: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis for these values, with as many round numbers as a phone has room for."""
    known = [value for value in values if value > 0]
    if not known:
        return {"type": "log"}
    low, high = min(known) / 1.6, max(known) * 1.6
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for subs in _SUBS:
        ticks = [sub * 10.0**power for power in powers for sub in subs if low <= sub * 10.0**power <= high]
        if len(ticks) <= _MOST_TICKS:
            break
    ticks = ticks[:: -(-len(ticks) // _MOST_TICKS) or 1]
    return {"type": "log", "tickmode": "array", "tickvals": ticks, "tickformat": "~g"}


SECONDS: dict[str, Any] = {"tickformat": "~s", "ticksuffix": "s", "nticks": 8}
"""An axis of seconds, whose numbers have their unit."""
_STANDOFF = 10  # pixels between an axis's numbers and its title
_CORNER = 4  # between an axis and its numbers, so that those of two axes do not meet where both begin


def base_layout(x_title: str, y_title: str) -> dict[str, Any]:
    """What all plots have in common, with titles of both axes; the page's script adds the colours of its
    style, in which `INK` and `PAPER` stand for text and background.
    """
    axis = {"zeroline": False, "automargin": True, "ticklabelstandoff": _CORNER}
    return {
        "xaxis": {**axis, "title": {"text": x_title, "standoff": _STANDOFF}},
        "yaxis": {**axis, "title": {"text": y_title, "standoff": _STANDOFF}},
        "font": {"size": 13},
        "margin": {"l": 70, "r": 20, "t": 34, "b": 55},
        "legend": {"orientation": "v"},
        "height": 420,
        "hovermode": "closest",
    }
