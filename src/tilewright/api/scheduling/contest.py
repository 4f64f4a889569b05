"""Contests of methods: documents of ``tilewright compare``, read back and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.display import Displayed
from tilewright.report.checks.scheduling.tiled.compare import compare_faults
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.text.scheduling.tiled.compare import compare_views

SCHEMA = "tilewright.check/1"


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
class ContestCheck(Displayed):
    """What a check of a contest found.

    Parameters
    ----------
    faults : everything that is wrong, each in one line
    """

    record: CompareDocument
    faults: tuple[str, ...]
    undecided: bool = False

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return not self.faults

    def __bool__(self) -> bool:
        return self.holds

    def rows(self) -> list[dict[str, Any]]:
        """One row per fault."""
        return [{"fault": fault} for fault in self.faults]

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        return {
            "schema": SCHEMA,
            "command": "check",
            "of": "compare",
            "workload": self.record.workload,
            "system": self.record.system,
            "objective": self.record.objective,
            "holds": self.holds,
            "complete": self.record.complete,
            "faults": [*self.faults],
        }

    def views(self) -> Sequence[RenderableType]:
        """Every fault, and a summary."""
        lines = [Text(fault, "red") for fault in self.faults]
        summary = Text("the claims fail", "bold red") if lines else Text("all claims hold", "bold green")
        if not self.record.complete:
            summary.append("; not every run has ended", "yellow")
        return [*lines, summary]

    def __repr__(self) -> str:
        return f"ContestCheck({'holds' if self.holds else 'fails'}, {len(self.faults)} faults)"


def check_contest(record: CompareDocument, where: str) -> ContestCheck:
    """Check a document of ``compare``."""
    return ContestCheck(record, tuple(compare_faults(record, where)))
