"""A schedule from its document as text: a line of time per sub-accelerator, and every layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from string import ascii_lowercase, ascii_uppercase

from rich.console import RenderableType
from rich.text import Text

from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PlacementRecord,
    ScheduleDocument,
)
from tilewright.report.text.quantities import count_text, energy_text
from tilewright.report.text.scheduling.herald.tables import codesign_views, schedule_views
from tilewright.report.text.tables import listing

_CELLS = 64  # of a line of time
_ROWS = 40  # layers that are shown where not all are asked for
_IDLE, _OTHER = ".", "#"
_MARKS = ascii_lowercase + ascii_uppercase

_COLUMNS: Sequence[tuple[tuple[str, str], Callable[[PlacementRecord], str]]] = (
    (("layer", "left"), lambda row: row.task),
    (("on", "left"), lambda row: row.engine if row.layout == row.engine else f"{row.engine}/{row.layout}"),
    (("fetch", "right"), lambda row: count_text(row.fetch_start)),
    (("start", "right"), lambda row: count_text(row.start)),
    (("end", "right"), lambda row: count_text(row.end)),
    (("energy", "right"), lambda row: energy_text(row.energy_pj)),
    (("memory", "right"), lambda row: f"{count_text(row.memory_bytes)} B"),
)


def document_views(
    document: ScheduleDocument | CodesignDocument, where: str, patterns: Sequence[str] = (), *, full: bool
) -> list[RenderableType]:
    """Everything that a document of ``schedule`` or ``codesign`` says, as its verb shows it and more.

    Parameters
    ----------
    patterns : of the layers that are listed, by layer or task name; all where there is none
    full : list all of them, however many they are

    Raises
    ------
    InputError : for a pattern that no layer has
    """
    if isinstance(document, CodesignDocument):
        views = codesign_views(document, document.wall_s)
        if document.best is None:
            return views
        return [*views, "", *document_views(document.best, where, patterns, full=full)]
    views = schedule_views(document, document.wall_s)
    rows = document.schedule or []
    if not document.complete:
        views += [Text("the search was still running when this was written", "yellow")]
    if not rows:
        return views
    views += ["", *time_lines(rows, [sub.name for sub in document.system.sub_accelerators])]
    chosen = [row for row in rows if not patterns or any(_named(row, pattern) for pattern in patterns)]
    if not chosen:
        hint = did_you_mean(patterns[0], [row.layer for row in rows])
        raise InputError(where, "--layers", f"no layer {patterns[0]!r}{hint}")
    shown = chosen if full else chosen[:_ROWS]
    views += ["", placements_table(shown)]
    if len(shown) < len(chosen):
        views += [Text(f"and {len(chosen) - len(shown)} more layers, -v shows them")]
    return views


def placements_table(rows: Sequence[PlacementRecord]) -> RenderableType:
    """A row per layer, by start."""
    titles = [title for title, _ in _COLUMNS]
    return listing(titles, [[cell(row) for _, cell in _COLUMNS] for row in rows])


def time_lines(rows: Sequence[PlacementRecord], engines: Sequence[str]) -> list[RenderableType]:
    """A line of time per sub-accelerator: in every cell the run's network that takes the most of it.

    Parameters
    ----------
    rows : all layers of a schedule
    engines : names, in the sequence of the lines
    """
    last = max(row.end for row in rows)
    if last < 1:
        return []
    networks = [*dict.fromkeys(_network(row) for row in rows)]
    marks = {name: _MARKS[i] if i < len(_MARKS) else _OTHER for i, name in enumerate(networks)}
    width = max(map(len, engines))
    lines: list[RenderableType] = []
    for engine in engines:
        cells = _cells([row for row in rows if row.engine == engine], last, marks)
        lines.append(Text(f"{engine:{width}}  {cells}"))
    legend = ", ".join(f"{marks[name]} {name}" for name in networks)
    return [*lines, Text(f"{'':{width}}  0 to {count_text(last)} cycles; {legend}; {_IDLE} idle", "dim")]


def _cells(rows: Sequence[PlacementRecord], last: int, marks: dict[str, str]) -> str:
    """One mark per cell; times are multiplied by the number of cells, so that edges are whole."""
    busy: list[Counter[str]] = [Counter() for _ in range(_CELLS)]
    for row in rows:
        start, end = max(0, row.start) * _CELLS, row.end * _CELLS
        for cell in range(start // last, min(_CELLS, -(-end // last))):
            taken = min(end, (cell + 1) * last) - max(start, cell * last)
            busy[cell][marks[_network(row)]] += taken
    for taken_by in busy:
        taken_by[_IDLE] = last - taken_by.total()
    return "".join(max(share, key=lambda mark: share[mark]) for share in busy)


def _network(row: PlacementRecord) -> str:
    return row.instance.rsplit("/", 1)[0]


def _named(row: PlacementRecord, pattern: str) -> bool:
    return fnmatchcase(row.layer, pattern) or fnmatchcase(row.task, pattern)
