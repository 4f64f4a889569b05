"""Progress of a benchmark on stderr: a bar on a terminal, a line per run elsewhere."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Protocol

from tilewright.benchmarks.cells import CellAnswer, Place
from tilewright.benchmarks.run import Counts
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.console import SteadyStream, error_line, note_line, tell
from tilewright.report.text.quantities import seconds_text
from tilewright.report.text.rendering import make_console


class BenchProgress(Protocol):
    """Notified of everything that happens."""

    def note(self, text: str) -> None: ...
    def begin(self, store: str, cells: int, missing: int) -> None: ...
    def done(self, place: Place, answer: CellAnswer) -> None: ...
    def end(self, counts: Counts) -> None: ...


def bench_progress(stack: ExitStack, *, quiet: bool) -> BenchProgress:
    """The progress that fits where stderr goes."""
    if quiet:
        return _Silent()
    return _Bar(stack) if sys.stderr.isatty() else _Lines()


def answer_text(place: Place, answer: CellAnswer) -> str:
    """One run in one line."""
    value = "" if answer.value is None else f" {answer.value:.6g}"
    message = f": {answer.message}" if answer.message and answer.value is None else ""
    return f"{place}: {answer.status}{value} in {seconds_text(answer.wall_s)}{message}"


def _head(store: str, cells: int, missing: int) -> str:
    kept = f", {cells - missing} of them in {store} already" if cells > missing else ""
    return f"{cells} runs{kept}"


def _tail(counts: Counts) -> str:
    parts = [f"{counts.done} runs in {seconds_text(call.elapsed)}"]
    if counts.failed:
        parts.append(f"{counts.failed} failed")
    if counts.missing:
        parts.append(f"{counts.missing} still to come")
    return ", ".join(parts)


class _Silent:
    """Runs that failed or are missing, and nothing else."""

    def note(self, text: str) -> None:
        pass

    def begin(self, store: str, cells: int, missing: int) -> None:
        pass

    def done(self, place: Place, answer: CellAnswer) -> None:
        if answer.status == "error":
            error_line(answer_text(place, answer))

    def end(self, counts: Counts) -> None:
        if counts.missing:
            note_line(f"{counts.missing} runs are missing; the same call continues")


class _Lines:
    """A line per run."""

    def __init__(self) -> None:
        self._count = self._all = 0

    def note(self, text: str) -> None:
        tell(text)

    def begin(self, store: str, cells: int, missing: int) -> None:
        self._all = missing
        self.note(_head(store, cells, missing))

    def done(self, place: Place, answer: CellAnswer) -> None:
        self._count += 1
        self.note(f"[{self._count}/{self._all}] {answer_text(place, answer)}")

    def end(self, counts: Counts) -> None:
        self.note(_tail(counts))


class _Bar:
    """A bar with the last run beside it; runs that failed scroll away above it."""

    def __init__(self, stack: ExitStack) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = make_console(file=SteadyStream(sys.stderr))
        columns = (
            BarColumn(20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        )
        self._bar = stack.enter_context(Progress(*columns, console=console, transient=True))
        self._task = self._bar.add_task("", total=None)

    def note(self, text: str) -> None:
        self._bar.console.print(text)

    def begin(self, store: str, cells: int, missing: int) -> None:
        self.note(_head(store, cells, missing))
        self._bar.update(self._task, total=missing)

    def done(self, place: Place, answer: CellAnswer) -> None:
        if answer.status == "error":
            self.note(answer_text(place, answer))
        self._bar.update(self._task, advance=1, description=str(place))

    def end(self, counts: Counts) -> None:
        self.note(_tail(counts))
