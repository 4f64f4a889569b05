"""The document ``tilewright.plan/1``: what ``schedule`` prints for a tiled machine."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Literal

from pydantic import Field

from tilewright.formulation.scheduling.tiled.evaluator import Evaluation
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledResult
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.report.records.claims import ClaimRecord, ExactText, Number, TraceRecord, claim, number
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.build import trace_record, versions
from tilewright.report.records.mapping.operator import Record
from tilewright.report.records.scheduling.settings import SearchSettingsRecord
from tilewright.report.records.scheduling.tiled.plan import MappedPlanRecord, PlanRecord
from tilewright.report.records.scheduling.tiled.problem import ObjectiveText, TiledProblemRecord
from tilewright.solvers.scheduling.tiled.ancestors import EFFORT
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds


class PlanMetricsRecord(Record):
    """What the evaluator says of a plan."""

    cycles: int
    energy_pj: Number
    energy_pj_exact: ExactText
    energy_by_component_pj: dict[str, Number]
    edp: Number = Field(description="energy_pj times cycles")
    time_s: float = Field(description="cycles at the machine's clock")
    compute_cycles: int = Field(description="if no task waited for data")
    utilization: float = Field(description="of the PEs, memory delay included")
    compute_utilization: float = Field(description="of the PEs in compute_cycles, without memory delay")
    atom_utilization: float = Field(description="of the PEs while their engine runs an atom")
    dram_read_bytes: int
    dram_write_bytes: int
    hop_bytes: int = Field(description="bytes times links between routers")
    network_overhead: float = Field(description="part of the cycles that links add")
    reuse: float = Field(description="part of the read results' bytes that never came from DRAM")
    busiest_link: str
    busiest_link_bytes: float
    peak_buffer_bytes: list[int] = Field(description="the fullest that each engine's buffer gets")
    atoms: int
    steps: int
    transfers: int
    atoms_bound_cycles: int = Field(
        description="no plan of these very atoms takes fewer cycles; the document's bound is over its space"
    )


class AskedPlan(Document[Literal["tilewright.plan/1"], Literal["schedule"]]):
    """What ``schedule`` was asked of a tiled machine, and the space of the answer."""

    complete: bool = Field(description="whether the search has ended; false in a file of a running one")
    workload: str
    system: str
    layers: int
    objective: ObjectiveText
    settings: SearchSettingsRecord
    space: str = Field(
        description="the plans over which status, bound and gap are claimed; empty for all plans"
    )


class PlanDocument(ClaimRecord, AskedPlan):
    """The whole document of ``schedule`` on a tiled machine."""

    bound: Number | None = Field(description="no plan of the space has a smaller value")
    metrics: PlanMetricsRecord | None
    message: str
    wall_s: float
    input_hash: str
    trace: list[TraceRecord]
    problem: TiledProblemRecord
    plan: PlanRecord | MappedPlanRecord | None
    versions: dict[str, str]


def plan_document(
    problem: TiledProblem,
    objective: str,
    result: TiledResult,
    settings: SearchSettingsRecord,
    *,
    space: str = "",
    complete: bool = True,
) -> PlanDocument:
    """The document of one result.

    Parameters
    ----------
    space : over which plans the result's bound holds; empty for all
    """
    record = TiledProblemRecord.of(problem)
    shown = tiled_objective(objective)
    answer, evaluation = result.answer, result.evaluation
    effort = EFFORT if complete else 0
    metrics = None
    if answer is not None and evaluation is not None:
        metrics = plan_metrics(problem, answer, evaluation, effort=effort)
    return PlanDocument.model_validate(
        {
            **PlanDocument.head(),
            "complete": complete,
            "workload": problem.network.name,
            "system": problem.machine.name,
            "layers": len(problem.units),
            "objective": objective,
            "settings": settings,
            "space": space,
            **claim(shown, result, number),
            "metrics": metrics,
            "message": result.message,
            "wall_s": result.wall_seconds,
            "input_hash": inputs_hash(record, objective),
            "trace": [trace_record(shown, point) for point in result.trace],
            "problem": record,
            "plan": None if answer is None else PlanRecord.of(answer),
            "versions": versions(),
        }
    )


def inputs_hash(problem: TiledProblemRecord, objective: str) -> str:
    """SHA-256 of everything that was asked; the machine's name and description do not count."""
    content = problem.model_dump(exclude={"machine": {"name", "description"}})
    return hashlib.sha256(json.dumps([content, objective]).encode()).hexdigest()


def plan_metrics(
    problem: TiledProblem, answer: AtomicPlan, evaluation: Evaluation, *, effort: int = EFFORT
) -> PlanMetricsRecord:
    """What the evaluator said, as data.

    Parameters
    ----------
    effort : what the bound of the atoms may take, see `dag_bounds`
    """
    machine, energy = problem.machine, evaluation.energy
    exact = Fraction(energy.total)
    parts = {
        name: number(Fraction(getattr(energy, name)))
        for name in ("compute", "registers", "buffer", "network", "dram", "static")
    }
    net = topology(machine)
    busiest = int((evaluation.link_bytes[: len(net.names)] / net.rates).argmax())
    return PlanMetricsRecord(
        cycles=evaluation.cycles,
        energy_pj=number(exact),
        energy_pj_exact=str(exact),
        energy_by_component_pj=parts,
        edp=number(exact * evaluation.cycles),
        time_s=evaluation.cycles / (machine.clock_mhz * 1e6),
        compute_cycles=evaluation.compute_cycles,
        utilization=evaluation.utilization,
        compute_utilization=evaluation.compute_utilization,
        atom_utilization=evaluation.atom_utilization,
        dram_read_bytes=evaluation.dram_read_bytes,
        dram_write_bytes=evaluation.dram_write_bytes,
        hop_bytes=evaluation.hop_bytes,
        network_overhead=evaluation.network_overhead,
        reuse=evaluation.reuse,
        busiest_link=net.names[busiest],
        busiest_link_bytes=float(evaluation.link_bytes[busiest]),
        peak_buffer_bytes=[int(peak) for peak in evaluation.peak_bytes],
        atoms=answer.dag.tasks,
        steps=answer.plan.steps,
        transfers=len(answer.plan.transfers),
        atoms_bound_cycles=dag_bounds(answer.dag, machine, effort=effort).cycles,
    )
