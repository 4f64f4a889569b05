"""Progress on a terminal, redrawn in place."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from tilewright.cli.terminal.console import SteadyStream
from tilewright.cli.terminal.lines import HEADINGS, ProgressItem, point_line
from tilewright.cli.terminal.progress import Progress
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import TracePoint
from tilewright.report.records.mapping.document import LayerRecord
from tilewright.report.text.mapping.effort import effort_lines
from tilewright.report.text.quantities import gap_text, objective_text, seconds_text
from tilewright.report.text.rendering import make_console
from tilewright.report.text.tables import STYLES

_HISTORY = 6


class LiveProgress(Progress):
    """A display that is redrawn in place; finished layers scroll away above it."""

    def __init__(self, objective: Objective, *, every: bool = False) -> None:
        self._objective = objective
        self._console = make_console(file=SteadyStream(sys.stderr))
        self._every = every
        self._task: ProgressItem | None = None
        self._began = time.monotonic()
        self._points: deque[TracePoint] = deque(maxlen=_HISTORY)
        self._spinner = Spinner("dots")
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def head(self, text: str) -> None:
        self._console.print(text, style="bold")

    def task(self, task: ProgressItem) -> None:
        self._points.clear()
        self._began = time.monotonic()
        self._task = task

    def point(self, point: TracePoint) -> None:
        points = self._points
        if points and not points[-1].improved and not self._every:
            points.pop()  # a line that only raised the bound gives way to the next one
        points.append(point)

    def phase(self, text: str) -> None:
        if self._task is not None:
            self._task = replace(self._task, detail=text)

    def done(self, layer: LayerRecord) -> None:
        task, self._task = self._task, None
        if task is not None and task.total > 1:
            value = "-" if layer.value is None else objective_text(self._objective, layer.value)
            result = "optimal" if layer.status == "optimal" else f"{layer.status} {gap_text(layer.gap)}"
            place = f"{task.index:>{len(str(task.total))}}/{task.total}"
            line = f" {task.title[:30]:30}  {value:>14}  "
            style = STYLES.get(layer.status, "")
            took = f" {seconds_text(layer.wall_s):>9}"
            text = Text.assemble((place, "dim"), line, (f"{result:18}", style), took)
            self._console.print(text, overflow="crop", no_wrap=True)
        if layer.message:
            self.note(f"{layer.name}: {layer.message}")
        for line in effort_lines(layer.effort) if self._every and isinstance(layer, LayerRecord) else ():
            self._console.print(f"  {line}", style="dim")

    def note(self, text: str) -> None:
        self._console.print(f"tilewright: {text}", style="yellow")

    def close(self) -> None:
        self._task = None
        self._live.stop()

    def _render(self) -> RenderableType:
        task = self._task
        if task is None:
            return Text("")
        elapsed = time.monotonic() - self._began
        place = f"{task.index}/{task.total} " if task.total > 1 else ""
        self._spinner.text = Text.assemble(
            (f"{place}{task.title}", "bold"), f"  {task.detail}  ", (seconds_text(elapsed), "cyan")
        )
        lines = [Text(HEADINGS, style="dim", no_wrap=True)]
        for point in list(self._points):
            style = "green" if point.improved else "dim"
            lines.append(Text(point_line(self._objective, point), style=style, no_wrap=True))
        return Group(self._spinner, *lines)
