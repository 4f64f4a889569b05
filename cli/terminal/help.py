"""The help of the program itself: drawn as that of its verbs, without Rich, whose import takes longer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap

from tilewright.cli.terminal.beginning import LEAST_WIDTH

Row = tuple[Sequence[str], str]
"""What is explained, in columns, and a line that explains it."""

_BOLD, _NAME, _FRAME = "1", "1;36", "2"  # of terminals: bold, bold cyan, dim
_EDGES = "╭─╮│╰╯"
_PLAIN = "+-+|++"


class HelpText:
    """Lines of a help as wide as the terminal, with styles where it shows them."""

    def __init__(self) -> None:
        self._width = max(LEAST_WIDTH, shutil.get_terminal_size().columns)
        self._styled = _is_styled()
        self._edges = _EDGES if _can_show(_EDGES) else _PLAIN
        self._lines: list[str] = []

    def paragraph(self, text: str, *, bold: bool = False) -> None:
        """A text between empty lines."""
        wrapped = wrap(text, self._width - 2)
        self._lines += ["", *(" " + self._style(line, _BOLD if bold else "") for line in wrapped)]

    def panel(self, title: str, rows: Iterable[Row]) -> None:
        """A frame with a row for each thing."""
        rows = list(rows)
        upper_left, flat, upper_right, side, lower_left, lower_right = tuple(self._edges)
        columns = [
            max(len(name) for name in names) for names in zip(*(names for names, _ in rows), strict=True)
        ]
        left = sum(columns) + 2 * len(columns)
        inner = self._width - 4
        frame = self._style(side, _FRAME)
        head = f"{upper_left}{flat} {title} "
        self._lines.append(self._style(head + flat * (self._width - len(head) - 1) + upper_right, _FRAME))
        for names, text in rows:
            padded = "  ".join(name.ljust(width) for name, width in zip(names, columns, strict=True)) + "  "
            for number, line in enumerate(wrap(text, max(16, inner - left)) or [""]):
                name = " " * left if number else self._style(padded, _NAME)
                self._lines.append(f"{frame} {name}{line.ljust(inner - left)} {frame}")
        self._lines.append(self._style(lower_left + flat * (self._width - 2) + lower_right, _FRAME))

    def gap(self) -> None:
        """An empty line."""
        self._lines.append("")

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def _style(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if code and self._styled else text


def _is_styled() -> bool:
    if sys.stdout is None or "NO_COLOR" in os.environ or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeError:
        return False
    return True
