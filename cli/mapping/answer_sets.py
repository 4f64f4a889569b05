"""What is asked for besides one best mapping: second objectives, Pareto fronts, k best, all optima.

Each is a search of its own after the layer's search.  What they find is held against the layer's answer, so
that a document never contradicts itself: a better mapping or a proof becomes the layer's own, and the layer's
own mapping joins the lists that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tilewright.cli.terminal.progress import Progress
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.report.records.mapping.build import solution_records, then_record
from tilewright.report.records.mapping.document import BestRecord, FrontRecord, OptimaRecord, ThenRecord
from tilewright.solvers.mapping.answer_sets import (
    AnswerSet,
    Solution,
    best_mappings,
    optimal_mappings,
    pareto_front,
)
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.repeated_solves import among_optima, front_by_repeated_solves
from tilewright.solvers.mapping.solve import AUTO
from tilewright.solvers.watched import Watched
from tilewright.workloads.errors import one_line

SOLVER = "branch"
"""Whose search tree finds best and optimal mappings, and the front where no other solver is asked for."""

NOTHING = AnswerSet((), False)
_SEARCHED = (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Parameters
    ----------
    front : the Pareto front
    best : so many of the best mappings
    optima : all optimal mappings, at most so many
    then : the second objective among the optimal mappings
    solver : the solver that was asked for; it finds the second objective, and the front if it is exact
    """

    front: bool = False
    best: int | None = None
    optima: int | None = None
    then: str | None = None
    solver: str = AUTO

    def __bool__(self) -> bool:
        """Whether anything is."""
        return bool(self.parts)

    @property
    def parts(self) -> int:
        """How many searches that takes."""
        return len(self.searches()) + (self.then is not None)

    @property
    def front_solver(self) -> str:
        """Who finds the front."""
        return (
            self.solver if self.solver not in (AUTO, SOLVER) and SOLVERS.make(self.solver).exact else SOLVER
        )

    def searches(self) -> dict[str, tuple[str, Callable[[LayerProblem, Limits], AnswerSet]]]:
        """By the field of the layer's record: what is looked for, and how."""
        found: dict[str, tuple[str, Callable[[LayerProblem, Limits], AnswerSet]]] = {}
        best, optima = self.best, self.optima
        if self.front:
            name = self.front_solver
            found["front"] = (
                "Pareto front",
                pareto_front
                if name == SOLVER
                else lambda problem, limits: front_by_repeated_solves(problem, name, limits),
            )
        if best is not None:
            title = f"{best} best mappings" if best > 1 else "best mapping"
            found["best"] = title, lambda problem, limits: best_mappings(problem, best, limits)
        if optima is not None:
            found["optima"] = (
                "all optimal mappings",
                lambda problem, limits: optimal_mappings(problem, limits, optima),
            )
        return found


@dataclass(frozen=True, slots=True)
class AnswerSetRecords:
    """Records of what was asked for; ``None`` for what was not."""

    front: FrontRecord | None = None
    best: BestRecord | None = None
    optima: OptimaRecord | None = None
    then: ThenRecord | None = None


def search_answer_sets(
    wanted: Wanted, problem: LayerProblem | None, result: LayerResult, limits: Limits, progress: Progress
) -> tuple[LayerResult, AnswerSetRecords]:
    """Search for all that is wanted; returns the layer's answer with what became better, and the records.

    Parameters
    ----------
    limits : of the whole layer
    """
    answers: dict[str, AnswerSet] = {}
    seconds: dict[str, float] = {}
    searches = wanted.searches()
    second = None
    if wanted.then is not None:
        mine = limits.share(1 / wanted.parts)
        result, second = _then(parse_objective(wanted.then), wanted.solver, problem, result, mine, progress)
    for index, (field, (title, search)) in enumerate(searches.items()):
        answers[field], seconds[field] = NOTHING, 0.0
        if problem is None or result.status not in _SEARCHED or limits.expired:
            continue
        progress.phase(title)
        before = limits.elapsed
        mine = replace(limits.share(1 / (len(searches) - index)), gap=0.0)
        found, message = _watched(title, search, problem, mine)
        finder = wanted.front_solver if field == "front" else SOLVER
        result = adopted(result, found, problem, limits, field, progress, finder)
        if message:
            result = replace(result, message="; ".join(filter(None, (result.message, message))))
        answers[field], seconds[field] = found, round(limits.elapsed - before, 4)
    return result, replace(_records(wanted, problem, result, answers, seconds), then=second)


def _then(
    second: Objective,
    name: str,
    problem: LayerProblem | None,
    first: LayerResult,
    limits: Limits,
    progress: Progress,
) -> tuple[LayerResult, ThenRecord | None]:
    """The layer's answer with the optimal mapping of the least second objective, and the record of its proof.

    There is no record where there is no mapping.
    """
    if problem is None or first.answer is None or first.evaluation is None or first.key is None:
        return first, None
    progress.phase(f"least {second}")
    watched = Watched(lambda: among_optima(problem, first, second, name, limits), limits, f"least {second}")
    watched.run()
    found = watched.answer
    if found is None or found.answer is None or found.evaluation is None:
        key = second.key(first.evaluation.energy, first.evaluation.cycles)
        found = replace(first, status=Status.FEASIBLE, key=key, bound=None, wall_seconds=0.0)
        if watched.failure is not None:
            text = f"least {second}: {type(watched.failure).__name__}: {one_line(watched.failure)}"
            first = replace(first, message="; ".join(filter(None, (first.message, text))))
        return first, then_record(second, found)
    seconds = max(0.0, found.wall_seconds - first.wall_seconds)
    record = then_record(second, replace(found, wall_seconds=seconds))
    return replace(first, answer=found.answer, evaluation=found.evaluation), record


def _watched(
    title: str, search: Callable[[LayerProblem, Limits], AnswerSet], problem: LayerProblem, limits: Limits
) -> tuple[AnswerSet, str]:
    """What a search finds, and what went wrong."""
    watched = Watched(lambda: search(problem, limits), limits, title)
    watched.run()
    if watched.answer is not None:
        return watched.answer, ""
    if watched.failure is not None:
        return NOTHING, f"{title}: {type(watched.failure).__name__}: {one_line(watched.failure)}"
    return NOTHING, f"{title}: the search did not stop in time and was left behind"


def adopted(
    result: LayerResult,
    found: AnswerSet,
    problem: LayerProblem,
    limits: Limits,
    source: str,
    progress: Progress,
    finder: str = SOLVER,
) -> LayerResult:
    """The layer's answer with a better mapping, or with the proof, that another search found."""
    if result.key is None and not found.solutions:
        return _proven(result, limits, finder, status=Status.INFEASIBLE) if found.complete else result
    before = result
    best = min(found.solutions, key=lambda one: problem.key_of(one.evaluation), default=None)
    key = None if best is None else problem.key_of(best.evaluation)
    if best is not None and key is not None and (result.key is None or key < result.key):
        result = replace(result, answer=best.mapping, evaluation=best.evaluation, key=key)
    assert result.key is not None
    if result.bound is not None and result.bound > result.key:
        text = f"{result.method} claims the bound {result.bound}, but {source} has the value {result.key}"
        return replace(result, status=Status.ERROR, bound=None, message=text)
    if found.complete and (key is None or key > result.key):
        text = f"{source}: a part of the space that holds a mapping of value {result.key} was closed"
        return replace(result, status=Status.ERROR, bound=None, message=text)
    if found.complete and result.bound != result.key:
        result = _proven(result, limits, finder, bound=result.key)
    if result.key != before.key or result.bound != before.bound:
        improved = result.key != before.key
        point = TracePoint(limits.elapsed, result.key, result.bound, source, improved)
        progress.point(point)
        status = Status.OPTIMAL if result.bound == result.key else Status.FEASIBLE
        result = replace(result, trace=(*result.trace, point), status=status)
    return result


def _proven(result: LayerResult, limits: Limits, name: str, **claims: Any) -> LayerResult:
    """The answer with what another search has proven in place of whatever had kept the solver from it."""
    message = "no mapping satisfies all constraints" if result.key is None else ""
    return replace(
        result,
        method=name,
        version=SOLVERS.make(name).version,
        wall_seconds=limits.elapsed,
        message=message,
        **claims,
    )


def _records(
    wanted: Wanted,
    problem: LayerProblem | None,
    result: LayerResult,
    answers: dict[str, AnswerSet],
    seconds: dict[str, float],
) -> AnswerSetRecords:
    """Records of all answers, the layer's own mapping among them."""
    if result.status is Status.INFEASIBLE:
        answers = dict.fromkeys(answers, AnswerSet((), True))
    elif result.status is Status.ERROR:
        answers = {field: replace(found, complete=False) for field, found in answers.items()}
    own: list[Solution] = []
    if result.answer is not None and result.evaluation is not None:
        own.append(Solution(result.answer, result.evaluation))

    def key(solution: Solution) -> Fraction:
        assert problem is not None
        return problem.key_of(solution.evaluation)

    front = best = optima = None
    if (found := answers.get("front")) is not None:
        every = [one for several in answers.values() for one in several.solutions]
        points = undominated([*every, *own])
        front = FrontRecord(complete=found.complete, wall_s=seconds["front"], points=solution_records(points))
    if (found := answers.get("best")) is not None:
        listed = list(found.solutions)
        if own and (not listed or key(own[0]) < key(listed[0])):
            listed = [*own, *listed][: wanted.best]
        best = BestRecord(complete=found.complete, wall_s=seconds["best"], mappings=solution_records(listed))
    if (found := answers.get("optima")) is not None:
        listed = [one for one in found.solutions if key(one) == result.key] or own
        if result.status is not Status.OPTIMAL:
            listed = []  # nothing is known to be optimal
        optima = OptimaRecord(
            complete=found.complete,
            count=len(listed),
            wall_s=seconds["optima"],
            mappings=solution_records(listed),
        )
    return AnswerSetRecords(front, best, optima)


def undominated(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that no other one matches in both energy and cycles, in increasing order of cycles."""
    kept: list[Solution] = []
    for one in sorted(solutions, key=lambda one: (one.evaluation.cycles, one.evaluation.energy)):
        if not kept or one.evaluation.energy < kept[-1].evaluation.energy:
            kept.append(one)
    return kept
