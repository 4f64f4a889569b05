"""What documents of machines have in common, those of one model and those of many: their files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Generic, TypeVar

from tilewright.api.display import Displayed
from tilewright.foundation.disk import check_writable, suffix_error, write_file
from tilewright.report.records.files import json_text
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.records.mapping.sweep import SweepDocument

Record = TypeVar("Record", ExploreDocument, SweepDocument)


class DesignsDocument(Displayed, Generic[Record]):
    """A document that machines were searched for; subclasses say what its table, picture and page show.

    Parameters
    ----------
    record : the document's content
    where : what errors call it
    """

    def __init__(self, record: Record, where: str = "document") -> None:
        self.record: Record = record
        self.where = where

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for is there and proven."""
        return self.record.complete

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data: what ``tilewright explore --format json`` prints."""
        return self.record.to_data()

    def to_text(self, form: str = "json") -> str:
        """The document as a file holds it.

        Parameters
        ----------
        form : ``json``, or ``csv`` for its rows
        """
        return self._csv() if form == "csv" else json_text(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document as JSON, or its rows as CSV; raises ``InputError`` for another suffix."""
        path = Path(path)
        form = file_format(path)
        check_writable(path)
        write_file(path, self.to_text(form))

    def save_plot(self, path: str | os.PathLike[str]) -> None:
        """Draw it (the extra ``plots``); raises ``InputError`` for a suffix of no picture."""
        from tilewright.report.plots.style import check_plot_file

        check_plot_file(Path(path))
        self._draw(Path(path))

    def save_report(self, path: str | os.PathLike[str], command: str = "") -> None:
        """Write a page of its figures and a table.

        Parameters
        ----------
        command : the command line that made it, if one did

        Raises
        ------
        InputError : for a file that is no HTML
        """
        from tilewright.report.html.page import check_report

        check_report(Path(path))
        self._write_page(Path(path), command)

    def _csv(self) -> str:
        raise NotImplementedError

    def _draw(self, path: Path) -> None:
        raise NotImplementedError

    def _write_page(self, path: Path, command: str) -> None:
        raise NotImplementedError


def file_format(path: Path) -> str:
    """The format that a document's file has by its suffix; raises ``InputError`` for another one."""
    if path.suffix.lower() not in (".json", ".csv"):
        raise suffix_error(path, (".json", ".csv"))
    return path.suffix.lower().removeprefix(".")
