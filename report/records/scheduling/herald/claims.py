"""What documents of ``schedule`` and ``codesign`` claim, held against a second opinion."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.hardware.scheduling.herald.classes import accelerator_class, make_system
from tilewright.hardware.scheduling.herald.system import System
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.solvers.scheduling.herald.second_opinion import ScheduleClaim, prove_codesign, prove_schedule
from tilewright.solvers.second_opinion import Proof
from tilewright.workloads.mapping.operator import Operator


def schedule_proof(document: ScheduleDocument, problem: SchedulingProblem | None, limits: Limits) -> Proof:
    """Whether the bound of a schedule holds.

    Parameters
    ----------
    problem : that the document states; ``None`` where it states none
    """

    def layers() -> tuple[Sequence[Operator], System]:
        assert document.problem is not None
        return document.problem.operators("problem"), document.system.build()

    return prove_schedule(_claim(document, problem), layers, limits)


def codesign_proof(document: CodesignDocument, problem: SchedulingProblem | None, limits: Limits) -> Proof:
    """Whether the bound of a co-design holds on every partition.

    Parameters
    ----------
    problem : of the best schedule; ``None`` where the document states none
    """
    claim = _claim(document, problem)
    if problem is None or document.best is None or document.best.problem is None:
        return prove_codesign(_claim(document, None), (), (), limits)
    resources = accelerator_class(document.accelerator_class)
    systems = [make_system("", resources, document.dataflows, point.parts) for point in document.points]
    return prove_codesign(claim, systems, document.best.problem.operators("best: problem"), limits)


def _claim(document: ScheduleDocument | CodesignDocument, problem: SchedulingProblem | None) -> ScheduleClaim:
    return ScheduleClaim(
        status=Status(document.status),
        objective=ScheduleObjective(document.objective),
        bound=document.bound_key,
        metric=document.settings.metric,
        problem=problem,
    )
