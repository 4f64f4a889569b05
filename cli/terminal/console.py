"""Where text goes: results to stdout, progress and errors to stderr.

Nothing that comes from a file or a name reaches a terminal as a control character, and a stream that is lost
(closed, full, nobody reads it) ends neither the search nor the files that are to be written.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from tilewright.foundation.errors import OutputError
from tilewright.report.text.rendering import UNSAFE, WIDTH, cleaned, make_console, rendered_lines

if TYPE_CHECKING:
    from rich.console import Console


class _Standard:
    """Standard output of a call: the first failure is kept, and nothing is written after it.

    What libraries print, such as helps, keeps to the same rule.

    Attributes
    ----------
    failure : why standard output was lost, if so
    logs : why logs were lost
    """

    def __init__(self) -> None:
        self.failure: OutputError | None = None
        self.logs: list[OutputError] = []

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A call, whose prints of all kinds are put here."""
        self.failure, self.logs = None, []
        stream = sys.stdout
        if stream is not None:
            sys.stdout = _Printer(stream)
        try:
            yield
        finally:
            sys.stdout = stream

    def put(self, text: str) -> None:
        if self.failure is not None:
            return
        stream = sys.stdout.stream if isinstance(sys.stdout, _Printer) else sys.stdout
        try:
            if stream is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            stream.write(text)
            stream.flush()
        except (OSError, ValueError) as error:
            self.failure = OutputError("standard output", error)
            give_up(stream, 1)


standard = _Standard()


class _Printer:
    """What stands for ``sys.stdout`` during a call; all that is written to it is put.

    Attributes
    ----------
    stream : standard output itself
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"text is expected, not {type(text).__name__}")
        standard.put(text)
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def give_up(stream: TextIO | None, number: int) -> None:
    """Let what is left in a lost stream's buffer, and all that follows, go nowhere."""
    try:
        number = number if stream is None else stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def _escaped(text: str) -> str:
    """The text with control characters as JSON writes them; inside a JSON text it means the same."""
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def results_console() -> Console:
    """For tables on stdout; as wide as the terminal, 80 columns elsewhere."""
    width = None if sys.stdout is not None and sys.stdout.isatty() else WIDTH
    return make_console(file=sys.stdout or sys.__stdout__, width=width)


def rendered(*renderables: Any) -> list[str]:
    """Tables and texts as the lines that stdout shows, without the spaces that pad them at the right."""
    console = results_console()
    return rendered_lines(
        renderables, console.width, is_terminal=console.is_terminal, no_color=console.no_color
    )


def show(*renderables: Any) -> None:
    """Print tables and texts to stdout."""
    standard.put("".join(line + "\n" for line in rendered(*renderables)))


def write(text: str) -> None:
    """Write data or plain text to stdout at once."""
    standard.put(_escaped(text))


def tell(text: str) -> None:
    """Lines on stderr; where that is lost, they are."""
    try:
        if sys.stderr is not None:
            print(cleaned(text), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        give_up(sys.stderr, 2)


def error_line(message: str) -> None:
    """One line on stderr."""
    tell(f"tilewright: error: {' '.join(message.split())}")


def note_line(message: str) -> None:
    """One line on stderr that is no error."""
    tell(f"tilewright: {' '.join(message.split())}")


class SteadyStream:
    """A text stream for progress that loses what cannot be written, instead of failing.

    Attributes
    ----------
    failure : why writing failed, if it did
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.failure: Exception | None = None
        self._stream = stream
        if stream is None:
            self.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))

    def write(self, text: str) -> int:
        """Write; a failure is kept and nothing is written after it."""
        if self.failure is None and self._stream is not None:
            try:
                self._stream.write(text)
            except (OSError, ValueError) as error:
                self.failure = error
        return len(text)

    def flush(self) -> None:
        """Flush; a failure is kept."""
        if self.failure is None and self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self.failure = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
