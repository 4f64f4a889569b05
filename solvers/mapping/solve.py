"""One layer solved: the composition of problem, solver, limits and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.result import SearchResult, TracePoint
from tilewright.formulation.search import DisagreementError, Limits, Search, UnsoundBoundError
from tilewright.solvers.base import Outcome
from tilewright.solvers.mapping.large_problems import is_large, open_search
from tilewright.solvers.mapping.methods import method

AUTO = "auto"


def solve(
    problem: LayerProblem,
    name: str = AUTO,
    limits: Limits | None = None,
    listener: Callable[[TracePoint], None] | None = None,
    warm_starts: Sequence[Mapping] = (),
    began: Callable[[Search], None] = lambda _search: None,
) -> SearchResult:
    """Search one problem with one method.

    Parameters
    ----------
    name : an exact solver or a heuristic, with its options (``dmazerunner[opt=1-3]``); ``auto`` is the
        portfolio
    listener : called at every improvement of value or bound
    warm_starts : mappings to begin with; illegal ones are ignored
    began : called with the running search, so that what it finds can be had even if the solver is left behind

    Raises
    ------
    InputError : for an unknown method or option
    """
    engine = method(name)
    search = Search(problem, limits or Limits(), listener, exact=engine.exact)
    began(search)
    for mapping in warm_starts:
        search.offer(mapping, "warm start", heuristic=True)
    try:
        if engine.exact and is_large(problem):
            open_search(search)
        outcome = engine.solve(search)
    except TimeoutError:
        outcome = Outcome(False, "a limit struck while the problem was laid out")
    except (MemoryError, OverflowError, DisagreementError) as failure:
        outcome = Outcome(False, f"{type(failure).__name__}: {failure}", error=True)
    try:
        return search.result(name, engine.version, outcome.exhausted, outcome.message, outcome.error)
    except UnsoundBoundError as failure:
        search.bound = None
        return search.result(name, engine.version, False, str(failure), error=True)
