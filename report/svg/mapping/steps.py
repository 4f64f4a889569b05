"""Data on the move: which tile of each tensor the first steps bring, and which stay."""

from __future__ import annotations

from tilewright.report.records.mapping.picture import MoveShown, Picture, StepShown
from tilewright.report.svg.canvas import INK, LINE, PAPER, SOFT, Canvas, Panel
from tilewright.report.svg.mapping.nest import WIDTH, tensor_colours
from tilewright.report.text.quantities import bytes_text

_CELLS = 16
"""Tiles that are drawn one by one."""
_STRIP = 120


def step_panels(picture: Picture) -> list[Panel]:
    """A panel per step."""
    return [_step(picture, index, step) for index, step in enumerate(picture.steps)]


def _step(picture: Picture, number: int, step: StepShown) -> Panel:
    canvas = Canvas(f"step {number + 1} of {picture.rounds}: tiles that move, and tiles that stay")
    canvas.group(step=number)
    indices = ", ".join(f"{dim} {index + 1}/{trips}" for dim, index, trips in step.indices)
    canvas.text((0, 14), f"Step {number + 1}", bold=True, size=14)
    canvas.text((72, 14), f"of {picture.rounds:,}", SOFT)
    top = 20.0
    if indices:
        canvas.text((0, top + 13), indices, SOFT)
        top += 18
    colours = tensor_colours([move.tensor for move in step.moves])
    for move in step.moves:
        top = _move(canvas, move, colours[move.tensor], top)
    return canvas.finished(WIDTH, top + 2)


def _move(canvas: Canvas, move: MoveShown, colour: str, top: float) -> float:
    canvas.rectangle((0, top + 3, 5, 16), colour, colour)
    label = f"{move.tensor} to {move.level}" if not move.is_output else f"{move.tensor} in {move.level}"
    canvas.text((10, top + 15), label)
    left = WIDTH - _STRIP - 135.0
    wide = _STRIP / move.count
    if move.count <= _CELLS:
        for cell in range(move.count):
            fill = colour if cell == move.index else PAPER
            canvas.rectangle((left + cell * wide, top + 4, wide - 1.5, 13), fill, LINE)
    else:
        canvas.rectangle((left, top + 4, _STRIP, 13), PAPER, LINE)
        canvas.rectangle((left + move.index * wide, top + 4, max(wide, 3), 13), colour, INK)
    size = bytes_text(move.elements, move.bits)
    if move.is_new:
        text, fill = f"{'+' if move.is_output else '↓'} {size}", INK
    else:
        text, fill = "stays", SOFT
    place = (left + _STRIP + 10, top + 15)
    tile = {"tensor": move.tensor, "elements": move.elements}
    canvas.text(place, text, fill, bold=move.is_new, **tile, new=int(move.is_new))  # type: ignore[arg-type]
    return top + 22
