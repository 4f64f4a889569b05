"""Why a layer has no mapping: the constraints that no mapping satisfies together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.result import Status
from tilewright.solvers.mapping.answers.answer_sets import minimal_conflict
from tilewright.solvers.watched import Watched

LONGEST = 10.0
"""Seconds that the explanation may take."""


def explained(
    result: LayerResult,
    problem: LayerProblem | None,
    limits: Limits,
    phase: Callable[[str], None] = lambda text: None,
) -> LayerResult:
    """An infeasible answer with constraints that conflict, as far as the time allows.

    Parameters
    ----------
    limits : of the whole layer
    phase : called with the name of the step that begins
    """
    if result.status is not Status.INFEASIBLE or problem is None or limits.expired:
        return result
    phase("constraints that clash")
    short = replace(limits.share(longest=LONGEST), gap=0.0)
    watched = Watched(lambda: minimal_conflict(problem, short), short, "clash")
    watched.run()
    if not watched.answer:
        return result
    conflict = tuple(dict.fromkeys(watched.answer))
    return replace(result, conflict=conflict, message=f"no mapping satisfies: {'; '.join(conflict)}")
