"""Contests of methods: documents of ``tilewright compare``, read back and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.checked import Check
from tilewright.api.display import Displayed
from tilewright.report.checks.scheduling.tiled.compare import compare_faults
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.text.scheduling.tiled.compare import compare_views


@dataclass(frozen=True, repr=False)
class Contest(Displayed):
    """Methods on one network and one machine, judged by one evaluator.

    Parameters
    ----------
    record : the document as data
    """

    record: CompareDocument

    def rows(self) -> list[dict[str, Any]]:
        """One row per run."""
        return [
            {"method": one.method, **run.model_dump()} for one in self.record.contestants for run in one.runs
        ]

    def views(self) -> Sequence[RenderableType]:
        """A row per method, and who is ahead."""
        return compare_views(self.record)

    def __repr__(self) -> str:
        record = self.record
        return f"Contest({record.workload!r} on {record.system!r}, {len(record.contestants)} methods)"


@dataclass(frozen=True, repr=False)
class ContestCheck(Check):
    """What a check of a contest found."""

    record: CompareDocument

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        record = self.record
        head = {
            "of": record.command,
            "workload": record.workload,
            "system": record.system,
            "objective": record.objective,
        }
        return {**self._told(head, complete=record.complete), "faults": [*self.faults]}

    def views(self) -> Sequence[RenderableType]:
        """Every fault, and a summary."""
        lines = [Text(fault, "red") for fault in self.faults]
        summary = Text("the claims fail", "bold red") if lines else Text("all claims hold", "bold green")
        if not self.record.complete:
            summary.append("; not every run has ended", "yellow")
        return [*lines, summary]


def check_contest(record: CompareDocument, where: str) -> ContestCheck:
    """Check a document of ``compare``."""
    return ContestCheck(tuple(compare_faults(record, where)), (), record)
