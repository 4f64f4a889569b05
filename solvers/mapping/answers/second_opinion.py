"""A second opinion: another solver looks for anything better than what a result claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.stopping import WhenSet
from tilewright.foundation.errors import InputError
from tilewright.solvers.mapping.answers.answer_set_opinion import SetsClaim, prove_sets
from tilewright.solvers.mapping.answers.repeated_solves import tied
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.solve import AUTO, layer_run
from tilewright.solvers.second_opinion import Proof, Verdict

NO_SETS = SetsClaim()
_PORTFOLIO = {AUTO, "branch"}
_ENUMERABLE = 2_000_000
"""Mappings up to which enumerating them all comes first."""


@dataclass(frozen=True, slots=True)
class SecondClaim:
    """What is claimed of a second objective among the optima of the first.

    Parameters
    ----------
    key : of the claimed mapping
    bound : no optimum of the first objective has a smaller key; ``None`` where none is claimed
    """

    objective: Objective
    key: Fraction | None
    bound: Fraction | None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a result claims of one layer.

    Parameters
    ----------
    key : of the claimed mapping
    bound : no mapping has a smaller key; ``None`` where none is claimed
    mapping : ``None`` where there is none
    solver : who claims it
    sets : lists that are said to be complete
    """

    status: Status
    key: Fraction | None
    bound: Fraction | None
    mapping: Mapping | None
    solver: str
    then: SecondClaim | None = None
    sets: SetsClaim = NO_SETS


def proof_solvers(problem: LayerProblem, recorded: str) -> list[str]:
    """The exact solvers other than the recorded one, in the sequence in which they are asked.

    Enumeration comes first where the space is small, and last elsewhere.  The portfolio begins with branch
    and bound, so neither is a second opinion on the other.
    """
    same = _PORTFOLIO if recorded in _PORTFOLIO else {recorded, AUTO}
    others = [name for name in SOLVERS.names() if name not in same and _is_exact(name)]
    small = problem.space.size <= _ENUMERABLE
    others.sort(key=lambda name: (name == "exhaustive") != small)
    return others


def _is_exact(name: str) -> bool:
    try:
        return SOLVERS.make(name).exact
    except (ImportError, AttributeError):
        return False


def prove(claim: Claim, problem: LayerProblem, limits: Limits) -> Proof:
    """Ask other solvers, one after the other, until one decides.

    The claim is confirmed by a bound of at least the claimed one (or a proof that nothing exists), and
    refuted by a mapping below it.  What is claimed of a second objective is asked after the first, and lists
    that are said to be complete are asked for again.
    """
    if claim.bound is None and claim.status is not Status.INFEASIBLE:
        return Proof(Verdict.NOTHING, "-", "no bound is claimed")
    if claim.mapping is not None:
        reason = _out_of_space_reason(problem, claim.mapping)
        if reason is not None:
            return Proof(Verdict.REFUTED, "-", reason)
    answer = _proven(claim, problem, limits)
    if answer.verdict is not Verdict.CONFIRMED:
        return answer
    lists = prove_sets(claim.sets, problem, proof_solvers(problem, claim.solver), limits)
    if lists is None:
        return answer
    by = answer.solver if lists.solver == answer.solver else f"{answer.solver}, {lists.solver}"
    return Proof(lists.verdict, by, f"{answer.text}; {lists.text}", answer.seconds + lists.seconds)


def _proven(claim: Claim, problem: LayerProblem, limits: Limits) -> Proof:
    """What is said of the bound, and of the second objective's after it."""
    answer = _prove(claim, problem, limits)
    second = claim.then
    if answer.verdict is not Verdict.CONFIRMED or second is None or second.bound is None:
        return answer
    among = tied(problem, claim.key or Fraction(0), second.objective)
    other = _prove(replace(claim, key=second.key, bound=second.bound), among, limits)
    text = f"{answer.text}; {second.objective} after it: {other.text}"
    by = answer.solver if other.solver in (answer.solver, "-") else f"{answer.solver}, {other.solver}"
    return Proof(other.verdict, by, text, answer.seconds + other.seconds)


def _out_of_space_reason(problem: LayerProblem, mapping: Mapping) -> str | None:
    """Why the mapping of a claim is none of its space."""
    try:
        mapping.validate(problem.operator, problem.engine)
        reason = problem.outside(mapping)
    except InputError as error:
        return str(error)
    return None if reason is None else f"the mapping lies outside the space of the claim: {reason}"


def _prove(claim: Claim, problem: LayerProblem, limits: Limits) -> Proof:
    """Ask one solver after the other for a layer's first claim."""
    answer = Proof(Verdict.UNDECIDED, "-", "no other exact solver")
    for name in proof_solvers(problem, claim.solver):
        if limits.expired:
            break
        answer = _ask(name, claim, problem, limits)
        if answer.verdict is not Verdict.UNDECIDED:
            break
    return answer


def _ask(name: str, claim: Claim, problem: LayerProblem, limits: Limits) -> Proof:
    claimed = claim.bound
    decided = Event()

    def listen(point: TracePoint) -> None:
        if _proves_infeasible(point.key, claim) or _reached(point.bound, claimed):
            decided.set()

    watched = replace(limits, gap=0.0).stopping(WhenSet(decided))
    before = limits.elapsed
    result = layer_run(lambda: problem, name, watched, listen, _incumbent(claim)).run()
    spent = limits.elapsed - before
    bounds = [result.bound, *(point.bound for point in result.trace[-1:])]
    if _proves_infeasible(result.key, claim):
        return Proof(Verdict.REFUTED, name, f"found a mapping of value {_shown(problem, result.key)}", spent)
    if claim.status is Status.INFEASIBLE:
        if result.status is Status.INFEASIBLE:
            return Proof(Verdict.CONFIRMED, name, "proves that there is no mapping", spent)
    elif result.status is Status.INFEASIBLE:
        return Proof(Verdict.REFUTED, name, "claims that there is no mapping", spent)
    elif any(_reached(bound, claimed) for bound in bounds):
        return Proof(Verdict.CONFIRMED, name, "proves a bound at least as high", spent)
    reason = result.message or ("interrupted" if limits.stop.is_set() else "time limit")
    return Proof(Verdict.UNDECIDED, name, reason, spent)


def _reached(bound: Fraction | None, claimed: Fraction | None) -> bool:
    return bound is not None and claimed is not None and bound >= claimed


def _shown(problem: LayerProblem, key: Fraction | None) -> object:
    return None if key is None else problem.objective.value(key)


def _proves_infeasible(key: Fraction | None, claim: Claim) -> bool:
    """Whether a mapping of this key contradicts a claimed bound or a claimed infeasibility."""
    if key is None:
        return False
    return claim.status is Status.INFEASIBLE or (claim.bound is not None and key < claim.bound)


def _incumbent(claim: Claim) -> Sequence[Mapping]:
    return [] if claim.mapping is None else [claim.mapping]
