"""What ``schedule`` and ``codesign`` share: common options, what follows from them, and the exit codes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import RenderableType

from tilewright.cli.exits import Exit
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.console import error_line, show, write
from tilewright.cli.terminal.lines import ProgressItem
from tilewright.cli.terminal.progress import Progress, make_progress
from tilewright.cli.terminal.saving import SavedFile
from tilewright.formulation.limits import Limits
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.report.plots.style import check_plot_file
from tilewright.report.records.files import json_text, output_format
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    ScheduleDocument,
    ScheduleSettingsRecord,
    objective_name,
)
from tilewright.solvers.scheduling.herald.build import METRIC_OF
from tilewright.workloads.disk import check_writable
from tilewright.workloads.scheduling.workload import Workload

Delivered = TypeVar("Delivered", ScheduleDocument, CodesignDocument)


@dataclass(frozen=True, kw_only=True)
class SchedulingRequest:
    """The options of a command line, read.

    Parameters
    ----------
    workload : as on the command line
    metric : by which mappings of layers are chosen; ``None`` for that of the objective
    time_limit : seconds
    form : of the output
    """

    workload: str
    objective: str
    metric: str | None
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

    @property
    def goal(self) -> ScheduleObjective:
        return ScheduleObjective(self.objective)

    def limits(self, stop: threading.Event) -> Limits:
        """Limits that count from the beginning of the call."""
        started = call.limit_from(self.time_limit)
        return Limits(self.time_limit, self.gap, self.threads, self.seed, stop=stop, started=started)

    def settings(self, method: str) -> ScheduleSettingsRecord:
        """What a document says of the search."""
        return ScheduleSettingsRecord(
            method=method,
            metric=self.metric or METRIC_OF[self.goal],
            time_limit_s=self.time_limit,
            gap=self.gap,
            threads=self.threads,
            seed=self.seed,
        )

    def progress(self, stack: ExitStack, head: str, workload: Workload) -> Progress:
        """The display, begun with a line of its own; ``stack`` closes it."""
        progress = make_progress(
            parse_objective(objective_name(self.goal)),
            stack,
            quiet=self.quiet,
            verbose=self.verbose,
            log=self.log,
        )
        progress.head(head)
        progress.task(ProgressItem(1, 1, workload.name, "costs of layers"))
        return progress

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

    def deliver(
        self,
        document: Delivered,
        saved: SavedFile,
        views: Callable[[Delivered, float], Iterable[RenderableType]],
    ) -> None:
        """Write the whole document to its file, and it or its tables to stdout."""
        text = json_text(document.to_data())
        saved.end(text)
        if self.form == "json":
            write(text)
        else:
            show(*views(document, call.elapsed))

    def exit_code(self, document: Delivered, failures: Sequence[str], *, solved: bool) -> Exit:
        """The exit code of a search that has a schedule or none; tells of files that could not be written."""
        status = document.status
        if self.quiet and status == "error":
            error_line(document.message or "the search failed")
        for failure in failures:
            error_line(failure)
        if failures:
            return Exit.ERROR
        if not solved:
            codes = {"infeasible": Exit.INFEASIBLE, "interrupted": Exit.INTERRUPTED, "error": Exit.ERROR}
            return codes.get(status, Exit.LIMIT)
        return Exit.NOT_OPTIMAL if self.require_optimal and status != "optimal" else Exit.OK
