"""A second opinion on the bound of a plan: computed anew, or proven anew where an exact method claims it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds, size_bounds
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import bound_key, plan_run
from tilewright.solvers.second_opinion import Proof, Verdict

COMPUTED = "computed bounds"
REFUTERS = ("ls", "rammer", "atomic[moves=0]")
"""Quick methods whose plans may lie below a wrong bound."""


@dataclass(frozen=True, eq=False)
class PlanClaim:
    """What a document claims.

    Parameters
    ----------
    bound : no plan of the problem, whatever its atoms, has a smaller key; ``None`` where none is claimed
    method : that claims it
    problem : ``None`` where none can be stated
    answer : its plan, where that can be read
    own_atoms : whether the claim is made over plans of the very atoms of ``answer``, not over all sizes
    """

    bound: Fraction | None
    method: str
    problem: TiledProblem | None
    answer: AtomicPlan | None
    own_atoms: bool = False


def plan_bound(problem: TiledProblem, atoms: AtomicPlan | None = None) -> Fraction:
    """The key that no plan undercuts, computed anew.

    Parameters
    ----------
    atoms : over plans of whose atoms it holds; ``None`` for all sizes of atoms
    """
    bounds = size_bounds(problem) if atoms is None else dag_bounds(atoms.dag, problem.machine)
    return bound_key(TiledGoal(problem), bounds)


def prove_plan(claim: PlanClaim, limits: Limits) -> Proof:
    """Ask whether the claimed bound holds.

    The bound that can be computed confirms what does not exceed it.  Beyond that quick methods try to refute
    the claim, then the exact method that makes it searches again with another seed.  Of a claim over the
    plan's own atoms nothing but that plan and the exact method are evidence.
    """
    before = limits.elapsed

    def answer(verdict: Verdict, by: str, text: str) -> Proof:
        return Proof(verdict, by, text, limits.elapsed - before)

    problem, bound, own = claim.problem, claim.bound, claim.answer
    if problem is None or (claim.own_atoms and own is None):
        return answer(Verdict.UNDECIDED, "-", "the problem cannot be stated")
    if bound is None:
        return answer(Verdict.NOTHING, "-", "no bound is claimed")
    known = plan_bound(problem, own if claim.own_atoms else None)
    space = "of these atoms" if claim.own_atoms else "whatever its sizes of atoms"
    if bound <= known:
        return answer(Verdict.CONFIRMED, COMPUTED, f"no plan undercuts it, {space}")
    if own is not None:
        judged = TiledGoal(problem).judge(own)
        if not judged.violations and judged.key < bound:
            return answer(Verdict.REFUTED, "evaluator", "the document's own plan lies below it")
    for method in _asked(claim):
        if limits.expired:
            break
        exact = METHODS.make(method).exact
        share = _reseeded(limits) if exact else limits.share(0.2, longest=30)
        warm = None if own is None or not exact else _given(own)
        result = plan_run(_stated(problem), method, share, warm=warm).run()
        if result.key is not None and result.key < bound and not claim.own_atoms:
            return answer(Verdict.REFUTED, method, f"finds a plan below it: {float(result.key):g}")
        if exact and result.bound is not None and result.bound >= bound and result.status is not Status.ERROR:
            return answer(Verdict.CONFIRMED, f"{method}, again", "proves a bound at least as high")
    return answer(Verdict.UNDECIDED, COMPUTED, f"only {float(known):g} is known, {space}")


def _asked(claim: PlanClaim) -> list[str]:
    """Methods that may decide: quick ones unless the atoms are fixed, then the claimant if it proves."""
    quick = [] if claim.own_atoms else [*REFUTERS]
    return [*quick, claim.method] if METHODS.make(claim.method).exact else quick


def _stated(problem: TiledProblem) -> Callable[[], TiledProblem]:
    return lambda: problem


def _given(answer: AtomicPlan) -> Callable[[TiledProblem], AtomicPlan]:
    return lambda problem: answer


def _reseeded(limits: Limits) -> Limits:
    """The same limits with another seed, so that a search is not repeated step by step."""
    return replace(limits, seed=limits.seed + 1)
