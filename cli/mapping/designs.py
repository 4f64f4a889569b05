"""How ``explore`` runs and ends: lines of progress, files and the exit code."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tilewright.api.arguments import Budget, SearchRequest
from tilewright.api.live import Listener
from tilewright.api.mapping.designs_document import file_format
from tilewright.api.mapping.exploration_document import ExplorationDocument
from tilewright.api.mapping.sweep_document import Sweep
from tilewright.api.saving import FileListener, WrittenAtEnd
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.console import note_line, tell
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.network_objective import NetworkObjective
from tilewright.formulation.stopping import NEVER
from tilewright.foundation.disk import check_writable, write_file
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.records.mapping.sweep import SweepDocument
from tilewright.report.text.quantities import objective_text, seconds_text
from tilewright.workloads.selection import SelectedLayer

Explored = TypeVar("Explored", ExplorationDocument, Sweep)
Explored_co = TypeVar("Explored_co", covariant=True)


class Question(Protocol[Explored_co]):
    """An exploration or a sweep."""

    def answer(self, request: SearchRequest) -> Explored_co:
        """Search, with the method and the limits of the request."""
        ...


_QUIET_SECONDS = 1.0
"""Between two lines of progress."""


class CellProgress(Listener):
    """Prints from time to time how far the exploration is.

    Parameters
    ----------
    objective : of the network
    layers : all that count, each with how often it does
    seconds : limit of the call; ``None`` without one
    every : whether every search has its line
    """

    def __init__(
        self,
        objective: NetworkObjective,
        layers: Sequence[SelectedLayer],
        seconds: float | None,
        *,
        every: bool,
    ) -> None:
        self._objective = objective
        self._counts = {layer.name: layer.count for layer in layers}
        self._seconds = seconds
        self._every = every
        self._cells = 0
        self._last = self._began = self._goal = time.monotonic()
        self._designs = 0
        self._costs: dict[int, dict[str, tuple[Fraction, int]]] = {}

    def goal(self, number: int, total: int, designs: int) -> None:
        self._designs, self._goal = designs, time.monotonic()
        if number == 1:  # another point of a sweep
            self._costs.clear()
        if total > 1:
            tell(f"[{number}/{total}] {designs} designs")

    def reported(self, layer: SelectedLayer, design: int, reported: Any, left: int) -> None:
        """Count a search; print a line if it failed, if every search has one, or if the last line is old.

        Parameters
        ----------
        layer, design, reported, left : as for `Listener.reported`
        """
        self._cells += 1
        if reported.energy is not None and reported.cycles is not None:
            self._costs.setdefault(design, {})[layer.name] = reported.energy, reported.cycles
        now = time.monotonic()
        failed = reported.status == "error"
        if failed or self._every or now - self._last >= _QUIET_SECONDS:
            self._last = now
            failure = f": {reported.message}" if failed else ""
            parts = [
                f"{self._cells} {'search' if self._cells == 1 else 'searches'}",
                f"{left} {'design' if left == 1 else 'designs'} left",
                *self.best(),
                *self.time_left(now, left),
            ]
            tell(f"{', '.join(parts)} ({layer.name} {reported.status}{failure})")

    def best(self) -> list[str]:
        """The least value of a design of which every layer has a mapping, where there is one."""
        values = [
            self._objective.value((self._counts[name], *cost) for name, cost in costs.items())
            for costs in self._costs.values()
            if costs.keys() >= self._counts.keys()
        ]
        if not values:
            return []
        return [f"best {self._objective} {objective_text(self._objective.layer, float(min(values)))}"]

    def time_left(self, now: float, left: int) -> list[str]:
        """Seconds to the end if designs go on as so far, and no more than the limit leaves."""
        done = self._designs - left
        guesses = [(now - self._goal) / done * left] if done > 0 else []
        if self._seconds is not None:
            guesses.append(max(0.0, self._seconds - (now - self._began)))
        return [f"about {seconds_text(min(guesses))} left"] if guesses else []


def files(out: Path | None, plot: Path | None, report: Path | None) -> list[FileListener]:
    """Who writes the files that were asked for.

    Raises
    ------
    InputError : for a file that could not be written
    """
    listeners: list[FileListener] = []
    if out is not None:
        form = file_format(out)
        check_writable(out)
        listeners.append(WrittenAtEnd(out, lambda path, answer: write_file(path, answer.to_text(form))))
    if plot is not None:
        from tilewright.report.plots.style import check_plot_file

        check_plot_file(plot)
        listeners.append(WrittenAtEnd(plot, lambda path, answer: answer.save_plot(path)))
    if report is not None:
        from tilewright.report.html.page import check_report

        check_report(report)
        listeners.append(WrittenAtEnd(report, lambda path, answer: answer.save_report(path, command.text)))
    return listeners


def explored(
    question: Question[Explored],
    solver: str,
    seconds: float | None,
    gap: float,
    listeners: Sequence[Listener],
) -> tuple[Explored, bool]:
    """The answer, and whether the user ended the search.

    Parameters
    ----------
    question : the machines, the model and the objective; or those of every point of a sweep
    solver : of every layer on every design
    seconds, gap : limits; no time limit where it is ``None``
    listeners : of the live document
    """
    with graceful_stop() as stop:
        budget = Budget(seconds, gap, NEVER, 1, 0, call.limit_from(seconds))
        answer = question.answer(SearchRequest(solver, budget, stop, listeners=listeners))
        return answer, stop.is_set()


def exit_code(record: ExploreDocument, *, interrupted: bool, quiet: bool) -> Exit:
    """The exit code of an exploration; says why there is no best design where no other output does."""
    code = _exit(record, interrupted=interrupted)
    if quiet and code:
        _tell_reason(record)
    return code


def _tell_reason(record: ExploreDocument, where: str = "") -> None:
    """Why there is no best design, in one line; ``where`` is the point of a sweep."""
    counts = ", ".join(f"{count} {status}" for status, count in record.totals.statuses.items())
    why = next((design.message for design in record.designs if design.message), "")
    note_line(f"{where}no best design: {counts}" + (f" ({why})" if why else ""))


def sweep_exit_code(record: SweepDocument, *, interrupted: bool, quiet: bool) -> Exit:
    """The exit code of a sweep, whose points all have a best machine; says which have none, as above."""
    grid = math.prod(len(axis.values) for axis in record.vary)
    code = _sweep_exit(record, grid, interrupted=interrupted)
    if quiet and code:
        for point in record.points:
            if point.exploration.best is None:
                _tell_reason(point.exploration, f"{point.exploration.model}: ")
        if len(record.points) < grid:
            note_line(f"{grid - len(record.points)} of {grid} points were not reached")
    return code


def _sweep_exit(record: SweepDocument, grid: int, *, interrupted: bool) -> Exit:
    if interrupted and not record.complete:
        return Exit.INTERRUPTED
    valued = sum(point.exploration.best is not None for point in record.points)
    if valued == grid:
        return Exit.OK
    codes = {_exit(point.exploration, interrupted=False) for point in record.points}
    return Exit.INFEASIBLE if Exit.INFEASIBLE in codes else Exit.LIMIT


def _exit(record: ExploreDocument, *, interrupted: bool) -> Exit:
    if interrupted and not record.complete:
        return Exit.INTERRUPTED
    if record.best is not None:
        return Exit.OK
    statuses = set(record.totals.statuses)
    return Exit.INFEASIBLE if statuses <= {"infeasible", "refused"} else Exit.LIMIT
