"""A page of sections in one file: template, style, script and the plotting library go into it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from tilewright.foundation.disk import check_writable, suffix_error, write_file
from tilewright.foundation.extras import PLOTLY

_FOLDER = "tilewright.report.html"
Row = TypeVar("Row")
Figure = dict[str, Any]
"""Data and layout of a plot, as Plotly reads them."""
MOST_ROWS, MOST_COLUMNS = 16, 32
"""Squares of an array that are drawn."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell of a table.

    Parameters
    ----------
    text : what is shown
    order : what the column is sorted by; ``None`` goes last whatever the direction
    style : a class of the style sheet
    chip : colour of a small square before the text; empty for none
    """

    text: str
    order: float | str | None
    style: str = ""
    chip: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers stand right."""

    title: str
    is_number: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be sorted by every column, and searched.

    Parameters
    ----------
    sortable : whether headings sort; figures that belong together keep their sequence
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[TableCell]]
    note: str = ""
    searchable: bool = False
    sortable: bool = True
    kind: str = field(default="table", init=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where a row has more or fewer cells than there are headings."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: {len(row)} cells under {len(self.columns)} headings")


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, or several under names among which the reader chooses."""

    title: str
    figures: Sequence[tuple[str, Figure]]
    note: str = ""
    kind: str = field(default="plot", init=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """Text that keeps its lines, such as a loop nest."""

    title: str
    text: str
    note: str = ""
    kind: str = field(default="listing", init=False)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Pictures as SVG: some that stay, and steps of which a slider chooses one; on paper all are seen."""

    title: str
    still: Sequence[str]
    steps: Sequence[str]
    note: str = ""
    kind: str = field(default="drawing", init=False)


@dataclass(frozen=True, slots=True)
class Level:
    """A box of a machine's drawing, and the array of what lies inside.

    Parameters
    ----------
    facts : what stands in the box
    array : sizes of the array's axes with their names; empty where there is one instance
    network : what stands beside the array
    """

    name: str
    facts: Sequence[str]
    array: Sequence[tuple[str, int]] = ()
    network: Sequence[str] = ()

    @property
    def sizes(self) -> str:
        """The array in words, such as ``12 y by 14 x``."""
        return " by ".join(f"{size} {name}" for name, size in self.array)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of squares that show the array; a large one is cut."""
        *outer, (_, columns) = self.array
        rows = math.prod(size for _, size in outer)
        return min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine from the outside in."""

    title: str
    levels: Sequence[Level]
    note: str = ""
    kind: str = field(default="machine", init=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """What can be unfolded: a line, and what is behind it."""

    title: str
    summary: str
    parts: Sequence[Table | Listing | Drawing]


@dataclass(frozen=True, slots=True)
class Details:
    """Entries that are folded, unless there is only one."""

    title: str
    entries: Sequence[Entry]
    note: str = ""
    kind: str = field(default="details", init=False)


Section = Table | Plot | Listing | Machine | Details
LONG = 60
"""Rows beyond which a table scrolls in a box of its own; no shorter one does."""


def filled(
    title: str,
    columns: Sequence[tuple[Column, Callable[[Row], TableCell]]],
    rows: Iterable[Row],
    note: str = "",
    *,
    searchable: bool = False,
) -> Table:
    """A table whose headings and cells come from one list: each column with what it shows of a row.

    Parameters
    ----------
    title : above the table
    columns : headings, each with the cell that it shows of a row
    rows : whatever the cells are made of
    note : a sentence below the title
    searchable : whether a field filters the rows
    """
    body = [[cell(row) for _, cell in columns] for row in rows]
    return Table(title, [column for column, _ in columns], body, note, searchable=searchable)


def text_cell(text: str, style: str = "", chip: str = "") -> TableCell:
    """A cell that is sorted by its text."""
    return TableCell(text, text, style, chip)


def number_cell(text: str, order: float | None, style: str = "") -> TableCell:
    """A cell that is sorted by its number."""
    return TableCell(text, order, style)


def check_report(path: Path) -> None:
    """Raise ``InputError`` where a report could not be written, before anything is computed."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise suffix_error(path, (".html", ".htm"))
    check_writable(path)
    _libraries()


def figures_table(title: str, rows: Iterable[tuple[str, str]], note: str = "") -> Table:
    """A table of names and figures."""
    columns = [Column("figure"), Column("value", True)]
    cells = [[text_cell(name), number_cell(text, None)] for name, text in rows]
    return Table(title, columns, cells, note, sortable=False)


def write_page(
    path: Path, title: str, facts: Sequence[str], sections: Sequence[Section], command: str = ""
) -> None:
    """Write a report; raises ``OutputError`` where the file cannot be written.

    Parameters
    ----------
    facts : what stands below the title
    command : the command line that made it, if one did
    """
    check_report(path)
    write_file(path, render_page(title, facts, sections, command))


def render_page(title: str, facts: Sequence[str], sections: Sequence[Section], command: str = "") -> str:
    """The report as text.

    Parameters
    ----------
    title : of the page
    facts : short texts below the title
    sections : in their order on the page
    command : the call that writes this report again; empty for none
    """
    jinja2, plotly = _libraries()
    folder = files(_FOLDER)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    numbered = [(f"section-{index}", section) for index, section in enumerate(sections)]
    figures = {
        name: [figure for _, figure in section.figures]
        for name, section in numbered
        if isinstance(section, Plot)
    }
    return str(
        template.render(
            title=title,
            facts=facts,
            command=command,
            long=LONG,
            sections=numbered,
            figures=figures,
            style=(folder / "page.css").read_text(encoding="utf-8"),
            script=(folder / "page.js").read_text(encoding="utf-8"),
            plotly=plotly.offline.get_plotlyjs() if figures else "",
        )
    )


def _libraries() -> tuple[Any, Any]:
    try:
        import jinja2
        import plotly.offline
    except ImportError:
        raise PLOTLY.missing("--report") from None
    return jinja2, plotly
