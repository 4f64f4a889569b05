"""What is asked for besides one best mapping: second objectives, Pareto fronts, k best, all optima.

Each is a search of its own after the layer's search.  What they find is held against the layer's answer
(:mod:`tilewright.solvers.mapping.answers.adoption`), so that answers never contradict each other: a better
mapping or a proof becomes the layer's own, and the layer's own mapping joins the sets that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.arrangements import UNEVEN
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError, one_line
from tilewright.solvers.mapping.answers.adoption import (
    TREE_SOLVER,
    AnswerSets,
    SecondObjective,
    adopted,
    assembled,
)
from tilewright.solvers.mapping.answers.answer_sets import (
    AnswerSet,
    best_mappings,
    optimal_mappings,
    pareto_front,
)
from tilewright.solvers.mapping.answers.repeated_solves import among_optima, front_by_repeated_solves
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.solve import AUTO
from tilewright.solvers.observer import Observer
from tilewright.solvers.watched import Watched

NOTHING = AnswerSet((), False)
_SEARCHED = (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)

SetSearch = Callable[[LayerProblem, Limits], AnswerSet]


@dataclass(frozen=True, slots=True)
class AnswerSetRequest:
    """What is asked for besides one best mapping.

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

    def check(self, storage: str | None) -> None:
        """Raise ``InputError`` for lists of mappings over uneven storage: they name even ones only."""
        flag = "--best" if self.best is not None else "--all-optimal" if self.optima is not None else None
        if storage == UNEVEN and flag is not None:
            raise InputError(
                flag, None, "lists of mappings are of even storage only; leave out --storage uneven"
            )

    @property
    def parts(self) -> int:
        """How many searches that takes."""
        return len(self.searches()) + (self.then is not None)

    @property
    def front_solver(self) -> str:
        """Who finds the front."""
        own = self.solver not in (AUTO, TREE_SOLVER) and SOLVERS.make(self.solver).exact
        return self.solver if own else TREE_SOLVER

    def searches(self) -> dict[str, tuple[str, SetSearch]]:
        """By the set's name: what is looked for, and how."""
        searches: dict[str, tuple[str, SetSearch]] = {}
        best, optima = self.best, self.optima
        if self.front:
            name = self.front_solver
            sweep: SetSearch = lambda problem, limits: front_by_repeated_solves(problem, name, limits)  # noqa: E731
            searches["front"] = "Pareto front", pareto_front if name == TREE_SOLVER else sweep
        if best is not None:
            title = f"{best} best mappings" if best > 1 else "best mapping"
            searches["best"] = title, lambda problem, limits: best_mappings(problem, best, limits)
        if optima is not None:
            searches["optima"] = (
                "all optimal mappings",
                lambda problem, limits: optimal_mappings(problem, limits, optima),
            )
        return searches


def search_answer_sets(
    request: AnswerSetRequest,
    problem: LayerProblem | None,
    result: LayerResult,
    limits: Limits,
    observer: Observer,
) -> tuple[LayerResult, AnswerSets]:
    """Search for all that is asked for; returns the layer's answer with what became better, and the sets.

    Parameters
    ----------
    limits : of the whole layer
    """
    answers: dict[str, AnswerSet] = {}
    seconds: dict[str, float] = {}
    searches = request.searches()
    second = None
    if request.then is not None:
        own_limits = limits.share(1 / request.parts)
        result, second = _second(
            parse_objective(request.then), request.solver, problem, result, own_limits, observer
        )
    for index, (field, (title, search)) in enumerate(searches.items()):
        answers[field], seconds[field] = NOTHING, 0.0
        if problem is None or result.status not in _SEARCHED or limits.expired:
            continue
        observer.phase(title)
        before = limits.elapsed
        own_limits = replace(limits.share(1 / (len(searches) - index)), gap=0.0)
        answer_set, message = _watched(title, search, problem, own_limits)
        finder = request.front_solver if field == "front" else TREE_SOLVER
        improved = adopted(result, answer_set, problem, limits, field, finder)
        if improved.trace != result.trace:
            observer.point(improved.trace[-1])
        result = _reported(improved, message)
        answers[field], seconds[field] = answer_set, round(limits.elapsed - before, 4)
    sets = assembled(problem, result, answers, seconds, request.best)
    return result, replace(sets, then=second)


def _second(
    second: Objective,
    name: str,
    problem: LayerProblem | None,
    first: LayerResult,
    limits: Limits,
    observer: Observer,
) -> tuple[LayerResult, SecondObjective | None]:
    """The layer's answer with the optimal mapping of the least second objective, and what proves that.

    There is none where there is no mapping.
    """
    if problem is None or first.answer is None or first.evaluation is None or first.key is None:
        return first, None
    observer.phase(f"least {second}")
    watched = Watched(lambda: among_optima(problem, first, second, name, limits), limits, f"least {second}")
    watched.run()
    best = watched.answer
    if best is None or best.answer is None or best.evaluation is None:
        key = second.key(first.evaluation.energy, first.evaluation.cycles)
        best = replace(first, status=Status.FEASIBLE, key=key, bound=None, wall_seconds=0.0)
        if watched.failure is not None:
            first = _reported(first, _failed(f"least {second}", watched.failure))
        return first, SecondObjective(second, best)
    seconds = max(0.0, best.wall_seconds - first.wall_seconds)
    claim = SecondObjective(second, replace(best, wall_seconds=seconds))
    return replace(first, answer=best.answer, evaluation=best.evaluation), claim


def _watched(title: str, search: SetSearch, problem: LayerProblem, limits: Limits) -> tuple[AnswerSet, str]:
    """What a search finds, and what went wrong."""
    watched = Watched(lambda: search(problem, limits), limits, title)
    watched.run()
    if watched.answer is not None:
        return watched.answer, ""
    if watched.failure is not None:
        return NOTHING, _failed(title, watched.failure)
    return NOTHING, f"{title}: the search did not stop in time and was left behind"


def _failed(title: str, failure: BaseException) -> str:
    return f"{title}: {type(failure).__name__}: {one_line(failure)}"


def _reported(result: LayerResult, message: str) -> LayerResult:
    """The answer with one more message."""
    return replace(result, message="; ".join(filter(None, (result.message, message)))) if message else result
