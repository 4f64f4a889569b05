"""Runs taken together: per method and objective, how far from the optimum and how fast."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.benchmarks.rows import MISSING, Row
from tilewright.report.text.quantities import seconds_text

FIELDS = ("objective", "method", "arch", "suite", "layer")
"""What runs may be grouped by."""


@dataclass(frozen=True, slots=True)
class Line:
    """One group of runs of a method.

    Parameters
    ----------
    group : values of the fields that the group has in common
    runs : those that ended
    missing : planned ones that have not ended
    empty : those that ended without a mapping
    unjudged : those with a mapping of a problem whose optimum nobody proved
    mean, median, worst : of the gap to the optimum, over runs whose problem has a proven optimum; a run
        without a mapping is worse than any, and ``None`` is what that makes infinite
    within_10, within_1, at_optimum : shares of all runs whose problem has a proven optimum
    seconds : median wall time
    primal_integral : mean share of the time limit
    """

    group: tuple[str, ...]
    runs: int
    missing: int
    empty: int
    unjudged: int
    mean: float | None
    median: float | None
    worst: float | None
    within_10: float | None
    within_1: float | None
    at_optimum: float | None
    seconds: float | None
    primal_integral: float | None


@dataclass(frozen=True, slots=True)
class Proofs:
    """The proofs of one objective on one machine."""

    group: tuple[str, ...]
    problems: int
    proven: int
    median_s: float
    worst_s: float


def summary(rows: Iterable[Row], by: Sequence[str] = ("objective", "method")) -> list[Line]:
    """One line per group of measured runs, the smallest mean gap first."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.is_method:
            groups.setdefault(tuple(str(getattr(row, field)) for field in by), []).append(row)
    lines = [_line(group, members) for group, members in groups.items()]
    outer = by.index("method") if "method" in by else 0

    def rank(line: Line) -> tuple[Any, ...]:
        gaps = (math.inf if gap is None else gap for gap in (line.mean, line.median))
        return line.group[:outer], *gaps, line.group

    return sorted(lines, key=rank)


def proofs(rows: Iterable[Row]) -> list[Proofs]:
    """How many optima were proven, per objective and machine."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if not row.is_method and row.status != MISSING:
            groups.setdefault((row.objective, row.arch, row.method), []).append(row)
    return [
        Proofs(
            group,
            len(members),
            sum(row.status in ("optimal", "infeasible") for row in members),
            statistics.median(row.wall_s or 0.0 for row in members),
            max(row.wall_s or 0.0 for row in members),
        )
        for group, members in sorted(groups.items())
    ]


def _line(group: tuple[str, ...], members: Sequence[Row]) -> Line:
    ended = [row for row in members if row.status != MISSING]
    judged = [row for row in ended if row.optimum is not None]
    gaps = [math.inf if row.gap is None else row.gap for row in judged]
    integrals = [
        row.primal_integral_s / row.time_limit_s
        for row in judged
        if row.primal_integral_s is not None and row.time_limit_s
    ]

    def share(reached: Callable[[Row], bool]) -> float | None:
        return sum(map(reached, judged)) / len(judged) if judged else None

    return Line(
        group=group,
        runs=len(ended),
        missing=len(members) - len(ended),
        empty=sum(row.value is None for row in ended),
        unjudged=sum(row.value is not None and row.optimum is None for row in ended),
        mean=_finite(statistics.fmean(gaps)) if gaps else None,
        median=_finite(statistics.median(gaps)) if gaps else None,
        worst=_finite(max(gaps)) if gaps else None,
        within_10=share(lambda row: row.gap is not None and row.gap <= 0.1),
        within_1=share(lambda row: row.gap is not None and row.gap <= 0.01),
        at_optimum=share(lambda row: row.gap == 0),
        seconds=statistics.median(row.wall_s or 0.0 for row in ended) if ended else None,
        primal_integral=statistics.fmean(integrals) if integrals else None,
    )


def _finite(gap: float) -> float | None:
    """A gap as it is reported; none where runs without a mapping make it infinite."""
    return None if math.isinf(gap) else gap


COLUMNS = ("runs", "none", "mean", "median", "worst", "≤10 %", "≤1 %", "=0", "time", "integral")
"""What `cells` shows of a line."""


def cells(line: Line) -> list[str]:
    """A line as texts, without its group."""
    ended = f"{line.runs}" if not line.missing else f"{line.runs} of {line.runs + line.missing}"
    seconds = "-" if line.seconds is None else seconds_text(line.seconds)
    gaps = [gap_text(gap) for gap in (line.mean, line.median, line.worst)]
    shares = [share_text(share) for share in (line.within_10, line.within_1, line.at_optimum)]
    return [ended, str(line.empty), *gaps, *shares, seconds, share_text(line.primal_integral)]


def gap_text(gap: float | None) -> str:
    """A gap to the optimum in percent, three digits; ``0 %`` only where it is none."""
    if gap is None:
        return "-"
    percent = 100 * gap
    if percent == 0:
        return "0 %"
    if percent < 0.01:
        return "<0.01 %"
    return f"{percent:.2f} %" if percent < 10 else f"{percent:.1f} %" if percent < 100 else f"{percent:.0f} %"


def share_text(share: float | None) -> str:
    """A share in whole percent; ``100 %`` and ``0 %`` only where they are exact."""
    if share is None:
        return "-"
    percent = round(100 * share)
    if 0 < share < 1:
        percent = min(99, max(1, percent))
    return f"{percent} %"


def markdown(rows: Sequence[Row], by: Sequence[str] = ("objective", "method")) -> str:
    """Summary and proofs as Markdown tables."""
    lines = summary(rows, by)
    heads = [
        *by,
        "runs",
        "no mapping",
        "mean gap",
        "median",
        "worst",
        "within 10 %",
        "within 1 %",
        "optimum",
        "median time",
        "primal integral",
    ]
    text = _table(heads, len(by), [[*line.group, *cells(line)] for line in lines])
    unjudged = sum(line.unjudged for line in lines)
    if unjudged:
        text += (
            f"\n{unjudged} runs found a mapping of a problem whose optimum is not proven: they have no gap.\n"
        )
    proven = proofs(rows)
    if proven:
        heads = ["objective", "machine", "solver", "problems", "proven", "median time", "longest"]
        body = [
            [
                *proof.group,
                str(proof.problems),
                str(proof.proven),
                *map(seconds_text, (proof.median_s, proof.worst_s)),
            ]
            for proof in proven
        ]
        text += "\n" + _table(heads, 3, body)
    return text


def _table(heads: Sequence[str], left: int, body: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * left + ["---:"] * (len(heads) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in [heads, rule, *body])
