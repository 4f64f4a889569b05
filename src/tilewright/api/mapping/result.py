"""What mapping layers gives: a document with a result for each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.claimed import Claimed
from tilewright.api.display import Displayed
from tilewright.api.mapping.machine import Machine
from tilewright.api.mapping.mapping import LayerMapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.disk import check_writable, write_file
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.files import output_format, render
from tilewright.report.records.mapping.document import (
    EffortRecord,
    LayerRecord,
    MetricsRecord,
    ResultDocument,
    SolutionRecord,
    layer_data,
)
from tilewright.report.records.mapping.model_roofline import kind_rows, phase_rows
from tilewright.report.records.mapping.network_energy import network_energy
from tilewright.report.records.mapping.roofline import roofline
from tilewright.report.text.quantities import gap_text
from tilewright.workloads.mapping.operator import Operator

if TYPE_CHECKING:
    from rich.console import RenderableType


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

    @property
    def effort(self) -> EffortRecord | None:
        """What the search took: nodes, trees, tables and seconds of every method, and memory.

        ``None`` in documents of earlier versions.
        """
        return self.record.effort

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
        from tilewright.report.text.mapping.answer_sets import further_views
        from tilewright.report.text.tables import layer_view

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
                Mapping.from_data(record.mapping.nodes, self.name),
                self._operator,
                self._engine,
                record.energy_pj,
                record.cycles,
            )
            for record in records
        ]


class MappingDocument(Displayed):
    """The answers for the layers of a network, one for every distinct layer: what ``tilewright map`` writes.

    Parameters
    ----------
    record : the document's content
    where : what errors call it
    """

    def __init__(self, record: ResultDocument, where: str = "document") -> None:
        self.record = record
        self.where = where

    @cached_property
    def layers(self) -> tuple[MappingResult, ...]:
        """One result per distinct layer, in the network's order."""
        return tuple(MappingResult(self, layer) for layer in self.record.layers)

    @cached_property
    def machine(self) -> Machine:
        """The machine that the layers run on."""
        return Machine(self.record.arch.build(self.where))

    @property
    def objective(self) -> Objective:
        """What was minimised."""
        return parse_objective(self.record.objective)

    @property
    def complete(self) -> bool:
        """Whether every layer that was asked for is there."""
        return self.record.complete

    @property
    def optimal(self) -> bool:
        """Whether every layer is there and proven optimal."""
        return self.complete and all(layer.status is Status.OPTIMAL for layer in self.layers)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Nodes of the model that compute and are in no layer, each with the reason."""
        return tuple(self.record.left_out)

    @property
    def without_mapping(self) -> tuple[str, ...]:
        """Layers that have no mapping, without which there are no totals."""
        return tuple(self.record.totals.without_mapping)

    @property
    def value(self) -> float | int | None:
        """Sum of the layers' values, for the objectives energy and cycles."""
        return self.record.totals.value

    @property
    def bound(self) -> float | int | None:
        """Sum of the layers' bounds."""
        return self.record.totals.bound

    @property
    def gap(self) -> float | None:
        """``(value - bound) / value``."""
        return self.record.totals.gap

    @property
    def energy_pj(self) -> float | int | None:
        """Of the whole network; ``None`` where a layer has no mapping."""
        return self.record.totals.energy_pj

    @property
    def cycles(self) -> int | None:
        """Of the whole network, layer after layer."""
        return self.record.totals.cycles

    def __getitem__(self, place: str | int) -> MappingResult:
        """A layer's result by its position, or by any of its names; raises ``KeyError`` or ``IndexError``."""
        if isinstance(place, int):
            return self.layers[place]
        for layer in self.layers:
            if place in layer.record.names:
                return layer
        raise KeyError(unknown_name(place, [name for result in self.layers for name in result.record.names]))

    def __iter__(self) -> Iterator[MappingResult]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def rows(self) -> list[dict[str, Any]]:
        """One row per distinct layer."""
        return [
            {
                "name": layer.name,
                "count": layer.count,
                "status": layer.status,
                "value": layer.value,
                "bound": layer.bound,
                "gap": layer.gap,
                "energy_pj": None if layer.metrics is None else layer.metrics.energy_pj,
                "cycles": None if layer.metrics is None else layer.metrics.cycles,
                "utilization": None if layer.metrics is None else layer.metrics.utilization,
                "wall_s": layer.wall_s,
            }
            for layer in self.record.layers
        ]

    def energy_rows(self) -> list[dict[str, Any]]:
        """Energy of the network by level and tensor: each layer that has a mapping, as often as it is there.

        Rows have ``component`` (a level's name, or what else costs energy), ``role`` (``inputs``,
        ``weights``, ``outputs``, or empty), ``energy_pj`` and ``share``.
        """
        return [
            {
                "component": part.component,
                "role": part.role,
                "energy_pj": part.picojoules,
                "share": part.share,
            }
            for part in network_energy(self.record, self.machine.engine)
        ]

    def roofline_rows(self) -> list[dict[str, Any]]:
        """Every mapped layer below the roof: ``intensity`` (MAC per byte of the outermost level),
        ``macs_per_cycle``, ``roof`` (most of them at that intensity), and the ``limit`` that the roof is.
        """
        return [asdict(point) for point in roofline(self.record, self.machine.engine)]

    def kind_rows(self) -> list[dict[str, Any]]:
        """The roofline of a whole model, by phase and kind of layer.

        Rows have ``phase``, ``kind``, ``layers`` (runs of them), ``proven``, ``seconds``, ``share`` (of the
        phase's time), ``energy_pj``, and the limits ``compute_seconds`` and ``transfer_seconds``.
        """
        return [asdict(row) for row in kind_rows(self.record, self.machine.engine)]

    def phase_rows(self) -> list[dict[str, Any]]:
        """Per phase, ``seconds`` of a run (to the first token, or for one more of every sequence), and its
        ``energy_pj`` per sequence; a model of one run is one phase without a name.
        """
        return [asdict(row) for row in phase_rows(self.record, self.machine.engine)]

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data: what ``tilewright map --format json`` prints."""
        return self.record.to_data()

    def to_text(self, form: str = "json") -> str:
        """The document as a file holds it.

        Parameters
        ----------
        form : ``json``, ``jsonl``, ``yaml`` or ``csv``
        """
        return render(self.record, form)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document; the suffix (.json, .jsonl, .yaml, .csv) states the format.

        Raises
        ------
        InputError : for another suffix, or a file that cannot be written to
        OutputError : where writing fails
        """
        path = Path(path)
        form = output_format(path, "")
        check_writable(path)
        write_file(path, self.to_text(form))

    def save_plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the time of each kind of layer beside its limits, phase by phase, and the kinds' roofline.

        Raises
        ------
        InputError : for a suffix of no picture, and where the extra ``plots`` is missing
        """
        from tilewright.report.plots.model import plot_model
        from tilewright.report.plots.style import check_plot_file

        check_plot_file(Path(path))
        plot_model(self.record, self.record.arch.build(self.where), Path(path))

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page of tables and plots (the extra ``plots``); raises ``InputError``."""
        from tilewright.report.html.mapping.result import write_result_report
        from tilewright.report.html.page import check_report

        check_report(Path(path))
        write_result_report(Path(path), self.record)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """All about a single layer, or a table of several.

        Parameters
        ----------
        seconds : that the call took; by default those of its layers together
        """
        from tilewright.report.text.mapping.documents import document_views

        took = sum(layer.wall_s for layer in self.record.layers) if seconds is None else seconds
        return document_views(self.record, took)

    def __repr__(self) -> str:
        reported = ", ".join(f"{count} {status}" for status, count in self.record.totals.statuses.items())
        return (
            f"MappingDocument({self.record.model!r} on {self.record.arch.name!r}, {reported or 'no layers'})"
        )


def only_layer(document: MappingDocument, name: str) -> MappingResult:
    """The one result of a document about one layer; raises ``InputError`` where it was not reached."""
    if not document.layers:
        raise InputError(name, None, "the search was interrupted before it began")
    return document.layers[0]
