"""The document ``tilewright.sweep/1``: a model whose parameters vary, and machines explored for each point.

Every point stands in it as a whole ``tilewright.explore/1``, so that the file alone is evidence of its
curves.  ``schemas/sweep-1.schema.json`` says the same as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from pydantic import Field

from tilewright.hardware.mapping.variations import Variation
from tilewright.report.records.claims import Number
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.mapping.explore import ExploreDocument, VariationRecord
from tilewright.report.records.mapping.model_roofline import kind_rows
from tilewright.report.records.mapping.operator import Record

PREFIX = "model."
"""Before the name of a model's parameter, where fields of a machine stand beside it."""


class SweepPoint(Record):
    """The model with some parameters, and the machines that were explored for it."""

    index: int = Field(ge=0)
    fields: dict[str, Any]
    exploration: ExploreDocument


class SweepDocument(Document[Literal["tilewright.sweep/1"], Literal["explore"]]):
    """The whole document."""

    complete: bool = Field(description="whether every point is there, and all that it asks for is proven")
    model: str = Field(description="as it was named; what varies takes the place of what it states")
    vary: list[VariationRecord] = Field(min_length=1, description="parameters of the model, axis by axis")
    points: list[SweepPoint] = Field(description="in the order of the grid, the last axis fastest")
    wall_s: float
    versions: dict[str, str]

    def to_data(self) -> dict[str, Any]:
        """Plain data in the sequence of the contract."""
        data = super().to_data()
        for point, entry in zip(self.points, data["points"], strict=True):
            entry["exploration"] = point.exploration.to_data()
        return data


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A point of a sweep on its best machine; ``None`` where no machine has a value.

    Parameters
    ----------
    fields : the varied parameters of the model
    design : the varied fields of the best machine
    value, bound, gap : of the objective, over all machines
    seconds : of all runs of the model
    energy_pj : of one sequence or picture
    per_second : sequences or pictures per second
    compute_seconds : with all PEs at work in every iteration
    transfer_seconds : for what must cross the outermost level's ports
    limit : the longer of the two: ``PEs`` or the outermost level
    """

    fields: dict[str, Any]
    design: dict[str, Any]
    value: Number | None = None
    bound: Number | None = None
    gap: float | None = None
    seconds: float | None = None
    energy_pj: float | None = None
    per_second: float | None = None
    compute_seconds: float | None = None
    transfer_seconds: float | None = None
    limit: str = ""


def sweep_rows(document: SweepDocument) -> list[SweepRow]:
    """One row per point."""
    return [_row(point) for point in document.points]


def _row(point: SweepPoint) -> SweepRow:
    best = point.exploration.best
    if best is None or best.result.totals.cycles is None:
        return SweepRow(point.fields, {})
    engine = best.result.arch.build("arch")
    kinds = kind_rows(best.result, engine)
    seconds = sum(row.seconds for row in kinds)
    compute = sum(row.compute_seconds for row in kinds)
    transfers = sum(row.transfer_seconds for row in kinds)
    batch = point.exploration.batch
    return SweepRow(
        point.fields,
        best.fields,
        best.value,
        best.bound,
        best.gap,
        seconds,
        float(best.result.totals.energy_pj or 0) / batch,
        batch / seconds,
        compute,
        transfers,
        engine.levels[0].name if transfers > compute else "PEs",
    )


@dataclass(frozen=True, slots=True)
class SweepLine:
    """Points that differ in the last axis alone.

    Parameters
    ----------
    name : the values of the other axes; empty where there are none
    xs : values of the last axis, numbers where all of them are
    rows : one per value
    """

    name: str
    xs: tuple[float | str, ...]
    rows: tuple[SweepRow, ...]

    @property
    def numeric(self) -> bool:
        """Whether the axis has a scale."""
        return all(not isinstance(x, str) for x in self.xs)


def sweep_lines(document: SweepDocument) -> list[SweepLine]:
    """The lines of a plot, in the order of the grid."""
    last = document.vary[-1].fields
    groups: dict[str, list[SweepRow]] = {}
    for row in sweep_rows(document):
        others = [
            f"{field.removeprefix(PREFIX)} {row.fields[field]}" for field in row.fields if field not in last
        ]
        groups.setdefault(", ".join(others), []).append(row)
    numeric = all(isinstance(value, int | float) for values in document.vary[-1].values for value in values)
    return [
        SweepLine(
            name,
            tuple(
                row.fields[last[0]] if numeric else ":".join(str(row.fields[field]) for field in last)
                for row in rows
            ),
            tuple(rows),
        )
        for name, rows in groups.items()
    ]


def places(axes: Sequence[Variation]) -> list[dict[str, Any]]:
    """The fields of every point of a grid, the last axis fastest."""
    choices = product(*(range(len(axis.values)) for axis in axes))
    return [
        {
            field: value
            for axis, index in zip(axes, place, strict=True)
            for field, value in axis.changes(index).items()
        }
        for place in choices
    ]


def sweep_document(
    model: str,
    axes: Sequence[Variation],
    explorations: Sequence[tuple[dict[str, Any], ExploreDocument]],
    wall: float,
) -> SweepDocument:
    """The document of a sweep, finished or not.

    Parameters
    ----------
    model : as it was named
    axes : parameters that vary
    explorations : of the first points of the grid, each with its fields
    wall : seconds
    """
    points = [
        SweepPoint(index=index, fields=fields, exploration=exploration)
        for index, (fields, exploration) in enumerate(explorations)
    ]
    return SweepDocument(
        **SweepDocument.head(),
        complete=len(points) == len(places(axes)) and all(point.exploration.complete for point in points),
        model=model,
        vary=[
            VariationRecord(fields=[*axis.fields], values=[[*row] for row in axis.values]) for axis in axes
        ],
        points=points,
        wall_s=round(wall, 3),
        versions=versions(),
    )
