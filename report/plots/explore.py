"""Design spaces on paper: a heat map of two axes, and the front of value and cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.report.plots.style import PALETTE, canvas, readable_on, save
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.text.mapping.explore import figure_of
from tilewright.report.text.mapping.explore_grid import Grid, design_grid, value_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MANY = 12
"""Rows or columns beyond which cells carry no text."""
_WIDE = 8
"""Ratio of values from which on round numbers of decades are enough of them."""


def plot_exploration(document: ExploreDocument, path: Path) -> None:
    """Draw a design space; raises ``OutputError`` where the file cannot be written.

    Colours are logarithmic.  A design without a value has the colour of its bound, hatched: its value is at
    least that.  The best design has a frame.
    """
    save(lambda: _draw(document), path)


def _draw(document: ExploreDocument) -> Figure:
    grid = design_grid(document)
    has_front = document.front is not None
    height = max(2.2, 0.9 + 0.34 * len(grid.rows))
    figure, axes = canvas(1, height + 2.8 if has_front else height, rows=2 if has_front else 1)
    _heat_map(axes[0], document, grid)
    if has_front:
        _front(axes[1], document)
    return figure


def _heat_map(axis: Axes, document: ExploreDocument, grid: Grid) -> None:
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    scale, _ = value_scale(document)
    shown = [[cell.value if cell.value is not None else cell.bound for cell in row] for row in grid.cells]
    image = np.array(
        [[np.nan if value is None or value <= 0 else value * scale for value in row] for row in shown]
    )
    axis.grid(False)
    known = image[np.isfinite(image)].tolist()
    if known:
        norm = LogNorm(min(known), max(*known, min(known) * 1.01))
        drawn = axis.imshow(image, cmap="viridis_r", norm=norm, aspect="auto")
        bar = axis.figure.colorbar(drawn, ax=axis)
        bar.set_label(_label(document))
        _plain(bar.ax.yaxis, known)
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            value = cell.value if cell.value is not None else cell.bound
            if value is None:
                continue
            if cell.value is None:
                axis.add_patch(
                    Rectangle(
                        (column - 0.5, row - 0.5),
                        1,
                        1,
                        fill=False,
                        hatch="////",
                        alpha=0.45,
                        edgecolor="white",
                        linewidth=0.0,
                    )
                )
            if cell.is_best:
                frame = Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False, linewidth=2.0)
                frame.set_edgecolor(PALETTE[1])
                axis.add_patch(frame)
            if max(len(grid.rows), len(grid.columns)) <= _MANY:
                text = f"{value * scale:.4g}"
                mark = "" if cell.value is not None else "≥"
                colour = readable_on(drawn.cmap(norm(value * scale)))
                axis.text(column, row, mark + text, ha="center", va="center", fontsize=6.5, color=colour)
    axis.set_xticks(range(len(grid.columns)), grid.columns, rotation=45 if len(grid.columns) > 8 else 0)
    rows = grid.rows if grid.row_title else ()
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xlabel(grid.column_title)
    axis.set_ylabel(grid.row_title)
    folded = f", least over {', '.join(grid.folded)}" if grid.folded else ""
    axis.set_title(f"{document.model} on {document.machine}{folded}")


def _front(axis: Axes, document: ExploreDocument) -> None:
    from matplotlib.ticker import EngFormatter

    front = document.front
    assert front is not None
    chosen = {*front.designs}
    known = [design for design in document.designs if design.value is not None]
    scale, _ = value_scale(document)
    points = [(design.cost or 0, float(design.value or 0) * scale, design.index) for design in known]
    others = [(cost, value) for cost, value, index in points if index not in chosen]
    on_front = sorted((cost, value) for cost, value, index in points if index in chosen)
    if others:
        axis.scatter([x for x, _ in others], [y for _, y in others], s=8, color="#B0B0B0", label="beaten")
    if on_front:
        axis.plot(*zip(*on_front, strict=True), drawstyle="steps-post", color=PALETTE[0], linewidth=1)
        axis.scatter(
            [x for x, _ in on_front], [y for _, y in on_front], s=16, color=PALETTE[0], label="front"
        )
    axis.set_yscale("log")
    _plain(axis.yaxis, [value for _, value, _ in points])
    axis.set_xlabel(f"{front.against} [B]" if front.against == "capacity" else front.against)
    axis.set_ylabel(_label(document))
    axis.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axis.legend()


def _label(document: ExploreDocument) -> str:
    """The objective with its unit."""
    return f"{figure_of(document)} [{value_scale(document)[1]}]"


def _plain(axis: Any, values: Sequence[float]) -> None:
    """Plain numbers on a logarithmic axis: at 1, 2, 3 and 5 of every decade, or evenly on less than one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if values and max(values) < _WIDE * min(values):
        axis.set_major_locator(MaxNLocator(6))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
