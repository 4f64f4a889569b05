"""A file that always holds the document so far, so that a killed search leaves a whole document."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewright.foundation.disk import is_stream, write_file
from tilewright.foundation.errors import OutputError
from tilewright.solvers.background import Background, failure_text

_PAUSE = 0.5
_SHARE = 0.05
"""Of the time, at most, that writing takes."""


@contextmanager
def kept(failures: list[str]) -> Iterator[None]:
    """Write something; where that fails, its line joins the others and the rest continues."""
    try:
        yield
    except OutputError as error:
        failures.append(str(error))


class SavedFile:
    """Writes a document whenever it has changed, in a thread of its own and not too often.

    Parameters
    ----------
    path : ``None`` to write nothing; a device or pipe gets the whole document alone
    text : makes the document so far, from any thread; ``None`` where there is nothing yet

    Attributes
    ----------
    failure : why the file could not be written, or kept up to date, if so
    """

    def __init__(self, path: Path | None, text: Callable[[], str | None]) -> None:
        self.failure: str | None = None
        self._path = path
        self._text = text
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._writing = threading.Lock()
        if path is not None and not is_stream(path):
            Background(self._work, "saving").start()

    def changed(self) -> None:
        """There is something new to write."""
        self._changed.set()

    def end(self, text: str) -> None:
        """Write the whole document; nothing is written after it."""
        self._ended.set()
        self._changed.set()
        if self._path is not None:
            with self._writing:
                self._write(self._path, text)

    def _work(self) -> None:
        assert self._path is not None
        while True:
            self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            if self._ended.is_set():
                return
            try:
                text = self._text()
            except Exception as failure:  # the search continues, and so does saving
                with self._writing:
                    if self._ended.is_set():
                        return
                    self.failure = f"{self._path}: cannot be kept up to date: {failure_text(failure)}"
                self._changed.set()  # the document may have changed while it was read
            else:
                with self._writing:
                    if self._ended.is_set():
                        return
                    if text is not None:
                        self._write(self._path, text)
            self._ended.wait(max(_PAUSE, (time.monotonic() - began) / _SHARE))

    def _write(self, path: Path, text: str) -> None:
        """Write; where that fails the search continues, and what it found still reaches stdout."""
        try:
            write_file(path, text)
            self.failure = None
        except OutputError as error:
            self.failure = str(error)
