"""Why a layer has no mapping: the constraints that no mapping satisfies together."""

from __future__ import annotations

from dataclasses import replace

from tilewright.cli.terminal.progress import Progress
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.result import SearchResult, Status
from tilewright.formulation.search import Limits
from tilewright.solvers.mapping.answer_sets import clashing_constraints
from tilewright.solvers.watched import Watched

LONGEST = 10.0
"""Seconds that the explanation may take."""


def explained(
    result: SearchResult, problem: LayerProblem | None, limits: Limits, progress: Progress
) -> SearchResult:
    """An infeasible answer with the constraints that clash, as far as the time allows.

    Parameters
    ----------
    limits : of the whole layer
    """
    if result.status is not Status.INFEASIBLE or problem is None or limits.expired:
        return result
    progress.phase("constraints that clash")
    remaining = limits.remaining
    seconds = limits.elapsed + (LONGEST if remaining is None else min(LONGEST, remaining))
    short = replace(limits, seconds=seconds, gap=0.0)
    watched = Watched(lambda: clashing_constraints(problem, short), short, "clash")
    watched.run()
    if not watched.answer:
        return result
    clash = tuple(dict.fromkeys(watched.answer))
    return replace(result, clash=clash, message=f"no mapping satisfies: {'; '.join(clash)}")
