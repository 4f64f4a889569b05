"""One layer solved: the composition of problem, solver, limits and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.formulation.mapping import Mapping
from tilewright.formulation.problem import LayerProblem
from tilewright.formulation.result import SearchResult, TracePoint
from tilewright.formulation.search import Limits, Search, UnsoundBoundError
from tilewright.solvers.base import Outcome
from tilewright.solvers.registry import solver, solver_names
from tilewright.workloads.errors import InputError, unknown_name

AUTO = "auto"
DEFAULT = "branch"


def solve(
    problem: LayerProblem,
    name: str = AUTO,
    limits: Limits | None = None,
    listener: Callable[[TracePoint], None] | None = None,
    warm_starts: Sequence[Mapping] = (),
) -> SearchResult:
    """Search one problem with one solver.

    Parameters
    ----------
    name : a solver, or ``auto``
    listener : called at every improvement of value or bound
    warm_starts : mappings to begin with; illegal ones are ignored

    Raises
    ------
    InputError : for an unknown solver
    """
    chosen = DEFAULT if name == AUTO else name
    if chosen not in solver_names():
        raise InputError("--solver", None, unknown_name(name, [AUTO, *solver_names()]))
    search = Search(problem, limits or Limits(), listener)
    for mapping in warm_starts:
        search.offer(mapping, "warm start", heuristic=True)
    engine = solver(chosen)
    try:
        outcome = engine.solve(search)
    except (MemoryError, OverflowError) as failure:
        outcome = Outcome(False, f"{type(failure).__name__}: {failure}", error=True)
    try:
        return search.result(chosen, engine.version, outcome.exhausted, outcome.message, outcome.error)
    except UnsoundBoundError as failure:
        search.bound = None
        return search.result(chosen, engine.version, False, str(failure), error=True)
