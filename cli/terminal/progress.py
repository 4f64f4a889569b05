"""Progress on stderr: a live display on a terminal, plain lines elsewhere, the same lines in a log file."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.live import Listener, LiveDocument
from tilewright.cli.terminal.console import SteadyStream, standard
from tilewright.cli.terminal.lines import HEADINGS, ProgressItem, answer_set_lines, done_line, point_line
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import TracePoint
from tilewright.foundation.disk import check_writable
from tilewright.foundation.errors import InputError, OutputError
from tilewright.report.records.mapping.document import LayerRecord
from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.text.mapping.effort import effort_lines
from tilewright.report.text.rendering import cleaned

if TYPE_CHECKING:
    from tilewright.workloads.selection import SelectedLayer

_QUIET_SECONDS = 1.0  # between two lines that only raise the bound


class Progress(Listener):
    """A listener that shows the events; subclasses differ in how they show them."""

    def begin(self, live: LiveDocument[Any]) -> None:
        subject = live.subject
        self.head(subject.head)
        for note in subject.notes:
            self.note(note)
        if subject.task is not None:
            self.task(ProgressItem(1, 1, *subject.task))

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        detail = f"{layer.operator.kind} {shape_text(layer.operator)}"
        self.task(ProgressItem(index, total, layer.name, detail))

    def answered(self, index: int, part: Any, is_open: bool) -> None:
        self.done(part)

    def end(self, answer: Any) -> None:
        self.close()

    def head(self, text: str) -> None:
        """What the whole call is about."""
        raise NotImplementedError

    def task(self, task: ProgressItem) -> None:
        """A search begins."""
        raise NotImplementedError

    def done(self, layer: LayerRecord) -> None:
        """A search ended."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing more will come; may be called repeatedly."""
        raise NotImplementedError


class PlainProgress(Progress):
    """Lines on a stream; moves of the bound alone at most once a second."""

    def __init__(self, stream: SteadyStream, objective: Objective, *, every: bool = False) -> None:
        self._stream = stream
        self._objective = objective
        self._every = every
        self._last = 0.0

    def head(self, text: str) -> None:
        self._print(text)
        self._print(HEADINGS)

    def task(self, task: ProgressItem) -> None:
        place = f"[{task.index}/{task.total}] " if task.total > 1 else ""
        self._print(f"{place}{task.title}: {task.detail}")
        self._last = time.monotonic()

    def point(self, point: TracePoint) -> None:
        now = time.monotonic()
        if not point.improved and not self._every and now - self._last < _QUIET_SECONDS:
            return
        self._last = now
        self._print(point_line(self._objective, point))

    def phase(self, text: str) -> None:
        self._print(f"  {text} …")

    def done(self, layer: LayerRecord) -> None:
        self._print(done_line(self._objective, layer))
        for line in answer_set_lines(layer):
            self._print(f"  {line}")
        if layer.message:
            self._print(f"  {layer.message}")
        for line in effort_lines(layer.effort) if self._every and isinstance(layer, LayerRecord) else ():
            self._print(f"  {line}")

    def note(self, text: str) -> None:
        self._print(f"tilewright: {text}")

    def close(self) -> None:
        self._stream.flush()

    def _print(self, text: str) -> None:
        self._stream.write(cleaned(text) + "\n")
        self._stream.flush()


def make_progress(
    objective: Objective,
    stack: ExitStack,
    *,
    quiet: bool,
    verbose: bool,
    log: Path | None,
    streams_to_terminal: bool = False,
) -> list[Progress]:
    """What the flags ask for; ``stack`` closes it.

    Parameters
    ----------
    streams_to_terminal : whether results appear on the same terminal meanwhile, which a live display
        would disturb

    Raises
    ------
    InputError : for a log that cannot be written
    """
    parts: list[Progress] = []
    if log is not None:
        parts.append(PlainProgress(_opened_log(log, stack), objective, every=verbose))
    if not quiet:
        if _is_live() and not streams_to_terminal:
            from tilewright.cli.terminal.live import LiveProgress

            parts.append(LiveProgress(objective, every=verbose))
        else:
            parts.append(PlainProgress(SteadyStream(sys.stderr), objective, every=verbose))
    for part in parts:
        stack.callback(part.close)
    return parts


def _opened_log(path: Path, stack: ExitStack) -> SteadyStream:
    """A log that loses its lines rather than the search where the disk is full, and says so at the end."""
    check_writable(path)
    try:
        stream = path.open("w", encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        raise InputError(str(OutputError(path, error)), None, "expected a file for progress") from None
    steady = SteadyStream(stream)

    def close() -> None:
        steady.flush()
        try:
            stream.close()
        except OSError as error:
            steady.failure = steady.failure or error
        if steady.failure is not None:
            standard.logs.append(OutputError(path, steady.failure))

    stack.callback(close)
    return steady


def _is_live() -> bool:
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    from rich.console import Console

    return not Console(stderr=True).is_dumb_terminal
