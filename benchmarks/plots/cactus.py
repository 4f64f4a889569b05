"""Cactus plot: how many runs have come close to the optimum, or to it, by a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.benchmarks.curves import cactus, proof_curve
from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.store import Store
from tilewright.foundation.errors import InputError
from tilewright.report.curves import Curve
from tilewright.report.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(store: Store, rows: Sequence[Row]) -> Figure:
    """Two panels, within 1 % of the proven optimum and at it; time is logarithmic."""
    near, there = cactus(rows, lambda row: row.seconds_1), cactus(rows, lambda row: row.seconds_0)
    proof = proof_curve(rows)
    if not near:
        raise InputError("--plot", "cactus", "no run has a proven optimum to be measured against")
    names = [curve.name for curve in near]
    limit = max(row.time_limit_s or 0.0 for row in rows if row.is_method)
    first = min([*(curve.xs[0] for curve in near if curve.xs), limit]) / 1.3
    figure, axes = style.canvas(2, 3.0 + 0.12 * max(0, len(names) - 12), sharey=True)
    _panel(axes[0], near, names, first, limit, "within 1 % of the optimum")
    _panel(axes[1], there, names, first, limit, "at the optimum")
    if proof is not None:
        _step(axes[1], proof, first, limit, color="black", linestyle=(0, (1, 1)), label="optimum proven")
    for axis in axes:
        style.logarithmic(axis)
    style.percent_axis(axes[0], "runs")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure


def _panel(
    axis: Axes, curves: Sequence[Curve], names: Sequence[str], first: float, limit: float, title: str
) -> None:
    colours, dashes = style.colours(names), style.dashes(names)
    for curve in curves:
        look = {"color": colours[curve.name], "linestyle": dashes[curve.name], "label": curve.name}
        _step(axis, curve, first, limit, **look)
    axis.set_xlabel("time [s]")
    axis.set_title(title)


def _step(axis: Axes, curve: Curve, first: float, limit: float, **look: object) -> None:
    """From nothing up, and level to the end of the limit."""
    begin = min([first, *curve.xs[:1]])
    end = max([limit, *curve.xs[-1:]])
    xs, ys = [begin, *curve.xs, end], [0.0, *curve.ys, *(curve.ys[-1:] or [0.0])]
    axis.plot(xs, ys, drawstyle="steps-post", **look)  # type: ignore[arg-type]
