"""Whether a document about schedules tells the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from tilewright.api.display import Displayed
from tilewright.formulation.limits import Limits
from tilewright.report.checks.scheduling.herald.codesign import check_codesign
from tilewright.report.checks.scheduling.herald.schedule import check_schedule
from tilewright.report.records.scheduling.herald.claims import codesign_proof, schedule_proof
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.text.proofs import proof_data
from tilewright.report.text.scheduling.herald.checks import check_views
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

    record: ScheduleDocument | CodesignDocument
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
        is_schedule = isinstance(record, ScheduleDocument)
        told: dict[str, Any] = {
            "schema": SCHEMA,
            "command": "check",
            "of": record.command,
            "workload": record.workload,
            "system": record.system.name if isinstance(record, ScheduleDocument) else None,
            "class": None if isinstance(record, ScheduleDocument) else record.accelerator_class,
            "objective": record.objective,
            "status": record.status,
            "holds": self.holds,
            "complete": record.complete,
            "faults": [*self.faults],
        }
        del told["class" if is_schedule else "system"]
        if self.proof is not None:
            told["proof"] = proof_data(self.proof)
        return told

    def views(self) -> Sequence[RenderableType]:
        """One line on the document, every fault, and a summary."""
        return check_views(self.record, self.faults, self.proof)

    def __repr__(self) -> str:
        return f"ScheduleCheck({'holds' if self.holds else 'fails'}, {len(self.faults)} faults)"


def check_schedules(
    record: ScheduleDocument | CodesignDocument, where: str, limits: Limits | None
) -> ScheduleCheck:
    """Check a document.

    Parameters
    ----------
    limits : of the second opinion; ``None`` to ask for none
    """
    if isinstance(record, ScheduleDocument):
        found = check_schedule(record, where)
        proof = None if limits is None else schedule_proof(record, found.problem, limits)
        return ScheduleCheck(record, found.faults, proof)
    partitions = check_codesign(record, where)
    problem = None if partitions.best is None else partitions.best.problem
    proof = None if limits is None else codesign_proof(record, problem, limits)
    return ScheduleCheck(record, partitions.faults, proof)
