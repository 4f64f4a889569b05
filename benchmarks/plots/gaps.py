"""Box plots of the gap to the optimum, per method and objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tilewright.benchmarks.curves import gaps, method_order
from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.store import Store
from tilewright.foundation.errors import InputError
from tilewright.report.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINEAR = 0.1
"""Percent below which the axis is linear, so that 0 can be shown."""


def draw(store: Store, rows: Sequence[Row]) -> Figure:
    """One panel per objective; boxes from quartile to quartile, whiskers from end to end, a dot per run."""
    by_objective = gaps(rows)
    if not by_objective:
        raise InputError("--plot", "gaps", "no run has a proven optimum to be measured against")
    names = [
        name for name in method_order(rows) if any(name in by_method for by_method in by_objective.values())
    ]
    figure, axes = style.canvas(len(by_objective), 1.1 + 0.27 * len(names), sharey=True)
    most = max(max(some) for by_method in by_objective.values() for some in by_method.values())
    for axis, (objective, by_method) in zip(axes, by_objective.items(), strict=True):
        _panel(axis, by_method, names, 100 * most)
        axis.set_title(objective)
    return figure


def _panel(axis: Axes, by_method: dict[str, list[float]], names: Sequence[str], most: float) -> None:
    from matplotlib.ticker import FuncFormatter

    colours, source = style.colours(names), np.random.default_rng(0)
    for place, name in enumerate(names):
        percent = 100 * np.array(by_method.get(name, []))
        if not len(percent):
            continue
        axis.boxplot(
            percent,
            positions=[place],
            orientation="horizontal",
            widths=0.6,
            whis=(0, 100),
            showcaps=False,
            patch_artist=True,
            boxprops={"facecolor": colours[name], "alpha": 0.35, "linewidth": 0.8},
            medianprops={"color": "black", "linewidth": 1.4},
            whiskerprops={"color": "#666666"},
        )
        spread = place + source.uniform(-0.2, 0.2, len(percent))
        axis.plot(percent, spread, ".", color=colours[name], markersize=2.5, alpha=0.6)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xscale("symlog", linthresh=_LINEAR)
    ticks = [0.0, *(10.0**power for power in range(-1, 8) if 10.0**power <= 3 * max(most, 1.0))]
    axis.set_xticks(ticks, minor=False)
    axis.set_xticks([], minor=True)
    axis.set_xlim(-0.02, 1.6 * max(most, 1.0))
    axis.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value > 5000 else f"{value:g}")
    )
    axis.set_xlabel("gap to the optimum [%]")
    axis.grid(visible=False, axis="y")
