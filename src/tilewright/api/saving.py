"""Listeners that write files: the document while it grows, and what is drawn of it at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright.api.live import Listener, LiveDocument
from tilewright.foundation.disk import check_writable, is_stream, write_file
from tilewright.foundation.errors import OutputError
from tilewright.report.records.files import FORMATS, output_format
from tilewright.solvers.background import Background, failure_text

_PAUSE = 0.5
_SHARE = 0.05
"""Of the time, at most, that writing takes."""


class FileListener(Listener):
    """Writes files; where that fails the search goes on, and what it finds still reaches the other listeners.

    Attributes
    ----------
    failures : by file, why it could not be written in the end
    """

    def __init__(self) -> None:
        self.failures: dict[Path, str] = {}

    def write(self, path: Path, text: str) -> None:
        """Write a file whole, and keep the failure."""
        with self.keeping(path):
            write_file(path, text)

    @contextmanager
    def keeping(self, path: Path) -> Iterator[None]:
        """Keep the failure of what writes a file inside; a success ends an earlier one."""
        try:
            yield
        except OutputError as error:
            self.failures[path] = str(error)
        else:
            self.failures.pop(path, None)


class WrittenAtEnd(FileListener):
    """Draws a picture or writes a page of the whole document.

    Parameters
    ----------
    draw : what writes a file of an answer; raises ``OutputError``
    """

    def __init__(self, path: Path, draw: Callable[[Path, Any], None]) -> None:
        super().__init__()
        self._path = path
        self._draw = draw

    def end(self, answer: Any) -> None:
        with self.keeping(self._path):
            self._draw(self._path, answer)


class SavedDocument(FileListener):
    """A file that always holds the document so far, so that a killed search loses nothing.

    A part is written as soon as it is there.  A document without parts is written whenever it has changed, in
    a thread of its own and not too often.

    Parameters
    ----------
    path : a device or pipe gets the whole document alone
    form : the format of a file whose suffix does not determine it
    known : formats that the document has

    Raises
    ------
    InputError : for another suffix, or a file that cannot be written to
    """

    def __init__(self, path: Path, form: str = "", known: tuple[str, ...] = FORMATS) -> None:
        super().__init__()
        self._path = path
        self._form = output_format(path, form, known)
        check_writable(path)
        self._grows = not is_stream(path)
        self._live: LiveDocument[Any] | None = None
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._writing = threading.Lock()

    def begin(self, live: LiveDocument[Any]) -> None:
        self._live = live
        if not self._grows:
            return
        if live.subject.in_parts:
            self._save()
        else:
            Background(self._work, "saving").start()

    def part(self, index: int, part: Any) -> None:
        if self._grows:
            self._save()

    def changed(self) -> None:
        self._changed.set()

    def end(self, answer: Any) -> None:
        """Write the whole document; nothing is written after it."""
        self._ended.set()
        self._changed.set()
        text = answer.to_text(self._form)
        with self._writing:
            self.write(self._path, text)

    def _save(self) -> None:
        text = self._text()
        with self._writing:
            if not self._ended.is_set():
                self.write(self._path, text)

    def _text(self) -> str:
        assert self._live is not None
        text: str = self._live.so_far().to_text(self._form)
        return text

    def _work(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            if self._ended.is_set():
                return
            try:
                self._save()
            except Exception as failure:  # the search goes on, and so does saving
                with self._writing:
                    if self._ended.is_set():
                        return
                    reason = failure_text(failure)
                    self.failures[self._path] = f"{self._path}: cannot be kept up to date: {reason}"
                self._changed.set()  # the document may have changed while it was read
            self._ended.wait(max(_PAUSE, (time.monotonic() - began) / _SHARE))
