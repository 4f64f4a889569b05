"""A figure's measurement: its values, and cells that are computed once and kept in one store.

The store is a folder, the one of `studies.figures`: what a page of the manual has measured is not measured
again.  New cells stand in ``papers.sqlite`` there, the others in the file of the study that they belong to.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from studies.answers import AnswerStore, Asked, Reported, timed
from studies.command import Work
from studies.figures import DOCS, LIST, PART, printed_tables
from studies.papers.figure import Row
from tilewright.foundation.yaml_file import read_yaml

APPLICATION: Final = 0x546C5070  # "TlPp", SQLite's application_id
CAPTION = re.compile(r"(\d{4}-\d\d-\d\d), ([\d,]+) s of the\s+processor")
MANUAL_SIZES = {"smoke": "tiny", "short": "short", "full": "full"}
"""Our sizes, and what `studies.figures` calls them."""


class NotMeasuredError(Exception):
    """A cell that is not in the store, where nothing may be computed."""


class OutOfTimeError(Exception):
    """The processor's seconds are used up; what is known is kept."""


@dataclass(frozen=True, slots=True)
class PaperCell:
    """A question: what is measured, and with which values."""

    name: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PaperAnswer:
    """What came of it.

    Parameters
    ----------
    value : anything that JSON has
    """

    status: str
    value: Any = None


@dataclass
class Study:
    """What a figure's `measure` is given.

    Parameters
    ----------
    folder : of the store, for one size
    size : of `SIZES`
    values : of the size, with those that the command line sets
    draw_only : compute nothing
    from_manual : take tables that the manual has from its pages
    limit : seconds of the processor after which no cell begins
    told : called with a line on every finished cell
    """

    folder: Path
    size: str
    values: Mapping[str, Any]
    draw_only: bool = False
    from_manual: bool = False
    limit: float = float("inf")
    told: Callable[[str], None] = lambda line: None
    seconds: float = 0.0
    dates: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    _begun: float = field(default_factory=time.process_time)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def cell(self, name: str, compute: Callable[..., Any], /, **values: Any) -> Any:
        """The value of a cell: known, or computed with the values and kept.

        Raises
        ------
        NotMeasuredError, OutOfTimeError : where it may not be computed
        """
        asked = PaperCell(name, values)
        told = f"{name} {values}"
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(cells_of_papers(self.folder / "papers.sqlite")) as store:
            known = self._kept(store, lambda cell: PaperAnswer("found", compute(**cell.values)), asked, told)
        return known.value

    def cells(self, work: Work[Asked, Reported], file: str, cells: Sequence[Asked]) -> list[Reported]:
        """Cells of another study, from its file of the store; those that it lacks are computed here.

        Raises
        ------
        NotMeasuredError, OutOfTimeError : where they may not be computed
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(work.open_store(self.folder / file)) as store:
            return [self._kept(store, work.compute, cell, f"{cell}") for cell in cells]

    def _kept(
        self,
        store: AnswerStore[Asked, Reported],
        compute: Callable[[Asked], Reported],
        asked: Asked,
        what: str,
    ) -> Reported:
        """A cell's answer, computed where the store lacks it; what it took then counts for the caption."""
        known = store.kept(asked)
        if known is None or known.answer.status == "error":
            self._may(what)
            known = store.put(asked, *timed(compute, asked))
            self.told(f"{what}: {known.answer.status}, {known.seconds:.1f} s")
        self.seconds += known.seconds
        self.dates.add(known.date)
        return known.answer

    def parameters(self, page: str, name: str) -> dict[str, Any]:
        """The values of a table of the manual in this size."""
        entry = read_yaml(LIST)[page][name]
        return {**entry.get("short", {}), **entry.get(MANUAL_SIZES[self.size], {})}

    def manual(self, page: str, name: str, run: Callable[[], str]) -> list[Row]:
        """The rows of a table that the manual has, too.

        Parameters
        ----------
        page, name : of the table
        run : what prints it, from cells that are kept; the page's own table is taken where that is asked for,
            or where nothing may be computed

        Raises
        ------
        NotMeasuredError : where the page has no such table either
        """
        try:
            text = self._page_part(page, name) if self.from_manual else run()
        except NotMeasuredError:
            if not self.draw_only or self.size == "smoke":
                raise
            text = self._page_part(page, name)
        return [row for table in printed_tables(text) for row in read_table(table)]

    def _page_part(self, page: str, name: str) -> str:
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        for part in PART.finditer(text):
            if part[2] == name:
                self.sources.add(page)
                caption = CAPTION.search(part[0])
                if caption is not None:
                    self.dates.add(caption[1])
                    self.seconds += number(caption[2])
                return part[0]
        raise NotMeasuredError(f"{page}.md has no table {name}")

    def _may(self, what: str) -> None:
        if self.draw_only:
            raise NotMeasuredError(what)
        if time.process_time() - self._begun > self.limit:
            raise OutOfTimeError(what)


def cells_of_papers(path: Path) -> AnswerStore[PaperCell, PaperAnswer]:
    """The SQLite file of the cells that belong to no other study.

    Raises
    ------
    InputError : for a file of something else, or one that is damaged
    """
    return AnswerStore(path, PaperAnswer, APPLICATION, "cells of papers")


def read_table(text: str) -> list[Row]:
    """The rows of a Markdown table by the heads of their columns; cells are texts."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
    heads = [head or f"column {place}" for place, head in enumerate(lines[0])]
    return [dict(zip(heads, line, strict=False)) for line in lines[2:]]


def number(text: str) -> float:
    """The first number of a cell; not a number where there is none."""
    for word in (
        text.replace(",", "").replace("%", " ").replace("(", " ").replace(")", " ").replace("*", " ").split()
    ):
        with contextlib.suppress(ValueError):
            return float(word)
    return float("nan")
