"""The result of one layer: what was found, and what is proven of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from tilewright.api.claimed import Claimed
from tilewright.api.mapping.mapping import LayerMapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.document import LayerRecord, MetricsRecord, SolutionRecord, layer_data
from tilewright.report.text.mapping.answer_sets import further_views
from tilewright.report.text.quantities import gap_text
from tilewright.report.text.tables import layer_view
from tilewright.workloads.mapping.operator import Operator

if TYPE_CHECKING:
    from tilewright.api.mapping.document import MappingDocument


class MappingResult(Claimed):
    """The answer for one layer: what was found, and what is proven of it.

    Parameters
    ----------
    document : that has the layer
    record : the layer's record in it
    """

    def __init__(self, document: MappingDocument, record: LayerRecord) -> None:
        self.document = document
        self.record = record

    @property
    def name(self) -> str:
        """Of the layer."""
        return self.record.name

    @property
    def claims(self) -> LayerRecord:
        """The record of what is claimed."""
        return self.record

    @property
    def metrics(self) -> MetricsRecord | None:
        """Energy in pJ, cycles, utilization, accesses: what the evaluator says of the mapping."""
        return self.record.metrics

    @cached_property
    def mapping(self) -> LayerMapping | None:
        """The best mapping."""
        record, metrics = self.record, self.record.metrics
        if record.mapping is None or metrics is None:
            return None
        nodes = Mapping.from_data(record.mapping.nodes, record.name)
        return LayerMapping(
            record.name, nodes, self._operator, self._engine, metrics.energy_pj, metrics.cycles
        )

    @property
    def front(self) -> list[LayerMapping]:
        """The Pareto front of energy and cycles where it was asked for, in increasing order of cycles."""
        return self._mappings(() if self.record.front is None else self.record.front.points)

    @property
    def best(self) -> list[LayerMapping]:
        """The best mappings where several were asked for, the best one first."""
        return self._mappings(() if self.record.best is None else self.record.best.mappings)

    @property
    def optima(self) -> list[LayerMapping]:
        """All optimal mappings where they were asked for."""
        return self._mappings(() if self.record.optima is None else self.record.optima.mappings)

    def rows(self) -> list[dict[str, Any]]:
        """One row per memory level and tensor: the accesses of the mapping, in elements."""
        return [] if self.metrics is None else [row.model_dump() for row in self.metrics.accesses]

    def to_dict(self) -> dict[str, Any]:
        """The layer as it stands in the document."""
        return layer_data(self.record)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document that the layer stands in, as `MappingDocument.save` does."""
        self.document.save(path)

    def views(self) -> Sequence[RenderableType]:
        """Figures, loop nest and traffic, and whatever else was asked for."""
        objective = self.document.objective
        view = layer_view(self.record, self._operator, self._engine, objective)
        return [view, *further_views(self.record, objective)]

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap {gap_text(self.gap)}"
        return f"MappingResult({self.name!r}, {self.record.status}, value {self.value}{gap})"

    @property
    def _operator(self) -> Operator:
        return self.record.operator.build(self.record.name)

    @property
    def _engine(self) -> Engine:
        return self.document.machine.engine

    def _mappings(self, records: Sequence[SolutionRecord]) -> list[LayerMapping]:
        return [
            LayerMapping(
                self.name,
                Mapping.from_data(one.mapping.nodes, self.name),
                self._operator,
                self._engine,
                one.energy_pj,
                one.cycles,
            )
            for one in records
        ]
