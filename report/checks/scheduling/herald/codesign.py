"""Whether the claims of a document of ``codesign`` hold: points, best schedule, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald.classes import make_system
from tilewright.report.checks.mapping.document import claim_faults
from tilewright.report.checks.scheduling.herald.schedule import (
    ScheduleCheck,
    check_schedule,
    schedule_settings_faults,
)
from tilewright.report.checks.trace import trace_faults
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PartitionPointRecord,
    objective_name,
)
from tilewright.solvers.scheduling.herald.partitions.partition import divisions_of

_CLOSE = 1e-12
"""Herald's energy is shown rounded."""


@dataclass(frozen=True)
class CodesignCheck:
    """A document and what is wrong with it; ``best`` is the check of its best schedule."""

    document: CodesignDocument
    best: ScheduleCheck | None
    faults: tuple[str, ...]


def check_codesign(document: CodesignDocument, where: str) -> CodesignCheck:
    """Evaluate the best schedule anew and compare all that the document claims."""
    objective = ScheduleObjective(document.objective)
    shown = parse_objective(objective_name(objective))
    faults = [*claim_faults(document, shown, solved=document.best is not None, noun="schedule")]
    if document.value is not None and document.value_key is not None:
        faults += _shown_faults("value", document.value, document.value_key)
    faults += trace_faults(document, document.trace, shown, document.wall_s)
    faults += schedule_settings_faults(document)
    try:
        shapes = [*_shape_faults(document)]
    except InputError as error:  # machine files or fields that are none
        shapes = [str(error)]
    if shapes:
        return CodesignCheck(document, None, (*faults, *shapes))
    faults += _grid_faults(document)
    for index, point in enumerate(document.points):
        faults += [f"points[{index}]: {fault}" for fault in _point_faults(point, objective)]
    faults += _sum_faults(document)
    best = None
    if document.best is not None:
        best = check_schedule(document.best, f"{where}: best")
        faults += [*_best_faults(document), *(f"best: {fault}" for fault in best.faults)]
    return CodesignCheck(document, best, tuple(faults))


def _shape_faults(document: CodesignDocument) -> Iterator[str]:
    """Every partition names whole PEs and bytes per cycle for each dataflow, and a variant that there is."""
    for name, record in document.engines.items():
        if name not in document.dataflows or name != record.name:
            yield f"engines.{name}: not the machine of a dataflow"
    for name in document.machine_files:
        if name not in document.dataflows or name in document.engines:
            yield f"machine_files.{name}: not the machine of a dataflow"
        elif not any(document.own.owner(path) == name for axis in document.vary for path in axis.fields):
            yield f"machine_files.{name}: nothing of it varies"
    named = [("partition", document.partition or [])] if document.partition is not None else []
    named += [(f"points[{index}].partition", point.partition) for index, point in enumerate(document.points)]
    for where, parts in named:
        if len(parts) != len(document.dataflows):
            yield f"{where}: {len(parts)} parts for {len(document.dataflows)} dataflows"
        elif any(set(part) != {"pes", "bytes_per_cycle"} or part["pes"] % 1 for part in parts):
            yield f"{where}: expected pes, a whole number, and bytes_per_cycle of every part"
        elif any(min(part.values()) <= 0 for part in parts):
            yield f"{where}: expected more than 0"
    for where, fields in (
        *([] if document.partition is None else [("", document.fields)]),
        *((f"points[{index}].", point.fields) for index, point in enumerate(document.points)),
    ):
        try:
            document.division([], fields)
        except InputError as error:
            yield f"{where}{error}"


def _shown_faults(field: str, shown: float, key: Fraction) -> Iterator[str]:
    if shown not in (number(key), float(key)):
        yield f"{field}: {shown}, but {field}_exact is {key}"


def _point_faults(point: PartitionPointRecord, objective: ScheduleObjective) -> Iterator[str]:
    """Figures of one partition must fit together."""
    value, bound, energy = (
        Fraction(x) for x in (point.value_exact, point.bound_exact, point.energy_pj_exact)
    )
    yield from _shown_faults("value", point.value, value)
    yield from _shown_faults("bound", point.bound, bound)
    yield from _shown_faults("energy_pj", point.energy_pj, energy)
    counted = objective.of(point.cycles, energy)
    if value != counted:
        yield f"value: {point.value}, cycles and energy give {number(counted)}"
    for field, text, key in (
        ("value", point.value_exact, value),
        ("bound", point.bound_exact, bound),
        ("energy_pj", point.energy_pj_exact, energy),
    ):
        if text != str(key):
            yield f"{field}_exact: {text}, expected {key}"
    if bound > value:
        yield f"bound: {point.bound} above the value {point.value}"
    herald = point.herald_cycles, point.herald_energy_pj
    if not point.scheduled and herald != (point.cycles, point.energy_pj):
        yield "herald_cycles, herald_energy_pj: not those of the point, which only herald has scheduled"
    if float(objective.of(herald[0], Fraction(herald[1]))) < float(value) * (1 - _CLOSE):
        yield f"herald_cycles, herald_energy_pj: better than the value {point.value}"


def _grid_faults(document: CodesignDocument) -> Iterator[str]:
    """The points must be those of the class's grid, as far as every layer fits and time was left."""
    try:
        resources = document.resources
        grid = divisions_of(
            resources, document.dataflows, document.search, document.settings.seed, document.own
        )
    except InputError as error:
        yield str(error)
        return
    points = [document.division(point.partition, point.fields) for point in document.points]
    if len(set(points)) < len(points):
        yield "points: a partition appears twice"
    unknown = set(points) - set(grid)
    if unknown:
        yield f"points: {len(unknown)} are not of the grid of class {resources.name}"
    elif points != [division for division in grid if division in set(points)]:
        yield "points: not in the order of the grid"
    missing = len(grid) - len(points) - document.unfit
    if document.bound is not None and missing:
        yield f"bound: {document.bound} for the whole grid, but {missing} partitions are missing"


def _sum_faults(document: CodesignDocument) -> Iterator[str]:
    """Value, bound and numbers must be those of the points."""
    points = document.points
    scheduled = sum(point.scheduled for point in points)
    for field, stored, counted in (
        ("partitions", document.partitions, len(points)),
        ("scheduled", document.scheduled, scheduled),
    ):
        if stored != counted:
            yield f"{field}: {stored}, the points are {counted}"
    if not points or document.value_key is None:
        return
    least = min(Fraction(point.value_exact) for point in points)
    if document.value_key != least:
        yield f"value: {document.value}, the least of the points is {number(least)}"
    goal = least * (1 - Fraction(document.settings.gap))
    out = sum(not point.scheduled and Fraction(point.bound_exact) >= goal for point in points)
    if document.discarded != out:
        yield f"discarded: {document.discarded}, the points' bounds rule out {out}"
    bound = min(least, *(Fraction(point.bound_exact) for point in points))
    if document.bound_key is not None and document.bound_key > bound:
        yield f"bound: {document.bound}, the least of the points is {number(bound)}"


def _best_faults(document: CodesignDocument) -> Iterator[str]:
    """The best schedule must be of the best partition, and of the document's value."""
    best = document.best
    assert best is not None
    if document.partition is None:
        yield "partition: missing"
        return
    division = document.division(document.partition, document.fields)
    try:
        engines = document.own.at(division.place)
        system = make_system(
            best.system.name, document.resources, document.dataflows, division.parts, engines=engines
        )
        same = best.system.build().content_hash == system.content_hash
    except InputError as error:
        yield str(error)
        return
    if not same:
        yield "best.system: not the class with this partition and these dataflows"
    reported = document.partition, document.fields
    at = [point for point in document.points if (point.partition, point.fields) == reported]
    if not at:
        yield "partition: not one of the points"
    elif best.metrics is not None and (at[0].cycles, at[0].energy_pj_exact) != (
        best.metrics.makespan,
        best.metrics.energy_pj_exact,
    ):
        yield "best.metrics: not cycles and energy of its point"
    elif best.bound_key is not None and best.bound_key > Fraction(at[0].bound_exact):
        yield f"best.bound: {best.bound} above the point's {at[0].bound}"
    if at and {*at[0].open_mappings} != {*best.open_mappings}:
        yield "open_mappings: of the best point other than those of best.problem"
    if best.settings != document.settings:
        yield "best.settings: not those of the document"
    if best.versions != document.versions:
        yield "best.versions: not those of the document"
    if document.tables_s > document.wall_s:
        yield f"tables_s: {document.tables_s}, more than wall_s"
    for field, expected, claimed in (
        ("objective", document.objective, best.objective),
        ("value", document.value_exact, best.value_exact),
        ("workload", document.workload, best.workload),
    ):
        if expected != claimed:
            yield f"best.{field}: {claimed}, expected {expected}"
