"""Workloads as tables."""

from __future__ import annotations

from rich.console import RenderableType

from tilewright.report.records.scheduling.workload import workload_table
from tilewright.report.text.tables import head_text
from tilewright.workloads.scheduling.workload import Workload


def workload_views(workload: Workload) -> list[RenderableType]:
    """A workload as a table of its networks."""
    return [head_text(workload.name), workload.description, "", workload_table(workload)]
