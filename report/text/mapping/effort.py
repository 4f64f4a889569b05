"""What a search took, in lines."""

from __future__ import annotations

from tilewright.report.records.mapping.document import EffortRecord, MethodEffortRecord
from tilewright.report.text.quantities import bytes_text, count_text, seconds_text, si_text


def effort_lines(effort: EffortRecord | None) -> list[str]:
    """A line for every method, and one for the memory; none where the document is of an earlier version."""
    if effort is None:
        return []
    lines = [_method_line(method) for method in effort.methods]
    if effort.peak_memory_bytes:
        lines.append(f"memory of the process: {bytes_text(effort.peak_memory_bytes, 8)} at most")
    return lines


def _method_line(method: MethodEffortRecord) -> str:
    parts = [f"{count_text(method.nodes)} nodes"] if method.nodes else []
    parts.append(seconds_text(method.seconds))
    if method.nodes_per_s is not None:
        parts.append(f"{si_text(method.nodes_per_s)} nodes/s")
    if method.trees:
        parts.append("1 tree" if method.trees == 1 else f"{count_text(method.trees)} trees")
    if method.table_bytes:
        parts.append(f"tables {bytes_text(method.table_bytes, 8)}")
    return f"{method.method}: {', '.join(parts)}"
