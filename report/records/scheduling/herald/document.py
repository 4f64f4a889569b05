"""The documents ``tilewright.schedule/1`` and ``tilewright.codesign/1``: what those verbs print.

Numbers are integers where they are integral and floats elsewhere; the exact fraction stands beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.codesign import Division, Parts
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation, placement_energies
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleResult
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass, accelerator_class, with_steps
from tilewright.hardware.scheduling.herald.system import System
from tilewright.hardware.scheduling.herald.variants import OwnEngines
from tilewright.report.records.claims import ClaimRecord, ExactText, Number, TraceRecord, claim, number
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.build import trace_record, versions
from tilewright.report.records.mapping.engine import EngineRecord
from tilewright.report.records.mapping.explore import VariationRecord, plain_data
from tilewright.report.records.mapping.operator import Record
from tilewright.report.records.scheduling.herald.problem import (
    OpenOptionRecord,
    ProblemRecord,
    problem_record,
)
from tilewright.report.records.scheduling.herald.system import SystemRecord
from tilewright.report.records.scheduling.settings import SearchSettingsRecord
from tilewright.workloads.scheduling.workload import Workload

_NAMED = 4
"""Layers that a text names before it counts."""


class ScheduleMetricsRecord(Record):
    """What the evaluator says of a schedule."""

    makespan: int = Field(description="cycles")
    energy_pj: Number
    energy_pj_exact: ExactText
    edp: Number = Field(description="energy_pj times makespan")
    time_s: float = Field(description="makespan at the system's clock")
    utilization: dict[str, float] = Field(description="per engine, the part of the makespan it is busy")
    energy_by_engine_pj: dict[str, Number]
    context_energy_pj: Number
    peak_memory_bytes: int


class PlacementRecord(Record):
    """One task at its place."""

    task: str
    instance: str
    layer: str
    engine: str
    layout: str = Field(description="the dataflow under which it runs")
    fetch_start: int = Field(description="cycle at which fetching its first weights begins")
    start: int
    end: int
    energy_pj: Number
    memory_bytes: int
    fetch_bytes: int
    sources: dict[str, str] = Field(description="per task whose result is read, where it is read from")


class ScheduleSettingsRecord(SearchSettingsRecord):
    """How the search was asked to run."""

    metric: str = Field(description="by which the mappings of layers are chosen")


class AskedSchedule(Document[Literal["tilewright.schedule/1"], Literal["schedule"]]):
    """What ``schedule`` was asked."""

    complete: bool = Field(description="whether the search has ended; false in a file of a running one")
    workload: str
    tasks: int
    system: SystemRecord
    problem: ProblemRecord | None = Field(description="null if the costs of layers are unknown")
    objective: Literal["makespan", "energy", "edp"]
    settings: ScheduleSettingsRecord


class ScheduleDocument(ClaimRecord, AskedSchedule):
    """The whole document of ``schedule``."""

    bound: Number | None = Field(description="no schedule has a smaller value")
    metrics: ScheduleMetricsRecord | None
    schedule: list[PlacementRecord] | None
    message: str
    wall_s: float
    input_hash: str
    trace: list[TraceRecord]
    versions: dict[str, str]

    @property
    def open_text(self) -> str:
        """Layers, with their engines, whose mappings were not proven best in time; empty without any."""
        return _open_text(self.open_mappings, self.settings.metric)

    @property
    def open_mappings(self) -> list[str]:
        """The same, one by one, as far as the document has the costs of its layers."""
        return [
            f"{layer} on {option.engine}"
            for problem in ([] if self.problem is None else [self.problem])
            for run in problem.runs
            for layer, costs in run.layers.items()
            if 0 <= costs < len(problem.costs)
            for option in problem.costs[costs].options
            if isinstance(option, OpenOptionRecord)
        ]


def _open_text(left: Sequence[str], metric: str) -> str:
    """Mappings that were not proven best in time, in words; empty without any."""
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    named = ", ".join(left[:_NAMED])
    return f"not proven in time to be of least {metric}: {named}{more}" if left else ""


class PartitionPointRecord(Record):
    """One partition of the grid."""

    partition: list[dict[str, float]] = Field(description="PEs and bytes per cycle of every sub-accelerator")
    cycles: int
    energy_pj: float
    energy_pj_exact: ExactText
    herald_cycles: int
    herald_energy_pj: float
    value: float
    value_exact: ExactText
    bound: float = Field(description="no schedule on this partition has a smaller value")
    bound_exact: ExactText
    scheduled: bool = Field(description="whether the exact scheduler was asked")
    fields: dict[str, Any] = Field(
        default_factory=dict, description="of machine files that vary, what this variant has"
    )
    open_mappings: list[str] = Field(
        default_factory=list, description="layers with engines whose mappings were not proven best in time"
    )


class AskedCodesign(Document[Literal["tilewright.codesign/1"], Literal["codesign"]]):
    """What ``codesign`` was asked."""

    complete: bool = Field(description="whether the search has ended; false in a file of a running one")
    workload: str
    accelerator_class: str
    dataflows: list[str]
    engines: dict[str, EngineRecord] = Field(
        default_factory=dict, description="machine files among the dataflows that stay as they are, by name"
    )
    machine_files: dict[str, Any] = Field(
        default_factory=dict, description="those that vary, as plain data; decimals as text"
    )
    vary: list[VariationRecord] = Field(
        default_factory=list, description="what varies; fields begin with the name of their machine"
    )
    search: str
    pe_step: int = Field(ge=1, description="PEs by which partitions of the grid differ")
    bandwidth_step: int = Field(ge=1, description="bytes per cycle, likewise")
    keep_activations: bool = Field(False, description="whether results may stay in the global memory")
    objective: Literal["makespan", "energy", "edp"]
    settings: ScheduleSettingsRecord

    @property
    def resources(self) -> AcceleratorClass:
        """What is divided, with the steps of the grid; raises ``InputError`` for none that there is."""
        resources = with_steps(accelerator_class(self.accelerator_class), self.pe_step, self.bandwidth_step)
        return replace(resources, keep_activations=self.keep_activations)

    @cached_property
    def own(self) -> OwnEngines:
        """The machine files among the dataflows; raises ``InputError`` where they are none."""
        kept = {name: record.build() for name, record in self.engines.items()}
        axes = tuple(axis.build("vary") for axis in self.vary)
        return OwnEngines(kept, self.machine_files, axes)

    @cached_property
    def _places(self) -> dict[str, tuple[int, ...]]:
        return {_text(plain_data(self.own.fields(place))): place for place in self.own.variants}

    def division(self, partition: list[dict[str, float]], fields: dict[str, Any]) -> Division:
        """A partition with the variant of some fields; raises ``InputError`` where there is none."""
        text = _text(fields)
        if text not in self._places:
            raise InputError("fields", None, f"no variant of the machine files has {text}")
        return Division(parts_of(partition), self._places[text])


class CodesignDocument(ClaimRecord, AskedCodesign):
    """The whole document of ``codesign``."""

    bound: Number | None = Field(description="no partition of the grid has a schedule of smaller value")
    partition: list[dict[str, float]] | None
    fields: dict[str, Any] = Field(
        default_factory=dict, description="of machine files that vary, what the best variant has"
    )
    partitions: int = Field(description="number of examined ones, of all variants")
    unfit: int = Field(description="how many others have a layer that fits nowhere")
    discarded: int = Field(description="how many their bound ruled out before any exact scheduling")
    scheduled: int
    points: list[PartitionPointRecord]
    best: ScheduleDocument | None
    message: str
    tables_s: float
    wall_s: float
    trace: list[TraceRecord]
    versions: dict[str, str]

    @property
    def open_text(self) -> str:
        """Layers, engines and variants with mappings that were not proven best in time; empty without any."""
        left = [
            f"{layer} ({variant_text(point.fields)})" if point.fields else layer
            for point in self.points
            for layer in point.open_mappings
        ]
        return _open_text([*dict.fromkeys(left)], self.settings.metric)


def variant_text(fields: Mapping[str, object]) -> str:
    """What a variant of machine files has, such as ``strip.levels.BUF.capacity=8kB``."""
    return ", ".join(f"{path}={value}" for path, value in fields.items())


def schedule_document(
    workload: Workload,
    system: System,
    problem: SchedulingProblem | None,
    objective: ScheduleObjective,
    result: ScheduleResult,
    settings: ScheduleSettingsRecord,
    *,
    complete: bool = True,
) -> ScheduleDocument:
    """The document of one result.

    Parameters
    ----------
    workload : networks with their instances
    system : sub-accelerators and what they share
    problem : tasks with their costs; ``None`` where a limit struck before it was stated
    objective : of the schedule
    result : schedule, bound and trace
    settings : limits, metric and seed of the call
    complete : whether this is the end, and not an interim state
    """
    operators = {
        (part.name, layer.name): layer.operator
        for part in workload.parts
        for layer in part.network.mac_layers
    }
    shown = parse_objective(objective_name(objective))
    record = None if problem is None else problem_record(problem, operators)
    return ScheduleDocument(
        **ScheduleDocument.head(),
        complete=complete,
        workload=workload.name,
        tasks=0 if problem is None else len(problem.tasks),
        system=SystemRecord.of(system),
        problem=record,
        objective=objective.value,
        settings=settings,
        **claim(shown, result),
        metrics=None
        if problem is None or result.evaluation is None
        else schedule_metrics(problem, system, result.evaluation),
        schedule=None if problem is None or result.answer is None else placements(problem, result.answer),
        message=result.message,
        wall_s=result.wall_seconds,
        input_hash=""
        if record is None
        else inputs_hash(workload.name, SystemRecord.of(system), record, objective.value, settings.metric),
        trace=[trace_record(shown, point) for point in result.trace],
        versions=versions(),
    )


def inputs_hash(
    workload: str, system: SystemRecord, problem: ProblemRecord, objective: str, metric: str
) -> str:
    """SHA-256 of everything that was asked, and of the costs with which it was answered.

    A system's description does not count.

    Parameters
    ----------
    workload : its name
    system : sub-accelerators and what they share
    problem : tasks with the costs of their options
    objective : of the schedule, by name
    metric : by which mappings of layers were chosen, by name
    """
    machine = system.model_dump(exclude={"description"})
    content = [workload, machine, problem.model_dump(), objective, metric]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _text(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def parts_of(partition: list[dict[str, float]]) -> Parts:
    """A partition from its data."""
    return tuple((int(part["pes"]), Fraction(part["bytes_per_cycle"])) for part in partition)


def objective_name(objective: ScheduleObjective) -> str:
    """The name under which values of the objective are shown."""
    return "cycles" if objective is ScheduleObjective.MAKESPAN else objective.value


def placements(problem: SchedulingProblem, schedule: Schedule) -> list[PlacementRecord]:
    """All placements by start."""
    return [
        PlacementRecord(
            task=problem.tasks[p.task].name,
            instance=problem.tasks[p.task].instance,
            layer=problem.tasks[p.task].layer,
            engine=problem.engines[p.option.engine],
            layout=p.option.layout,
            fetch_start=p.fetch_start,
            start=p.start,
            end=p.end,
            energy_pj=number(energy),
            memory_bytes=p.option.memory,
            fetch_bytes=p.option.fetch_memory,
            sources={problem.tasks[task].name: place for task, place in p.sources.items()},
        )
        for p, energy in zip(schedule.placements, placement_energies(problem, schedule), strict=True)
    ]


def schedule_metrics(
    problem: SchedulingProblem, system: System, evaluation: ScheduleEvaluation
) -> ScheduleMetricsRecord:
    """What the evaluator said, as data."""
    names = problem.engines
    return ScheduleMetricsRecord(
        makespan=evaluation.makespan,
        energy_pj=number(evaluation.energy),
        energy_pj_exact=str(evaluation.energy),
        edp=number(evaluation.edp),
        time_s=float(evaluation.makespan / (system.clock_mhz * 10**6)),
        utilization=dict(zip(names, evaluation.utilization, strict=True)),
        energy_by_engine_pj={n: number(e) for n, e in zip(names, evaluation.engine_energy, strict=True)},
        context_energy_pj=number(evaluation.context_energy),
        peak_memory_bytes=evaluation.peak_memory,
    )
