"""What documents of schedules and plans say of the search that made them."""

from __future__ import annotations

from tilewright.report.records.mapping.operator import Record


class SearchSettingsRecord(Record):
    """How a search was asked to run."""

    method: str
    time_limit_s: float | None
    gap: float
    threads: int
    seed: int
