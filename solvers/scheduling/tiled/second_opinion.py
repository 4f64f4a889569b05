"""A second opinion on the bound of a plan: computed again, or proven again for an exact method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin, Status
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.tiled.bounds import bound_key, dag_bounds
from tilewright.solvers.scheduling.tiled.exact.method import Exact
from tilewright.solvers.scheduling.tiled.exact.priced_proof import proof_of
from tilewright.solvers.scheduling.tiled.exact.proof import RoundProof
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace
from tilewright.solvers.scheduling.tiled.exact.transfers import GivenOrder, TransferProof, Transfers
from tilewright.solvers.scheduling.tiled.joint_bounds import least_key
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.solvers.second_opinion import Proof, Verdict

COMPUTED = "computed bounds"
INFEASIBILITY_PROVERS = ("ls", "rammer", "atomic[moves=0]")
"""Quick methods whose plans may lie below a wrong bound."""

MOST_IDLE = 256
"""Steps without an atom that the space of a claim may allow, at most."""


@dataclass(frozen=True, eq=False)
class PlanClaim:
    """What a document claims.

    Parameters
    ----------
    bound : no plan of the space has a smaller key; ``None`` where none is claimed
    method : that claims it
    problem : ``None`` where none can be stated
    answer : its plan, where that can be read
    space : what the claim is about where that is less than all plans
    """

    status: Status
    bound: Fraction | None
    method: str
    problem: TiledProblem | None
    answer: AtomicPlan | None
    space: str = ""


def plan_bound(problem: TiledProblem, atoms: AtomicPlan | None = None) -> Fraction:
    """The key that no plan undercuts, computed again.

    Parameters
    ----------
    atoms : over plans of whose atoms it holds; ``None`` for all sizes of atoms
    """
    if atoms is None:
        return least_key(problem)
    return bound_key(TiledGoal(problem), dag_bounds(atoms.dag, problem.machine))


def named_space(problem: TiledProblem, answer: AtomicPlan, name: str) -> RoundSpace | None:
    """The space of an exact method's claim that has this name, over the atoms of a plan, if there is one."""
    rounds = (RoundSpace(problem, answer.dag, idle) for idle in range(MOST_IDLE + 1))
    spaces = (GivenOrder.of(RoundSpace(problem, answer.dag), answer.plan), *rounds)
    return next((space for space in spaces if space.space == name), None)


def prove_plan(claim: PlanClaim, limits: Limits) -> Proof:
    """Ask whether the claimed bound holds.

    The bound that can be computed confirms what does not exceed it.  Beyond that a claim over all plans is
    questioned by quick methods, one over a space is proven again from the plan's atoms, with another seed.
    """
    before = limits.elapsed
    verdict, by, text = _verdict(claim, limits)
    return Proof(verdict, by, text, limits.elapsed - before)


def _verdict(claim: PlanClaim, limits: Limits) -> tuple[Verdict, str, str]:
    problem, bound, own = claim.problem, claim.bound, claim.answer
    if problem is None:
        return Verdict.UNDECIDED, "-", "the problem cannot be stated"
    if claim.status is Status.INFEASIBLE and claim.space:
        return Verdict.UNDECIDED, "-", "the document does not contain the atoms of the space"
    if claim.status is Status.INFEASIBLE:
        return _questioned(problem, None, limits)
    if bound is None:
        return Verdict.NOTHING, "-", "no bound is claimed"
    if bound <= plan_bound(problem):
        return Verdict.CONFIRMED, COMPUTED, "no plan is better, with any sizes of atoms"
    if own is not None:
        judged = TiledGoal(problem).judge(own)
        if not judged.violations and judged.key < bound:
            return Verdict.REFUTED, "evaluator", "the document's own plan lies below it"
    if not claim.space:
        return _questioned(problem, bound, limits)
    if own is None:
        return Verdict.UNDECIDED, "-", "the document does not contain the atoms of the space"
    if bound <= plan_bound(problem, own):
        return Verdict.CONFIRMED, COMPUTED, "no plan of these atoms undercuts it"
    return _proven_anew(claim, problem, own, bound, limits)


def _questioned(problem: TiledProblem, bound: Fraction | None, limits: Limits) -> tuple[Verdict, str, str]:
    """Whether a quick plan lies below a bound over all plans, or is one where none is said to exist."""
    for method in INFEASIBILITY_PROVERS:
        if limits.expired:
            break
        result = plan_run(_stated(problem), method, limits.share(0.3, longest=30)).run()
        if result.key is not None and (bound is None or result.key < bound):
            below = "" if bound is None else " below it"
            return Verdict.REFUTED, method, f"finds a plan{below}: {float(result.key):g}"
    if bound is None:
        return (Verdict.UNDECIDED, ", ".join(INFEASIBILITY_PROVERS), "find no plan either, which is no proof")
    known = float(plan_bound(problem))
    return Verdict.UNDECIDED, COMPUTED, f"over all sizes of atoms only {known:g} is known"


def _proven_anew(
    claim: PlanClaim, problem: TiledProblem, own: AtomicPlan, bound: Fraction, limits: Limits
) -> tuple[Verdict, str, str]:
    """What a fresh proof over the plan's atoms says."""
    method, space = METHODS.make(claim.method), named_space(problem, own, claim.space)
    if not isinstance(method, Exact | Transfers) or space is None:
        return Verdict.UNDECIDED, "-", "no method proves claims about such a space"
    search = TiledSearch(space, replace(limits, seed=limits.seed + 1), exact=True)
    search.offer(own, "document", Origin.HEURISTIC)
    kind = TransferProof(search, space) if isinstance(space, GivenOrder) else proof_of(search, space)
    proof = _Again(method, kind)
    result = run_method(search, proof, claim.method)
    if result.key is not None and result.key < bound:
        return (
            Verdict.REFUTED,
            f"{claim.method}, again",
            f"finds a plan of {float(result.key):g} in the space",
        )
    if result.status is not Status.ERROR and result.bound is not None and result.bound >= bound:
        return Verdict.CONFIRMED, f"{claim.method}, again", "proves a bound at least as high in the space"
    least = "nothing" if result.bound is None else f"only {float(result.bound):g}"
    return Verdict.UNDECIDED, f"{claim.method}, again", f"{least} was proven within the limits"


@dataclass(frozen=True)
class _Again:
    """An exact method on atoms that are given."""

    method: Exact | Transfers
    proof: RoundProof
    exact = True

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def version(self) -> str:
        return self.method.version

    def solve(self, search: TiledSearch) -> Outcome:
        """Prove."""
        return self.proof.run()


def _stated(problem: TiledProblem) -> Callable[[], TiledProblem]:
    return lambda: problem
