"""What documents say of searches for schedules and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.api.arguments import Budget
from tilewright.report.records.scheduling.settings import SearchSettingsRecord

if TYPE_CHECKING:
    from tilewright.report.records.scheduling.herald.document import ScheduleSettingsRecord


def search_settings(method: str, budget: Budget) -> SearchSettingsRecord:
    """What a document says of the search."""
    return SearchSettingsRecord(
        method=method, time_limit_s=budget.seconds, gap=budget.gap, threads=budget.threads, seed=budget.seed
    )


def schedule_settings(method: str, metric: str, budget: Budget) -> ScheduleSettingsRecord:
    """What a document says of the search for a schedule; ``metric`` chooses the mappings of layers."""
    from tilewright.report.records.scheduling.herald.document import ScheduleSettingsRecord

    return ScheduleSettingsRecord(**search_settings(method, budget).model_dump(), metric=metric)
