"""Which tiles stay where: turns from left to right, levels with their shared stores from top to bottom."""

from __future__ import annotations

import textwrap
from itertools import groupby

from tilewright.report.records.mapping.lifetimes import Lifetimes, RoomShown, StoreShown
from tilewright.report.svg.canvas import INK, LETTER, LINE, PAPER, ROW, SIZE, SOFT, Canvas, Panel
from tilewright.report.svg.mapping.nest import WIDTH
from tilewright.report.text.quantities import bytes_text, percent_text

PASSED_ON, RESIDENT, OWN = "#4b5966", "#a9b4be", "#e2e7ec"
"""Dark, middle and light, which also a grey print tells apart."""
_WIDEST = 44.0
_ROOM = 34.0
_BAR = 11.0


def lifetimes_panel(lifetimes: Lifetimes) -> Panel:
    """The panel of a fused mapping's turns."""
    title = f"turns of {lifetimes.name} on {lifetimes.machine}: tiles that stay, and how full levels are"
    return _Turns(Canvas(title), lifetimes).panel()


class _Turns:
    """Draws from top to bottom; every method gives the height that the next one begins at."""

    def __init__(self, canvas: Canvas, lifetimes: Lifetimes) -> None:
        self._canvas = canvas
        self._lifetimes = lifetimes
        self._wide = min(_WIDEST, (WIDTH - 2) / len(lifetimes.turns))

    def panel(self) -> Panel:
        number = sum(turns for _, turns in self._lifetimes.layers)
        shown = len(self._lifetimes.turns)
        self._canvas.text((0, 14), "Turns", bold=True, size=14)
        what = f"all {number}" if shown == number else f"{shown} of {number:,}, some left out at |"
        self._canvas.text((56, 14), what, SOFT)
        top = self._heads(24)
        for room in self._lifetimes.rooms:
            top = self._room(room, top + 6)
        return self._canvas.finished(WIDTH, self._legend(top + 6) + 4)

    def _left(self, column: int) -> float:
        return 1 + column * self._wide

    def _cell(self, columns: tuple[int, int], top: float, text: str, fill: str = PAPER) -> None:
        """A box over some turns with a short text in it."""
        left, right = self._left(columns[0]), self._left(columns[1] + 1)
        self._canvas.rectangle((left, top, right - left, 16), fill, LINE)
        if len(text) * LETTER * SIZE < right - left:
            self._canvas.text((left + (right - left - len(text) * LETTER * SIZE) / 2, top + 12), text)

    def _heads(self, top: float) -> float:
        """Trips of the loops, and whose turn it is."""
        turns = self._lifetimes.turns
        names = dict.fromkeys(name for turn in turns for name, _, _ in turn.loops)
        for name in names:
            trips = max(trip for turn in turns for own, _, trip in turn.loops if own == name)
            self._canvas.text((0, top + 12), f"for {name}, {trips:,} trips", loop=name, trips=trips)
            top += 17
            at = [next((index for own, index, _ in turn.loops if own == name), None) for turn in turns]
            # A trip of an outer loop ends the trip of an inner one, even where that has the same number.
            outer = [
                tuple(index for own, index, _ in turn.loops[: _place(turn.loops, name)]) for turn in turns
            ]
            for (index, _), columns in groupby(
                range(len(turns)), key=lambda column: (at[column], outer[column])
            ):
                own = [*columns]
                if index is not None:
                    self._cell((own[0], own[-1]), top, str(index + 1))
            top += 20
        self._canvas.text((0, top + 12), "turn of layer")
        top += 17
        for column, turn in enumerate(turns):
            self._cell((column, column), top, str(turn.layer + 1), ROW)
            if not turn.follows:
                left = self._left(column)
                self._canvas.line((left, top - 3, left, top + 19), INK)
                self._canvas.rectangle((left - 1, top - 3, 2, 22), INK, "none", skips=column)
        return top + 18

    def _room(self, room: RoomShown, top: float) -> float:
        """How full a level is in every turn, then its shared stores."""
        most = max(sum(held) for held in room.held)
        text = f"at most {bytes_text(most, 1)}"
        if room.most:
            text += f" of {bytes_text(room.most, 1)}, {percent_text(most / room.most, 0)}"
        across = self._canvas.text((0, top + 13), room.name, bold=True) + 10
        self._canvas.text((across, top + 13), text, SOFT, level=room.name, held=most, room=room.most)
        top += 18
        whole = room.most or most or 1
        for column, held in enumerate(room.held):
            left, bottom = self._left(column), top + _ROOM
            for bits, fill in zip(held, (PASSED_ON, RESIDENT, OWN), strict=True):
                high = _ROOM * bits / whole
                if high >= 0.3:
                    self._canvas.rectangle((left, bottom - high, self._wide, high), fill, LINE)
                bottom -= high
        self._canvas.rectangle((1, top, self._left(len(room.held)) - 1, _ROOM), "none", INK)
        top += _ROOM + 3
        for store in room.stores:
            top = self._store(store, room.name, top)
        return top

    def _store(self, store: StoreShown, level: str, top: float) -> float:
        """A name with its size, and below it a bar for every tile that is shown."""
        what = ", passed on" if store.is_passed_on else ""
        text = f"{store.name} {bytes_text(store.bits, 1)}{what}"
        top = self._lines(text, 0, top, tensor=store.name, bits=store.bits)
        fill = PASSED_ON if store.is_passed_on else RESIDENT
        for first, last in store.stays:
            left, right = self._left(first), self._left(last + 1)
            box = left + 0.75, top + 1, right - left - 1.5, _BAR
            self._canvas.rectangle(box, fill, INK, stay=store.name, level=level, first=first, last=last)
        return top + _BAR + 5

    def _legend(self, top: float) -> float:
        across = 0.0
        for fill, what in ((PASSED_ON, "passed on"), (RESIDENT, "other stays"), (OWN, "own tiles")):
            self._canvas.rectangle((across + 1, top + 3, 12, 11), fill, INK)
            across += 18 + self._canvas.text((across + 18, top + 13), what) + 14
        top += 20
        for place, (layer, number) in enumerate(self._lifetimes.layers):
            top = self._lines(f"{place + 1}  {layer}, {number:,} turn{'s' * (number != 1)}", 0, top)
        return top

    def _lines(self, text: str, left: float, top: float, **data: object) -> float:
        letters = int((WIDTH - left - 4) / (LETTER * SIZE))
        for index, line in enumerate(textwrap.wrap(text, letters, subsequent_indent="   ")):
            self._canvas.text((left, top + 12), line, **(data if index == 0 else {}))  # type: ignore[arg-type]
            top += 16
        return top


def _place(loops: tuple[tuple[str, int, int], ...], name: str) -> int:
    return next((place for place, loop in enumerate(loops) if loop[0] == name), len(loops))
