"""Second opinions on lists (fronts, best and optimal mappings said to be complete) and conflicts of demands.

A front is found again by repeated solves of another solver.  Lists of mappings come from the search tree
alone, which lists them again; that finds out whoever has left one out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.answers.adoption import TREE_SOLVER
from tilewright.solvers.mapping.answers.answer_sets import (
    AnswerSet,
    best_mappings,
    optimal_mappings,
    pareto_front,
    proves_conflict,
)
from tilewright.solvers.mapping.answers.repeated_solves import front_by_repeated_solves
from tilewright.solvers.second_opinion import Proof, Verdict

Pair = tuple[Fraction, int]
"""Energy in pJ and cycles."""


@dataclass(frozen=True, slots=True)
class SetsClaim:
    """Lists that a result says are complete; ``None`` for what is not listed, or not said to be complete.

    Parameters
    ----------
    front : energy and cycles of every point
    best : the same of the best mappings, and how many were asked for
    optima : number of the optimal mappings, and how many were asked for at most
    conflict : constraints that no mapping satisfies together
    """

    front: Sequence[Pair] | None = None
    best: tuple[Sequence[Pair], int] | None = None
    optima: tuple[int, int] | None = None
    conflict: Sequence[str] = ()


def prove_sets(
    claim: SetsClaim, problem: LayerProblem, others: Sequence[str], limits: Limits
) -> Proof | None:
    """Ask for every list again; ``None`` where nothing is claimed.

    Parameters
    ----------
    others : exact solvers other than the recorded one, in the sequence in which they are asked
    """
    asked: list[Callable[[Limits], Proof]] = []
    if claim.front is not None:
        front = claim.front
        asked.append(lambda own_limits: _front(front, problem, others, own_limits))
    if claim.best is not None:
        pairs, count = claim.best
        asked.append(lambda own_limits: _best(pairs, count, problem, own_limits))
    if claim.optima is not None:
        number, most = claim.optima
        asked.append(lambda own_limits: _optima(number, most, problem, own_limits))
    if claim.conflict:
        asked.append(lambda own_limits: _conflict(claim.conflict, problem, own_limits))
    worst: Proof | None = None
    for left, ask in zip(range(len(asked), 0, -1), asked, strict=True):
        before = limits.elapsed
        proof = ask(limits.share(1 / left))
        seconds = limits.elapsed - before + (0.0 if worst is None else worst.seconds)
        keeps = worst is not None and worst.verdict is not Verdict.CONFIRMED
        kept = worst if keeps and worst is not None else proof
        worst = Proof(kept.verdict, kept.solver, kept.text, seconds)
        if proof.verdict is Verdict.REFUTED:
            return Proof(Verdict.REFUTED, proof.solver, proof.text, seconds)
    return worst


def _front(points: Sequence[Pair], problem: LayerProblem, others: Sequence[str], limits: Limits) -> Proof:
    solver = others[0] if others else TREE_SOLVER
    front = (
        pareto_front(problem, limits)
        if solver == TREE_SOLVER
        else front_by_repeated_solves(problem, solver, limits)
    )
    known = [(solution.evaluation.energy, solution.evaluation.cycles) for solution in front.solutions]
    better = [pair for pair in known if not any(e <= pair[0] and c <= pair[1] for e, c in points)]
    if better and front.complete:
        energy, cycles = better[0]
        reported = f"the front has a point of {float(energy):g} pJ and {cycles} cycles, which is not listed"
        return Proof(Verdict.REFUTED, solver, reported)
    return _verdict(front, "points of the front", solver, same={*known} == {*points})


def _best(pairs: Sequence[Pair], count: int, problem: LayerProblem, limits: Limits) -> Proof:
    listed = best_mappings(problem, count, limits)
    fresh = [problem.key_of(solution.evaluation) for solution in listed.solutions]
    keys = [problem.objective.key(*pair) for pair in pairs]
    return _verdict(listed, "best mappings", TREE_SOLVER, same=fresh == keys)


def _optima(number: int, most: int, problem: LayerProblem, limits: Limits) -> Proof:
    listed = optimal_mappings(problem, limits, most)
    return _verdict(listed, "optimal mappings", TREE_SOLVER, same=number == len(listed.solutions))


def _verdict(answer_set: AnswerSet, what: str, solver: str, *, same: bool) -> Proof:
    by = f"{solver}, again" if solver == TREE_SOLVER else solver
    if not answer_set.complete:
        return Proof(Verdict.UNDECIDED, by, f"not all {what} were found again within the limits")
    if not same:
        return Proof(Verdict.REFUTED, by, f"the {what} are others: {len(answer_set.solutions)} of them")
    return Proof(Verdict.CONFIRMED, by, f"the same {what}")


def _conflict(names: Sequence[str], problem: LayerProblem, limits: Limits) -> Proof:
    by = f"{TREE_SOLVER}, again"
    match proves_conflict(problem, names, limits):
        case True:
            return Proof(Verdict.CONFIRMED, by, "the named constraints conflict")
        case False:
            return Proof(
                Verdict.REFUTED, by, "a mapping satisfies the constraints that the document calls conflicting"
            )
    return Proof(Verdict.UNDECIDED, by, "it was not decided whether the named constraints conflict")
