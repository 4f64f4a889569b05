"""Pareto fronts, best and optimal mappings as compact tables."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.objective import Objective, parse_objective
from tilewright.report.records.claims import shown_gap
from tilewright.report.records.mapping.document import LayerRecord, SolutionRecord
from tilewright.report.text.quantities import (
    count_text,
    energy_text,
    objective_text,
    percent_text,
    seconds_text,
    si_text,
)
from tilewright.report.text.tables import plain_table

LONGEST = 20
"""Mappings that a table shows; the document has all.  Fronts are shown whole."""


def key_of(objective: Objective, solution: SolutionRecord) -> Fraction:
    """The exact objective key of a recorded mapping."""
    return objective.key(Fraction(solution.energy_pj_exact), solution.cycles)


def then_title(layer: LayerRecord) -> str | None:
    """``least cycles: 4198784, optimal, 2.10 s``."""
    if layer.then is None or layer.then.value is None:
        return None
    shown = objective_text(parse_objective(layer.then.objective), layer.then.value)
    return f"least {layer.then.objective}: {shown}, {layer.then.status}, {seconds_text(layer.then.wall_s)}"


def front_title(layer: LayerRecord) -> str | None:
    """``Pareto front: 26 points, complete, 6.01 s``."""
    if layer.front is None:
        return None
    end = "complete" if layer.front.complete else "not proven complete"
    points = _many(len(layer.front.points), "point")
    return f"Pareto front: {points}, {end}, {seconds_text(layer.front.wall_s)}"


def best_title(layer: LayerRecord) -> str | None:
    """``5 best mappings, proven, 0.40 s``."""
    if layer.best is None:
        return None
    end = "proven" if layer.best.complete else "not proven to be the best"
    number = len(layer.best.mappings)
    shown = f"{number} best mappings" if number != 1 else "best mapping"
    return f"{shown}, {end}, {seconds_text(layer.best.wall_s)}"


def optima_title(layer: LayerRecord) -> str | None:
    """``3 optimal mappings, no others, 0.40 s``."""
    if layer.optima is None:
        return None
    end = "no others" if layer.optima.complete else "there may be more"
    return f"{_many(layer.optima.count, 'optimal mapping')}, {end}, {seconds_text(layer.optima.wall_s)}"


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def further_views(layer: LayerRecord, objective: Objective, name: str = "") -> list[RenderableType]:
    """What was found besides one mapping: a blank line, a title and a table each.

    Parameters
    ----------
    name : of the layer, where several are shown
    """
    lead = f"{name}: " if name else ""
    views: list[RenderableType] = []
    if layer.then is not None:
        views += ["", _title(f"{lead}{then_title(layer)}", layer.then.status == "optimal")]
    if layer.front is not None:
        title = _title(f"{lead}{front_title(layer)}", layer.front.complete)
        views += ["", title, *_listed(front_table(layer.front.points, objective))]
    if layer.best is not None:
        title = _title(f"{lead}{best_title(layer)}", layer.best.complete)
        views += ["", title, *_listed(best_table(layer.best.mappings, objective))]
    if layer.optima is not None:
        title = _title(f"{lead}{optima_title(layer)}", layer.optima.complete)
        views += ["", title, *_listed(best_table(layer.optima.mappings, objective))]
    return views


def _title(text: str, complete: bool) -> Text:
    return Text(text, "bold" if complete else "bold yellow")


def _listed(table: Table) -> list[RenderableType]:
    return [table] if table.row_count else []


def front_table(points: Sequence[SolutionRecord], objective: Objective) -> Table:
    """A line per point, the one of the least objective marked."""
    table = plain_table([("energy", "right"), ("cycles", "right"), ("J·cycle", "right"), ("", "left")])
    keys = [key_of(objective, point) for point in points]
    chosen = keys.index(min(keys)) if keys else None
    for index, point in enumerate(points):
        mark, style = (f"← {objective}", "green") if index == chosen else ("", "")
        table.add_row(*_cells(point), mark, style=style)
    return table


def best_table(mappings: Sequence[SolutionRecord], objective: Objective) -> Table:
    """A line per mapping, with how much it exceeds the first one."""
    table = plain_table(
        [("", "right"), ("energy", "right"), ("cycles", "right"), ("J·cycle", "right"), ("above", "right")]
    )
    keys = [key_of(objective, mapping) for mapping in mappings]
    for index, mapping in enumerate(mappings[:LONGEST]):
        gap = shown_gap(objective, keys[index], keys[0]) or 0.0
        above = percent_text(gap / (1 - gap)) if keys[index] > keys[0] else "-"
        table.add_row(str(index + 1), *_cells(mapping), above)
    if len(mappings) > LONGEST:
        table.add_row("…", f"{len(mappings) - LONGEST} more", "", "", "")
    return table


def _cells(solution: SolutionRecord) -> list[str]:
    edp = si_text(solution.edp * 1e-12)
    return [energy_text(solution.energy_pj), count_text(solution.cycles), edp]
