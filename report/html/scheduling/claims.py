"""What pages about schedules and plans have in common: claims, the course of the search, cells of tables."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from typing import Protocol

from tilewright.formulation.objective import parse_objective
from tilewright.report.curves import unit
from tilewright.report.html.figures import convergence_figure
from tilewright.report.html.mapping.result import course
from tilewright.report.html.page import Plot, Section, TableCell, figures_table, number_cell
from tilewright.report.records.claims import Number, TraceRecord
from tilewright.report.text.quantities import count_text, energy_text, gap_text, objective_text, seconds_text

SORTS = "A click on a heading sorts."


class Claiming(Protocol):
    """A document of a search."""

    @property
    def objective(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def value(self) -> Number | None: ...
    @property
    def bound(self) -> Number | None: ...
    @property
    def gap(self) -> float | None: ...
    @property
    def wall_s(self) -> float: ...


def shown_name(objective: str) -> str:
    """The name under which values of a schedule's objective are shown."""
    return "cycles" if objective == "makespan" else objective


def claim_fact(document: Claiming) -> str:
    """Status, value, bound, gap and time in one line."""
    objective = parse_objective(shown_name(document.objective))

    def shown(name: str, value: Number | None) -> list[str]:
        return [] if value is None else [f"{name} {objective_text(objective, value)}"]

    gap = [] if document.gap is None else [f"gap {gap_text(document.gap)}"]
    parts = [
        document.status,
        *shown(document.objective, document.value),
        *shown("bound", document.bound),
        *gap,
    ]
    return ", ".join([*parts, f"took {seconds_text(document.wall_s)}"])


def versions_fact(versions: MappingABC[str, str]) -> str:
    """What wrote the document."""
    return "written with " + ", ".join(f"{name} {version}" for name, version in versions.items())


def course_sections(
    title: str, name: str, objective: str, trace: Sequence[TraceRecord], seconds: float
) -> list[Section]:
    """Value and bound over time, where there is a value.

    Parameters
    ----------
    title : of the section
    name : of the curve
    objective : its name, which gives the unit
    trace : bounds and values as the search found them
    seconds : at which the search ended
    """
    if not any(point.value is not None for point in trace):
        return []
    scale, label = unit(shown_name(objective))
    figure = convergence_figure([course(name, trace, seconds)], label, scale)
    return [Plot(title, [("", figure)], "Value (full) and bound (dashed).")]


def nothing_sections(document: Claiming) -> list[Section]:
    """What there is to show where nothing was found: the claim, figure by figure."""
    objective = parse_objective(shown_name(document.objective))
    bound = "none" if document.bound is None else objective_text(objective, document.bound)
    rows = [
        ("status", document.status),
        ("objective", document.objective),
        ("bound", bound),
        ("search time", seconds_text(document.wall_s)),
    ]
    return [figures_table("Result", rows, "There is no answer to draw; a longer limit may help.")]


def count_cell(number: int) -> TableCell:
    """A whole number."""
    return number_cell(count_text(number), number)


def energy_cell(picojoules: Number) -> TableCell:
    """An energy."""
    return number_cell(energy_text(picojoules), float(picojoules))
