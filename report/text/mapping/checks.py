"""What a check of a result document found, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from tilewright.report.checks.mapping.document import LayerCheck
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.text.mapping.spaces import space_lines
from tilewright.report.text.proofs import STYLES
from tilewright.report.text.quantities import seconds_text
from tilewright.report.text.tables import plain_table, status_text
from tilewright.solvers.second_opinion import Proof


def check_views(
    document: ResultDocument, checks: Sequence[LayerCheck], totals: Sequence[str], proofs: Sequence[Proof]
) -> list[RenderableType]:
    """One line per layer, every fault, and a summary.

    Parameters
    ----------
    totals : what is wrong with the head and the totals
    proofs : one per layer, or none
    """
    columns = [("layer", "left"), ("n", "right"), ("result", "left"), ("claims", "left")]
    if proofs:
        columns += [("proof", "left"), ("by", "left"), ("time", "right")]
    table = plain_table(columns)
    for index, check in enumerate(checks):
        layer = check.layer
        word = "fails" if check.faults else "holds"
        result, claims = status_text(layer.status, layer.gap), Text(word, STYLES[word])
        cells: list[str | Text] = [layer.name, str(layer.count), result, claims]
        if proofs:
            proof = proofs[index]
            verdict = proof.verdict.value
            cells += [Text(verdict, STYLES.get(verdict, "yellow")), proof.solver, seconds_text(proof.seconds)]
        table.add_row(*cells)
    failed = [check for check in checks if check.faults]
    faults = [Text(f"{check.layer.name}: {fault}", "red") for check in failed for fault in check.faults]
    faults += [Text(fault, "red") for fault in totals]
    count = f"{len(checks)} {'layer' if len(checks) == 1 else 'layers'}"
    if faults:
        word = f"{len(failed)} of {count} {'fails' if len(failed) == 1 else 'fail'}"
        summary = Text(word if failed else "the totals fail", "bold red")
    else:
        summary = Text(f"all claims of {count} hold", "bold green")
    for verdict in ("confirmed", "refuted", "undecided"):
        number = sum(proof.verdict == verdict for proof in proofs)
        if number:
            summary.append(f", {number} {verdict}", STYLES.get(verdict, "yellow"))
    if document.missing:
        summary.append(f"; the run ended before {len(document.missing)} more", "yellow")
    lines = space_lines(check.layer for check in checks)
    return [table, "", *lines, *([""] if faults else []), *faults, "", summary]
