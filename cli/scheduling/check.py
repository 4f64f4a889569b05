"""``tilewright check`` for what ``schedule`` and ``codesign`` wrote."""

from __future__ import annotations

import json
from typing import Any

from tilewright.cli.exits import Exit
from tilewright.cli.mapping.proof import STYLES, Proof, Verdict, proof_data
from tilewright.cli.scheduling.proof import prove_codesign, prove_schedule
from tilewright.cli.terminal.console import show, write
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.limits import Limits
from tilewright.report.checks.scheduling.herald.codesign import CodesignCheck, check_codesign
from tilewright.report.checks.scheduling.herald.schedule import ScheduleCheck, check_schedule
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.scheduling.herald.files import parse_schedule
from tilewright.report.text.quantities import seconds_text

SCHEMA = "tilewright.check/1"


def check_schedules(
    data: dict[str, Any], where: str, prove: bool, seconds: float | None, threads: int, seed: int, form: str
) -> int:
    """Check one document; returns the exit code."""
    document = parse_schedule(data, where)
    check: ScheduleCheck | CodesignCheck
    if isinstance(document, ScheduleDocument):
        check = check_schedule(document, where)
    else:
        check = check_codesign(document, where)
    proof, interrupted = None, False
    if prove:
        with graceful_stop() as stop:
            limits = Limits(seconds=seconds, threads=threads, seed=seed, stop=stop)
            if isinstance(check, ScheduleCheck):
                proof = prove_schedule(check, limits)
            else:
                proof = prove_codesign(check, limits)
            interrupted = stop.is_set()
    holds = not check.faults and (proof is None or proof.verdict is not Verdict.REFUTED)
    if form == "json":
        _print_json(document, check.faults, proof, holds=holds)
    else:
        _print_table(document, check.faults, proof)
    if not holds:
        return Exit.CHECK_FAILED
    undecided = proof is not None and proof.verdict is Verdict.UNDECIDED
    return Exit.INTERRUPTED if interrupted and undecided else Exit.OK


def _print_json(
    document: ScheduleDocument | CodesignDocument,
    faults: tuple[str, ...],
    proof: Proof | None,
    *,
    holds: bool,
) -> None:
    told: dict[str, Any] = {
        "schema": SCHEMA,
        "command": "check",
        "of": document.command,
        "workload": document.workload,
        "system": document.system.name if isinstance(document, ScheduleDocument) else None,
        "class": document.accelerator_class if isinstance(document, CodesignDocument) else None,
        "objective": document.objective,
        "status": document.status,
        "holds": holds,
        "complete": document.complete,
        "faults": [*faults],
    }
    told = {key: value for key, value in told.items() if value is not None}
    if proof is not None:
        told["proof"] = proof_data(proof)
    write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _print_table(
    document: ScheduleDocument | CodesignDocument, faults: tuple[str, ...], proof: Proof | None
) -> None:
    from rich.text import Text

    from tilewright.report.text.tables import plain_table, status_text

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
    show(table, *([""] if lines else []), *lines, "", summary)
