"""A terminal's picture of a command: ``python docs/tools/recording.py FILE.svg COMMAND …``.

The result as a terminal of 80 columns shows it, with its colours, below the command itself; the picture needs
nothing from the network.  Progress, which goes to stderr, is left out.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

COLUMNS = 80
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def shown_on_a_terminal(command: list[str]) -> str:
    """What a command prints to a terminal, with its escapes; raises ``CalledProcessError`` where it fails."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": "60", "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as running:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return b"".join(parts).decode().replace("\r\n", "\n")


def recording(command: list[str]) -> str:
    """The picture as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {shlex.join(command)}", style="bold"), highlight=False)
    console.print(Text.from_ansi(shown_on_a_terminal(command).rstrip("\n")), highlight=False)
    svg = console.export_svg(
        title="tilewright",
        theme=SVG_EXPORT_THEME,
        code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT),
        unique_id="recording",
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(recording(sys.argv[2:]), encoding="utf-8")
