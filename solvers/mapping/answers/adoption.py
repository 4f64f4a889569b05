"""What other searches of a layer find, held against its answer.

A better mapping or a proof becomes the layer's own; sets of mappings take in the layer's own mapping where it
belongs to them; a contradiction is an error, never a result.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.solvers.mapping.answers.answer_sets import AnswerSet, Solution
from tilewright.solvers.mapping.registry import SOLVERS

TREE_SOLVER = "branch"
"""Whose search tree finds best and optimal mappings, and the front where no other solver is asked for."""


@dataclass(frozen=True, slots=True)
class TimedAnswerSet:
    """Several mappings that answer one question.

    Parameters
    ----------
    complete : whether it is proven that no others belong to them
    seconds : that the search took
    """

    solutions: tuple[Solution, ...]
    complete: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class SecondObjective:
    """The least second objective among the mappings of the least first one."""

    objective: Objective
    result: LayerResult


@dataclass(frozen=True, slots=True)
class AnswerSets:
    """What was asked for besides one mapping; ``None`` for what was not.

    Parameters
    ----------
    front : the Pareto front of energy and cycles, in increasing order of cycles
    best : the best mappings, the best one first
    optima : the mappings of the least objective
    then : the second objective
    """

    front: TimedAnswerSet | None = None
    best: TimedAnswerSet | None = None
    optima: TimedAnswerSet | None = None
    then: SecondObjective | None = None

    @property
    def are_complete(self) -> bool:
        """Whether nothing that was asked for is left open."""
        proven = self.then is None or self.then.result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        return proven and all(item is None or item.complete for item in (self.front, self.best, self.optima))

    def completed(self, later: AnswerSets) -> AnswerSets:
        """What a later search found, but for what was complete before."""
        done = {
            field: own
            for field in ("front", "best", "optima")
            if (own := getattr(self, field)) is not None and own.complete
        }
        return replace(later, **done)


def adopted(
    result: LayerResult,
    answer_set: AnswerSet,
    problem: LayerProblem,
    limits: Limits,
    source: str,
    finder: str = TREE_SOLVER,
) -> LayerResult:
    """The layer's answer with a better mapping, or with the proof, that another search found.

    Its trace has one point more where that changed its key or its bound, and its time lasts until then.

    Parameters
    ----------
    source : what the other search looked for
    finder : the solver that searched
    """
    if result.key is None and not answer_set.solutions:
        return _proven(result, limits, finder, status=Status.INFEASIBLE) if answer_set.complete else result
    before = result
    best = min(answer_set.solutions, key=lambda solution: problem.key_of(solution.evaluation), default=None)
    key = None if best is None else problem.key_of(best.evaluation)
    if best is not None and key is not None and (result.key is None or key < result.key):
        result = replace(result, answer=best.mapping, evaluation=best.evaluation, key=key)
    assert result.key is not None
    if result.bound is not None and result.bound > result.key:
        text = f"{result.method} claims the bound {result.bound}, but {source} has the value {result.key}"
        return replace(result, status=Status.ERROR, bound=None, message=text)
    if answer_set.complete and (key is None or key > result.key):
        text = f"{source}: a part of the space that holds a mapping of value {result.key} was closed"
        return replace(result, status=Status.ERROR, bound=None, message=text)
    if answer_set.complete and result.bound != result.key:
        result = _proven(result, limits, finder, bound=result.key)
    if result.key != before.key or result.bound != before.bound:
        improved = result.key != before.key
        point = TracePoint(limits.elapsed, result.key, result.bound, source, improved)
        status = Status.OPTIMAL if result.bound == result.key else Status.FEASIBLE
        wall = max(result.wall_seconds, point.seconds)
        result = replace(result, trace=(*result.trace, point), status=status, wall_seconds=wall)
    return result


def _proven(result: LayerResult, limits: Limits, name: str, **claims: Any) -> LayerResult:
    """The answer with another search's proof in place of what had prevented the solver's own."""
    message = "no mapping satisfies all constraints" if result.key is None else ""
    return replace(
        result,
        method=name,
        version=SOLVERS.make(name).version,
        wall_seconds=limits.elapsed,
        message=message,
        **claims,
    )


def assembled(
    problem: LayerProblem | None,
    result: LayerResult,
    answers: MappingABC[str, AnswerSet],
    seconds: MappingABC[str, float],
    count: int | None,
) -> AnswerSets:
    """All sets, the layer's own mapping among them.

    Parameters
    ----------
    answers, seconds : by the set's name, what was found and how long that took
    count : how many of the best mappings were asked for
    """
    if result.status is Status.INFEASIBLE:
        answers = dict.fromkeys(answers, AnswerSet((), True))
    elif result.status is Status.ERROR:
        answers = {field: replace(answer_set, complete=False) for field, answer_set in answers.items()}
    own: list[Solution] = []
    if result.answer is not None and result.evaluation is not None:
        own.append(Solution(result.answer, result.evaluation))

    def key(solution: Solution) -> Fraction:
        assert problem is not None
        return problem.key_of(solution.evaluation)

    def made(field: str, solutions: Sequence[Solution]) -> TimedAnswerSet:
        return TimedAnswerSet(tuple(solutions), answers[field].complete, seconds[field])

    front = best = optima = None
    if "front" in answers:
        every = [candidate for several in answers.values() for candidate in several.solutions]
        front = made("front", undominated([*every, *own]))
    if (answer_set := answers.get("best")) is not None:
        listed = list(answer_set.solutions)
        if own and (not listed or key(own[0]) < key(listed[0])):
            listed = [*own, *listed][:count]
        best = made("best", listed)
    if (answer_set := answers.get("optima")) is not None:
        listed = [candidate for candidate in answer_set.solutions if key(candidate) == result.key] or own
        if result.status is not Status.OPTIMAL:
            listed = []  # nothing is known to be optimal
        optima = made("optima", listed)
    return AnswerSets(front, best, optima)


def undominated(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that no other one matches in both energy and cycles, in increasing order of cycles."""
    kept: list[Solution] = []
    for solution in sorted(
        solutions, key=lambda solution: (solution.evaluation.cycles, solution.evaluation.energy)
    ):
        if not kept or solution.evaluation.energy < kept[-1].evaluation.energy:
            kept.append(solution)
    return kept
