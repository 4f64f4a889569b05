"""The work of ``tilewright explore``: explore, report progress, and write the results."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tilewright.api.mapping.exploration import ExplorationDocument, ExploreRequest, answered
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.console import error_line, note_line, show, tell, write
from tilewright.cli.terminal.saving import kept
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.foundation.disk import check_writable, suffix_error
from tilewright.report.records.files import json_text
from tilewright.report.text.mapping.explore import explore_csv
from tilewright.solvers.mapping.explore.cells import Reported
from tilewright.workloads.selection import SelectedLayer

_QUIET_SECONDS = 1.0
"""Between two lines of progress."""


@dataclass(frozen=True)
class ExploreOutput:
    """Where results go.

    Parameters
    ----------
    form : what goes to standard output
    """

    form: str
    out: Path | None
    plot: Path | None
    report: Path | None
    quiet: bool
    verbose: bool


class _Lines:
    """A line now and then of how far the exploration is."""

    def __init__(self, *, every: bool) -> None:
        self._every = every
        self._cells = 0
        self._last = time.monotonic()

    def goal(self, number: int, total: int, designs: int) -> None:
        if total > 1:
            tell(f"[{number}/{total}] {designs} designs")

    def reported(self, layer: SelectedLayer, design: int, reported: Reported, left: int) -> None:
        self._cells += 1
        now = time.monotonic()
        failed = reported.status == "error"
        if failed or self._every or now - self._last >= _QUIET_SECONDS:
            self._last = now
            failure = f": {reported.message}" if failed else ""
            tell(f"{self._cells} searches, {left} designs left ({layer.name} {reported.status}{failure})")


def run_explore(request: ExploreRequest, output: ExploreOutput) -> int:
    """Carry out a request; returns the exit code."""
    _check(output)
    with graceful_stop() as stop:
        watcher = None if output.quiet else _Lines(every=output.verbose)
        document = answered(request, stop, call.limit_from(request.seconds), watcher)
        interrupted = stop.is_set()
    failures = [] if document.unsaved is None else [str(document.unsaved)]
    if output.out is not None:
        with kept(failures):
            document.save(output.out)
    if output.plot is not None:
        from tilewright.report.plots.explore import plot_exploration

        with kept(failures):
            plot_exploration(document.record, output.plot)
    if output.report is not None:
        from tilewright.report.html.mapping.explore import write_explore_report

        with kept(failures):
            write_explore_report(output.report, document.record, command.text)
    _show(document, output.form)
    for failure in failures:
        error_line(failure)
    if failures:
        return Exit.ERROR
    code = _exit(document, interrupted=interrupted)
    if output.quiet and code:
        counts = ", ".join(f"{count} {status}" for status, count in document.record.totals.statuses.items())
        why = next((design.message for design in document.record.designs if design.message), "")
        note_line(f"no best design: {counts}" + (f" ({why})" if why else ""))
    return code


def _check(output: ExploreOutput) -> None:
    """Raise ``InputError`` for files that could not be written, before anything is searched."""
    if output.out is not None:
        if output.out.suffix.lower() not in (".json", ".csv"):
            raise suffix_error(output.out, (".json", ".csv"))
        check_writable(output.out)
    if output.plot is not None:
        from tilewright.report.plots.style import check_plot_file

        check_plot_file(output.plot)
    if output.report is not None:
        from tilewright.report.html.page import check_report

        check_report(output.report)


def _show(found: ExplorationDocument, form: str) -> None:
    match form:
        case "json":
            write(json_text(found.to_dict()))
        case "csv":
            write(explore_csv(found.record))
        case _:
            show(*found.views())


def _exit(found: ExplorationDocument, *, interrupted: bool) -> int:
    record = found.record
    if interrupted and not record.complete:
        return Exit.INTERRUPTED
    if record.best is not None:
        return Exit.OK
    statuses = set(record.totals.statuses)
    return Exit.INFEASIBLE if statuses <= {"infeasible", "refused"} else Exit.LIMIT
