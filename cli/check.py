"""``tilewright check``: whether a result holds, and with ``--prove`` whether another solver agrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import options
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.clock import call

if TYPE_CHECKING:
    from tilewright.api.checked import Proof


def check_command(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Result document (.json, .jsonl, .yaml).")],
    prove: Annotated[
        bool, typer.Option("--prove", help="Let another solver search below the claimed bounds.")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="STORE", help="Store with the plans of a compare document."),
    ] = None,
    time_limit: options.TimeLimit = None,
    threads: options.Threads = None,
    seed: options.Seed = 0,
    format: options.ShortFormat = "table",
    quiet: options.Quiet = False,
) -> int:
    """Evaluate all mappings or schedules of a result and compare its claims (exit code 5: one fails)."""
    options.parse_choice(format, "--format", ("table", "json"))
    seconds, workers = options.parse_duration(time_limit), options.parse_threads(threads)

    from tilewright.api.documents import checked, parsed
    from tilewright.cli.terminal.console import note_line, show, write
    from tilewright.cli.terminal.signals import graceful_stop
    from tilewright.formulation.limits import Limits
    from tilewright.report.records.files import read_data

    data = read_data(result)
    if isinstance(data, dict) and "tree" in data:
        from tilewright.cli.scheduling.set_tree import check_tree

        return check_tree(data, str(result), format)
    document = parsed(data, str(result))
    with graceful_stop() as stop:
        limits = Limits(seconds=seconds, threads=workers, seed=seed, stop=stop, started=call.moment)
        reported = None if quiet else _tell
        verdict = checked(document, str(result), limits if prove else None, reported, store)
        interrupted = stop.is_set()
    if format == "json":
        write(json.dumps(verdict.to_dict(), indent=2, ensure_ascii=False) + "\n")
    else:
        show(*verdict.views())
    if not verdict.holds:
        if quiet:
            note_line(f"{result}: not all claims hold")
        return Exit.CHECK_FAILED
    return Exit.INTERRUPTED if interrupted and verdict.undecided else Exit.OK


def _tell(index: int, total: int, name: str, proof: Proof) -> None:
    """One layer's second opinion on stderr."""
    from tilewright.cli.terminal.console import tell
    from tilewright.report.text.quantities import seconds_text

    reported = f"{proof.verdict} by {proof.solver} in {seconds_text(proof.seconds)}: {proof.text}"
    tell(f"[{index}/{total}] {name}: {reported}")
