"""Tables and texts as lines and as HTML, without control characters of what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
"""Columns of a table that does not go to a terminal."""
LEAST_WIDTH = 40
"""Columns of any table; a narrower terminal breaks the lines itself."""

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"  # all but tab and newline
_INVISIBLE = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"  # separators, and what turns text around
UNSAFE = re.compile(f"[{_CONTROLS}{_INVISIBLE}\ud800-\udfff]")
"""Characters that do something to a terminal."""

_PICTURES = 0x2400


def cleaned(text: str) -> str:
    """The text with a visible sign for every control character but tab and newline."""
    return UNSAFE.sub(_sign, text)


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 0x7F:
        return "\u2421"
    return chr(_PICTURES + code) if code < 0x20 else "\ufffd"


def make_console(**options: Any) -> Console:
    """A console of this program: no markup, and no control characters of what it is given."""
    from rich.console import Console
    from rich.segment import Segment

    class Cleaned(Console):
        def render(self, *args: Any, **kwargs: Any) -> Iterable[Segment]:
            for segment in super().render(*args, **kwargs):
                # Characters that do something are not printable, and most texts have none of those.
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(cleaned(segment.text), segment.style)

    # A console that writes to a string shows nothing by itself, in a notebook neither.
    console = Cleaned(highlight=False, markup=False, emoji=False, force_jupyter=False, **options)
    if console.width < LEAST_WIDTH:
        console.width = LEAST_WIDTH
    return console


def rendered_lines(
    renderables: Iterable[Any], width: int = WIDTH, *, is_terminal: bool = False, no_color: bool = True
) -> list[str]:
    """Lines without the spaces that pad them at the right.

    Parameters
    ----------
    renderables : what Rich can print
    is_terminal : whether the lines carry the escapes of a terminal's styles
    """
    from io import StringIO

    stream = StringIO()
    buffer = make_console(file=stream, width=width, force_terminal=is_terminal, no_color=no_color)
    for renderable in renderables:
        buffer.print(renderable)
    return [line.rstrip(" ") for line in stream.getvalue().split("\n")[:-1]]


def rendered_html(renderables: Iterable[Any], width: int = 100) -> str:
    """A fragment of HTML: preformatted text with the styles inline."""
    from io import StringIO

    console = make_console(file=StringIO(), width=width, record=True, force_terminal=True)
    for renderable in renderables:
        console.print(renderable)
    return console.export_html(inline_styles=True, code_format=_FRAGMENT)


_FRAGMENT = '<pre class="tilewright" style="line-height:1.25;overflow-x:auto"><code>{code}</code></pre>'
