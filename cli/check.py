"""``tilewright check``: whether a result holds, and with ``--prove`` whether another solver agrees.

Documents of ``schedule`` and ``codesign`` go to `tilewright.cli.scheduling.check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli import options
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.clock import call

if TYPE_CHECKING:
    from tilewright.cli.mapping.proof import Proof
    from tilewright.report.checks.mapping.document import LayerCheck
    from tilewright.report.records.mapping.document import ResultDocument

SCHEMA = "tilewright.check/1"


def check_command(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Result document (.json, .jsonl, .yaml).")],
    prove: Annotated[
        bool, typer.Option("--prove", help="Ask another solver for anything below the claimed bounds.")
    ] = False,
    time_limit: options.TimeLimit = None,
    threads: options.Threads = None,
    seed: options.Seed = 0,
    format: options.ShortFormat = "table",
    quiet: options.Quiet = False,
) -> int:
    """Evaluate every mapping or schedule of a result anew and compare its claims (exit code 5: one fails)."""
    options.parse_choice(format, "--format", ("table", "json"))
    seconds, workers = options.parse_duration(time_limit), options.parse_threads(threads)

    from tilewright.report.checks.mapping.document import check_document, totals_faults
    from tilewright.report.records.files import parse_document, read_data
    from tilewright.report.records.scheduling.herald.files import is_schedule

    data = read_data(result)
    if isinstance(data, dict) and str(data.get("schema", "")).startswith("tilewright.plan/"):
        from tilewright.cli.scheduling.tiled_check import check_plan

        return check_plan(data, str(result), prove, format)
    if is_schedule(data):
        from tilewright.cli.scheduling.check import check_schedules

        return check_schedules(data, str(result), prove, seconds, workers, seed, format)
    document = parse_document(data, str(result))
    checks = list(check_document(document, str(result)))
    totals = totals_faults(document, str(result))
    proofs: list[Proof] = []
    interrupted = False
    if prove:
        proofs, interrupted = _prove_all(checks, seconds, workers, seed, quiet=quiet)
    holds = not totals and not any(check.faults for check in checks)
    refuted = any(proof.verdict == "refuted" for proof in proofs)
    if format == "json":
        _print_json(document, checks, totals, proofs, holds=holds and not refuted)
    else:
        _print_table(document, checks, totals, proofs)
    if not holds or refuted:
        return Exit.CHECK_FAILED
    undecided = any(proof.verdict == "undecided" for proof in proofs)
    return Exit.INTERRUPTED if interrupted and undecided else Exit.OK


def _prove_all(
    checks: Sequence[LayerCheck], seconds: float | None, threads: int, seed: int, *, quiet: bool
) -> tuple[list[Proof], bool]:
    """A second opinion on every layer within its share of the time, and whether the user stopped it."""
    from tilewright.cli.mapping.proof import Proof, Verdict, prove
    from tilewright.cli.terminal.console import tell
    from tilewright.cli.terminal.signals import graceful_stop
    from tilewright.formulation.limits import Limits
    from tilewright.report.text.quantities import seconds_text

    proofs: list[Proof] = []
    with graceful_stop() as stop:
        for index, check in enumerate(checks):
            share = None if seconds is None else max(0.0, seconds - call.elapsed) / (len(checks) - index)
            limits = Limits(seconds=share, threads=threads, seed=seed, stop=stop)
            if check.problem is None or limits.expired:
                text = "the problem cannot be stated" if check.problem is None else "no time left"
                proofs.append(Proof(Verdict.UNDECIDED, "-", text))
                continue
            proofs.append(prove(check.layer, check.problem, limits))
            if not quiet:
                last = proofs[-1]
                place = f"[{index + 1}/{len(checks)}] {check.layer.name}"
                told = f"{last.verdict} by {last.solver} in {seconds_text(last.seconds)}: {last.text}"
                tell(f"{place}: {told}")
    return proofs, stop.is_set()


def _print_json(
    document: ResultDocument,
    checks: Sequence[LayerCheck],
    totals: Sequence[str],
    proofs: Sequence[Proof],
    *,
    holds: bool,
) -> None:
    import json

    from tilewright.cli.mapping.proof import proof_data
    from tilewright.cli.terminal.console import write

    layers: list[dict[str, Any]] = []
    for index, check in enumerate(checks):
        layer = check.layer
        entry: dict[str, Any] = {
            "name": layer.name,
            "status": layer.status,
            "holds": not check.faults,
            "space": None if layer.space is None else layer.space.model_dump(),
            "faults": list(check.faults),
        }
        if proofs:
            entry["proof"] = proof_data(proofs[index])
        layers.append(entry)
    data = {
        "schema": SCHEMA,
        "command": "check",
        "arch": document.arch.name,
        "holds": holds,
        "complete": document.complete,
        "layers": layers,
        "totals_faults": list(totals),
    }
    write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def _print_table(
    document: ResultDocument, checks: Sequence[LayerCheck], totals: Sequence[str], proofs: Sequence[Proof]
) -> None:
    from rich.text import Text

    from tilewright.cli.mapping.proof import STYLES
    from tilewright.cli.terminal.console import show
    from tilewright.report.text.mapping.spaces import space_lines
    from tilewright.report.text.quantities import seconds_text
    from tilewright.report.text.tables import plain_table, status_text

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
    show(table, "", *lines, *([""] if faults else []), *faults, "", summary)
