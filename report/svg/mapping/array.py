"""The arrays of a machine, and what a mapping spreads along each axis."""

from __future__ import annotations

from itertools import groupby

from tilewright.report.records.mapping.picture import AxisShown, Picture
from tilewright.report.svg.canvas import INK, PAPER, SOFT, Canvas, Panel
from tilewright.report.svg.mapping.nest import WIDTH

_MOST = 32
"""Squares along an axis that are drawn one by one."""
_SIDE = 220
_WORKS = "#7f8c99"


def array_panel(picture: Picture) -> Panel | None:
    """The panel of the arrays; ``None`` for a machine without one."""
    if not picture.axes:
        return None
    canvas = Canvas(f"arrays of {picture.machine}, and the loops that {picture.name} spreads along each axis")
    canvas.text((0, 14), "Array", bold=True, size=14)
    canvas.text((56, 14), "full squares work, empty ones do not", SOFT)
    top = 24.0
    for level, axes in groupby(picture.axes, key=lambda axis: axis.level):
        top = _array(canvas, level, [*axes], top)
    return canvas.finished(WIDTH, top)


def _array(canvas: Canvas, level: str, axes: list[AxisShown], top: float) -> float:
    canvas.text((0, top + 13), f"inside {level}", bold=True)
    top += 20
    for axis in axes:
        loops = " · ".join(f"{dim} in {trips}" for dim, trips in axis.loops) or "nothing spread"
        text = f"{axis.name}  {axis.used} of {axis.size}: {loops}"
        canvas.text((10, top + 13), text, axis=axis.name, used=axis.used, of=axis.size)
        top += 18
    *outer, across = axes
    down = outer[-1] if outer else None
    columns, rows = across.size, 1 if down is None else down.size
    used = (across.used, 1 if down is None else down.used)
    if len(axes) > 2:
        canvas.text((10, top + 13), f"one of {' by '.join(str(axis.size) for axis in outer[:-1])}:", SOFT)
        top += 18
    return _squares(canvas, (columns, rows), used, top + 4) + 10


def _squares(canvas: Canvas, size: tuple[int, int], used: tuple[int, int], top: float) -> float:
    """Columns across and rows down; a large array is drawn as one rectangle, with the working part in it."""
    columns, rows = size
    side = min(16.0, _SIDE / max(size))
    if max(size) > _MOST:
        canvas.rectangle((10, top, side * columns, max(side * rows, 6)), PAPER, INK)
        canvas.rectangle((10, top, side * used[0], max(side * used[1], 6)), _WORKS, INK)
        return top + max(side * rows, 6)
    canvas.rectangle((10, top, side * columns, side * rows), PAPER, INK)
    canvas.rectangle((10, top, side * used[0], side * used[1]), _WORKS, INK)
    for column in range(1, columns):
        canvas.line((10 + side * column, top, 10 + side * column, top + side * rows), INK)
    for row in range(1, rows):
        canvas.line((10, top + side * row, 10 + side * columns, top + side * row), INK)
    return top + side * rows
