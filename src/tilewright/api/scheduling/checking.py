"""Whether a document about schedules tells the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from tilewright.api.display import Displayed
from tilewright.api.scheduling.plan import SchedulingDocument
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
from tilewright.solvers.second_opinion import Proof, Verdict

SCHEMA = "tilewright.check/1"


@dataclass(frozen=True, repr=False)
class ScheduleCheck(Displayed):
    """What a check found.

    Parameters
    ----------
    faults : everything that is wrong, each in one line
    proof : the second opinion, where it was asked for
    """

    record: SchedulingDocument
    faults: tuple[str, ...]
    proof: Proof | None

    @property
    def holds(self) -> bool:
        """Whether every claim holds, and the second opinion does not refute the bound."""
        return not self.faults and (self.proof is None or self.proof.verdict is not Verdict.REFUTED)

    @property
    def undecided(self) -> bool:
        """Whether the second opinion came to no verdict."""
        return self.proof is not None and self.proof.verdict is Verdict.UNDECIDED

    def __bool__(self) -> bool:
        return self.holds

    def rows(self) -> list[dict[str, Any]]:
        """One row per fault."""
        return [{"fault": fault} for fault in self.faults]

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        record = self.record
        told: dict[str, Any] = {
            "schema": SCHEMA,
            "command": "check",
            "of": record.command,
            "workload": record.workload,
            "class" if isinstance(record, CodesignDocument) else "system": self._machine,
            "objective": record.objective,
            **({"space": record.space} if isinstance(record, PlanDocument) else {}),
            "status": record.status,
            "holds": self.holds,
            "complete": record.complete,
            "faults": [*self.faults],
        }
        if self.proof is not None:
            told["proof"] = proof_data(self.proof)
        return told

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

    def __repr__(self) -> str:
        return f"ScheduleCheck({'holds' if self.holds else 'fails'}, {len(self.faults)} faults)"


def check_schedules(record: SchedulingDocument, where: str, limits: Limits | None) -> ScheduleCheck:
    """Check a document.

    Parameters
    ----------
    limits : of the second opinion; ``None`` to ask for none
    """
    proof = None
    if isinstance(record, PlanDocument):
        judged = check_plan(record, where)
        if limits is not None:
            proof = plan_proof(record, judged.problem, judged.answer, limits)
        return ScheduleCheck(record, judged.faults, proof)
    if isinstance(record, ScheduleDocument):
        found = check_schedule(record, where)
        proof = None if limits is None else schedule_proof(record, found.problem, limits)
        return ScheduleCheck(record, found.faults, proof)
    partitions = check_codesign(record, where)
    problem = None if partitions.best is None else partitions.best.problem
    proof = None if limits is None else codesign_proof(record, problem, limits)
    return ScheduleCheck(record, partitions.faults, proof)
