"""What every search for schedules or plans is asked on the command line, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.console import RenderableType

from tilewright.cli import options
from tilewright.cli.exits import Exit, reason
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.console import error_line, note_line, show, write
from tilewright.cli.terminal.lines import ProgressItem
from tilewright.cli.terminal.progress import Progress, make_progress
from tilewright.cli.terminal.saving import SavedFile, kept
from tilewright.formulation.limits import Limits
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import TracePoint
from tilewright.foundation.disk import check_writable
from tilewright.report.plots.style import check_plot_file
from tilewright.report.records.files import json_text, output_format
from tilewright.report.records.scheduling.settings import SearchSettingsRecord

FORMATS = ("table", "json")


class Delivered(Protocol):
    """A document of any search."""

    @property
    def status(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def gap(self) -> float | None: ...
    def to_data(self) -> dict[str, Any]:
        """Plain data in the sequence of the contract."""


Found_co = TypeVar("Found_co", covariant=True)


class Searching(Protocol[Found_co]):
    """A search that runs in a thread of its own."""

    def run(self) -> Found_co:
        """Search, and return what was found."""

    def so_far(self) -> Found_co:
        """What has been found."""


Run = TypeVar("Run", bound=Searching[Any])
Kind = TypeVar("Kind", bound=Delivered)


@dataclass(frozen=True)
class Delivery(Generic[Run, Kind]):
    """A search that has ended, with its document written.

    Parameters
    ----------
    failures : why files could not be written
    """

    run: Run
    document: Kind
    failures: list[str]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options that every such verb has, read.

    Parameters
    ----------
    time_limit : seconds
    form : of the output
    """

    objective: str
    time_limit: float | None
    gap: float
    threads: int
    seed: int
    require_optimal: bool
    form: str
    out: Path | None
    report: Path | None
    log: Path | None
    quiet: bool
    verbose: bool

    @classmethod
    def read(
        cls,
        *,
        objective: str,
        time_limit: str | None,
        gap: str,
        threads: int | None,
        seed: int,
        require_optimal: bool,
        form: str,
        out: Path | None,
        report: Path | None,
        log: Path | None,
        quiet: bool,
        verbose: bool,
    ) -> SearchOptions:
        """From the texts of a command line; raises ``InputError`` with the flag."""
        return cls(
            objective=objective,
            time_limit=options.parse_duration(time_limit),
            gap=options.parse_gap(gap),
            threads=options.parse_threads(threads),
            seed=seed,
            require_optimal=require_optimal,
            form=options.parse_choice(form, "--format", FORMATS),
            out=out,
            report=report,
            log=log,
            quiet=quiet,
            verbose=verbose,
        )

    def limits(self, stop: threading.Event) -> Limits:
        """Limits that count from the beginning of the call."""
        started = call.limit_from(self.time_limit)
        return Limits(self.time_limit, self.gap, self.threads, self.seed, stop=stop, started=started)

    def settings(self, method: str) -> SearchSettingsRecord:
        """What a document says of the search."""
        return SearchSettingsRecord(
            method=method, time_limit_s=self.time_limit, gap=self.gap, threads=self.threads, seed=self.seed
        )

    def check_files(self, *plots: Path | None) -> None:
        """Raise ``InputError`` for a document, report or picture that could not be written."""
        if self.out is not None:
            output_format(self.out, self.form, ("json",))
            check_writable(self.out)
        if self.report is not None:
            from tilewright.report.html.page import check_report

            check_report(self.report)
        for path in plots:
            if path is not None:
                check_plot_file(path)

    def progress(self, stack: ExitStack, head: str, title: str, detail: str) -> Progress:
        """The display, begun with a line of its own; ``stack`` closes it.

        Parameters
        ----------
        title, detail : what is searched, and what begins
        """
        goal = parse_objective("cycles" if self.objective == "makespan" else self.objective)
        progress = make_progress(goal, stack, quiet=self.quiet, verbose=self.verbose, log=self.log)
        progress.head(f"{head}, objective {self.objective}")
        progress.task(ProgressItem(1, 1, title, detail))
        return progress

    def carry_out(
        self,
        progress: Progress,
        begin: Callable[[Callable[[TracePoint], None]], Run],
        document_of: Callable[[Run, Any, bool], Kind],
        views: Callable[[Kind, float], Iterable[RenderableType]],
    ) -> Delivery[Run, Kind]:
        """Search, keep the document up to date on the way, and write it at the end.

        Parameters
        ----------
        begin : makes the search from the listener of better answers and bounds
        document_of : the document of a search and its result, and whether the search has ended
        views : what stdout shows of the document
        """

        def reported(point: TracePoint) -> None:
            progress.point(point)
            saved.changed()

        run = begin(reported)
        saved = SavedFile(self.out, lambda: json_text(document_of(run, run.so_far(), False).to_data()))
        document = document_of(run, run.run(), True)
        text = json_text(document.to_data())
        saved.end(text)
        if self.form == "json":
            write(text)
        else:
            show(*views(document, call.elapsed))
        return Delivery(run, document, [] if saved.failure is None else [saved.failure])

    def draw(self, failures: list[str], path: Path | None, picture: Callable[[Path], None]) -> None:
        """Draw a picture if one was asked for; where that fails, its line joins the others."""
        if path is not None:
            with kept(failures):
                picture(path)

    def exit_code(self, document: Delivered, failures: Sequence[str], *, solved: bool) -> Exit:
        """The exit code of a search that has a schedule or none; reports unwritable files."""
        status = document.status
        proven = solved and (status == "optimal" or not self.require_optimal)
        if self.quiet and (status == "error" or not proven):
            why = reason(status, document.message, solved=solved, gap=document.gap)
            (error_line if status == "error" else note_line)(why)
        for failure in failures:
            error_line(failure)
        if failures:
            return Exit.ERROR
        if not solved:
            codes = {"infeasible": Exit.INFEASIBLE, "interrupted": Exit.INTERRUPTED, "error": Exit.ERROR}
            return codes.get(status, Exit.LIMIT)
        return Exit.NOT_OPTIMAL if self.require_optimal and status != "optimal" else Exit.OK
