"""What a sweep gives: a best machine for every point of a model's grid, with curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.mapping.designs_document import DesignsDocument
from tilewright.api.mapping.exploration_document import ExplorationDocument
from tilewright.report.records.mapping.sweep import SweepDocument, sweep_rows

if TYPE_CHECKING:
    from rich.console import RenderableType


class Sweep(DesignsDocument[SweepDocument]):
    """What is known of every point of a model's grid.

    Parameters
    ----------
    record : the document's content
    where : what errors call it
    """

    @cached_property
    def points(self) -> tuple[ExplorationDocument, ...]:
        """The exploration of every point, in the order of the grid."""
        return tuple(ExplorationDocument(point.exploration, self.where) for point in self.record.points)

    def rows(self) -> list[dict[str, Any]]:
        """One row per point: the varied fields, value and bound, seconds and energy, and both limits."""
        return [asdict(row) for row in sweep_rows(self.record)]

    def _csv(self) -> str:
        from tilewright.report.text.mapping.sweep import sweep_csv

        return sweep_csv(self.record)

    def _draw(self, path: Path) -> None:
        from tilewright.report.plots.sweep import plot_sweep

        plot_sweep(self.record, path)

    def _write_page(self, path: Path, command: str) -> None:
        from tilewright.report.html.mapping.sweep import write_sweep_report

        write_sweep_report(path, self.record, command)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """A table of the points, and where the limit changes."""
        from tilewright.report.text.mapping.sweep import sweep_views

        return sweep_views(self.record)

    def __repr__(self) -> str:
        return f"Sweep({self.record.model!r}, {len(self.record.points)} points)"
