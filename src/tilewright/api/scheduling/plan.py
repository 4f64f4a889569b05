"""What scheduling gives: a plan, or a partition of the hardware with its plan."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.scheduling.answer import SchedulingAnswer
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    ScheduleDocument,
    ScheduleMetricsRecord,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


class Plan(SchedulingAnswer):
    """The schedule of a workload on a system, and what is proven of it."""

    def __init__(self, record: ScheduleDocument) -> None:
        self.record: ScheduleDocument = record

    @property
    def metrics(self) -> ScheduleMetricsRecord | None:
        """Makespan, energy, utilization and memory: what the evaluator says of the schedule."""
        return self.record.metrics

    def rows(self) -> list[dict[str, Any]]:
        """One row per task: its engine, start, end, energy and memory."""
        return [row.model_dump() for row in self.record.schedule or ()]

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page of tables and plots (the extra ``plots``); raises ``InputError``."""
        from tilewright.report.html.page import check_report
        from tilewright.report.html.scheduling.herald.schedule import write_schedule_report

        check_report(Path(path))
        write_schedule_report(Path(path), self.record)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """Status, figures, and what each engine does.

        Parameters
        ----------
        seconds : that the call took; by default those of the search
        """
        from tilewright.report.text.scheduling.herald.tables import schedule_views

        return schedule_views(self.record, self.record.wall_s if seconds is None else seconds)

    def __repr__(self) -> str:
        place = f"{self.record.workload!r} on {self.record.system.name!r}"
        return f"Plan({place}, {self._claim_text()})"


class Codesign(SchedulingAnswer):
    """The best split of PEs and bandwidth with its schedule: what ``tilewright codesign`` writes."""

    def __init__(self, record: CodesignDocument) -> None:
        self.record: CodesignDocument = record

    @property
    def plan(self) -> Plan | None:
        """The best schedule on the best partition."""
        return None if self.record.best is None else Plan(self.record.best)

    @property
    def partition(self) -> list[dict[str, float]] | None:
        """PEs and bytes per cycle of every sub-accelerator."""
        return self.record.partition

    def rows(self) -> list[dict[str, Any]]:
        """One row per partition that was looked at."""
        return [point.model_dump() for point in self.record.points]

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page of tables and plots (the extra ``plots``); raises ``InputError``."""
        from tilewright.report.html.page import check_report
        from tilewright.report.html.scheduling.herald.schedule import write_codesign_report

        check_report(Path(path))
        write_codesign_report(Path(path), self.record)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """The best partition, the proof, and the partitions that come next.

        Parameters
        ----------
        seconds : that the call took; by default those of the search
        """
        from tilewright.report.text.scheduling.herald.tables import codesign_views

        return codesign_views(self.record, self.record.wall_s if seconds is None else seconds)

    def __repr__(self) -> str:
        place = f"{self.record.workload!r}, class {self.record.accelerator_class!r}"
        return f"Codesign({place}, {self._claim_text()})"
