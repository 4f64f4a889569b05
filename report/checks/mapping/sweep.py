"""Whether a document of a sweep is one: points are the grid's, and ask the same question of other models."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.variations import Variation
from tilewright.report.records.mapping.sweep import SweepDocument, SweepPoint, places
from tilewright.workloads.families import family_network, with_parameters

_SAME = ("machine", "machine_file", "cost_model", "factors", "objective", "constraints", "vary", "versions")
"""What all points have in common."""


def sweep_faults(document: SweepDocument) -> Iterator[str]:
    """Everything that contradicts itself, each in one line; the points are checked one by one elsewhere."""
    axes = [Variation(tuple(axis.fields), tuple(map(tuple, axis.values))) for axis in document.vary]
    if any(len(row) != len(axis.fields) for axis in axes for row in axis.values):
        yield "vary: expected a value for each field"
        return
    grid = places(axes)
    if len(document.points) > len(grid):
        yield f"points: {len(document.points)}, the grid has {len(grid)}"
        return
    for index, point in enumerate(document.points):
        yield from _point_faults(document, point, index, grid[index])
    whole = len(document.points) == len(grid) and all(point.exploration.complete for point in document.points)
    if document.complete != whole:
        yield f"complete: {document.complete}, the points say {whole}"


def _point_faults(
    document: SweepDocument, point: SweepPoint, index: int, fields: dict[str, object]
) -> Iterator[str]:
    here = f"points[{index}]"
    if point.index != index or point.fields != fields:
        yield f"{here}: {point.fields}, the grid has {fields}"
        return
    try:
        name = family_network(with_parameters(document.model, fields)).name
    except InputError as error:
        yield f"{here}: {error}"
        return
    if point.exploration.model != name:
        yield f"{here}.exploration.model: {point.exploration.model}, expected {name}"
    first = document.points[0].exploration
    for field in _SAME:
        if getattr(point.exploration, field) != getattr(first, field):
            yield f"{here}.exploration.{field}: not that of the first point"
