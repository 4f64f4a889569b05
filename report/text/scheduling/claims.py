"""What documents of schedules and plans claim, and what a check of them found, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.objective import Objective
from tilewright.report.records.claims import ClaimRecord
from tilewright.report.text.proofs import STYLES
from tilewright.report.text.quantities import gap_text, objective_text, seconds_text
from tilewright.report.text.tables import plain_table, status_text
from tilewright.solvers.second_opinion import Proof


def figures_table() -> Table:
    """A table of names and figures without a head."""
    figures = plain_table([("", "left"), ("", "right")])
    figures.show_header = False
    return figures


def claim_table(document: ClaimRecord, objective: Objective, bound: str = "bound") -> Table:
    """Status, value, bound and gap; further rows follow.

    Parameters
    ----------
    bound : what the bound is called
    """
    figures = figures_table()
    figures.add_row("status", status_text(document.status, document.gap))
    if document.value is not None:
        figures.add_row("value", objective_text(objective, document.value))
    if document.bound is not None:
        figures.add_row(bound, objective_text(objective, document.bound))
        figures.add_row("gap", gap_text(document.gap))
    return figures


def check_views(
    document: ClaimRecord,
    names: tuple[str, str],
    faults: Sequence[str],
    proof: Proof | None,
    *,
    complete: bool,
) -> list[RenderableType]:
    """One line on the document, every fault, the second opinion if one was asked, and a summary.

    Parameters
    ----------
    names : of the workload and the machine
    complete : whether the search had ended
    """
    columns = [("workload", "left"), ("machine", "left"), ("result", "left"), ("claims", "left")]
    word = "fails" if faults else "holds"
    result = status_text(document.status, document.gap)
    cells: list[str | Text] = [*names, result, Text(word, STYLES[word])]
    if proof is not None:
        columns += [("proof", "left"), ("time", "right")]
        verdict = proof.verdict.value
        cells += [Text(verdict, STYLES.get(verdict, "yellow")), seconds_text(proof.seconds)]
    table = plain_table(columns, names=2)
    table.add_row(*cells)
    lines = [Text(fault, "red") for fault in faults]
    if proof is not None:
        lines.append(Text(f"{proof.verdict.value} by {proof.solver}: {proof.text}"))
    summary = Text("the claims fail", "bold red") if faults else Text("all claims hold", "bold green")
    if not complete:
        summary.append("; the search had not ended", "yellow")
    return [table, *([""] if lines else []), *lines, "", summary]
