"""Shapes that several figures share: bars in groups, lines, points, and printed numbers beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from tilewright.report.plots.style import colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = "#222222"
"""Of numbers that the paper prints."""


def grouped_bars(
    axis: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    printed: Mapping[str, Sequence[float]] | None = None,
    *,
    log: bool = False,
) -> None:
    """Bars side by side for every group; a dash over a bar is the paper's number.

    Parameters
    ----------
    groups : along the axis
    series : heights by name, one for each group; what is no number has no bar
    printed : of the same names, the paper's numbers
    log : whether heights are logarithmic
    """
    width = 0.8 / max(1, len(series))
    palette = colours(list(series))
    labelled = False
    for place, (name, heights) in enumerate(series.items()):
        left = [group - 0.4 + (place + 0.5) * width for group in range(len(groups))]
        shown = [height if isfinite(height) else 0 for height in heights]
        axis.bar(left, shown, 0.92 * width, color=palette[name], label=name)
        for centre, value in zip(left, (printed or {}).get(name, ()), strict=False):
            if isfinite(value):
                axis.hlines(
                    value,
                    centre - 0.55 * width,
                    centre + 0.55 * width,
                    color=PRINTED,
                    linewidth=2.0,
                    label="" if labelled else "printed in the paper",
                )
                labelled = True
    axis.set_xticks(range(len(groups)), groups, rotation=30 if sum(map(len, groups)) > 70 else 0)
    axis.grid(visible=False, axis="x")
    if log:
        axis.set_yscale("log")


def legend(axis: Axes, columns: int = 3) -> None:
    """A legend above the axes."""
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)


def lines(
    axis: Axes, xs: Sequence[float], series: Mapping[str, Sequence[float]], *, marker: str = "o"
) -> None:
    """A line for every name over the same places; what is no number is left out."""
    palette = colours(list(series))
    for name, ys in series.items():
        known = [(x, y) for x, y in zip(xs, ys, strict=False) if isfinite(y)]
        axis.plot(
            [x for x, _ in known],
            [y for _, y in known],
            marker=marker,
            markersize=4,
            color=palette[name],
            label=name,
        )
