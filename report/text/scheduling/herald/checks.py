"""What a check of a schedule or a co-design found, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.text.proofs import STYLES
from tilewright.report.text.quantities import seconds_text
from tilewright.report.text.tables import plain_table, status_text
from tilewright.solvers.second_opinion import Proof


def check_views(
    document: ScheduleDocument | CodesignDocument, faults: Sequence[str], proof: Proof | None
) -> list[RenderableType]:
    """One line on the document, every fault, the second opinion if one was asked, and a summary."""
    machine = f"class {document.accelerator_class}" if isinstance(document, CodesignDocument) else ""
    if isinstance(document, ScheduleDocument):
        machine = document.system.name
    columns = [("workload", "left"), ("machine", "left"), ("result", "left"), ("claims", "left")]
    word = "fails" if faults else "holds"
    cells: list[str | Text] = [
        document.workload,
        machine,
        status_text(document.status, document.gap),
        Text(word, STYLES[word]),
    ]
    if proof is not None:
        columns += [("proof", "left"), ("time", "right")]
        verdict = proof.verdict.value
        cells += [Text(verdict, STYLES.get(verdict, "yellow")), seconds_text(proof.seconds)]
    table = plain_table(columns)
    table.add_row(*cells)
    lines = [Text(fault, "red") for fault in faults]
    if proof is not None:
        lines.append(Text(f"{proof.verdict.value} by {proof.solver}: {proof.text}"))
    summary = Text("the claims fail", "bold red") if faults else Text("all claims hold", "bold green")
    if not document.complete:
        summary.append("; the search had not ended", "yellow")
    return [table, *([""] if lines else []), *lines, "", summary]
