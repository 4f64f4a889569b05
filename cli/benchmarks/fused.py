"""``bench --fuse``: heuristics for fused mappings beside the proven optimum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli.exits import Exit

if TYPE_CHECKING:
    from tilewright.benchmarks.fused import FusedRequest, FusedRow

HEADS = ("method", "seed", "value", "unfused", "groups", "gap", "CPU s")


def bench_fused(request: FusedRequest, out: Path, form: str, *, fresh: bool, quiet: bool) -> int:
    """Run the methods that the store lacks, and show all rows; what there is by then after Ctrl-C.

    Parameters
    ----------
    request : what is measured
    out : the store
    form : ``table``, ``json``, ``csv`` or ``markdown``
    fresh : run again what the store has
    quiet : whether no run is told of when it begins
    """
    from tilewright.benchmarks.fused import fused_rows
    from tilewright.benchmarks.fused_store import FusedStore
    from tilewright.cli.terminal.console import note_line, tell
    from tilewright.cli.terminal.signals import graceful_stop
    from tilewright.foundation.database import check_database

    check_database(out)
    rows: list[FusedRow] = []
    with FusedStore(out) as store, graceful_stop() as stop:
        for row in fused_rows(request, store, stop, (lambda text: None) if quiet else tell, fresh=fresh):
            rows.append(row)
        stopped = stop.is_set()
    _show(rows, form)
    if store.failure is not None:
        raise store.failure
    if stopped and quiet:
        note_line("runs are missing; the same call continues")
    return Exit.INTERRUPTED if stopped else Exit.OK


def _show(rows: Sequence[FusedRow], form: str) -> None:
    from tilewright.cli.terminal.console import show, write
    from tilewright.report.text.csv_text import csv_lines
    from tilewright.report.text.tables import head_text, plain_table

    data = [row.to_data() for row in rows]
    if form == "json":
        write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    elif form == "csv":
        write(csv_lines([[*data[0]], *([*row.values()] for row in data)]) if data else "")
    elif form == "markdown":
        lines = [("network", "machine", *HEADS), ("---",) * (2 + len(HEADS))]
        lines += [(row.network, row.machine, *_cells(row)) for row in rows]
        write("".join(f"| {' | '.join(line)} |\n" for line in lines))
    else:
        for names, same in groupby(rows, lambda row: (row.network, row.machine, row.objective)):
            table = plain_table([(head, "right" if place else "left") for place, head in enumerate(HEADS)])
            for row in same:
                table.add_row(*_cells(row))
            show(head_text(*names), "", table, "")


def _cells(row: FusedRow) -> tuple[str, ...]:
    from tilewright.formulation.objective import parse_objective
    from tilewright.report.text.quantities import objective_text, percent_text

    objective = parse_objective(row.objective)

    def shown(value: float | None) -> str:
        return "–" if value is None else objective_text(objective, value)

    gap = "–" if row.gap is None else percent_text(row.gap, 1)
    gap = gap if row.proven or row.gap is None else f"≤ {gap}"
    return (
        row.method,
        str(row.seed),
        shown(row.value),
        shown(row.unfused),
        str(row.groups),
        gap,
        f"{row.seconds:.1f}",
    )
