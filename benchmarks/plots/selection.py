"""Which runs a plot of single runs shows."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.benchmarks.rows import Row
from tilewright.foundation.errors import InputError


def one_problem(rows: Sequence[Row], kind: str) -> list[Row]:
    """The runs with a mapping, all of one problem.

    Raises
    ------
    InputError : where they are of several problems, or there are none
    """
    solved = [row for row in rows if row.value is not None]
    problems = sorted({row.problem for row in solved})
    if not problems:
        raise InputError("--plot", kind, "no run has a mapping")
    if len(problems) > 1:
        suite, layer, arch, objective = problems[0]
        raise InputError(
            "--plot",
            kind,
            f"expected the runs of one problem, these are of {len(problems)}: add filters such as "
            f"--suite {suite} --layer {layer} --arch {arch} --objective {objective}",
        )
    return solved


def best_runs(rows: Sequence[Row]) -> list[Row]:
    """The best run of every method, the best method first."""
    best: dict[str, Row] = {}
    for row in rows:
        known = best.get(row.method)
        if known is None or (row.value or 0.0) < (known.value or 0.0):
            best[row.method] = row
    return sorted(best.values(), key=lambda row: row.value or 0.0)


def problem_title(row: Row) -> str:
    """What the runs have in common."""
    return f"{row.layer} ({row.shape}) on {row.arch}, objective {row.objective}"
