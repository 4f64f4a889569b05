"""Performance profile (Dolan and More) of the time to within 1 % of the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.benchmarks.curves import profile
from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.store import Store
from tilewright.foundation.errors import InputError
from tilewright.report.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(store: Store, rows: Sequence[Row]) -> Figure:
    """The share of problems over the ratio to the fastest method, logarithmic."""
    curves = profile(rows, lambda row: row.seconds_1)
    if not curves:
        raise InputError("--plot", "profile", "no run has a proven optimum to be measured against")
    names = [curve.name for curve in curves]
    colours, dashes = style.colours(names), style.dashes(names)
    end = 1.1 * max((curve.xs[-1] for curve in curves if curve.xs), default=10.0)
    figure, (axis,) = style.canvas(1, 3.2 + 0.12 * max(0, len(names) - 12))
    for curve in curves:
        xs, ys = [1.0, *curve.xs, max(end, 10.0)], [0.0, *curve.ys, *(curve.ys[-1:] or [0.0])]
        look = {"color": colours[curve.name], "linestyle": dashes[curve.name]}
        axis.plot(xs, ys, drawstyle="steps-post", label=curve.name, **look)  # type: ignore[arg-type]
    style.logarithmic(axis)
    axis.set_xlim(1, max(end, 10.0))
    axis.set_xlabel("time to within 1 % of the optimum, as a multiple of the fastest method's")
    style.percent_axis(axis, "problems")
    figure.legend(loc="outside right center")
    return figure
