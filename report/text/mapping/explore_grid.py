"""A design space as a grid of two axes: what plots, pages and tables draw."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tilewright.report.records.mapping.explore import DesignRecord, ExploreDocument
from tilewright.report.text.mapping.explore import axis_titles, labels

_PREFIXES = ((1e-6, "M"), (1e-3, "k"), (1.0, ""), (1e3, "m"), (1e6, "µ"), (1e9, "n"), (1e12, "p"))


@dataclass(frozen=True, slots=True)
class GridCell:
    """What is known of the designs at one point of two axes.

    Parameters
    ----------
    value : the least value among them; ``None`` where none is known
    bound : the least bound among those that are machines and have mappings; ``None`` where there is none
    is_best : whether the best design of the whole space is here
    """

    value: float | None
    bound: float | None
    is_best: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows and columns of a design space; further axes are minimised over.

    Parameters
    ----------
    cells : per row, one cell per column
    folded : titles of the axes that are minimised over
    """

    row_title: str
    column_title: str
    rows: list[str]
    columns: list[str]
    cells: list[list[GridCell]]
    folded: list[str]


def design_grid(document: ExploreDocument) -> Grid:
    """The first axis down, the second one across; a single axis goes across."""
    titles, points = axis_titles(document), labels(document)
    shape = [len(one) for one in points]
    best = None if document.best is None else document.best.index
    single = len(shape) == 1
    down, across = (1, shape[0]) if single else (shape[0], shape[1])
    members: dict[tuple[int, int], list[DesignRecord]] = {}
    for design, place in zip(document.designs, product(*map(range, shape)), strict=True):
        members.setdefault((0, place[0]) if single else (place[0], place[1]), []).append(design)
    cells = [[_cell(members[row, column], best) for column in range(across)] for row in range(down)]
    if single:
        return Grid("", titles[0], [""], points[0], cells, [])
    return Grid(titles[0], titles[1], points[0], points[1], cells, titles[2:])


def _cell(designs: list[DesignRecord], best: int | None) -> GridCell:
    values = [float(one.value) for one in designs if one.value is not None]
    bounds = [float(one.bound) for one in designs if one.bound is not None]
    return GridCell(
        min(values, default=None), min(bounds, default=None), any(one.index == best for one in designs)
    )


def value_scale(document: ExploreDocument) -> tuple[float, str]:
    """A factor for values, and their unit, so that the least one reads well."""
    known = [one.value if one.value is not None else one.bound for one in document.designs]
    least = min((value for value in known if value), default=1.0)
    units = {"energy": "J", "cycles": "cycles", "edp": "J·cycle"}
    objective = str(document.goal.layer)
    unit = units.get(objective, objective)
    start = 1.0 if objective == "cycles" or objective not in units else 1e-12
    for factor, prefix in _PREFIXES:
        if least * start * factor >= 1:
            return start * factor, f"{prefix}{unit}"
    return start, unit
