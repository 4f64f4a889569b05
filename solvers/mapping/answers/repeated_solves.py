"""Lexicographic optima and Pareto fronts with any exact solver, by repeated solves under caps.

Every step is a problem of its own, stated with one more demand such as ``energy<=2581195121`` and proven by
the solver that was asked for.  So an answer depends on that solver alone, whichever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.foundation.errors import InputError
from tilewright.solvers.mapping.answers.answer_sets import AnswerSet, Solution
from tilewright.solvers.mapping.solve import solve

METRICS = ("energy", "cycles")
ENERGY, CYCLES = (parse_objective(metric) for metric in METRICS)

Listener = Callable[[TracePoint], None]


@dataclass(frozen=True)
class Lexicographic:
    """The least second objective among the mappings of the least first one.

    Parameters
    ----------
    first : of the problem's own objective
    second : of the other one, under a cap at the first optimum; ``None`` where the first is not proven.  Its
        mapping is the answer.
    """

    first: LayerResult
    second: LayerResult | None

    @property
    def optimal(self) -> bool:
        """Whether both are proven."""
        return self.second is not None and self.second.status is Status.OPTIMAL


def check_lexicographic(first: Objective, second: Objective) -> None:
    """Raises ``InputError`` unless one is energy and the other one cycles.

    Once these two are fixed, so is every other objective.
    """
    if {first.name, second.name} != set(METRICS):
        raise InputError(
            "--then",
            None,
            f"expected the objectives energy and cycles, one of them first, got {first} and {second}",
        )


def lexicographic(
    problem: LayerProblem,
    second: Objective,
    name: str,
    limits: Limits | None = None,
    listener: Listener | None = None,
) -> Lexicographic:
    """Minimise the problem's objective, then a second one among its optima.

    Parameters
    ----------
    name : the solver of both steps
    limits : for both together; the gap that they allow does not count, as the second step needs a proof

    Raises
    ------
    InputError : unless the two objectives are energy and cycles
    """
    check_lexicographic(problem.objective, second)
    limits = replace(limits or Limits(), gap=0.0)
    first = solve(problem, name, limits, listener)
    return Lexicographic(first, among_optima(problem, first, second, name, limits, listener))


def among_optima(
    problem: LayerProblem,
    first: LayerResult,
    second: Objective,
    name: str,
    limits: Limits,
    listener: Listener | None = None,
) -> LayerResult | None:
    """The least second objective among the optima of the first one; ``None`` where that is not proven.

    Parameters
    ----------
    problem : with the first objective
    first : its result
    second : energy or cycles, whichever the first objective is not
    name : the solver
    limits : of the second search alone; their gap does not count
    listener : called with every better answer and bound
    """
    if first.status is not Status.OPTIMAL or first.answer is None or first.key is None:
        return None
    problem = tied(problem, first.key, second)
    return solve(problem, name, replace(limits, gap=0.0), listener, [first.answer])


def tied(problem: LayerProblem, least: Fraction, second: Objective) -> LayerProblem:
    """The problem of the second step: mappings no worse than ``least``, by another objective."""
    return problem.minimising(second).capped(problem.objective.name, least)


def front_by_repeated_solves(problem: LayerProblem, name: str, limits: Limits | None = None) -> AnswerSet:
    """The Pareto front of energy and cycles, from the least energy towards the least cycles.

    Each point is the least energy under a cap on cycles, then the least cycles at that energy; the next cap
    is one cycle below.  The front is complete once nothing is left below the cap.

    Parameters
    ----------
    name : the solver of every step
    limits : for all of them together
    """
    limits = replace(limits or Limits(), gap=0.0)
    front: list[Solution] = []
    open_ = problem.minimising(ENERGY)
    while True:
        answer = lexicographic(open_, CYCLES, name, limits)
        for result in (answer.first, answer.second):
            if result is not None and result.status is Status.ERROR:
                raise RuntimeError(f"{name}: {result.message}")
        best = answer.second if answer.second is not None and answer.second.answer else answer.first
        if best.answer is not None and best.evaluation is not None:
            front.append(Solution(best.answer, best.evaluation))
        if not answer.optimal or best.evaluation is None:
            return AnswerSet(tuple(reversed(front)), answer.first.status is Status.INFEASIBLE)
        open_ = problem.minimising(ENERGY).capped("cycles", best.evaluation.cycles - 1)
