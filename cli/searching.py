"""What verbs that search have in common: their flags, the question that is asked, and how the call ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.api.arguments import Budget, SearchRequest
from tilewright.api.live import Listener
from tilewright.api.saving import FileListener, SavedDocument, WrittenAtEnd
from tilewright.cli import options
from tilewright.cli.exits import Exit, reason
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.console import error_line, note_line, show, write
from tilewright.cli.terminal.progress import make_progress
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.stopping import NEVER

if TYPE_CHECKING:
    from tilewright.formulation.objective import Objective
    from tilewright.report.records.claims import ClaimRecord

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """The flags that every such verb has, read.

    Parameters
    ----------
    time_limit : seconds
    form : of the output
    deterministic : for layers only
    """

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
    deterministic: bool = False

    @classmethod
    def read(cls, formats: Sequence[str], given: Mapping[str, Any]) -> SearchFlags:
        """From the parameters of a verb, which have the names of the fields; ``format`` is the form.

        Raises
        ------
        InputError : for a text that cannot be read, with its flag
        """
        read = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        read |= {
            "form": options.parse_choice(given["format"], "--format", formats),
            "time_limit": options.parse_duration(given["time_limit"]),
            "gap": options.parse_gap(given["gap"]),
            "threads": options.parse_threads(given["threads"]),
        }
        return cls(**read)

    def saved(self, known: tuple[str, ...], *pictures: Path | None) -> list[FileListener]:
        """Who keeps the document in the file of ``--out``.

        Parameters
        ----------
        known : formats that the document has
        pictures : drawn at the end

        Raises
        ------
        InputError : for a document, a report or a picture that could not be written
        """
        saved: list[FileListener] = [] if self.out is None else [SavedDocument(self.out, self.form, known)]
        if self.report is not None:
            from tilewright.report.html.page import check_report

            check_report(self.report)
        for path in pictures:
            if path is not None:
                from tilewright.report.plots.style import check_plot_file

                check_plot_file(path)
        return saved

    def drawn(self, *pictures: tuple[Path | None, Callable[[Path, Any], None]]) -> list[FileListener]:
        """Who writes pages and pictures of the whole document, where they were asked for."""
        return [WrittenAtEnd(path, draw) for path, draw in pictures if path is not None]

    def ask(
        self,
        answer: Callable[[SearchRequest], Answer],
        objective: Objective,
        method: str | None,
        listeners: Sequence[Listener],
        warm_starts: Any = (),
        *,
        streams_to_terminal: bool = False,
    ) -> tuple[Answer, bool]:
        """Ask a question, and report its progress on stderr and in the log too.

        Parameters
        ----------
        answer : the question's
        objective : of the figures on the way
        listeners : notified after the progress
        streams_to_terminal : whether results appear on the same terminal meanwhile

        Returns
        -------
        The answer, and whether the user ended the search
        """
        with graceful_stop() as stop, ExitStack() as stack:
            progress = make_progress(
                objective,
                stack,
                quiet=self.quiet,
                verbose=self.verbose,
                log=self.log,
                streams_to_terminal=streams_to_terminal,
            )
            started = call.limit_from(self.time_limit)
            request = SearchRequest(
                method=method,
                budget=Budget(self.time_limit, self.gap, NEVER, self.threads, self.seed, started),
                stop=stop,
                warm_starts=warm_starts,
                deterministic=self.deterministic,
                listeners=(*progress, *listeners),
                tracebacks=self.verbose,
            )
            return answer(request), stop.is_set()

    def exit_code(self, document: ClaimRecord, *, solved: bool) -> Exit:
        """The exit code of a search that has a schedule or none."""
        status = document.status
        proven = solved and (status == "optimal" or not self.require_optimal)
        if self.quiet and (status == "error" or not proven):
            why = reason(status, document.message, solved=solved, gap=document.gap)
            (error_line if status == "error" else note_line)(why)
        if not solved:
            codes = {"infeasible": Exit.INFEASIBLE, "interrupted": Exit.INTERRUPTED, "error": Exit.ERROR}
            return codes.get(status, Exit.LIMIT)
        return Exit.NOT_OPTIMAL if self.require_optimal and status != "optimal" else Exit.OK


class Printed(Listener):
    """Prints the whole document to stdout at the end."""

    def __init__(self, form: str) -> None:
        self._form = form

    def end(self, answer: Any) -> None:
        if self._form == "table":
            show(*answer.views(call.elapsed))
        else:
            write(answer.to_text(self._form))


def failed(listeners: Sequence[FileListener], others: Sequence[str] = ()) -> bool:
    """Whether a file could not be written; each is one line on stderr.

    Parameters
    ----------
    others : failures that no listener has
    """
    failures = [*others, *(failure for listener in listeners for failure in listener.failures.values())]
    for failure in failures:
        error_line(failure)
    return bool(failures)
