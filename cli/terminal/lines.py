"""What is searched, and its progress as lines: mark, time, value, bound, gap, source."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Origin, TracePoint
from tilewright.report.records.claims import shown_gap
from tilewright.report.records.mapping.document import LayerRecord
from tilewright.report.text.mapping import answer_sets
from tilewright.report.text.quantities import gap_text, objective_text


@dataclass(frozen=True, slots=True)
class ProgressItem:
    """What is being searched.

    Parameters
    ----------
    index, total : its place among all, counted from 1
    title : the layer's name
    detail : its operator in a few words
    """

    index: int
    total: int
    title: str
    detail: str


def columns(mark: str, seconds: float, value: str, bound: str, gap: str, source: str) -> str:
    """One line of progress.

    Parameters
    ----------
    mark : ``*`` for a new best from an exact solver, ``h`` from a heuristic
    seconds : since the call began
    value, bound, gap : as texts with their units, empty where there is none
    source : who found it
    """
    return f"{mark:1} {seconds:8.2f}s  {value:>14}  {bound:>14}  {gap:>8}  {source}".rstrip()


HEADINGS = f"{'':1} {'time':>9}  {'value':>14}  {'bound':>14}  {'gap':>8}  source"


def mark_of(point: TracePoint) -> str:
    """``*`` for a new best of an exact solver, ``h`` for one of a heuristic, blank for a bound."""
    if not point.improved:
        return " "
    return "*" if point.origin is Origin.EXACT else "h"


def point_line(objective: Objective, point: TracePoint) -> str:
    """A point as one line."""

    def text(key: object) -> str:
        return "-" if key is None else objective_text(objective, objective.value(key))  # type: ignore[arg-type]

    gap = gap_text(shown_gap(objective, point.key, point.bound))
    return columns(mark_of(point), point.seconds, text(point.key), text(point.bound), gap, point.source)


def done_line(objective: Objective, layer: LayerRecord) -> str:
    """The end of a search as one line."""

    def text(value: float | None) -> str:
        return "-" if value is None else objective_text(objective, value)

    source = f"{layer.status} ({layer.solver})"
    return columns(" ", layer.wall_s, text(layer.value), text(layer.bound), gap_text(layer.gap), source)


def answer_set_lines(layer: LayerRecord) -> list[str]:
    """What was found besides one mapping, each in one line."""
    titles = (
        answer_sets.then_title,
        answer_sets.front_title,
        answer_sets.best_title,
        answer_sets.optima_title,
    )
    lines = (title(layer) for title in titles)
    return [line for line in lines if line is not None]
