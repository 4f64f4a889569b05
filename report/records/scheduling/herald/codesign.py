"""The document ``tilewright.codesign/1`` of a result."""

from __future__ import annotations

from typing import Any

from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.codesign import Candidate, CodesignResult, Parts
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.hardware.scheduling.herald.variants import NO_ENGINES, OwnEngines
from tilewright.report.records.claims import claim, figures
from tilewright.report.records.mapping.build import trace_record, versions
from tilewright.report.records.mapping.engine import EngineRecord
from tilewright.report.records.mapping.explore import VariationRecord, plain_data
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PartitionPointRecord,
    ScheduleSettingsRecord,
    objective_name,
    schedule_document,
)
from tilewright.workloads.scheduling.workload import Workload


def codesign_document(
    workload: Workload,
    resources: AcceleratorClass,
    dataflows: list[str],
    search: str,
    objective: ScheduleObjective,
    result: CodesignResult,
    settings: ScheduleSettingsRecord,
    *,
    complete: bool = True,
    engines: OwnEngines = NO_ENGINES,
) -> CodesignDocument:
    """The document of one co-design, with the best schedule on the best partition.

    Parameters
    ----------
    workload : networks with their instances
    resources : PEs, bandwidth and memory that are divided
    dataflows : one per sub-accelerator
    search : how partitions are enumerated: ``exhaustive``, ``binary`` or ``random``
    objective : of the schedules
    result : partitions that were looked at, and the best one
    settings : limits and seed of the call
    complete : whether this is the end, and not an interim state
    engines : machine files among the dataflows, with what of them varies
    """
    best = result.best
    return CodesignDocument(
        **CodesignDocument.head(),
        complete=complete,
        workload=workload.name,
        accelerator_class=resources.name,
        dataflows=dataflows,
        engines={name: EngineRecord.of(engine) for name, engine in engines.kept.items()},
        machine_files={name: plain_data(data) for name, data in engines.files.items()},
        vary=[VariationRecord.of(axis) for axis in engines.axes],
        search=search,
        pe_step=resources.pe_step,
        bandwidth_step=resources.bandwidth_step,
        keep_activations=resources.keep_activations,
        settings=settings,
        points=[point_record(candidate, engines) for candidate in result.candidates],
        fields={} if best is None else plain_data(engines.fields(best.division.place)),
        best=None
        if best is None
        else schedule_document(workload, best.system, best.problem, objective, best.result, settings),
        message=result.message,
        trace=[trace_record(parse_objective(objective_name(objective)), point) for point in result.trace],
        versions=versions(),
        **grid_figures(objective, result),
    )


def point_record(candidate: Candidate, engines: OwnEngines = NO_ENGINES) -> PartitionPointRecord:
    """What is known of one division."""
    cycles, energy = candidate.point
    problem = candidate.problem
    left = [
        f"{task.layer} on {problem.engines[option.engine]}"
        for task in problem.tasks
        for option in task.options
        if not option.proven
    ]
    return PartitionPointRecord.model_validate(
        {
            "partition": partition_data(candidate.division.parts),
            "cycles": cycles,
            "energy_pj": float(energy),
            "energy_pj_exact": str(energy),
            "herald_cycles": candidate.herald[0],
            "herald_energy_pj": float(candidate.herald[1]),
            **figures(candidate.value, candidate.bound, float),
            "scheduled": candidate.visits > 0,
            "fields": plain_data(engines.fields(candidate.division.place)),
            "open_mappings": [*dict.fromkeys(left)],
        }
    )


def partition_data(parts: Parts) -> list[dict[str, float]]:
    """A partition as plain data."""
    return [{"pes": pes, "bytes_per_cycle": float(rate)} for pes, rate in parts]


def grid_figures(objective: ScheduleObjective, result: CodesignResult) -> dict[str, Any]:
    """What is reported of the whole grid: the claim, the best partition, and how many were looked at."""
    return {
        "objective": objective.value,
        **claim(parse_objective(objective_name(objective)), result, float),
        "partition": None if result.best is None else partition_data(result.best.division.parts),
        "partitions": len(result.candidates),
        "unfit": result.unfit,
        "discarded": result.discarded,
        "scheduled": result.scheduled,
        "tables_s": result.stated_seconds,
        "wall_s": result.wall_seconds,
    }
