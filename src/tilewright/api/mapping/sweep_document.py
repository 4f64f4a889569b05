"""What a sweep gives: a best machine for every point of a model's grid, with curves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.display import Displayed
from tilewright.api.mapping.exploration_document import ExplorationDocument, file_format
from tilewright.foundation.disk import check_writable, write_file
from tilewright.report.records.files import json_text
from tilewright.report.records.mapping.sweep import SweepDocument, sweep_rows

if TYPE_CHECKING:
    from rich.console import RenderableType


class Sweep(Displayed):
    """What is known of every point of a model's grid.

    Parameters
    ----------
    record : the document's content
    where : what errors call it
    """

    def __init__(self, record: SweepDocument, where: str = "document") -> None:
        self.record = record
        self.where = where

    @cached_property
    def points(self) -> tuple[ExplorationDocument, ...]:
        """The exploration of every point, in the order of the grid."""
        return tuple(ExplorationDocument(point.exploration, self.where) for point in self.record.points)

    @property
    def complete(self) -> bool:
        """Whether every point is there and proven."""
        return self.record.complete

    def rows(self) -> list[dict[str, Any]]:
        """One row per point: the varied fields, value and bound, seconds and energy, and both limits."""
        return [asdict(row) for row in sweep_rows(self.record)]

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data: what ``tilewright explore --format json`` prints."""
        return self.record.to_data()

    def to_text(self, form: str = "json") -> str:
        """The document as a file holds it.

        Parameters
        ----------
        form : ``json``, or ``csv`` for its curves
        """
        from tilewright.report.text.mapping.sweep import sweep_csv

        return sweep_csv(self.record) if form == "csv" else json_text(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document as JSON, or its curves as CSV; raises ``InputError`` for another suffix."""
        path = Path(path)
        form = file_format(path)
        check_writable(path)
        write_file(path, self.to_text(form))

    def save_plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the curves (the extra ``plots``); raises ``InputError`` for a suffix of no picture."""
        from tilewright.report.plots.style import check_plot_file
        from tilewright.report.plots.sweep import plot_sweep

        check_plot_file(Path(path))
        plot_sweep(self.record, Path(path))

    def save_report(self, path: str | os.PathLike[str], command: str = "") -> None:
        """Write a page of curves and a table.

        Parameters
        ----------
        command : the command line that made it, if one did

        Raises
        ------
        InputError : for a file that is no HTML
        """
        from tilewright.report.html.mapping.sweep import write_sweep_report
        from tilewright.report.html.page import check_report

        check_report(Path(path))
        write_sweep_report(Path(path), self.record, command)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """A table of the points, and where the limit changes."""
        from tilewright.report.text.mapping.sweep import sweep_views

        return sweep_views(self.record)

    def __repr__(self) -> str:
        return f"Sweep({self.record.model!r}, {len(self.record.points)} points)"
