"""What documents of ``schedule`` and ``codesign`` claim, held against a second opinion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.hardware.scheduling.herald.classes import make_system
from tilewright.hardware.scheduling.herald.system import System
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PartitionPointRecord,
    ScheduleDocument,
)
from tilewright.solvers.scheduling.herald.second_opinions.second_opinion import (
    ScheduleClaim,
    prove_codesign,
    prove_schedule,
)
from tilewright.solvers.scheduling.herald.second_opinions.second_opinion_points import PointClaim
from tilewright.solvers.second_opinion import Proof, Verdict
from tilewright.workloads.mapping.operator import Operator

_TIES = "mappings on machine files that are searched anew may be others of the same metric"


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
        return prove_codesign(_claim(document, None), (), (), (), limits)
    resources = document.resources
    own, systems = document.own, []
    for point in document.points:
        parts, place = document.division(point.partition, point.fields)
        systems.append(make_system("", resources, document.dataflows, parts, engines=own.at(place)))
    points = [_point(document, point) for point in document.points]
    operators = document.best.problem.operators("best: problem")
    proof = prove_codesign(claim, systems, points, operators, limits)
    if proof.verdict is Verdict.REFUTED and own.names:
        return replace(proof, verdict=Verdict.UNDECIDED, text=f"{proof.text}; {_TIES}")
    return proof


def _point(document: CodesignDocument, point: PartitionPointRecord) -> PointClaim:
    return PointClaim(
        cycles=point.cycles,
        energy=Fraction(point.energy_pj_exact),
        key=Fraction(point.value_exact),
        bound=Fraction(point.bound_exact),
        herald=(point.herald_cycles, point.herald_energy_pj),
        scheduled=point.scheduled,
        reported=(document.partition, document.fields) == (point.partition, point.fields),
    )


def _claim(document: ScheduleDocument | CodesignDocument, problem: SchedulingProblem | None) -> ScheduleClaim:
    return ScheduleClaim(
        status=Status(document.status),
        objective=ScheduleObjective(document.objective),
        bound=document.bound_key,
        metric=document.settings.metric,
        problem=problem,
    )
