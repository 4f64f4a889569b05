"""What an exploration gives: the designs of a space, and the best one with its mappings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.mapping.designs_document import DesignsDocument
from tilewright.api.mapping.machine import Machine
from tilewright.api.mapping.result import MappingDocument
from tilewright.foundation.errors import InputError, OutputError
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.text.mapping.explore import explore_csv, explore_views

if TYPE_CHECKING:
    from rich.console import RenderableType


class ExplorationDocument(DesignsDocument[ExploreDocument]):
    """What is known of every design of a space, and the best one with its mappings.

    Parameters
    ----------
    record : the document's content
    where : what errors call it
    unsaved : why proofs are not in the store that was asked for, if so
    """

    def __init__(
        self, record: ExploreDocument, where: str = "document", unsaved: OutputError | None = None
    ) -> None:
        super().__init__(record, where)
        self.unsaved = unsaved

    @property
    def value(self) -> float | int | None:
        """Of the best design; ``None`` where none is known."""
        return None if self.record.best is None else self.record.best.value

    @property
    def bound(self) -> float | int | None:
        """No design of the space has a smaller value."""
        return None if self.record.best is None else self.record.best.bound

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the best design; raises ``InputError`` where none is known."""
        return dict(self._best.fields)

    @property
    def optimal(self) -> bool:
        """Whether the best design is proven to be the best."""
        return self.record.best is not None and self.record.best.optimal

    @cached_property
    def mappings(self) -> MappingDocument:
        """The best design's layers with their mappings; raises ``InputError`` where none is known."""
        return MappingDocument(self._best.result, self.where)

    @property
    def machine(self) -> Machine:
        """The best design; raises ``InputError`` where none is known."""
        return self.mappings.machine

    @property
    def front(self) -> list[dict[str, Any]]:
        """Rows of the designs on the front, in increasing order of cost; empty unless it was asked for."""
        listed = [] if self.record.front is None else self.record.front.designs
        rows = {row["index"]: row for row in self.rows()}
        return [rows[index] for index in listed]

    def rows(self) -> list[dict[str, Any]]:
        """One row per design."""
        return [design.model_dump() for design in self.record.designs]

    def _csv(self) -> str:
        return explore_csv(self.record)

    def _draw(self, path: Path) -> None:
        from tilewright.report.plots.explore import plot_exploration

        plot_exploration(self.record, path)

    def _write_page(self, path: Path, command: str) -> None:
        from tilewright.report.html.mapping.explore import write_explore_report

        write_explore_report(path, self.record, command)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """The best design, how it was proven, and a table of the designs."""
        return explore_views(self.record)

    def __repr__(self) -> str:
        outcome = "nothing found" if self.record.best is None else f"best {self.value} {self.fields}"
        return f"ExplorationDocument({self.record.model!r} on {self.record.machine!r}, {outcome})"

    @property
    def _best(self) -> Any:
        if self.record.best is None:
            raise InputError(self.where, "best", "no design has a value")
        return self.record.best
