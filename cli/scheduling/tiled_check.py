"""``tilewright check`` for plans on tiled machines."""

from __future__ import annotations

import json
from typing import Any

from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import show, write
from tilewright.report.checks.scheduling.tiled.plan import plan_faults
from tilewright.report.records.files import parse_record
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.workloads.errors import InputError

SCHEMA = "tilewright.check/1"


def check_plan(data: dict[str, Any], where: str, prove: bool, form: str) -> int:
    """Check one document; returns the exit code.

    Raises
    ------
    InputError : for data that are no such document, and where a proof is asked for: no method proves plans
    """
    if prove:
        raise InputError("--prove", None, "no method proves plans on tiled machines yet")
    document = parse_record(data, PlanDocument, where)
    faults = plan_faults(document, where)
    if form == "json":
        told = {
            "schema": SCHEMA,
            "command": "check",
            "of": document.command,
            "workload": document.workload,
            "system": document.system,
            "objective": document.objective,
            "status": document.status,
            "holds": not faults,
            "complete": document.complete,
            "faults": faults,
        }
        write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    else:
        _print_table(document, faults)
    return Exit.CHECK_FAILED if faults else Exit.OK


def _print_table(document: PlanDocument, faults: list[str]) -> None:
    from rich.text import Text

    from tilewright.report.text.proofs import STYLES
    from tilewright.report.text.tables import plain_table, status_text

    table = plain_table([("workload", "left"), ("machine", "left"), ("result", "left"), ("claims", "left")])
    word = "fails" if faults else "holds"
    result = status_text(document.status, document.gap)
    table.add_row(document.workload, document.system, result, Text(word, STYLES[word]))
    lines = [Text(fault, "red") for fault in faults]
    summary = Text("the claims fail", "bold red") if faults else Text("all claims hold", "bold green")
    if not document.complete:
        summary.append("; the search had not ended", "yellow")
    show(table, *([""] if lines else []), *lines, "", summary)
