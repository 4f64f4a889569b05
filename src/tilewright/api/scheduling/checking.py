"""Whether a document about schedules is correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from tilewright.api.checked import Check
from tilewright.formulation.limits import Limits
from tilewright.report.checks.scheduling.herald.codesign import check_codesign
from tilewright.report.checks.scheduling.herald.schedule import check_schedule
from tilewright.report.checks.scheduling.tiled.plan import check_plan
from tilewright.report.records.scheduling.herald.claims import codesign_proof, schedule_proof
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.scheduling.tiled.claims import plan_proof
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.report.text.proofs import proof_data
from tilewright.report.text.scheduling.claims import check_views
from tilewright.solvers.second_opinion import Proof

if TYPE_CHECKING:
    from tilewright.api.scheduling.answer import SchedulingDocument


@dataclass(frozen=True, repr=False)
class ScheduleCheck(Check):
    """What a check of a schedule, a plan or a co-design found."""

    record: SchedulingDocument

    @property
    def proof(self) -> Proof | None:
        """The second opinion, where it was asked for."""
        return self.proofs[0] if self.proofs else None

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        record = self.record
        head = {
            "of": record.command,
            "workload": record.workload,
            "class" if isinstance(record, CodesignDocument) else "system": self._machine,
            "objective": record.objective,
            **({"space": record.space} if isinstance(record, PlanDocument) else {}),
            "status": record.status,
        }
        reported = {**self._reported(head, complete=record.complete), "faults": [*self.faults]}
        return reported if self.proof is None else {**reported, "proof": proof_data(self.proof)}

    def views(self) -> Sequence[RenderableType]:
        """One line on the document, every fault, and a summary."""
        record, machine = self.record, self._machine
        names = record.workload, f"class {machine}" if isinstance(record, CodesignDocument) else machine
        return check_views(record, names, self.faults, self.proof, complete=record.complete)

    @property
    def _machine(self) -> str:
        """Name of the system or class."""
        match self.record:
            case CodesignDocument(accelerator_class=name) | PlanDocument(system=name):
                return name
            case ScheduleDocument(system=system):
                return system.name


def check_schedules(record: SchedulingDocument, where: str, limits: Limits | None) -> ScheduleCheck:
    """Check a document.

    Parameters
    ----------
    limits : of the second opinion; ``None`` to ask for none
    """
    proof: Proof | None = None
    if isinstance(record, PlanDocument):
        judged = check_plan(record, where)
        faults = judged.faults
        if limits is not None:
            proof = plan_proof(record, judged.problem, judged.answer, limits)
    elif isinstance(record, ScheduleDocument):
        checked_schedule = check_schedule(record, where)
        faults = checked_schedule.faults
        if limits is not None:
            proof = schedule_proof(record, checked_schedule.problem, limits)
    else:
        partitions = check_codesign(record, where)
        faults = partitions.faults
        if limits is not None:
            problem = None if partitions.best is None else partitions.best.problem
            proof = codesign_proof(record, problem, limits)
    return ScheduleCheck(faults, () if proof is None else (proof,), record)
