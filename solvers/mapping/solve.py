"""One layer solved: the composition of problem, method, limits and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.segment_parts import has_parts
from tilewright.formulation.mapping.parts.uneven_parts import has_uneven_parts
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult, LayerSearch
from tilewright.formulation.result import Origin, TracePoint
from tilewright.foundation.errors import InputError
from tilewright.foundation.garbage import seldom_collected
from tilewright.solvers.mapping.arrangements.by_arrangement import ByArrangement
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.methods import method
from tilewright.solvers.mapping.problem_kinds import has_patterns, is_large
from tilewright.solvers.running import SearchRun, run_method

AUTO = "auto"


def solve(
    problem: LayerProblem,
    name: str = AUTO,
    limits: Limits | None = None,
    listener: Callable[[TracePoint], None] | None = None,
    warm_starts: Sequence[Mapping] = (),
) -> LayerResult:
    """Search one problem with one method.

    Parameters
    ----------
    name : an exact solver or a heuristic, with its options (``dmazerunner[opt=1-3]``); ``auto`` is the
        portfolio
    listener : called at every improvement of value or bound
    warm_starts : mappings to begin with; illegal ones are ignored, those from outside the searched space
        are shown apart from the claim

    Raises
    ------
    InputError : for an unknown method or option
    """
    engine = ByArrangement(method(name))
    search = LayerSearch(problem, limits or Limits(), listener, exact=engine.exact)
    with seldom_collected():
        return run_method(search, engine, name, lambda: _begin(search, engine, warm_starts))


def layer_run(
    build: Callable[[], LayerProblem],
    name: str,
    limits: Limits,
    listener: Callable[[TracePoint], None] = lambda point: None,
    warm_starts: Sequence[Mapping] = (),
    earlier: LayerResult | None = None,
) -> SearchRun[LayerProblem, Mapping, Evaluation]:
    """The same in a thread of its own, which signals and limits end.

    Parameters
    ----------
    build : states the problem; part of the call that the limits cover
    earlier : of the same problem; the search continues with its mapping, its bound and its trace
    """
    engine = ByArrangement(method(name))

    def state(notify: Callable[[TracePoint], None]) -> LayerSearch:
        search = LayerSearch(build(), limits, notify, exact=engine.exact)
        if earlier is not None and earlier.input_hash:
            search.resume(earlier)
        return search

    return SearchRun(
        state, engine, name, limits, listener, lambda search: _begin(search, engine, warm_starts)
    )


def _begin(search: LayerSearch, engine: ByArrangement, warm_starts: Sequence[Mapping]) -> None:
    """What is known before the method begins: given mappings, and what a subset of a large space shows."""
    for mapping in warm_starts:
        with suppress(InputError):  # a mapping of something else
            search.offer(mapping, "warm start", Origin.GIVEN)
    problem = search.problem
    begins_even = (
        engine.knows_arrangements and problem.is_uneven and (has_parts(problem) or has_uneven_parts(problem))
    )
    if engine.exact and (is_large(problem) or has_patterns(problem)) and not begins_even:
        from tilewright.solvers.mapping.large_problems import offer_initial_solution

        offer_initial_solution(search, Branch(goes_on=False))
