"""A whole model on paper: time of each kind of layer beside its limits, and the kinds below the roofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.plots.style import INK, PALETTE, canvas, logarithmic, logarithmic_quantities, save
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.layer_kinds import OTHERS
from tilewright.report.records.mapping.model_roofline import KindRow, Roofs, kind_rows, roofs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_CLOSE, _NAMED = 2.5, 0.02
"""Times by which places differ that share a label, and the share of a phase's time that has a name."""


def plot_model(document: ResultDocument, engine: Engine, path: Path) -> None:
    """Draw the kinds of layers of all phases; raises ``OutputError`` where the file cannot be written."""
    save(lambda: _draw(document, engine), path)


def _draw(document: ResultDocument, engine: Engine) -> Figure:
    rows = _named(kind_rows(document, engine), document)
    below = roofs(rows, engine)
    figure, axes = canvas(1 if below is None else 2, max(2.8, 0.9 + 0.19 * len(rows)))
    _times(axes[0], rows, engine)
    if below is not None:
        _roofs(axes[1], rows, below)
    runs = "" if document.phases is None else f", {document.phases.text}"
    figure.suptitle(f"{document.model}{runs} on {engine.name}", fontsize=8, wrap=True)
    return figure


def _named(rows: Sequence[KindRow], document: ResultDocument) -> list[KindRow]:
    """Rows by their kinds, or as one where no layer's name tells a kind: by the only layer's name."""
    if any(row.kind != OTHERS for row in rows):
        return [*rows]
    name = document.layers[0].name if len(document.layers) == 1 else "all layers"
    return [replace(row, kind=name) for row in rows]


def _times(axis: Axes, rows: Sequence[KindRow], engine: Engine) -> None:
    """A bar per phase and kind, with a mark at each limit."""
    places, phases = range(len(rows)), [*dict.fromkeys(row.phase for row in rows)]
    colours = [PALETTE[phases.index(row.phase)] for row in rows]
    axis.barh(places, [row.seconds for row in rows], color=colours, height=0.7)
    limits = (
        ("PEs", "|", [row.compute_seconds for row in rows]),
        (engine.levels[0].name, "D", [row.transfer_seconds for row in rows]),
    )
    for name, marker, seconds in limits:
        look: dict[str, Any] = {
            "markerfacecolor": "none",
            "color": INK,
            "markersize": 4 if marker == "D" else 9,
        }
        known = [(second, place) for second, place in zip(seconds, places, strict=True) if second]
        axis.plot([s for s, _ in known], [p for _, p in known], marker, label=f"limit of {name}", **look)
    axis.set_yticks(places, [f"{row.phase} {row.kind}".strip() for row in rows])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.grid(visible=False, axis="y")
    logarithmic_quantities(axis.xaxis, "time of all runs", "s")
    axis.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def _roofs(axis: Axes, rows: Sequence[KindRow], below: Roofs) -> None:
    """Operations per cycle over those per byte that must cross the outermost ports."""
    axis.plot(below.ends, below.heights, color=INK, linewidth=1.2)
    places = [*zip(rows, below.reach, below.rates, strict=True)]
    for index, phase in enumerate(dict.fromkeys(row.phase for row in rows)):
        own = [(row, x, y) for row, x, y in places if row.phase == phase]
        sizes = [12 + 160 * row.share for row, _, _ in own]
        xs, ys = [x for _, x, _ in own], [y for _, _, y in own]
        axis.scatter(xs, ys, sizes, color=PALETTE[index], alpha=0.7, label=phase)
    axis.set_xscale("log")
    axis.set_yscale("log")
    for (x, y), names in _labels(places).items():
        text, on_roof = "\n".join(names), x > below.ends[1]
        where: dict[str, Any] = {"xytext": (0, 8), "ha": "center", "va": "bottom"}
        if not on_roof:  # below the slope
            where = {"xytext": (7, -3), "ha": "left", "va": "top"}
        axis.annotate(text, (x, y), textcoords="offset points", fontsize=6, **where)
    axis.set_ylim(top=6 * below.heights[-1])  # room for what stands on the roof
    logarithmic(axis)
    axis.set_xlabel("operations per byte")
    logarithmic_quantities(axis.yaxis, "operations per cycle", "")
    if any(row.phase for row in rows):
        axis.legend(fontsize=6.5, loc="lower right")


def _labels(places: Sequence[tuple[KindRow, float, float]]) -> dict[tuple[float, float], list[str]]:
    """Names of the kinds that take a phase's time, at one place for all that stand close together."""
    labels: dict[tuple[float, float], list[str]] = {}
    for row, x, y in sorted(places, key=lambda place: -place[0].share):
        close = [
            at for at in labels if max(x / at[0], at[0] / x) < _CLOSE and max(y / at[1], at[1] / y) < _CLOSE
        ]
        names = labels.setdefault(close[0] if close else (x, y), [])
        if row.share >= _NAMED and row.kind not in names:
            names.append(row.kind)
    return labels
