"""Pictures that several figures share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from studies.papers.figure import Data, Row
from studies.papers.pictures import grouped_bars, legend, lines
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND = "bound of {}"
"""The column of what no plan in another column undercuts."""


def where(row: Row) -> str:
    """A group's label: the network and its setting."""
    return f"{row['network']}\n{row['dataflow']}, {row['B/cycle']} B"


def bars(names: Sequence[str], label: str) -> Callable[[Data], Figure]:
    """The picture of columns side by side, a group for every row.

    Parameters
    ----------
    names : of the columns
    label : of the axis
    """

    def drawn(data: Data) -> Figure:
        figure, axes = canvas(1, 3.0)
        series = {name: [row[name] for row in data["rows"]] for name in names}
        grouped_bars(axes[0], [where(row) for row in data["rows"]], series)
        axes[0].tick_params(axis="x", labelrotation=0)
        axes[0].set_ylabel(label)
        legend(axes[0], 7 if sum(map(len, names)) < 60 else 3)
        return figure

    return drawn


def curves(columns: Sequence[str], axis_label: str) -> Callable[[Data], Figure]:
    """The picture of a scaling figure: a line per row, relative to its least, and its bound dashed."""

    def drawn(data: Data) -> Figure:
        figure, axes = canvas(1, 2.8)
        series = {
            row["network"]: [row[column] / min(row[name] for name in columns) for column in columns]
            for row in data["rows"]
        }
        lines(axes[0], list(range(len(columns))), series)
        for line, row in zip(axes[0].get_lines(), data["rows"], strict=False):
            least = min(row[name] for name in columns)
            bounds = [row[BOUND.format(column)] / least for column in columns]
            axes[0].plot(bounds, linestyle="--", color=line.get_color(), label=f"{row['network']}, bound")
        axes[0].set_xticks(range(len(columns)), columns)
        axes[0].set_xlabel(axis_label)
        axes[0].set_ylabel("cycles over the least")
        legend(axes[0], 4)
        return figure

    return drawn
