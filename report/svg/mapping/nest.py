"""The nest of a mapping as nested boxes by level, with every tensor's tile and every loop."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from tilewright.report.records.mapping.picture import BoxShown, LoopShown, Picture, TileShown
from tilewright.report.svg.canvas import INK, LETTER, PAPER, ROW, SIZE, SOFT, Canvas, Panel, text_width
from tilewright.report.text.quantities import bytes_text

WIDTH = 400
"""Of every panel, pixels; a little more than a telephone's page, on which it shrinks to fit."""
_TURNED = 18  # pixels from line to line
_INSET = 9  # of a box in another
_PADDING = 7
TENSORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Of tensors, by their place among all; names say the same."""


def tensor_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for every tensor."""
    return {name: TENSORS[index % len(TENSORS)] for index, name in enumerate(dict.fromkeys(names))}


def nest_panel(picture: Picture) -> Panel:
    """The panel of the nest."""
    canvas = Canvas(
        f"loop nest of {picture.name} on {picture.machine}: levels as boxes, with tiles and loops"
    )
    canvas.text((0, 14), "Nest", bold=True, size=14)
    canvas.text((48, 14), "levels, tiles of one instance, loops", SOFT)
    drawing = _Nest(canvas, tensor_colours(_tensors(picture.boxes)))
    bottom = drawing.items(picture.boxes, 1, 24, WIDTH - 2, 0)
    return canvas.finished(WIDTH, bottom + 4)


def _tensors(items: Sequence[BoxShown | LoopShown | str]) -> list[str]:
    names: list[str] = []
    for item in items:
        if isinstance(item, BoxShown):
            names += [tile.tensor for tile in item.tiles] + _tensors(item.inside)
    return names


class _Nest:
    """Draws items below each other; every method gives the height that the next one begins at."""

    def __init__(self, canvas: Canvas, colours: dict[str, str]) -> None:
        self._canvas = canvas
        self._colours = colours

    def items(
        self, items: Sequence[BoxShown | LoopShown | str], left: float, top: float, width: float, depth: int
    ) -> float:
        for item in items:
            if isinstance(item, BoxShown):
                top = self._box(item, left, top, width, depth) + 4
            elif isinstance(item, LoopShown):
                top = self._loop(item, left, top, width)
            else:
                top = self._lines(item, left, top, width, SOFT)
        return top

    def _box(self, box: BoxShown, left: float, top: float, width: float, depth: int) -> float:
        fill = (ROW, PAPER)[depth % 2]
        data = {"turn": box.title} if box.is_turn else {"level": box.title}
        outline = self._canvas.rectangle(
            (left, top, width, 0), fill, INK, "5 3" if box.is_turn else "", **data
        )
        inner = left + _INSET
        room = width - _INSET - 4
        below = self._tiles(box, inner, top + 5, room)
        below = self.items(box.inside, inner, below + 2, room, depth + 1)
        outline.set("height", f"{below + 3 - top:.1f}")
        return below + 3

    def _tiles(self, box: BoxShown, left: float, top: float, room: float) -> float:
        """The title and the tiles behind it, in as many rows as they need."""
        across = left + self._canvas.text((left, top + 13), box.title, bold=True) + 12
        for tile in box.tiles:
            label = f"{tile.tensor} {bytes_text(tile.elements, tile.bits)}"
            wide = text_width(label) + 2 * _PADDING + 3
            if across + wide > left + room and across > left + 14:
                across, top = left + 14, top + 23
            self._tile(tile, box.title, label, (across, top, wide))
            across += wide + 5
        return top + 21

    def _tile(self, tile: TileShown, level: str, label: str, box: tuple[float, float, float]) -> None:
        left, top, wide = box
        colour = self._colours[tile.tensor]
        self._canvas.rectangle((left, top, wide, 18), PAPER, colour)
        self._canvas.rectangle((left, top, 5, 18), colour, colour)
        data: dict[str, Any] = {"tensor": tile.tensor, "in": level, "elements": tile.elements}
        self._canvas.text((left + _PADDING + 3, top + 13), label, bits=tile.bits, **data)

    def _loop(self, loop: LoopShown, left: float, top: float, width: float) -> float:
        rest = f", last {loop.last}" if loop.last != loop.tile else ""
        tile = f" (tile {loop.tile}{rest})" if loop.tile > 1 or rest else ""
        trips = "" if loop.trips is None else f" in {loop.trips:,}"
        site = f" on {loop.axis}" if loop.axis else ""
        text = f"{'par' if loop.axis else 'for'} {loop.dim}{trips}{tile}{site}"
        data: dict[str, Any] = {"dim": loop.dim, "trips": loop.trips, "tile": loop.tile, "axis": loop.axis}
        if loop.axis:
            for square in range(3):
                self._canvas.rectangle((left + 5 * square, top + 6, 4, 7), INK, "none")
        else:
            self._canvas.text((left + 2, top + 13), "↻", SOFT)
        return self._lines(text, left + 19, top, width - 19, INK, **data)

    def _lines(self, text: str, left: float, top: float, width: float, fill: str, **data: Any) -> float:
        letters = max(8, int((width - 4) / (LETTER * SIZE)))
        for index, line in enumerate(textwrap.wrap(text, letters, subsequent_indent="  ")):
            self._canvas.text((left, top + 13), line, fill, **(data if index == 0 else {}))
            top += _TURNED
        return top
