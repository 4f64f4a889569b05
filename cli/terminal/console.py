"""Where text goes: results to stdout, progress and errors to stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
"""Columns of a table that does not go to a terminal."""


def results_console() -> Console:
    """For tables on stdout; as wide as the terminal, 80 columns elsewhere."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def rendered(*renderables: Any) -> list[str]:
    """Tables and texts as the lines that stdout shows, without the spaces that pad them at the right."""
    from io import StringIO

    from rich.console import Console

    console = results_console()
    stream = StringIO()
    buffer = Console(
        file=stream,
        width=console.width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=console.is_terminal,
        no_color=console.no_color,
    )
    for renderable in renderables:
        buffer.print(renderable)
    return [line.rstrip(" ") for line in stream.getvalue().splitlines()]


def show(*renderables: Any) -> None:
    """Print tables and texts to stdout."""
    write("".join(line + "\n" for line in rendered(*renderables)))


def write(text: str) -> None:
    """Write to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def error_line(message: str) -> None:
    """One line on stderr."""
    print(f"tilewright: error: {' '.join(message.split())}", file=sys.stderr, flush=True)
