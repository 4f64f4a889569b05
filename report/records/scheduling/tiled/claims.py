"""What documents of plans claim, held against a second opinion."""

from __future__ import annotations

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.errors import InputError
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.second_opinion import PlanClaim, prove_plan
from tilewright.solvers.second_opinion import Proof, Verdict


def plan_proof(
    document: PlanDocument, problem: TiledProblem | None, answer: AtomicPlan | None, limits: Limits
) -> Proof:
    """Whether the bound of a plan holds.

    Parameters
    ----------
    problem, answer : that the document states; ``None`` where they cannot be read
    """
    try:
        METHODS.make(document.settings.method)
    except InputError as error:
        return Proof(Verdict.UNDECIDED, "-", f"settings.method: {error.message}")
    claim = PlanClaim(
        Status(document.status), document.bound_key, document.settings.method, problem, answer, document.space
    )
    return prove_plan(claim, limits)
