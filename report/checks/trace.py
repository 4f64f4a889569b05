"""Whether the course of a search is one, and ends at what the search claims."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilewright.formulation.objective import Objective
from tilewright.report.records.claims import ClaimRecord, Number, TraceRecord

_ROUNDED = 1e-3
"""Seconds by which a step may lie behind the end: both are rounded."""
_CLOSE = 1e-9


def trace_faults(
    claims: ClaimRecord, trace: Sequence[TraceRecord], objective: Objective, wall_s: float
) -> Iterator[str]:
    """Values fall, bounds rise, times increase, gaps are those of value and bound; the end is the claim.

    Parameters
    ----------
    wall_s : seconds that the whole search took
    """
    seconds, value, bound = 0.0, None, None
    for index, step in enumerate(trace):
        where = f"trace[{index}]"
        if step.seconds < seconds:
            yield f"{where}.seconds: {step.seconds}, but the step before it was at {seconds}"
        if value is not None and (step.value is None or step.value > value):
            yield f"{where}.value: {step.value}, but {value} was known before"
        if bound is not None and (step.bound is None or step.bound < bound):
            yield f"{where}.bound: {step.bound}, but {bound} was known before"
        better = step.value is not None and step.value != value
        rounded = step.improved and objective.root != 1  # roots of two keys may be shown alike
        if better != step.improved and not rounded:
            yield f"{where}.improved: {step.improved}, but the value is {'new' if better else 'not new'}"
        if index and step == trace[index - 1]:
            yield f"{where}: the same as the step before it"
        if step.heuristic and not step.improved:
            yield f"{where}.heuristic: a bound from a heuristic"
        gap = _gap(step, objective)
        if (step.gap is None) != (gap is None) or (gap is not None and not _near(step.gap or 0.0, gap)):
            yield f"{where}.gap: {step.gap}, value and bound give {gap}"
        seconds, value, bound = step.seconds, step.value, step.bound
    if seconds > wall_s + _ROUNDED:
        yield f"wall_s: {wall_s}, but the trace ends at {seconds}"
    yield from _end_faults(claims, value, bound)


def _end_faults(claims: ClaimRecord, value: Number | None, bound: Number | None) -> Iterator[str]:
    """The last step has the value and the bound that are claimed; a bound that was given up is none."""
    if not _same(claims.value, value):
        yield f"trace: ends with the value {value}, but the value is {claims.value}"
    given_up = claims.bound is None and claims.status in ("infeasible", "error")
    if not given_up and not _same(claims.bound, bound):
        yield f"trace: ends with the bound {bound}, but the bound is {claims.bound}"


def _same(first: Number | None, second: Number | None) -> bool:
    return (first is None) == (second is None) and (
        first is None or second is None or float(first) == float(second)
    )


def _gap(step: TraceRecord, objective: Objective) -> float | None:
    """The relative gap of two shown values; their roots are taken already."""
    if step.value is None or step.bound is None:
        return None
    if step.value == step.bound:
        return 0.0  # of a value of 0, too
    return float(1 - step.bound / step.value) if step.value else None


def _near(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=_CLOSE, abs_tol=_CLOSE)
